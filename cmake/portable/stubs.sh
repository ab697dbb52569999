#!/bin/sh
# Libraries to link against in place of this machine's C library: the same functions, each in the newest version that
# glibc FLOOR had. The linker writes these versions into the program, which then starts with that glibc and every later one.
# Before 2.34 threads and dlopen had libraries of their own; naming them is right for both, they are still there (empty).
# usage: stubs.sh CC FLOOR FOLDER
set -eu
cc=$1 floor=$2 folder=$3
readelf=$("$cc" -print-prog-name=readelf)
mkdir -p "$folder"

# NAME TYPE SIZE VERSION ADDRESS BINDING of what this machine's library defines, the newest version up to the floor. The
# names of one variable (environ, __environ) keep one address, and weak ones stay weak: so the linker gives the program's copy
# of it all its names, and the C library writes into that copy.
symbols() {
  "$readelf" -W --dyn-syms "$("$cc" -print-file-name="$1")" | awk -v floor="$floor" '
    function number(version,   part) { split(version, part, "."); return part[1] * 1e6 + part[2] * 1e3 + part[3] }
    $7 ~ /^[0-9]+$/ && $8 ~ /@GLIBC_[0-9]/ && ($4 == "FUNC" || $4 == "IFUNC" || $4 == "OBJECT" || $4 == "NOTYPE") {
      split($8, name, /@+GLIBC_/)
      if (number(name[2]) > number(floor) || (name[1] in best && number(best[name[1]]) >= number(name[2]))) next
      best[name[1]] = name[2]
      row[name[1]] = ($4 == "OBJECT" ? "object" : "function") " " $3 " GLIBC_" name[2] " " $2 " " ($5 == "WEAK" ? "weak" : "globl")
    }
    END { for (key in row) print key, row[key] }' | LC_ALL=C sort -k5,5 -k1,1
}

# library SONAME: of the rows on stdin.
library() {
  awk -v map="$folder/$1.map" '
    { versions[$4] = versions[$4] " " $1 ";" }
    $2 == "function" { print ".text\n." $6 " " $1 "\n.type " $1 ",%function\n" $1 ": .byte 0" }
    $2 == "object" {
      print ".data\n" ($5 == last ? "" : ".balign 32\n.Lat" $5 ": .zero " $3)
      print "." $6 " " $1 "\n.type " $1 ",%object\n.set " $1 ",.Lat" $5 "\n.size " $1 "," $3
      last = $5
    }
    END { for (version in versions) print version " {" versions[version] " };" >map; close(map) }' >"$folder/$1.s"
  [ -s "$folder/$1.map" ] || echo 'GLIBC_2.17 { };' >"$folder/$1.map"
  "$cc" -shared -nostdlib -Wl,-soname,"$1" -Wl,--version-script,"$folder/$1.map" -Wl,--build-id=none \
    -o "$folder/$1" -x assembler "$folder/$1.s"
}

symbols libc.so.6 >"$folder/symbols"
apart='^(dl(open|sym|vsym|close|error|addr|addr1|info|mopen)|(pthread|sem)_[a-z0-9_]+) '
grep -vE "$apart" "$folder/symbols" | library libc.so.6
grep -E "$apart" "$folder/symbols" | grep '^dl' | library libdl.so.2
grep -E "$apart" "$folder/symbols" | grep -v '^dl' | library libpthread.so.0
symbols libm.so.6 | library libm.so.6
# On aarch64 the loader has __stack_chk_guard, which functions of a distribution's archives read.
loader=$(sed -n 's,.*AS_NEEDED *( *[^ ]*/\(ld-[^ /]*\) *).*,\1,p' "$("$cc" -print-file-name=libc.so)")
if [ -n "$loader" ] && symbols "$loader" | grep '^__stack_chk_guard ' >"$folder/guard"; then
  library "$loader" <"$folder/guard"
else
  loader=
fi

# By the names under which the compiler looks for them. libc_nonshared.a holds what every program carries itself.
for link in "libm.so libm.so.6" "libdl.so libdl.so.2" "libpthread.so libpthread.so.0"; do
  ln -sf "${link#* }" "$folder/${link% *}"
done
echo "GROUP ( $folder/libc.so.6 $("$cc" -print-file-name=libc_nonshared.a) ${loader:+AS_NEEDED ( $folder/$loader )} )" >"$folder/libc.so"
