#!/usr/bin/env bash
#
# Makes sure that server programs of a newer PostgreSQL are here, to run the
# tests on a second version. One that is installed is taken. Otherwise it says
# what it will download, asks first on a terminal unless CI=true, and unpacks
# packages of the operating system's next release, with the libraries that they
# need, into .cache: nothing is installed, and no root is needed. It works on
# Debian, and on Ubuntu in the same way.
#
# usage: need-postgres-newer.sh [--find]
#   --find  download nothing; print the folder of the programs, or fail
#
# Tests find them by TIDEGATE_PG_BIN=folder, or beside the usual version by
# TIDEGATE_PG_BIN_NEWER=folder (internal/pgcluster).
#
# Exit status: 0 they are here (now), 2 wrong usage, 3 there are none and they
# cannot be had here, 4 the person at the terminal said no.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=scripts/packages.sh
. "$here/packages.sh"
# shellcheck source=scripts/postgres.sh
. "$here/postgres.sh"
# shellcheck source=scripts/unpack-postgres.sh
. "$here/unpack-postgres.sh"

oldest=17 # what counts as newer
newest=18 # the newest that Tidegate supports: docs/versions.md
cache=$(cd "$here/.." && pwd)/.cache

only_find=false
case "${1:-}" in
'') ;;
--find) only_find=true ;;
*) die 2 "usage: $0 [--find]" ;;
esac

# A folder that somebody named is taken as it is, or is an error.
if [ -n "${TIDEGATE_PG_BIN_NEWER:-}" ]; then
	usable "$TIDEGATE_PG_BIN_NEWER" $oldest ||
		die 3 "TIDEGATE_PG_BIN_NEWER=$TIDEGATE_PG_BIN_NEWER has no PostgreSQL $oldest or newer: it must hold postgres, initdb, pg_basebackup and psql. Correct it or unset it."
	[ "$only_find" = true ] && echo "$TIDEGATE_PG_BIN_NEWER"
	exit 0
fi

# unpacked prints the folder of what an earlier run has unpacked.
unpacked() {
	local version folder
	for ((version = newest; version >= oldest; version--)); do
		folder=$(programs_in "$cache/postgresql-$version" "$version")
		if usable "$folder" $oldest; then
			echo "$folder"
			return 0
		fi
	done
	return 1
}

if folder=$(first_usable $oldest || unpacked); then
	[ "$only_find" = true ] && echo "$folder"
	exit 0
fi

by_hand="Or set TIDEGATE_PG_BIN_NEWER to a folder with postgres, initdb, pg_basebackup and psql of version $oldest or newer."
[ "$only_find" = true ] && die 3 "no PostgreSQL $oldest or newer was found. $by_hand"

note "PostgreSQL $oldest or newer is needed beside the usual version, and none was found."
has_apt && command -v dpkg-deb >/dev/null 2>&1 ||
	die 3 "NO NEWER POSTGRESQL: without apt and dpkg this script cannot get one. $by_hand"

suites=$(later_suites) ||
	die 3 "NO NEWER POSTGRESQL: this script knows the later releases of Debian and Ubuntu only. $by_hand"
mirror=$(apt_mirror) ||
	die 3 "NO NEWER POSTGRESQL: apt's sources name no archive of this release to take a later one from. $by_hand"

note "will download, from $mirror, a later release's list of packages (some 10 MB), then the packages postgresql and postgresql-client with the libraries that they need (some 35 MB)."
note "they are unpacked into $cache; nothing is installed, and apt's own lists stay as they are."
may_install || die 4 "nothing was downloaded. $by_hand"

mkdir -p "$cache"
work=$(mktemp -d "$cache/postgresql.XXXXXX")
chmod 755 "$work" # the servers run as another user than root
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# What apt offers already, then later releases, the nearest to a stable one last.
for suite in own $suites; do
	use_index "$work" "$mirror" "$suite" || continue
	for ((version = newest; version >= oldest; version--)); do
		offered "$version" || continue
		note "PostgreSQL $version is in $([ "$suite" = own ] && echo "apt's own sources" || echo "the release $suite")"
		unpack "$work" "$version" || continue
		folder=$(programs_in "$work/root" "$version")
		if ! usable "$folder" $oldest || ! whole "$work/root" "$version"; then
			note "what was unpacked does not run here"
			continue
		fi
		rm -rf "$cache/postgresql-$version"
		mv "$work/root" "$cache/postgresql-$version"
		folder=$(programs_in "$cache/postgresql-$version" "$version")
		note "$("$folder/postgres" --version) is in $folder"
		exit 0
	done
done
die 3 "NO NEWER POSTGRESQL: none of $oldest to $newest could be downloaded and run (see above). $by_hand"
