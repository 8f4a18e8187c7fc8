#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# check_onnx_debian.sh RUN_ONNX BACKEND LIST: runs the tests of Debian's libonnx-testdata: those on
# LIST do not pass, all others do.
set -eu

data=/usr/share/libonnx-testdata/data

if [ ! -d "$data/node" ]; then
    echo "SKIP: libonnx-testdata is not installed"
    exit 77
fi
log=$(mktemp)
trap 'rm -f "$log"' EXIT
"$1" "$data" --backend "$2" --list "$3" --label 1.12 >"$log" || {
    grep ' the list$' "$log" || true
    tail -n 1 "$log"
    exit 1
}
tail -n 1 "$log"
