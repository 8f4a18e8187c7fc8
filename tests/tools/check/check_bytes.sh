#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# check_bytes.sh RUN_MODELS MANIFEST... : the 8-bit outputs of cpu and vulkan are those of ref to
# the bit, on cpu with every instruction set. A manifest that is not there is left out.
set -eu

# Means and resizing are computed in floats, in double on ref: exact halves may be rounded to either
# side. So may sums on vulkan, which adds floats in another order.
known='op-resize_bilinear-half_pixel-int8 bytes-average_pool_2d bytes-mean-0 bytes-mean-1'

run_models=$1
shift
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
status=0
for manifest; do
    [ -r "$manifest" ] || continue
    tested=
    for device in ref baseline avx2 avx512 auto vulkan; do
        mkdir "$folder/$device"
        set -- --backend cpu
        case $device in
        ref) set -- --backend ref ;;
        auto) ;;
        vulkan) set -- --backend vulkan ;;
        *) set -- --backend cpu --isa-max "$device" ;;
        esac
        # An instruction set or a device that is not there is refused with status 2.
        code=0
        "$run_models" "$manifest" "$@" --write "$folder/$device" >/dev/null 2>&1 || code=$?
        [ "$code" -lt 2 ] || continue
        for model in $known; do
            rm -f "$folder/$device/$model".*
        done
        tested="$tested $device"
        set --
        [ "$device" != vulkan ] || set -- -x 'bytes-sum-*'
        diff -rq "$@" "$folder/ref" "$folder/$device" || status=1
    done
    count=$(find "$folder/ref" -name '*.npy' | wc -l)
    echo "$manifest: $count outputs on$tested"
    [ "$count" -gt 0 ] || status=1
    rm -rf "${folder:?}"/*
done
exit "$status"
