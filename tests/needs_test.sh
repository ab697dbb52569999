#!/usr/bin/env bash
# Where nothing is installed, scripts/test misses everything: no check answers yes because it could not be made.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
. scripts/lib.sh
empty=$(mktemp -d)
trap 'rm -rf "$empty"' EXIT
# These are looked for outside PATH as well.
elsewhere='^(torch|jsonschema|slurmctld|munged|ip)[|]'
asked=$(grep -E '^[^ ]+[|]' <<<"$needs_all" | grep -vE "$elsewhere")
found=$(comm -13 <(PATH=$empty HPCLAUNCH_PYTHON='' missing_of "$asked" 2>/dev/null | sort) <(sort <<<"$asked"))
[ "$(wc -l <<<"$asked")" -gt 40 ] || { echo "the list of needs was not read: $asked"; exit 1; }
[ -z "$found" ] || { echo "said to be there on an empty PATH:"; echo "$found"; exit 1; }
