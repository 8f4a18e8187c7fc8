#!/bin/sh
# build_shader.sh GLSLC SPIRV-VAL FOLDER IN.comp OUT.spv OUT.d [MACRO...] - compiles one shader and
# checks the module.
set -eu
glslc=$1 check=$2 folder=$3 in=$4 out=$5 depfile=$6
shift 6
for macro; do
    shift
    set -- "$@" "-D$macro"
done
"$glslc" -O --target-env=vulkan1.2 -I "$folder" -MD -MF "$depfile" "$@" "$in" -o "$out"
"$check" --target-env vulkan1.2 "$out"
