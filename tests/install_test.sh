#!/bin/sh
# The installed tree works where it was not built, and where it was not installed either: install into a
# temporary folder, move that, and use it from elsewhere with nothing of the build on PATH.
# usage: install_test.sh CMAKE BUILD_DIR
set -eu
cmake=$1
build=$2
sources=$(cd "$(dirname "$0")/.." && pwd)
work=$(mktemp -d "${TMPDIR:-/tmp}/hpclaunch-install.XXXXXX")
trap 'rm -rf "$work"' EXIT
failed=0
complain() { echo "install_test: $*"; failed=1; }

"$cmake" --install "$build" --prefix "$work/first place" >"$work/install.log" || { cat "$work/install.log"; exit 1; }
mv "$work/first place" "$work/moved here"
tree="$work/moved here"

for file in libexec/hpclaunch/hpclaunch-shim libexec/hpclaunch/hpclaunch-stacks libexec/hpclaunch/hpclaunch-node libexec/hpclaunch/pbs-remote libexec/hpclaunch/start/sitecustomize.py share/bash-completion/completions/hpclaunch \
    share/zsh/site-functions/_hpclaunch share/fish/vendor_completions.d/hpclaunch.fish \
    share/man/man1/hpclaunch.1 share/hpclaunch/profiles/README.md share/doc/hpclaunch/README.md \
    share/doc/hpclaunch/LICENSE share/doc/hpclaunch/examples/train_ddp.py; do
  [ -s "$tree/$file" ] || complain "$file is missing or empty"
done
grep -q '^\.TH ' "$tree/share/man/man1/hpclaunch.1" || complain "the man page has no .TH line"
bash -n "$tree/share/bash-completion/completions/hpclaunch" || complain "bash cannot read its completions"
python3 "$sources/tests/links.py" "$tree/share/doc/hpclaunch" || complain "broken links in the installed documentation"
extra=$(cd "$tree" && find . -type f \( -name '*.a' -o -name '*.h' -o -name '*.cmake' -o -name '*.pc' -o -name '*.tmp' \))
[ -z "$extra" ] || complain "nothing but ours should be installed, found: $extra"

mkdir "$work/elsewhere"
cd "$work/elsewhere"
# A clean environment: no build folder, no variable of ours, nothing that a batch system left.
plain() { env -i PATH=/usr/local/bin:/usr/bin:/bin HOME="$work" TMPDIR="${TMPDIR:-/tmp}" "$@"; }

plain "$tree/bin/hpclaunch" --version >"$work/out" 2>&1 || complain "--version failed: $(cat "$work/out")"
launch() { plain "$tree/bin/hpclaunch" run --launcher local --oversubscribe "$@" >"$work/out" 2>&1; }

launch -n 2 -- /bin/true || complain "a run of 2 ranks ended with $?: $(cat "$work/out")"
# $RANK is for the rank's shell to expand.
# shellcheck disable=SC2016
launch -n 3 -- /bin/sh -c 'echo "rank $RANK of $WORLD_SIZE"' || complain "a run of 3 ranks ended with $?"
[ "$(sort "$work/out" | grep -c '^rank [012] of 3$')" = 3 ] || complain "expected 3 lines: $(cat "$work/out")"
status=0
launch -n 2 -- /bin/sh -c 'exit 7' || status=$?
[ "$status" = 7 ] || complain "the program's status 7 came out as $status"

# Through a link, as a module or ~/bin would have it.
ln -s "$tree/bin/hpclaunch" "$work/elsewhere/hpl"
plain ./hpl run --launcher local -n 1 -- /bin/true >"$work/out" 2>&1 || complain "through a link: $(cat "$work/out")"

# As torchrun, from its own name.
plain "$tree/bin/torchrun-hpclaunch" --nproc_per_node=2 --no-python /bin/true >"$work/out" 2>&1 || complain "torchrun-hpclaunch: $(cat "$work/out")"
plain "$tree/bin/torchrun-hpclaunch" complete -- --nnod | grep -q '^--nnodes' || complain "torchrun-hpclaunch does not complete --nnodes"
[ -s "$tree/share/man/man1/torchrun-hpclaunch.1" ] || complain "the man page of torchrun-hpclaunch is missing"

# What was installed is removed again, and nothing else.
"$cmake" --install "$build" --prefix "$work/again" >"$work/install.log" || complain "second install failed"
if "$build/bin/hpclaunch" --version >/dev/null && command -v file >/dev/null; then
  file "$work/again/bin/hpclaunch" | grep -q 'not stripped' && grep -q '^CMAKE_BUILD_TYPE:STRING=Release' "$build/CMakeCache.txt" &&
    complain "the installed program is not stripped"
fi
echo mine >"$work/again/share/doc/hpclaunch/mine"
"$cmake" --build "$build" --target uninstall >"$work/uninstall.log" 2>&1 || complain "uninstall: $(cat "$work/uninstall.log")"
rest=$(cd "$work/again" && find . ! -type d)
[ "$rest" = ./share/doc/hpclaunch/mine ] || complain "uninstall left: $rest"
[ -d "$work/again/libexec/hpclaunch" ] && complain "uninstall left the folder libexec/hpclaunch"
[ "$failed" = 0 ] && echo "install_test: passed"
exit "$failed"
