# shellcheck shell=bash
#
# Sourced by the scripts beside it: asking for and installing packages of the
# operating system. Nothing here reads standard input; a question goes to the
# terminal when there is one.

note() { printf 'tidegate: %s\n' "$*" >&2; }

# die STATUS MESSAGE
die() {
	local status=$1
	shift
	note "$*"
	exit "$status"
}

# has_apt says whether packages can be installed with apt-get here.
has_apt() { command -v apt-get >/dev/null 2>&1; }

# as_root COMMAND... runs it as root: directly, or through sudo.
as_root() {
	if [ "$(id -u)" -eq 0 ]; then
		"$@" </dev/null
	elif [ "${CI:-}" = true ] || ! [ -t 2 ]; then
		sudo -n "$@" </dev/null
	else
		sudo "$@" </dev/null
	fi
}

# may_install asks on the terminal; without a terminal, or with CI=true, the
# announcement that came before is enough.
may_install() {
	local answer
	[ "${CI:-}" = true ] && return 0
	[ -t 2 ] || return 0
	{ : </dev/tty; } 2>/dev/null || return 0
	printf 'tidegate: install it now? [Y/n] ' >/dev/tty
	IFS= read -r answer </dev/tty || return 1
	case $answer in
	'' | [Yy] | [Yy][Ee][Ss]) return 0 ;;
	*) return 1 ;;
	esac
}

# apt_install PACKAGE... installs with apt-get, quietly and without questions.
apt_install() {
	note 'running: apt-get update'
	as_root env DEBIAN_FRONTEND=noninteractive apt-get -qq -o DPkg::Lock::Timeout=120 update ||
		note 'apt-get update failed; going on with the lists that are here'
	note "running: apt-get install -y --no-install-recommends $*"
	as_root env DEBIAN_FRONTEND=noninteractive apt-get -qq -o DPkg::Lock::Timeout=120 \
		-o Dpkg::Use-Pty=0 install -y --no-install-recommends "$@" >&2
}

# need_root ends the script when packages could not be installed anyway.
need_root() {
	[ "$(id -u)" -eq 0 ] || command -v sudo >/dev/null 2>&1 ||
		die 3 "this needs root and there is no sudo: run as root: apt-get install $*"
}
