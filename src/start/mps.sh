# --mps, as `sh -c 'eval "$1"' hpclaunch-mps TEXT ACTION`:   rank SECONDS PROGRAM [ARG...] | keep | stop
# NVIDIA's control daemon has the directory of this launch, which the shim has made:
#   PIPE/rank.PID  each rank    PIPE/keeper  the keeper's PID    PIPE/ready, PIPE/failed  what local rank 0 says
# The keeper has a session of its own and ends the daemon when the node's ranks have ended, however they did.
pipe=$CUDA_MPS_PIPE_DIRECTORY log=$CUDA_MPS_LOG_DIRECTORY text=$1 action=$2
fail() {
  printf 'hpclaunch: --mps on: node %s: %s\n' "$(uname -n)" "$*" >&2
  : >"$pipe/failed"
  exit 125
}
daemon() { cat "$pipe/nvidia-cuda-mps-control.pid" 2>/dev/null; }
lives() { [ -n "$1" ] && grep -q nvidia-cuda-mps "/proc/$1/cmdline" 2>/dev/null; }
control() { echo "$1" | timeout 5 nvidia-cuda-mps-control >/dev/null 2>&1; }
ranks_live() {
  for mark in "$1"/rank.*; do [ ! -d "/proc/${mark##*.}" ] || return 0; done
  return 1
}
stop() {
  { [ -O "$pipe" ] && [ ! -L "$pipe" ]; } || return 0
  pid=$(daemon)
  for how in quit TERM KILL; do
    lives "$pid" || break
    if [ "$how" = quit ]; then control quit; else kill -s "$how" "$pid"; fi
    turns=0
    while lives "$pid" && [ "$turns" -lt 25 ]; do
      sleep 0.2
      turns=$((turns + 1))
    done
  done
  rm -rf "$pipe"
}
case $action in
  rank)
    limit=$3 seconds=$3
    shift 3
    : >"$pipe/rank.$$"
    if [ "${HPCLAUNCH_LOCAL_RANK:-0}" = 0 ]; then
      for old in "${pipe%-*}"-*; do # a launch that was killed with its keeper
        { [ "$old" != "$pipe" ] && [ -O "$old" ] && [ ! -L "$old" ]; } || continue
        # shellcheck disable=SC2016 # for another shell
        ranks_live "$old" || CUDA_MPS_PIPE_DIRECTORY=$old /bin/sh -c 'eval "$1"' hpclaunch-mps "$text" stop
      done
      mkdir -p "$log"
      command -v nvidia-cuda-mps-control >/dev/null || fail "nvidia-cuda-mps-control is not on PATH"
      { # no descriptor of the launcher's stays open in what outlives the rank
        # shellcheck disable=SC2016
        (setsid /bin/sh -c 'eval "$1"' hpclaunch-mps "$text" keep </dev/null >/dev/null 2>&1 &)
        # The daemon numbers the devices that it sees; ranks have masks of their own.
        (unset CUDA_VISIBLE_DEVICES && exec nvidia-cuda-mps-control -d) </dev/null >"$log/start" 2>&1 ||
          fail "nvidia-cuda-mps-control -d ended with status $?: $(tr '\n' ' ' <"$log/start" | cut -c 1-300)"
      } 3>&- 4>&- 5>&- 6>&- 7>&- 8>&- 9>&-
      until lives "$(daemon)" && control get_server_list; do
        [ -z "$(daemon)" ] || lives "$(daemon)" || fail "the daemon ended at once: $log"
        [ "$seconds" -gt 0 ] || fail "the daemon is not ready after $limit s: $log"
        seconds=$((seconds - 1))
        sleep 1
      done
      : >"$pipe/ready"
    fi
    until [ -e "$pipe/ready" ]; do
      { [ -d "$pipe" ] && [ ! -e "$pipe/failed" ]; } || exit 125
      sleep 0.1
    done
    exec "$@"
    ;;
  keep)
    echo $$ >"$pipe/keeper"
    trap 'kill $!; stop; exit' TERM INT HUP
    while ranks_live "$pipe"; do
      sleep 2 &
      wait $!
    done
    stop
    ;;
  stop)
    keeper=$(cat "$pipe/keeper" 2>/dev/null)
    stop
    [ -z "$keeper" ] || kill "$keeper" 2>/dev/null
    ;;
esac
