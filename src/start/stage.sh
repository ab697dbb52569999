# One step of `hpclaunch run --stage` on one node. Started once per node; answers one line on stdout and ends with 0, so
# that no launcher stops the other nodes:   hpclaunch-stage RANK done|reused|failed STEP WORDS
#
#   BASE/hpclaunch-UID/          mode 700; flock on it serialises all that changes names in it
#     tmp-KEY/                   what a broadcast of one launch brings; never used by another one
#     part-KEY.RANK/             the same of one step, which holds a flock on it while it lives
#     ID/                        the environment; complete only with the stamp in it, which comes last
#     ID.use/KEY.RANK            one file per launch and node that uses it; the last one to go removes ID
#
# Nothing of the environment to be staged may run before it is complete, nor libraries of modules: PATH is the node's.
action=$1 method=$2 base=$3 id=$4 key=$5 stamp=$6 bytes=$7 source=$8 root=$9
shift 9
old=$1 keep=$2 lanes=$3 width=$4 limit=$5
user_path=$PATH
unset LD_LIBRARY_PATH LD_PRELOAD PYTHONHOME PYTHONPATH
LC_ALL=C PATH=/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin
export LC_ALL PATH
umask 077
rank=${RANK:-0} step=$action half=
here=$(uname -n | cut -d . -f 1 | tr '[:upper:]' '[:lower:]')
folder=$base/hpclaunch-$(id -u)
place=$folder/$id
env=$place${root:+/$root}
mine=$folder/part-$key.$rank
shared=$folder/tmp-$key

# What is half-made goes: $half is set only under the lock.
clean() {
  [ -z "$lanes" ] || : >"$lanes/done-$rank"
  rm -rf "$mine" ${half:+"$half"}
} 2>/dev/null
answer() {
  printf 'hpclaunch-stage %s %s\n' "$rank" "$*"
  exit 0
}
fail() {
  clean
  answer failed "$step" "$(printf '%s' "$*" | tail -n 4 | tr '\n\t' '  ' | cut -c 1-300)"
}
try() { words=$("$@" 2>&1 8<&-) || fail "$words"; }
make() {
  words=$(mkdir -m 700 "$1" 2>&1) && return
  [ -e "$1" ] || [ -L "$1" ] || fail "$words"
  { [ ! -L "$1" ] && [ -d "$1" ] && [ -O "$1" ]; } || fail "$1 is a symbolic link, no directory, or belongs to another user"
  [ "$(stat -c %a "$1")" = 700 ] || fail "the mode of $1 is not 700; chmod 700 your own"
}
lock() {
  step=lock
  [ -e /proc/self ] || fail "/proc is not mounted on this node"
  # Who finds it empty in the end removes it, perhaps just now.
  # shellcheck disable=SC3013 # dash, bash and busybox have it
  until make "$folder" && command exec 9<"$folder" && flock -w "$limit" 9 && [ "$folder" -ef /dev/fd/9 ]; do
    [ ! -d "$folder" ] || flock -w 0 "$folder" true || fail "another launch of this user has held $folder for $limit s"
  done
  step=$action
  sweep
}
is_complete() { [ -O "$place" ] && [ ! -L "$place" ] && [ "$(cat "$place/.hpclaunch-stage" 2>/dev/null)" = "$stamp" ]; }
# KEY begins with the host and the process of hpclaunch, a process of this user: here it can be asked whether that lives.
remove_dead() {
  for mark in "$1$here".*; do
    owner=${mark#"$1$here."}
    owner=${owner%%.*}
    case $owner in '' | *[!0-9]*) continue ;; esac
    kill -0 "$owner" 2>/dev/null || rm -rf "$mark"
  done
}
forget_dead() {
  remove_dead "$place.use/"
  rmdir "$place.use" 2>/dev/null || :
}
# Under the lock: what launches that were killed have left. The lock is held wherever a copy without a stamp is made.
sweep() {
  remove_dead "$folder/tmp-"
  for dead in "$folder"/part-* "$folder"/env-*; do
    { [ -d "$dead" ] && [ ! -L "$dead" ]; } || continue
    case $dead in
      "$mine" | "$place" | *.use) ;;
      "$folder"/env-*) [ -e "$dead/.hpclaunch-stage" ] || rm -rf "$dead" ;;
      *) ! flock -n "$dead" true || rm -rf "$dead" ;;
    esac
  done
}
own() {
  make "$mine"
  if command exec 8<"$mine"; then flock -n 8; fi
}
use() {
  make "$place.use"
  try touch "$place.use/$key.$rank"
}
free_bytes() { df -Pk "$folder" | awk 'NR == 2 { printf "%.0f", $4 * 1024 }'; }
begin() {
  [ -d "$base" ] || fail "$base is not a directory of this node"
  make "$folder"
  find "$folder" -maxdepth 1 \( -name 'tmp-*' -o -name 'part-*' \) -mtime +0 -exec rm -rf {} + 2>/dev/null
  find "$folder" -maxdepth 2 -path '*.use/*' -mtime +7 -exec rm -f {} + 2>/dev/null
}
reuse() {
  is_complete || return 0
  use
  rm -rf "$shared" "$mine"
  answer reused
}
# At most $width nodes read the file at once: each waits for the one that many places before it.
copy_file() {
  step=copy
  before=$((rank - width)) waited=0
  while [ "$before" -ge 0 ] && [ ! -e "$lanes/done-$before" ]; do
    [ "$waited" -lt "$limit" ] || fail "waited $limit s for node $before to read $source"
    pause=$((1 + rank / width / 8))
    sleep "$pause"
    waited=$((waited + pause))
  done
  try cp "$source" "$mine/archive"
  : >"$lanes/done-$rank"
}
extract() {
  file=$1
  step=check
  got=$(wc -c <"$file") || fail "$file is missing"
  [ "$got" -eq "$bytes" ] || fail "$got of $bytes bytes arrived"
  [ "$(sha256sum <"$file" | cut -c 1-64)" = "${stamp##* }" ] || fail "the content differs from $source"
  step=unpack
  case $source in
    *.sqsh | *.sqfs | *.squashfs | *.img) try unsquashfs -n -d "$mine/tree" "$file" ;;
    *.gz | *.tgz)
      mkdir "$mine/tree"
      if command -v pigz >/dev/null; then set -- -I pigz; else set --; fi
      try tar "$@" -xf "$file" -C "$mine/tree" --no-same-owner
      ;;
    *)
      mkdir "$mine/tree"
      try tar -xf "$file" -C "$mine/tree" --no-same-owner
      ;;
  esac
  rm -f "$file" # where the directory is memory, it counts twice
  [ -e "$mine/tree/${root:+$root/}bin/python" ] || [ -e "$mine/tree/${root:+$root/}bin/python3" ] || fail "no bin/python in $source"
}
# Scripts in bin name the interpreter by its old path, and activate the environment.
rewrite_paths() {
  [ -n "$old" ] || old=$(sed -n "s/^ *\(export \)*VIRTUAL_ENV=[\"']*\(\/[^\"']*\).*/\2/p" "$env/bin/activate" 2>/dev/null | head -n 1)
  case $old$env in *[!A-Za-z0-9_./+@-]*) return ;; esac
  case $old in /*) ;; *) return ;; esac
  for file in "$env"/bin/*; do
    { [ -f "$file" ] && [ ! -L "$file" ]; } || continue
    case $file in
      */activate*) sed -i "s|$old|$env|g" "$file" ;;
      *) [ "$(head -c 2 "$file" | tr -d '\0')" != '#!' ] || sed -i "1,2s|$old/|$env/|" "$file" ;;
    esac
  done
}
build_venv() {
  step=build
  half=$place
  PATH=$user_path
  if command -v virtualenv >/dev/null; then try virtualenv --no-download "$place"; else try python3 -m venv "$place"; fi
  PIP_NO_INDEX=1 PIP_DISABLE_PIP_VERSION_CHECK=1
  export PIP_NO_INDEX PIP_DISABLE_PIP_VERSION_CHECK
  try "$place/bin/python" -m pip install --no-index -q -r "$source"
}

