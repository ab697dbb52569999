#!/bin/sh
# CMake without optional or required packages: no download, and an error that names package and option.
# usage: configure_test.sh CMAKE
set -eu
cmake=$1
sources=$(cd "$(dirname "$0")/.." && pwd)
work=$(mktemp -d "${TMPDIR:-/tmp}/hpclaunch-configure.XXXXXX")
trap 'rm -rf "$work"' EXIT
failed=0
complain() { echo "configure_test: $*"; sed 's/^/  | /' "$work/out"; failed=1; }
configure() { rm -rf "$work/build"; "$cmake" -S "$sources" -B "$work/build" "$@" >"$work/out" 2>&1; }
says() { tr -s ' \n' ' ' <"$work/out" | grep -qF -- "$1" || complain "no \"$1\" in the output"; }

configure -DCMAKE_DISABLE_FIND_PACKAGE_Catch2=ON || complain "fails without Catch2"
says "Building without tests"
if configure -DCMAKE_DISABLE_FIND_PACKAGE_Catch2=ON -DHPCLAUNCH_TESTS=ON; then complain "HPCLAUNCH_TESTS=ON without Catch2"; fi
says "Catch2 2.13 or newer not found"
says "apt-get install catch2"
says "-DHPCLAUNCH_FETCH=ON"
if configure -DCMAKE_DISABLE_FIND_PACKAGE_fmt=ON; then complain "configures without fmt"; fi
says "apt-get install libfmt-dev"
says "fmt-10.2.1.tar.gz"
if configure -DHPCLAUNCH_FETCH=SOMETIMES; then complain "HPCLAUNCH_FETCH=SOMETIMES"; fi
says 'invalid value "SOMETIMES" for HPCLAUNCH_FETCH (OFF, ON, ALWAYS)'
[ "$failed" = 0 ] && echo "configure_test: passed"
exit "$failed"
