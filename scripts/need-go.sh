#!/usr/bin/env bash
#
# Succeeds when the go on PATH can build the workspace; says what to do when
# it cannot. Exit status: 0 it can, 3 it cannot.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=scripts/packages.sh
. "$here/packages.sh"

# The workspace's own go line: the oldest release that builds all of it.
want=$(awk '$1 == "go" { print $2; exit }' "$here/../go.work")
hint="Install Go $want or newer from https://go.dev/dl/ and put its bin folder on PATH.
  (The golang package of a Linux distribution is often older than that.)"

command -v go >/dev/null 2>&1 || die 3 "there is no 'go' on PATH. $hint"

# Outside of the module, so that the answer is about this go, not about one
# that the module would make it download.
have=$(cd / && GOWORK=off go version | awk '{ print $3 }')
have=${have#go}

# number VERSION prints 1.26.8 as 1026.
number() { awk -F. '{ sub(/[^0-9].*/, "", $2); printf "%d%03d\n", $1, $2 }' <<<"$1"; }

case $have in devel*) exit 0 ;; esac
[ "$(number "$have")" -ge "$(number "$want")" ] && exit 0
# From 1.21 on go fetches the release that a module asks for, unless told not to.
if [ "$(number "$have")" -ge 1021 ] && [ "$(cd / && go env GOTOOLCHAIN)" != local ]; then
	note "go $have is on PATH; it will fetch Go $want for this workspace"
	exit 0
fi
die 3 "go $have is on PATH ($(command -v go)), and this workspace needs $want. $hint"
