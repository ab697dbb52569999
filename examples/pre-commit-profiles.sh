#!/bin/sh
# A git hook that rejects broken profiles: copy it to .git/hooks/pre-commit and make it executable.
# It checks the staged files. hpclaunch must be on PATH.
set -eu

folder=${PROFILES:-profiles}
git diff --cached --quiet --diff-filter=ACMRD -- "$folder" && exit 0
command -v hpclaunch >/dev/null || {
  echo "pre-commit: hpclaunch is not on PATH, so the profiles cannot be checked" >&2
  exit 1
}

staged=$(mktemp -d)
trap 'rm -rf "$staged"' EXIT
trap 'exit 1' HUP INT TERM
umask 022 # hpclaunch reads no profile that others may write
git ls-files -z -- "$folder" | git checkout-index -z --stdin --prefix="$staged/"

cd "$staged"
# A part counts for every profile that extends it: all are checked, which takes seconds.
set --
for file in "$folder"/*.json "$folder"/site/*.json "$folder"/part/*.json; do
  case $file in */schema.json) continue ;; esac
  if [ -f "$file" ]; then set -- "$@" "$file"; fi
done
[ $# -gt 0 ] || exit 0
hpclaunch profile validate "$@" >&2
hpclaunch profile test "$@" >&2
