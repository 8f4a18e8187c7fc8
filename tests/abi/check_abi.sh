#!/bin/sh
# check_abi.sh LIBRARY PRINT_ABI WANTED - what programs that are linked with the library rely on is
# what the file says: symbols with their versions, structs, numbers. Lines may be added to the file
# where that breaks no program; none may change or go.
library=$1 print_abi=$2 wanted=$3
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
{
    nm -D --defined-only --with-symbol-versions "$library" | awk '$2 != "A" { print $3 }' |
        LC_ALL=C sort
    "$print_abi"
} >"$tmp/found"
grep -v '^#' "$wanted" | diff - "$tmp/found" ||
    { echo "$wanted (<) and the library (>) differ"; exit 1; }
