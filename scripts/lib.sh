# shellcheck shell=bash disable=SC2034
# What scripts/demo and scripts/test share: finding and installing what they need, and building.
# Sourced; needs bash 4. The caller has set `root` and changed into it.
fetch=()

say() { printf '\n== %s\n' "$*"; }
have() { command -v "$1" >/dev/null 2>&1; }
jobs_here() { nproc 2>/dev/null || echo 1; }

# ---- needs: a way to see whether it is there, and what it is called in each distribution ------------
# Name | Debian, Ubuntu | Fedora, Rocky | needed for
needs_build='
compiler|g++|gcc-c++|a C++20 compiler (GCC 11, Clang 14 or newer)
cmake|cmake|cmake|CMake 3.22 or newer
make|ninja-build|ninja-build|Ninja or Make
pkg-config|pkg-config|pkgconf-pkg-config|finding hwloc
fmt|libfmt-dev|fmt-devel|library fmt 8
CLI11|libcli11-dev|cli11-devel|library CLI11 2.1
nlohmann_json|nlohmann-json3-dev|json-devel|library nlohmann_json 3.9
hwloc|libhwloc-dev|hwloc-devel|library hwloc 2.3
static-libc|libc6-dev|glibc-static|a C library to link the shim with, statically
musl|musl-tools|musl-gcc|the smallest shim (static glibc does as well)
'
needs_torch='
torch|python3-torch|python3-torch|PyTorch, for examples/train_ddp.py
'
needs_demo="$needs_build$needs_torch"
# What black-box tests run beside the program: those that print, and those that start ranks.
needs_tools='
python3|python3|python3|the tests, which are Python programs
git|git|git|the test of the example hook for a repository of profiles
lstopo|hwloc|hwloc|tests of hwloc XML files
strace|strace|strace|tests that count system calls
valgrind|valgrind|valgrind|tests that count instructions
dash|dash|dash|tests of shell output
tcsh|tcsh|tcsh|tests of shell output
fish|fish|fish|tests of shell output
lua5.3|lua5.3|lua|tests of Lmod output
jsonschema|python3-jsonschema|python3-jsonschema|the test of the schema of profiles
readelf|binutils|binutils|tests of the shim
man|man-db groff-base|man-db groff-base|the test of the manual page
scontrol|slurm-client|slurm|tests of lists of hosts against Slurm
'
needs_launchers="$needs_torch"'
hydra|mpich|mpich|tests with MPICH Hydra
openmpi|openmpi-bin|openmpi|tests with Open MPI
ip|iproute2|iproute|virtual nodes
sshd|openssh-server openssh-client|openssh-server openssh-clients|tests with a real ssh
nsenter|util-linux|util-linux|virtual nodes
busybox|busybox-static|busybox|images of containers
podman|podman crun catatonit|podman crun catatonit|tests with containers
ch-run|charliecloud-runtime|charliecloud|tests with containers
bwrap|bubblewrap|bubblewrap|tests with containers, and of a root with nothing but the C library
venv|python3-venv|python3|the test of the wheel with PyTorch
'
needs_installed="$needs_tools$needs_launchers"
# What `scripts/test --quick` runs needs no launcher and no second compiler.
needs_quick="$needs_build$needs_tools"'
Catch2|catch2|catch-devel|library Catch2 2.13 or 3
level-zero|libze-dev|oneapi-level-zero-devel|comparison of our Level Zero declarations with its headers
rocm_smi|librocm-smi-dev|rocm-smi-devel|comparison of our ROCm SMI declarations with its header
libfabric|libfabric-dev|libfabric-devel|a real provider, and comparison of our libfabric declarations with its header
'
needs_test="$needs_quick$needs_launchers"'
clang++|clang libclang-rt-dev|clang compiler-rt|the build with sanitizers (GCC takes twice as long)
slurmctld|slurm-wlm|slurm slurm-slurmctld slurm-slurmd|tests with Slurm on virtual nodes
spank|libslurm-dev|slurm-devel|tests with containers that srun enters
munged|munge|munge|tests with Slurm on virtual nodes
clang-format|clang-format|clang-tools-extra|the format check
clang-tidy|clang-tidy|clang-tools-extra|static analysis
shellcheck|shellcheck|ShellCheck|the check of our own scripts
rpmbuild|rpm|rpm-build|the test of the rpm package
tclsh|tcl|tcl|the test of the module file
aarch64-linux-gnu-g++|g++-aarch64-linux-gnu|gcc-c++-aarch64-linux-gnu|tests of the shim for aarch64
qemu-aarch64|qemu-user-static|qemu-user-static|tests of the shim for aarch64
'
needs_all="$needs_test"'
qemu|qemu-system-x86 qemu-system-data|qemu-system-x86-core|the emulated node
'
needs_fuzz="$needs_build"'
libFuzzer|clang libclang-rt-dev|clang compiler-rt|Clang 14 or newer with libFuzzer
'
needs_coverage="$needs_quick"'
clang|clang libclang-rt-dev|clang compiler-rt|Clang 14 or newer, which counts what runs
llvm-cov|llvm|llvm|the report of what ran
'

