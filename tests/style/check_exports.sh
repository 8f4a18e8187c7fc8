#!/bin/sh
# check_exports.sh LIBRARY HEADER [LIMIT] - the library exports what the header declares and nothing
# else, needs nothing but libc and protobuf-c, and is not larger than LIMIT bytes without symbols.
library=$1 header=$2 limit=$3
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
nm -D --defined-only "$library" | awk '$2 != "A" { sub(/@.*/, "", $3); print $3 }' |
    sort >"$tmp/exported"
sed -n '/^INFERD_API/s/^[^(]*[ *]\(inferd_[a-z_]*\)(.*/\1/p' "$header" |
    sort >"$tmp/declared"
[ -s "$tmp/declared" ] || { echo "$header declares nothing"; exit 1; }
diff "$tmp/declared" "$tmp/exported" || { echo 'declared (<) and exported (>) differ'; exit 1; }
readelf -d "$library" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' |
    grep -v -e '^libc\.so' -e '^libprotobuf-c\.so' \
    -e '^libasan' -e '^libubsan' -e '^libtsan' &&
    { echo 'needed beside libc and protobuf-c'; exit 1; }
[ -n "$limit" ] || exit 0
strip -o "$tmp/stripped" "$library" || exit 1
size=$(wc -c <"$tmp/stripped")
echo "$size bytes"
[ "$size" -le "$limit" ]
