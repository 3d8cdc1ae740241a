#!/usr/bin/env bash
#
# Makes sure that there is a Redis or Valkey server for the tests of redisgate,
# looking where they look (internal/redisserver). When there is none it says what
# it will install and how, asks first on a terminal unless CI=true, and installs
# it. It starts no server and adds no service: the tests start their own, on free
# ports, in temporary folders.
#
# usage: need-redis.sh [--find]
#   --find  install nothing; print the program, or fail
#
# Exit status: 0 there is one (now), 2 wrong usage, 3 there is none and it
# cannot be installed here, 4 the person at the terminal said no.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=scripts/packages.sh
. "$here/packages.sh"

oldest=7 # the oldest major version that redisgate supports: docs/versions.md

# server NAME prints what the server is called that a program is. The one that
# checks snapshots is the server itself, under another name.
server() {
	case $(basename "$1") in
	*valkey*) echo valkey-server ;;
	*) echo redis-server ;;
	esac
}

# version PROGRAM prints the version of the server that it is.
version() {
	(exec -a "$(server "$1")" "$1" --version) 2>/dev/null </dev/null | sed -n 's/.* v=\([0-9][0-9.]*\) .*/\1/p'
}

usable() {
	local version
	[ -x "$1" ] || return 1
	version=$(version "$1")
	[ -n "$version" ] && [ "${version%%.*}" -ge "$oldest" ]
}

# find_program prints the first usable one. The same ones as in
# internal/redisserver.
find_program() {
	local name program
	for name in redis-server valkey-server redis-check-rdb valkey-check-rdb; do
		if program=$(command -v "$name" 2>/dev/null) && usable "$program"; then
			echo "$program"
			return 0
		fi
	done
	return 1
}

only_find=false
case "${1:-}" in
'') ;;
--find) only_find=true ;;
*) die 2 "usage: $0 [--find]" ;;
esac

# A program that somebody named is taken as it is, or is an error: another one
# in its place would test what nobody asked for.
if [ -n "${TIDEGATE_REDIS_BIN:-}" ]; then
	named=$(command -v "$TIDEGATE_REDIS_BIN" 2>/dev/null || echo "$TIDEGATE_REDIS_BIN")
	usable "$named" ||
		die 3 "TIDEGATE_REDIS_BIN=$TIDEGATE_REDIS_BIN is no server of Redis or Valkey $oldest or newer. Correct it or unset it."
	[ "$only_find" = true ] && echo "$named"
	exit 0
fi

if program=$(find_program); then
	[ "$only_find" = true ] && echo "$program"
	exit 0
fi

by_hand="Or set TIDEGATE_REDIS_BIN to a redis-server or valkey-server."
[ "$only_find" = true ] && die 3 "no Redis or Valkey $oldest or newer was found. $by_hand"

note "a server of Redis or Valkey is needed (version $oldest or newer), and none was found."

if ! has_apt; then
	if command -v brew >/dev/null 2>&1; then
		die 3 "install it with: brew install valkey . $by_hand"
	elif command -v dnf >/dev/null 2>&1; then
		die 3 "install it with: sudo dnf install valkey . $by_hand"
	elif command -v apk >/dev/null 2>&1; then
		die 3 "install it with: apk add valkey . $by_hand"
	elif command -v pacman >/dev/null 2>&1; then
		die 3 "install it with: sudo pacman -S valkey . $by_hand"
	fi
	die 3 "install Redis or Valkey $oldest or newer with this system's package manager. $by_hand"
fi

# The package redis-server is a service, and little else: the program is here.
need_root redis-tools
note 'will install the package redis-tools with apt-get (redis-cli and, as redis-check-rdb, the server; some 2 MB to fetch).'
note 'no service is added and nothing is left running: servers are started when needed, in temporary folders.'
may_install || die 4 "nothing was installed. $by_hand"
apt_install redis-tools || die 3 "apt-get could not install redis-tools (see above). $by_hand"

program=$(find_program) ||
	die 3 "the package redis-tools of this release is older than $oldest, or has no server in it. $by_hand"
note "$(server "$program") $(version "$program") is $program"
