#!/usr/bin/env bash
#
# Runs every fuzz target of the workspace for a while, one after the other. A
# crasher is written below testdata/fuzz of its package, to be committed with
# the fix.
#
# usage: fuzz.sh TIME [NAME]
#   TIME  how long for each target, as go test -fuzztime takes it
#   NAME  only the targets whose name contains it
set -euo pipefail

[ $# -ge 1 ] || {
	echo "usage: $0 TIME [NAME]" >&2
	exit 2
}
fuzztime=$1
only=${2:-}
cd "$(dirname "${BASH_SOURCE[0]}")/.."

ran=0
while IFS= read -r file; do
	while IFS= read -r target; do
		case $target in *"$only"*) ;; *) continue ;; esac
		echo "--> $target ($(dirname "$file")), $fuzztime"
		go test -run '^$' -fuzz "^$target\$" -fuzztime "$fuzztime" "$(dirname "$file")" </dev/null
		ran=$((ran + 1))
	done < <(sed -n 's/^func \(Fuzz[A-Za-z0-9_]*\)(.*\*testing\.F).*/\1/p' "$file")
done < <(find . -path './.?*' -prune -o -name '*_test.go' -print | sort)

echo "fuzz targets run: $ran"
if [ "$ran" -eq 0 ] && [ -n "$only" ]; then
	echo "no fuzz target has '$only' in its name" >&2
	exit 2
fi
