#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# check_text_model.sh RUN_MODELS MANIFEST BACKEND: the TensorFlow.js model that takes texts, where
# it is at hand, answers as TensorFlow.js does: strings, hashes of n-grams, and sparse operators.
set -eu

if [ ! -r "$2" ]; then
    echo "SKIP: the model is not here"
    exit 77
fi
"$1" "$2" --backend "$3" --only vscode-languagedetection | tail -n 1 | tee /dev/stderr |
    grep -q '0 unsupported; outputs: 4 ok, 0 FAIL'
