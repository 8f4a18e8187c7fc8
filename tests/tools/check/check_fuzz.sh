#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# check_fuzz.sh SECONDS [BUILD]: builds the fuzz targets with libFuzzer of clang, AddressSanitizer
# and UBSan in BUILD (build/fuzz), and runs each for SECONDS. The inputs that reached new code stay
# in BUILD/corpus. Fails at the first crash, whose input libFuzzer leaves in BUILD.
set -eu

seconds=$1
root=$(cd "$(dirname "$0")/../../.." && pwd)
build=$(realpath -m "${2:-$root/build/fuzz}")
targets='http json proto connection tflite tflite_import'

setup() {
    CC="${CC:-clang}" CC_LD=lld meson setup "$1" "$root" -Dtests=enabled \
        -Db_sanitize=address,undefined -Db_lundef=false "-Dc_args=$2" >/dev/null
    for target in $targets; do
        ninja -C "$1" "tests/tools/fuzz/fuzz_$target" >/dev/null
    done
}

[ -e "$build/plain/build.ninja" ] || setup "$build/plain" -g1
[ -e "$build/fuzzer/build.ninja" ] || setup "$build/fuzzer" "['-g1','-fsanitize=fuzzer-no-link']"
cd "$build"
for target in $targets; do
    mkdir -p "corpus/$target"
    "plain/tests/tools/fuzz/fuzz_$target" --write "corpus/$target" >/dev/null
    case $target in
    tflite*) # small models of many operators, if they are at hand
        for file in "$root"/../shared/tflite/*/*.tflite; do
            if [ -e "$file" ] && [ "$(stat -c %s "$file")" -le 8192 ]; then
                cp "$file" "corpus/$target/$(basename "$(dirname "$file")")"
            fi
        done ;;
    esac
    echo "fuzz_$target: $seconds s"
    "fuzzer/tests/tools/fuzz/fuzz_$target" -max_total_time="$seconds" -max_len=8192 -timeout=10 \
        -rss_limit_mb=2048 -print_final_stats=1 "corpus/$target" 2>"$target.log" || {
        tail -n 60 "$target.log"
        exit 1
    }
    grep -E 'number_of_executed_units|new_units_added' "$target.log"
done