includes() { printf '#include <%s>\n' "$1" | c++ -std=c++20 -E -x c++ - >/dev/null 2>&1; }

# GCC 9 knows -std=c++2a only, GCC 10 lacks parts of the library: ask for what the sources use.
compiles_cpp20() {
  printf '#include <span>\n#include <string>\n%s\n' \
    'struct A { int b; friend bool operator==(const A&, const A&) = default; }; int main() { return A{1} == A{2}; }' |
    c++ -std=c++20 -fsyntax-only -x c++ - >/dev/null 2>&1
}

# Clang 14 or newer with its sanitizers and a C++ library that it can read.
clang_works() {
  have clang && have clang++ && printf '#include <span>\n#include <string>\nint main() { return 0; }\n' |
    clang++ -std=c++20 -fsanitize=address,undefined -x c++ -o /dev/null - >/dev/null 2>&1 &&
    [ "$(clang -dumpversion | cut -d. -f1)" -ge 14 ]
}

fuzzer_works() {
  echo 'extern "C" int LLVMFuzzerTestOneInput(const unsigned char*, unsigned long) { return 0; }' |
    clang++ -fsanitize=fuzzer -x c++ -o /dev/null - >/dev/null 2>&1
}

# A check that cannot be made, because what it asks with is missing, answers no: then more is named than is missing, and
# the package manager knows better. A yes would leave a package out.
is_there() {
  case $1 in
    compiler) compiles_cpp20 ;;
    cmake) have cmake && [ "$(printf '%s\n3.22\n' "$(cmake --version | sed -n '1s/[^0-9]*//p')" | sort -V | head -n 1)" = 3.22 ] ;;
    make) have ninja || have make ;;
    fmt) includes fmt/core.h ;;
    CLI11) includes CLI/CLI.hpp ;;
    nlohmann_json) includes nlohmann/json.hpp ;;
    Catch2) includes catch2/catch.hpp || includes catch2/catch_all.hpp ;;
    hwloc) have pkg-config && pkg-config --exists 'hwloc >= 2.3' ;;
    static-libc) have musl-gcc || echo 'int main() {}' | c++ -static -x c++ -o /dev/null - >/dev/null 2>&1 ;;
    musl) have musl-gcc ;;
    torch) [ -n "$(find_python)" ] ;;
    jsonschema) python3 -c 'import jsonschema' >/dev/null 2>&1 || /usr/bin/python3 -c 'import jsonschema' >/dev/null 2>&1 ;;
    venv) makes_venv python3 && { ! [ -x /usr/bin/python3 ] || makes_venv /usr/bin/python3; } ;;
    hydra) have mpiexec.hydra ;;
    lua5.3) have lua5.3 || have lua ;;
    slurmctld | munged | ip) have "$1" || [ -x "/usr/sbin/$1" ] || [ -x "/sbin/$1" ] ;;
    qemu) have qemu-system-x86_64 ;;
    qemu-aarch64) have qemu-aarch64-static || have qemu-aarch64 || [ "$(uname -m)" = aarch64 ] ;;
    aarch64-linux-gnu-g++) have "$1" || [ "$(uname -m)" = aarch64 ] ;;
    openmpi) have mpirun.openmpi || { have mpirun && mpirun --version 2>&1 | grep -q 'Open MPI'; } ;;
    level-zero) includes level_zero/zes_api.h ;;
    spank) includes slurm/spank.h ;;
    rocm_smi) includes rocm_smi/rocm_smi.h ;;
    libfabric) includes rdma/fabric.h ;;
    lstopo) have lstopo-no-graphics || have lstopo ;;
    clang | clang++) clang_works ;;
    libFuzzer) clang_works && fuzzer_works ;;
    *) have "$1" ;;
  esac
}

