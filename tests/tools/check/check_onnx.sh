#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# check_onnx.sh RUN_ONNX FOLDER BACKEND LIST: unpacks ONNX's conformance tests, where they are at
# hand, and runs all of them: those on LIST do not pass, all others do. Then the whole networks of
# onnx-light.
set -eu

run_onnx=$1
archive=$2/onnx-tests.tar.xz
light=$2/onnx-light.tar.xz
backend=$3
list=$4

if [ ! -r "$archive" ] || [ ! -r "$light" ]; then
    echo "SKIP: ONNX's test data is not here"
    exit 77
fi
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
tar -xJf "$archive" -C "$folder"
"$run_onnx" "$folder" --backend "$backend" --list "$list" --label 1.23 >"$folder/log" || {
    grep ' the list$' "$folder/log" || true
    tail -n 1 "$folder/log"
    exit 1
}
tail -n 1 "$folder/log"
mkdir "$folder/light"
tar -xJf "$light" -C "$folder/light"
if [ "$backend" = ref ]; then
    # Plain loops take minutes for the others.
    exec "$run_onnx" "$folder/light" --backend ref --only light_squeezenet
fi
exec "$run_onnx" "$folder/light" --backend "$backend" --counts
