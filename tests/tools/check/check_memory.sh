#!/bin/sh
# check_memory.sh BENCH_MEMORY MANIFEST - no real model may take more on cpu than bench_memory
# allows. Skipped where the models are not there, and on processors where XNNPACK packs weights: it
# keeps them to itself, so that the constants stay too.
set -eu
if [ ! -f "$2" ]; then
    echo "SKIP: $2 is not there"
    exit 77
fi
if ! grep -qw avx2 /proc/cpuinfo; then
    echo "SKIP: no AVX2"
    exit 77
fi
exec "$1" "$2" --backend cpu --check
