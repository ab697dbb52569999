# shellcheck shell=bash disable=SC2207
# bash completion for hpclaunch; written by: hpclaunch completion bash
_hpclaunch() {
  local IFS=$'\n' current="${COMP_WORDS[COMP_CWORD]}" line
  COMPREPLY=()
  while read -r line; do
    case $line in
      @files) COMPREPLY+=($(compgen -f -- "${current#=}")) ;;
      @directories) COMPREPLY+=($(compgen -d -- "${current#=}")) ;;
      *) COMPREPLY+=("${line%%$'\t'*}") ;;
    esac
  done < <("${COMP_WORDS[0]}" complete -- "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
}
complete -o filenames -F _hpclaunch hpclaunch
