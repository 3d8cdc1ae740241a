#!/usr/bin/env bash
#
# Makes sure that there is a Chromium, or a browser made of it, for the tests in
# test/browser, looking where they look. When there is none it says what it will
# install and how, asks first on a terminal unless CI=true, and installs it. It
# starts nothing: the tests start their own browsers, with temporary profiles.
#
# usage: need-chromium.sh [--find]
#   --find  install nothing; print the program, or fail
#
# Exit status: 0 there is one (now), 2 wrong usage, 3 there is none and it
# cannot be installed here, 4 the person at the terminal said no.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=scripts/packages.sh
. "$here/packages.sh"

# version PROGRAM prints the version of the browser. One that does not run has
# none: Ubuntu's chromium-browser only says that a snap must be installed.
version() {
	"$1" --version 2>/dev/null </dev/null | grep -Eom1 '[0-9]+(\.[0-9]+){3}'
}

usable() { [ -x "$1" ] && [ -n "$(version "$1")" ]; }

# programs prints where browsers may be, the best first. The same ones as in
# test/browser.
programs() {
	local name
	for name in chromium chromium-browser google-chrome-stable google-chrome; do
		command -v "$name" 2>/dev/null || true
	done
	echo '/Applications/Chromium.app/Contents/MacOS/Chromium'
	echo '/Applications/Google Chrome.app/Contents/MacOS/Google Chrome'
}

# find_program prints the first usable one.
find_program() {
	local program
	while IFS= read -r program; do
		if usable "$program"; then
			echo "$program"
			return 0
		fi
	done < <(programs)
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
if [ -n "${TIDEGATE_CHROMIUM:-}" ]; then
	named=$(command -v "$TIDEGATE_CHROMIUM" 2>/dev/null || echo "$TIDEGATE_CHROMIUM")
	usable "$named" ||
		die 3 "TIDEGATE_CHROMIUM=$TIDEGATE_CHROMIUM is no browser that answers --version. Correct it or unset it."
	[ "$only_find" = true ] && echo "$named"
	exit 0
fi

if program=$(find_program); then
	[ "$only_find" = true ] && echo "$program"
	exit 0
fi

by_hand="Or set TIDEGATE_CHROMIUM to a Chromium or Chrome. To test without a browser: make test CHROMIUM="
[ "$only_find" = true ] && die 3 "no Chromium was found. $by_hand"

note "a browser is needed to test cookies (Chromium or Chrome), and none was found."

if ! has_apt; then
	if command -v brew >/dev/null 2>&1; then
		die 3 "install it with: brew install --cask chromium . $by_hand"
	elif command -v dnf >/dev/null 2>&1; then
		die 3 "install it with: sudo dnf install chromium . $by_hand"
	elif command -v apk >/dev/null 2>&1; then
		die 3 "install it with: apk add chromium . $by_hand"
	elif command -v pacman >/dev/null 2>&1; then
		die 3 "install it with: sudo pacman -S chromium . $by_hand"
	fi
	die 3 "install Chromium with this system's package manager. $by_hand"
fi

need_root chromium
note 'will install the package chromium with apt-get (the browser and its libraries; some 120 MB to fetch).'
note 'nothing is left running: browsers are started when needed, with temporary profiles.'
may_install || die 4 "nothing was installed. $by_hand"

# Ubuntu has the browser as a snap only.
apt_install chromium || die 3 "apt-get could not install chromium (see above; Ubuntu has no such package: install Google's Chrome there). $by_hand"

program=$(find_program) || die 3 "the package chromium is installed, and no browser answers --version. $by_hand"
note "Chromium $(version "$program") is $program"
