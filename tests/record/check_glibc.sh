#!/bin/sh
# check_glibc.sh CC NM LIBRARY: fails if the static library, linked into a shared object, asks for a glibc newer than 2.28.
# Hosts that the probe is loaded into often have no newer one, and their loader then ignores it.
set -eu
newest_allowed=2.28
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"$1" -shared -nodefaultlibs -o "$folder/record.so" -Wl,--whole-archive "$3" -Wl,--no-whole-archive -lc -lgcc
versions=$("$2" --dynamic --undefined-only "$folder/record.so" | sed -n 's/.*@GLIBC_\([0-9.]*\).*/\1/p' | sort -Vu)
[ -n "$versions" ] || { echo "no glibc symbols read from $3"; exit 1; }
newest=$(printf '%s\n' "$versions" "$newest_allowed" | sort -V | tail -1)
if [ "$newest" != "$newest_allowed" ]; then
  "$2" --dynamic --undefined-only "$folder/record.so" | grep "@GLIBC_$newest"
  echo "the symbols above need glibc $newest; bind them to an older version as in src/record/old_glibc.h"
  exit 1
fi
