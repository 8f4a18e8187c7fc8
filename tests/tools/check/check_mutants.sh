#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# check_mutants.sh MUTATE_MODELS BACKEND SHARED FUNCTIONS [TIMES]: breaks the model files in SHARED,
# if they are at hand: 400 mutants of TF.js models, 300 of ONNX models, 300 of ONNX's own small
# tests and 400 of TFLite models; each TIMES as many (20000 and 30000 by 50). FUNCTIONS is one more
# TF.js model.
set -eu

mutate=$1
backend=$2
shared=$3
functions=$4
times=${5:-1}

if [ ! -d "$shared/models" ] || [ ! -r "$shared/onnx-conformance/onnx-tests.tar.xz" ]; then
    echo "SKIP: there are no model files in $shared"
    exit 77
fi
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
# Sanitizers take long over large memory: they let its allocation fail instead.
export ASAN_OPTIONS="max_allocation_size_mb=512:allocator_may_return_null=1:${ASAN_OPTIONS:-}"
status=0

break_seeds() {
    count=$1
    name=$2
    shift 2
    mkdir "$folder/$name"
    printf '%s: ' "$name"
    "$mutate" --backend "$backend" --folder "$folder/$name" --count "$((count * times))" \
        "$@" || status=1
}

break_seeds 400 tfjs $(ls "$shared"/models/*/model/*.json | grep -v vocab.json) "$functions"
break_seeds 300 onnx "$shared"/models/*/model/*.onnx
mkdir "$folder/tests"
tar -xJf "$shared/onnx-conformance/onnx-tests.tar.xz" -C "$folder/tests" --wildcards '*/model.onnx'
break_seeds 300 onnx_tests $(find "$folder/tests" -name model.onnx | sort)
if [ -d "$shared/tflite" ]; then
    break_seeds 400 tflite $(find "$shared/tflite" -name '*.tflite' -size -40k | sort)
fi
exit "$status"
