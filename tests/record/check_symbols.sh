#!/bin/sh
# check_symbols.sh NM LIBRARY: fails if the static library asks for anything of libstdc++ or the unwinder.
# It is linked into processes whose C++ runtime is not ours to choose.
set -eu
undefined=$("$1" --undefined-only --format=just-symbols "$2" 2>/dev/null || "$1" -u "$2" | awk '{print $NF}')
[ -n "$undefined" ] || { echo "no symbols read from $2"; exit 1; }
if echo "$undefined" | grep -E '^(_ZSt|_ZNSt|_ZNKSt|_ZTVN10__cxxabiv|_Znw|_Zna|_Zdl|_Zda|__cxa_|__gxx_personality|_Unwind_)'; then
  echo "the symbols above would need libstdc++; use inline code and libc only"
  exit 1
fi
