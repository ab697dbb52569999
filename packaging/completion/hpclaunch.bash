# shellcheck shell=bash disable=SC2207
# bash completion for hpclaunch; written by: hpclaunch completion bash
_hpclaunch() {
  local IFS=$'\n' current="${COMP_WORDS[COMP_CWORD]}" line files=
  COMPREPLY=()
  while read -r line; do
    case $line in
      @files) files=-f ;;
      @directories) files=-d ;;
      *) COMPREPLY+=("${line%%$'\t'*}") ;;
    esac
  done < <("${COMP_WORDS[0]}" complete -- "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
  # Files where no word fits: among names of files bash would take a word for one, and add a slash.
  if [[ ${#COMPREPLY[@]} == 0 && -n $files ]]; then
    COMPREPLY=($(compgen $files -- "${current#=}"))
    compopt -o filenames 2>/dev/null
  fi
  # What ends in "=" takes a value.
  [[ ${COMPREPLY[0]-} != *= ]] || compopt -o nospace 2>/dev/null
}
complete -F _hpclaunch hpclaunch torchrun-hpclaunch
