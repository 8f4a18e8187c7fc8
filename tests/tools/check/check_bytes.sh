#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# check_bytes.sh RUN_MODELS MANIFEST... : the 8-bit outputs of cpu and vulkan are those of ref to
# the bit, on cpu at every ISA level of the processor. It runs those models of each manifest that
# have 8-bit outputs. A manifest that does not exist is left out.
set -eu

# Resizing by a factor such as 7 / 5 has weights that floats do not hold exactly, and doubles on ref
# hold better: exact halves may be rounded to either side. So may sums with another scale than their
# operand on vulkan, which adds floats in another order.
known='op-resize_bilinear-half_pixel-int8'
# Levels of all architectures. In place of a level that the processor lacks, run_models takes the
# best lower one. If a level belongs to another architecture, or a device does not exist, run_models
# ends with status 2.
levels='baseline avx2 avx_vnni avx512 avx512_vnni avx512_bf16 neon neon_dotprod auto'

run_models=$1
shift
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
status=0

# Writes to folder $2 a manifest of those models of manifest $1 that have 8-bit outputs, and links
# to the folders of these models. Prints the name of the new manifest; or $1 if manifest $1 does not
# say the types of its outputs.
select_models() {
    python3 - "$1" "$2" <<'END'
import json, os, sys
source, out = sys.argv[1:]
models = json.load(open(source))['models']
types = [{value.get('dtype') for case in model['cases'] for value in case['outputs']}
         for model in models]
if None in set().union(*types):
    sys.exit(print(source))
models = [model for model, found in zip(models, types) if found & {'int8', 'uint8'}]
json.dump({'models': models}, open(out + '/manifest.json', 'w'))
folder = os.path.dirname(os.path.realpath(source))
for name in {model['model'].split('/')[0] for model in models}:
    os.symlink(os.path.join(folder, name), os.path.join(out, name))
print(out + '/manifest.json')
END
}

for manifest; do
    [ -r "$manifest" ] || continue
    tested=
    mkdir "$folder/models"
    selected=$(select_models "$manifest" "$folder/models")
    for device in ref $levels vulkan; do
        mkdir "$folder/$device"
        case $device in
        ref | vulkan) set -- --backend "$device" ;;
        auto) set -- --backend cpu ;;
        *) set -- --backend cpu --isa-max "$device" ;;
        esac
        code=0
        "$run_models" "$selected" "$@" --write "$folder/$device" >/dev/null 2>&1 || code=$?
        [ "$code" -ne 2 ] || continue
        if [ "$code" -gt 2 ]; then
            echo "$manifest on $device: run_models ended with status $code"
            status=1
        fi
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
