#!/bin/sh
# build_shader.sh GLSLC SPIRV-VAL FOLDER IN.comp OUT.spv OUT.d [MACRO] - compiles one shader and checks the module.
set -eu
"$1" -O --target-env=vulkan1.2 -I "$3" -MD -MF "$6" ${7:+"-D$7"} "$4" -o "$5"
"$2" --target-env vulkan1.2 "$5"
