#!/usr/bin/env bash
#
# Makes sure that there is a C compiler: go test -race links with cgo on Linux.
# Says what it will install, asks first on a terminal unless CI=true.
#
# Exit status: 0 there is one (now), 3 there is none and it cannot be installed
# here, 4 the person at the terminal said no.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=scripts/packages.sh
. "$here/packages.sh"

[ "$(uname -s)" = Linux ] || exit 0

# A compiler without the C library's headers does not link a Go program.
works() {
	local cc
	for cc in "${CC:-}" gcc clang; do
		[ -n "$cc" ] || continue
		# shellcheck disable=SC2086 # CC may carry flags
		echo '#include <stdlib.h>' | $cc -E - >/dev/null 2>&1 && return 0
	done
	return 1
}

works && exit 0

note 'the race detector needs a C compiler, and none was found.'
has_apt || die 3 "install gcc and the C library's headers (dnf install gcc glibc-devel, apk add build-base), or run: make test RACE="
need_root gcc libc6-dev
note 'will install the packages gcc and libc6-dev with apt-get.'
may_install || die 4 "nothing was installed. Install gcc and libc6-dev yourself, or run: make test RACE="
apt_install gcc libc6-dev || die 3 'apt-get could not install gcc and libc6-dev (see above)'
works || die 3 'gcc is installed and still does not compile (see: gcc -E -include stdlib.h - </dev/null)'
