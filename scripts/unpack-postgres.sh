# shellcheck shell=bash
#
# Sourced by need-postgres-newer.sh: packages of another release of Debian or
# Ubuntu, through an index of packages beside apt's own, and their programs made
# to run with their own libraries.

# later_suites prints the names by which the archive knows later releases, the
# best first.
later_suites() {
	case $(os_release ID) in
	debian) echo testing stable ;;
	ubuntu) echo devel ;;
	*) return 1 ;;
	esac
}

# os_release FIELD prints what the system says of itself.
os_release() { sed -n "s/^$1=\"\\{0,1\\}\\([^\"]*\\)\"\\{0,1\\}\$/\\1/p" /etc/os-release; }

# apt_mirror prints the archive that this machine's own release comes from.
apt_mirror() {
	local codename
	codename=$(os_release VERSION_CODENAME)
	# Third parties' sources can have the codename, but not that component.
	# shellcheck disable=SC2016 # apt-get fills the fields in
	apt-get indextargets --format '$(RELEASE) $(COMPONENT) $(SITE)' 'Created-By: Packages' 2>/dev/null |
		awk -v name="$codename" '
			$2 == "main" && ($1 == name || $1 ~ /^(stable|testing|unstable|sid|devel)$/) && !seen { print $3; seen = 1 }
			END { exit !seen }'
}

# use_index WORK MIRROR SUITE makes the functions below see the packages of that
# suite, or of apt's own sources when it is "own". What is installed here does
# not count: the whole closure is wanted.
use_index() {
	local work=$1 mirror=$2 suite=$3 key signed=''
	: >"$work/nothing-installed"
	mkdir -p "$work/cache/archives/partial" "$work/lists/partial"
	apt=(-o "Dir::State::status=$work/nothing-installed" -o "Dir::Cache=$work/cache" -o "APT::Sandbox::User=$(id -un)")
	[ "$suite" = own ] && return 0
	for key in /usr/share/keyrings/{debian,ubuntu}-archive-keyring.{pgp,gpg}; do
		[ -e "$key" ] && signed="signed-by=$key"
	done
	echo "deb [target=Packages $signed] $mirror $suite main" >"$work/sources.list"
	apt+=(-o "Dir::Etc::sourcelist=$work/sources.list" -o Dir::Etc::sourceparts=/dev/null
		-o "Dir::State::Lists=$work/lists" -o Acquire::Languages=none)
	apt-get -qq "${apt[@]}" update >&2 || {
		note "the list of packages of $suite could not be downloaded"
		return 1
	}
}

# offered VERSION: the index has that version of the server.
offered() { [ -n "$(apt-cache "${apt[@]}" madison "postgresql-$1" 2>/dev/null)" ]; }

# unpack WORK VERSION downloads the server with its libraries and unpacks them
# into WORK/root.
unpack() {
	local work=$1 version=$2 debs=$1/debs root=$1/root needed deb
	rm -rf "$debs" "$root"
	mkdir -p "$debs" "$root"
	# Of what the packages want, the server and its libraries: no Perl, and not
	# the compiler for large queries, which the server does without.
	needed=$(apt-get "${apt[@]}" --no-install-recommends --print-uris -y install "postgresql-$version" "postgresql-client-$version" |
		sed -n "s/^'[^']*' \\([^_]*\\)_.*/\\1/p" |
		grep -E "^(lib|postgresql(-client)?-$version\$)" |
		grep -vE '^lib(c-|perl|llvm|z3|pam-modules|systemd-shared)|-common$|-perl$') || {
		note "the packages that postgresql-$version needs could not be found"
		return 1
	}
	# shellcheck disable=SC2086 # names without blanks
	(cd "$debs" && apt-get -qq "${apt[@]}" download $needed >&2) || {
		note "the packages could not be downloaded"
		return 1
	}
	for deb in "$debs"/*.deb; do
		dpkg-deb -x "$deb" "$root" || return 1
	done
	rm -rf "$debs" "$root"/usr/share/{doc,man,locale} "$root"/usr/lib/*/gconv \
		"$root/usr/lib/postgresql/$version"/lib/{bitcode,llvmjit.so,llvmjit_types.bc}
	wrap "$root" "$version"
}

# programs_in ROOT VERSION prints the folder of the programs to call. Its place
# counts: the programs find their files relative to it.
programs_in() { echo "$1/usr/lib/postgresql/$2/bin"; }

# loader ROOT prints the unpacked dynamic loader, relative to ROOT.
loader() { (cd "$1" && compgen -G 'usr/lib/*/ld-linux*.so.*'); }

# wrap ROOT VERSION puts in each program's place a script that runs it with the
# loader and the libraries unpacked beside it: those of the system may be too
# old. The program takes the script for itself, and finds others beside it.
wrap() {
	local root=$1 bin program loader
	bin=$(programs_in "$1" "$2")
	loader=$(loader "$root") || {
		note "the packages have no dynamic loader"
		return 1
	}
	mv "$bin" "$bin.real"
	mkdir "$bin"
	for program in "$bin.real"/*; do
		program=$(basename "$program")
		cat >"$bin/$program" <<-WRAPPER
			#!/bin/sh
			bin=\${0%/*}
			root=\$bin/../../../../..
			exec "\$root/$loader" --library-path "\$root/$(dirname "$loader")" --argv0 "\$0" "\$bin.real/$program" "\$@"
		WRAPPER
		chmod 755 "$bin/$program"
	done
}

# whole ROOT VERSION: the programs that tests call find all their libraries.
whole() {
	local root=$1 bin loader program
	bin=$(programs_in "$1" "$2")
	loader=$(loader "$root") || return 1
	for program in postgres initdb pg_basebackup pg_controldata pg_rewind psql; do
		"$root/$loader" --library-path "$root/$(dirname "$loader")" --list "$bin.real/$program" >/dev/null || return 1
	done
}
