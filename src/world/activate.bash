# Activates what --module, --conda and --venv name, as a login shell does, and writes the environment that this leaves
# to stdout, each entry ended by a zero byte. All other output is stderr; \001 there starts the words about one item.
# bash -c TEXT hpclaunch-activate [use DIR | module NAME | conda NAME|PREFIX | venv DIR]...
# Ends with 3 where an item fails: stdout is then its number. Names begin with _hl_: others may be exported ones.
exec 3>&1 1>&2
_hl_items=("$@")
set --
_hl_modules() {
  local _hl_file
  [[ $(type -t module) == function ]] && return
  for _hl_file in "$LMOD_PKG/init/bash" "$MODULESHOME/init/bash" /etc/profile.d/*modules*.sh /etc/profile.d/*lmod*.sh; do
    [[ -r $_hl_file ]] || continue
    . "$_hl_file"
    [[ $(type -t module) == function ]] && { printf '\001' >&2; return; }
  done
  echo "no module command: LMOD_PKG and MODULESHOME are not set, and /etc/profile.d has no file for it"
  return 1
}
# Tcl modules before 5.0 end with 0 also where they have failed; a module may have another name than it was loaded by.
_hl_is_loaded() {
  [[ -n $LOADEDMODULES && $LOADEDMODULES != "$_hl_loaded" ]] || [[ :$LOADEDMODULES: == *:"$_hl_value"[:/]* ]]
}
# A conda-pack has a script of its own; without conda an environment is its PATH, CONDA_PREFIX and activate.d.
_hl_conda() {
  local _hl_exe=$CONDA_EXE _hl_file
  [[ -x $_hl_exe ]] || _hl_exe=$(type -P conda)
  if [[ $_hl_value == */* ]]; then
    [[ -d $_hl_value/conda-meta ]] || { echo "$_hl_value is not a conda environment: it has no conda-meta"; return 1; }
    [[ -x $_hl_exe ]] || _hl_exe=$_hl_value/../../bin/conda
  fi
  if [[ $_hl_value == */* && -r $_hl_value/bin/activate && ! -e $_hl_value/bin/conda ]]; then
    . "$_hl_value/bin/activate"
  elif [[ -x $_hl_exe ]]; then
    eval "$("$_hl_exe" shell.bash hook)" && conda activate "$_hl_value" || return 1
  elif [[ $_hl_value == */* ]]; then
    export CONDA_PREFIX=$_hl_value CONDA_DEFAULT_ENV=$_hl_value PATH=$_hl_value/bin:$PATH
    for _hl_file in "$_hl_value"/etc/conda/activate.d/*.sh; do
      [[ ! -r $_hl_file ]] || . "$_hl_file"
    done
  else
    echo "no conda found: CONDA_EXE is not set, and PATH has no conda"
    return 1
  fi
  [[ -n $CONDA_PREFIX && ($_hl_value != */* || $CONDA_PREFIX -ef $_hl_value) ]]
}
# The scripts of a moved environment have its old path.
_hl_venv() {
  [[ -e $_hl_value/pyvenv.cfg ]] || { echo "$_hl_value is not a virtual environment: it has no pyvenv.cfg"; return 1; }
  [[ -x $_hl_value/bin/python ]] || { echo "$_hl_value/bin/python is missing, or what it links to"; return 1; }
  [[ ! -r $_hl_value/bin/activate ]] || . "$_hl_value/bin/activate" || return
  [[ $VIRTUAL_ENV -ef $_hl_value ]] && return
  unset PYTHONHOME
  export VIRTUAL_ENV=$_hl_value PATH=$_hl_value/bin:$PATH
}
for ((_hl_at = 0; _hl_at < ${#_hl_items[@]}; _hl_at += 2)); do
  _hl_value=${_hl_items[_hl_at + 1]}
  _hl_loaded=$LOADEDMODULES
  printf '\001' >&2
  case ${_hl_items[_hl_at]} in
    use) _hl_modules && module use "$_hl_value" ;;
    module) _hl_modules && module load "$_hl_value" && _hl_is_loaded ;;
    conda) _hl_conda ;;
    venv) _hl_venv ;;
  esac || { echo $((_hl_at / 2)) >&3; exit 3; }
done
exec /usr/bin/env -0 >&3
