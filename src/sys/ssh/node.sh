#!/bin/sh
# What a node's login shell is given: hpclaunch joins these lines to one word in single quotes, for sh, csh and fish
# alike. So every line but a comment goes on or ends with ";", and there is no quote ', no backslash and no "!" in them.
#
# Arguments: marker, hash, machine, bytes of hpclaunch-node, hpclaunch-shim and hpclaunch-stacks. It prints lines that begin
# with the marker: "send" asks for the bytes of all three, "machine NAME" and "folder WHY" are its end, and hpclaunch-node
# prints "ready FOLDER". dd reads byte for byte, since other tools read more than they write; what a full disk does not
# take is read all the same.
# shellcheck disable=SC2012,SC2046,SC2093  # ls -n is the POSIX way to a mode, and is split on purpose; exec ends it
umask 077; m=$1; h=$2; k=$3; n=$4; s=$5; t=$6; why=; x=;
w=$(uname -m); [ "$w" = "$k" ] || { echo "$m machine $w"; exit 1; };
u=$(id -u);
get() { dd bs=1 count="$1" 2>/dev/null | { cat >"$2"; cat >/dev/null; }; };
put() { [ -f "$1.$x" ] && [ "$(wc -c <"$1.$x")" -eq "$2" ] && chmod 700 "$1.$x" && mv -f "$1.$x" "$1"; };
for b in "/tmp/hpclaunch-$u" "/var/tmp/hpclaunch-$u" "${HOME:-/nonexistent}/.cache/hpclaunch" "/dev/shm/hpclaunch-$u"; do
[ -d "$b" ] || mkdir -p "$b" 2>/dev/null || { why="$why; $b: cannot be created"; continue; };
set -- $(ls -ldn "$b" 2>/dev/null);
case "$1 $3" in d????-??-*" $u") ;; *) why="$why; $b: mode $1, owner $3"; continue;; esac;
d=$b/$h; mkdir -p "$d" 2>/dev/null || { why="$why; $b: cannot be written"; continue; };
if [ -x "$d/hpclaunch-node" ] && [ -x "$d/hpclaunch-shim" ] && [ -x "$d/hpclaunch-stacks" ]; then :; else
x=$(uname -n).$$; echo "$m send";
{ get "$n" "$d/hpclaunch-node.$x"; get "$s" "$d/hpclaunch-shim.$x"; get "$t" "$d/hpclaunch-stacks.$x"; } 2>/dev/null;
{ put "$d/hpclaunch-stacks" "$t" && put "$d/hpclaunch-shim" "$s" && put "$d/hpclaunch-node" "$n"; } 2>/dev/null ||
{ rm -f "$d"/*."$x"; rmdir "$d" 2>/dev/null; why="$why; $b: no space"; continue; }; fi;
"$d/hpclaunch-node" check 2>/dev/null || { why="$why; $b: programs cannot be executed there"; continue; };
exec "$d/hpclaunch-node" "$m" "$d";
done; echo "$m folder ${why#; }"; exit 1
