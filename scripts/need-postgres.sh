#!/usr/bin/env bash
#
# Makes sure that PostgreSQL's server programs are here, looking where the
# tests and the lab look (internal/pgcluster). When there are none it says what
# it will install and how, asks first on a terminal unless CI=true, and installs
# them. It starts no server and creates no cluster: the tests and the lab start
# their own, on free ports, in temporary folders.
#
# usage: need-postgres.sh [--find]
#   --find  install nothing; print the folder of the programs, or fail
#
# Exit status: 0 they are here (now), 2 wrong usage, 3 there are none and they
# cannot be installed here, 4 the person at the terminal said no.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=scripts/packages.sh
. "$here/packages.sh"
# shellcheck source=scripts/postgres.sh
. "$here/postgres.sh"

oldest=14 # the oldest major version that Tidegate supports: docs/versions.md

only_find=false
case "${1:-}" in
'') ;;
--find) only_find=true ;;
*) die 2 "usage: $0 [--find]" ;;
esac

# A folder that somebody named is taken as it is, or is an error: another one
# in its place would test what nobody asked for.
if [ -n "${TIDEGATE_PG_BIN:-}" ]; then
	usable "$TIDEGATE_PG_BIN" $oldest ||
		die 3 "TIDEGATE_PG_BIN=$TIDEGATE_PG_BIN has no PostgreSQL $oldest or newer: it must hold postgres, initdb, pg_basebackup and psql. Correct it or unset it."
	[ "$only_find" = true ] && echo "$TIDEGATE_PG_BIN"
	exit 0
fi

if folder=$(first_usable $oldest); then
	[ "$only_find" = true ] && echo "$folder"
	exit 0
fi

by_hand="Or set TIDEGATE_PG_BIN to the folder with postgres, initdb, pg_basebackup and psql."
[ "$only_find" = true ] && die 3 "no PostgreSQL $oldest or newer was found. $by_hand"

note "PostgreSQL's server programs are needed (postgres, initdb, pg_basebackup, psql; version $oldest or newer), and none were found."

if ! has_apt; then
	if command -v brew >/dev/null 2>&1; then
		die 3 "install them with: brew install postgresql@17 . $by_hand"
	elif command -v dnf >/dev/null 2>&1; then
		die 3 "install them with: sudo dnf install postgresql-server postgresql-contrib . $by_hand"
	elif command -v apk >/dev/null 2>&1; then
		die 3 "install them with: apk add postgresql postgresql-contrib . $by_hand"
	elif command -v pacman >/dev/null 2>&1; then
		die 3 "install them with: sudo pacman -S postgresql . $by_hand"
	fi
	die 3 "install PostgreSQL $oldest or newer with this system's package manager. $by_hand"
fi

need_root postgresql
note 'will install the package postgresql with apt-get (the server and its client; some 60 MB to fetch).'
note 'no database cluster is created and nothing is left running: clusters are started when needed, in temporary folders.'
may_install || die 4 "nothing was installed. $by_hand"

# Debian's packages create and start a cluster named main when they are first
# installed. A drop-in file, there only while they install, tells them not to.
dropins=/etc/postgresql-common/createcluster.d
dropin=$dropins/tidegate-no-main-cluster.conf
had_dropins=false
[ -d "$dropins" ] && had_dropins=true

remove_dropin() {
	as_root rm -f "$dropin" || note "could not remove $dropin: please do"
	# The folder is the package's; when it was not installed after all it goes too.
	if [ "$had_dropins" = false ] && ! [ -e /etc/postgresql-common/createcluster.conf ]; then
		as_root rmdir "$dropins" /etc/postgresql-common 2>/dev/null || true
	fi
}
trap remove_dropin EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
as_root mkdir -p "$dropins"
as_root sh -c "echo 'create_main_cluster = false' >'$dropin'"

apt_install postgresql || die 3 "apt-get could not install postgresql (see above). $by_hand"

folder=$(first_usable $oldest) ||
	die 3 "the package postgresql of this release is older than $oldest, or incomplete. Install a newer one. $by_hand"
note "PostgreSQL $(major "$folder") is in $folder"
