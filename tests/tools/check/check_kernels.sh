#!/bin/sh
# check_kernels.sh RUN_KERNELS CASES BACKEND - no recorded TensorFlow.js kernel call may get a wrong
# answer on BACKEND. Skipped where the recordings are not there.
set -eu
if [ ! -f "$2" ]; then
    echo "SKIP: $2 is not there"
    exit 77
fi
exec "$1" "$2" --backend "$3"