trap 'clean; exit 143' TERM INT HUP
case $action in
  prepare) # for a file that arrives from outside; that fills the disk without a word of why
    begin
    lock
    make "$shared" # also where it is not needed: the file goes to all nodes
    if is_complete; then
      use
      answer reused
    fi
    room=$(free_bytes)
    [ "${room:-0}" -ge "$bytes" ] || fail "$room bytes free in $folder, and the archive has $bytes"
    answer "done"
    ;;
  unpack)
    begin
    if ! is_complete; then
      lock
      own
      exec 9<&-
      [ "$method" != copy ] || copy_file
    fi
    lock
    forget_dead
    reuse
    own
    if [ -e "$place/.hpclaunch-stage" ] && [ -n "$(ls "$place.use" 2>/dev/null)" ]; then
      fail "$place has other content and is in use by another job ($(ls "$place.use" | head -n 1) in $place.use)"
    fi
    rm -rf "$place"
    case $method in
      venv) build_venv ;;
      copy) extract "$mine/archive" ;;
      *) extract "$shared/archive" ;;
    esac
    step=place
    half=$place
    [ "$method" = venv ] || try mv "$mine/tree" "$place"
    if [ -e "$env/bin/conda-unpack" ]; then
      step=conda-unpack
      try "$env/bin/python" "$env/bin/conda-unpack"
    fi
    [ "$method" = venv ] || rewrite_paths
    step=place
    try sh -c 'printf "%s\n" "$1" >"$2"' sh "$stamp" "$mine/stamp"
    try mv "$mine/stamp" "$place/.hpclaunch-stage"
    half=
    use
    rm -rf "$mine" "$shared"
    answer "done"
    ;;
  ready) # BASE is a mount, and SOURCE a file that is read through it: the read waits for the node's parent
    until [ -n "$(awk -v at="$base" '$5 == at' /proc/self/mountinfo)" ] &&
      [ -n "$(head -c 1 "$base$source" 2>/dev/null)" ]; do
      limit=$((limit - 1))
      [ "$limit" -gt 0 ] || fail "$source cannot be read through $base"
      sleep 1
    done
    answer "done"
    ;;
  remove)
    [ -O "$folder" ] || answer "done"
    lock
    rm -rf "$shared" "$place.use/$key.$rank"
    forget_dead
    rmdir "$place.use" 2>/dev/null
    # Under the lock a copy without a stamp is of a launch that was killed.
    if [ ! -e "$place/.hpclaunch-stage" ] || { [ "$keep" = no ] && [ ! -e "$place.use" ]; }; then
      [ ! -e "$place" ] || mv "$place" "$mine"
    fi
    exec 9<&-
    rm -rf "$mine"
    flock -w 1 "$folder" rmdir "$folder" 2>/dev/null
    answer "done"
    ;;
esac
