# shellcheck shell=bash
#
# Sourced by the scripts beside it: what a folder of PostgreSQL's programs must
# hold, and where to look for one. The same places as in internal/pgcluster.

# major FOLDER prints the major version of the server in it.
major() {
	"$1/postgres" --version 2>/dev/null | sed -n 's/^[^0-9]*\([0-9][0-9]*\).*/\1/p'
}

# usable FOLDER OLDEST: a server of at least that major version, with all that a
# cluster with standbys is made of.
usable() {
	local program version
	for program in postgres initdb pg_basebackup psql; do
		[ -x "$1/$program" ] || return 1
	done
	version=$(major "$1")
	[ -n "$version" ] && [ "$version" -ge "$2" ]
}

# folders prints where the programs may be, the best first. Debian puts wrappers
# of the client programs on PATH but no server: only initdb tells.
folders() {
	local initdb pattern
	if initdb=$(command -v initdb 2>/dev/null); then
		dirname "$initdb"
		dirname "$(readlink -f "$initdb" 2>/dev/null || echo "$initdb")"
	fi
	# The newest release first.
	for pattern in \
		'/usr/lib/postgresql/*/bin' \
		'/usr/pgsql-*/bin' \
		'/usr/local/pgsql/bin' \
		'/opt/homebrew/opt/postgresql@*/bin' \
		'/usr/local/opt/postgresql@*/bin' \
		'/Applications/Postgres.app/Contents/Versions/*/bin'; do
		compgen -G "$pattern" | sort -rV || true
	done
}

# first_usable OLDEST prints the first folder that will do.
first_usable() {
	local folder
	while IFS= read -r folder; do
		if usable "$folder" "$1"; then
			echo "$folder"
			return 0
		fi
	done < <(folders)
	return 1
}