makes_venv() { "$1" -c 'import ensurepip, venv' >/dev/null 2>&1; }

# The first Python that can import torch: the user's choice, the user's own, the distribution's.
find_python() {
  local candidate
  for candidate in "${HPCLAUNCH_PYTHON:-}" python3 /usr/bin/python3; do
    if [ -n "$candidate" ] && have "$candidate" && "$candidate" -c 'import torch' >/dev/null 2>&1; then
      command -v "$candidate"
      return
    fi
  done
}

# The rows of a list whose thing is not there.
missing_of() {
  local name rest
  while IFS='|' read -r name rest; do
    [ -z "$name" ] || is_there "$name" || printf '%s|%s\n' "$name" "$rest"
  done <<<"$1"
}

column() { cut -d'|' -f"$1" | sort -u | tr '\n' ' ' | sed 's/ *$//'; }

# ---- installing --------------------------------------------------------------------------------------
as_root() {
  if [ "$(id -u)" = 0 ]; then "$@"; else sudo "$@"; fi
}

# root, sudo without a password, or a person at a terminal who can type one.
can_be_root() {
  [ "${HPCLAUNCH_NO_INSTALL:-}" = "" ] || return 1
  [ "$(id -u)" = 0 ] && return 0
  have sudo || return 1
  sudo -n true 2>/dev/null || [ -t 0 ]
}

apt_install() {
  # Lists older than a day may name packages that the server no longer has.
  if [ -z "$(find /var/lib/apt/lists -maxdepth 1 -name '*Packages*' -mtime -1 2>/dev/null | head -n 1)" ]; then
    as_root apt-get update -qq
  fi
  local get=(env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends) known
  # One name that this release does not have would keep all the others out.
  mapfile -t known < <(apt-cache --no-all-versions show "$@" 2>/dev/null | sed -n 's/^Package: //p' | sort -u)
  [ "${#known[@]}" -gt 0 ] || return 1
  as_root "${get[@]}" "${known[@]}" >/dev/null ||
    { as_root apt-get update -qq && as_root "${get[@]}" "${known[@]}" >/dev/null; }
}

dnf_install() {
  if grep -qE '^ID="?(rocky|almalinux|rhel|centos)' /etc/os-release; then
    as_root dnf install -y -q epel-release dnf-plugins-core
    as_root dnf config-manager --set-enabled crb || as_root dnf config-manager --set-enabled powertools
    case "$(sed -n 's/^VERSION_ID="\{0,1\}\([0-9]*\).*/\1/p' /etc/os-release)" in
      8) set -- "$@" gcc-toolset-12-gcc-c++ ;;
    esac
  fi
  as_root dnf install -y -q --setopt=strict=0 "$@"
}

# Compilers and MPI that Red Hat's relatives install beside the usual folders.
use_side_installs() {
  local folder
  if ! compiles_cpp20 && [ -f /opt/rh/gcc-toolset-12/enable ]; then
    # shellcheck disable=SC1091
    . /opt/rh/gcc-toolset-12/enable
  fi
  for folder in /usr/lib64/mpich/bin /usr/lib64/openmpi/bin; do
    [ -d "$folder" ] && PATH=$PATH:$folder
  done
  return 0
}

# install_rows ROWS: with the package manager of this machine.
install_rows() {
  local names
  if have apt-get; then names=$(printf '%s\n' "$1" | column 2); else names=$(printf '%s\n' "$1" | column 3); fi
  say "installing with $(package_tool): $names"
  # Words on purpose: each name is an argument.
  # shellcheck disable=SC2086
  case "$(package_tool)" in
    apt-get) apt_install $names || echo "apt-get could not install all of them" ;;
    dnf) dnf_install $names || echo "dnf could not install all of them" ;;
    *) echo "neither apt-get nor dnf is here" ;;
  esac
  hash -r
  use_side_installs
}

# install_needs LIST: installs what is missing and prints what that is. Sets `still_missing` (rows). Without root,
# libraries that are missing are downloaded by CMake (`fetch`). Returns 1 when nothing can be built.
install_needs() {
  local list=$1 missing before=
  use_side_installs
  missing=$(missing_of "$list")
  fetch=()
  # Again as long as the answer changes: what was installed may take something else away (a newer compiler without its
  # C++ library is the one that Clang chooses).
  while [ -n "$missing" ] && [ "$missing" != "$before" ] && can_be_root; do
    before=$missing
    install_rows "$missing"
    missing=$(missing_of "$list")
  done
  still_missing=$missing
  [ -z "$missing" ] && return 0
  explain_missing "$missing"
  if [ "${HPCLAUNCH_NO_INSTALL:-}" = "" ] && printf '%s\n' "$missing" | grep -qE '^(pkg-config|fmt|CLI11|nlohmann_json|hwloc|Catch2)\|'; then
    echo "CMake downloads the libraries among these (-DHPCLAUNCH_FETCH=ON)"
    fetch=(-DHPCLAUNCH_FETCH=ON)
  fi
  ! printf '%s\n' "$missing" | grep -qE '^(compiler|cmake|make|static-libc)\|'
}

package_tool() {
  if have apt-get; then echo apt-get; elif have dnf; then echo dnf; else echo none; fi
}

explain_missing() {
  say "missing on this machine"
  local name what how
  while IFS='|' read -r name _ _ what; do
    case $name in
      fmt | CLI11 | nlohmann_json | hwloc | Catch2) how="HPCLAUNCH_CMAKE_OPTIONS=-DHPCLAUNCH_FETCH=ON downloads it (no network: docs/install.md)" ;;
      static-libc) how="spack install musl && spack load musl" ;;
      musl) how="not needed where glibc can be linked statically" ;;
      pkg-config) how="not needed where hwloc is downloaded" ;;
      compiler) how="module load gcc, or spack install gcc@12" ;;
      cmake | make) how="module load cmake ninja, or spack install cmake ninja" ;;
      clang | libFuzzer | llvm-cov) how="module load llvm, or spack install llvm" ;;
      clang++) how="not needed: GCC builds with sanitizers, too" ;;
      torch) how="module load pytorch, or a virtual environment with torch; HPCLAUNCH_PYTHON=/path/to/python3 names it" ;;
      hydra) how="module load mpich, or spack install mpich" ;;
      lstopo) how="module load hwloc, or spack install hwloc" ;;
      *) how="module load $name, or spack install $name" ;;
    esac
    printf '  %-14s %s\n  %-14s   %s\n' "$name" "$what" "" "$how"
  done <<<"$1"
  echo
  echo "With root:  apt-get install $(printf '%s\n' "$1" | column 2)"
  echo "       or:  dnf install $(printf '%s\n' "$1" | column 3)"
}

# ---- building ------------------------------------------------------------------------------------------
# configure_preset PRESET [CMAKE_OPTION...]
configure_preset() {
  local preset=$1 generator=() more=()
  shift
  read -ra more <<<"${HPCLAUNCH_CMAKE_OPTIONS:-}"
  if have ccache; then
    export CMAKE_C_COMPILER_LAUNCHER=ccache CMAKE_CXX_COMPILER_LAUNCHER=ccache
    export CCACHE_SLOPPINESS=pch_defines,time_macros  # it skips sources with a precompiled header otherwise
  fi
  # A build folder keeps the generator and the compiler that it was made with.
  if [ ! -f "build/$preset/CMakeCache.txt" ]; then
    if have ninja; then generator=(-G Ninja); else generator=(-G "Unix Makefiles"); fi
    case $preset in
      dev | quick)
        if clang_works; then generator+=(-DCMAKE_C_COMPILER=clang -DCMAKE_CXX_COMPILER=clang++); fi
        if have ld.lld; then generator+=(-DCMAKE_EXE_LINKER_FLAGS=-fuse-ld=lld); fi
        ;;
    esac
  fi
  mkdir -p "build/$preset"
  cmake --preset "$preset" "${generator[@]}" "${fetch[@]}" "$@" "${more[@]}" >"build/$preset/configure.log" 2>&1 ||
    { cat "build/$preset/configure.log"; return 1; }
}

# build_preset PRESET [CMAKE_OPTION...]
build_preset() {
  local preset=$1
  configure_preset "$@" || return 1
  if [ -t 1 ]; then  # a person is watching
    cmake --build "build/$preset" -j "$(jobs_here)" 2>&1 | tee "build/$preset/build.log"
    return "${PIPESTATUS[0]}"
  fi
  cmake --build "build/$preset" -j "$(jobs_here)" >"build/$preset/build.log" 2>&1 ||
    { tail -n 60 "build/$preset/build.log"; return 1; }
}
