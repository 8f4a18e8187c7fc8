#!/bin/bash
# pack.sh BUILD SHARED OUT [PEER PROGRAM] - gathers in the folder OUT what report.sh needs on a
# machine with a GPU that has no packages of ours: the daemon, tools and tests of the folder BUILD,
# the libraries they need, the Vulkan loader, and models of SHARED/models with their references.
# PROGRAM is the benchmark program of another engine: report.sh runs it as `PROGRAM FOLDER`, and
# copies what it prints. OUT has at most 60 MB.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
die() { printf 'pack.sh: %s\n' "$*" >&2; exit 1; }
if [ $# -ne 3 ] && [ $# -ne 5 ]; then
    sed -n '2,6s/^# //p' "$0" >&2
    exit 2
fi
build=$1 shared=$2 out=$3 peer=${4:-} program=${5:-}
limit_kib=$((60 * 1000))

models="blazeface-front facemesh posenet mobilenet_v2_100_224-tfjs bodypix-050-s16-tfjs
    movenet-lightning selfie upscaler-default-x2 nsfwjs-mobilenet_v2 ppocr-cls"
programs="daemon/inferd client/inferctl/inferctl tests/tools/bench_engine tests/tools/run_models
    tests/tools/run_random tests/tools/bench_in_place tests/conformance/test_ops
    tests/conformance/test_vulkan_race tests/conformance/test_vulkan_product
    tests/conformance/test_vulkan_attention tests/conformance/test_vulkan_winograd
    tests/conformance/test_vulkan_check
    tests/unit/test_vulkan_faults"
layer=tests/support/libvulkan-fault-layer.so
manifest=tests/support/vulkan_fault_layer.json

[ ! -e "$out" ] || die "'$out' is there already"
for file in $programs $layer $manifest; do
    [ -f "$build/$file" ] || die "'$build/$file' is missing: ninja -C $build $programs"
done
for model in $models; do
    [ -d "$shared/models/$model" ] || die "'$shared/models/$model' is missing"
done
mkdir -p "$out/models"
stage=$(mktemp -d)
trap 'rm -rf "$stage"' EXIT
mkdir -p "$stage/bin" "$stage/lib/libc" "$stage/lib/loader"

for file in $programs; do
    strip -o "$stage/bin/$(basename "$file")" "$build/$file"
done
cp "$build/$layer" "$stage/bin/"
# The layer lies beside its manifest.
sed 's|"library_path": ".*/|"library_path": "./|' "$build/$manifest" \
    >"$stage/bin/$(basename "$manifest")"
# Libraries of the system's C library lie apart: report.sh uses them only if those of the machine
# are too old, because its GPU driver was built for the machine's own.
for file in $programs; do ldd "$build/$file"; done | awk '/=> \//{print $3}' | sort -u |
    while read -r library; do
        case "$(basename "$library")" in
            libc.so* | libm.so* | libpthread.so* | libdl.so* | librt.so* | libresolv.so*)
                cp -L "$library" "$stage/lib/libc/" ;;
            *) cp -L "$library" "$stage/lib/" ;;
        esac
    done
cp -L /lib64/ld-linux-x86-64.so.2 "$stage/lib/libc/"
loader=$(ldconfig -p | awk '/libvulkan.so.1 / && !found {print $NF; found = 1}')
[ -z "$loader" ] || cp -L "$loader" "$stage/lib/loader/"
facts=$(command -v vulkaninfo || true)
[ -z "$facts" ] || cp "$facts" "$stage/bin/"

# The programs have most of their code in common, so that xz packs all of them into little more than
# one. xz itself comes along.
tar -C "$stage" -cf "$stage/kit.tar" bin lib
xz -T1 -6 --lzma2=dict=128MiB -c "$stage/kit.tar" >"$out/kit.tar.xz"
mkdir "$out/xz"
cp "$(command -v xz)" "$out/xz/"
ldd "$(command -v xz)" | awk '/liblzma/{print $3}' | xargs -r cp -L -t "$out/xz/"

for model in $models; do
    cp -rL "$shared/models/$model" "$out/models/"
done
# Only the models that are here.
python3 - "$shared/models/manifest.json" "$out/models/manifest.json" $models <<'END'
import json
import sys

manifest = json.load(open(sys.argv[1]))
manifest['models'] = [model for model in manifest['models'] if model['id'] in sys.argv[3:]]
json.dump(manifest, open(sys.argv[2], 'w'))
END
chmod -R u+w "$out"
if [ -n "$peer" ]; then
    [ -x "$program" ] || die "'$program' is not a program"
    cp "$program" "$out/peer"
    echo "$peer" >"$out/peer.name"
fi
cp "$here/report.sh" "$here/page.awk" "$out/"
{
    echo "packed $(date -u +%Y-%m-%dT%H:%MZ)"
    git -C "$here" log -1 --format='commit %h' 2>/dev/null || true
} >"$out/kit.txt"
size_kib=$(du -sk "$out" | cut -f1)
[ "$size_kib" -le "$limit_kib" ] || die "'$out' has $size_kib KiB, wanted at most $limit_kib"
echo "$out: $((size_kib / 1000)) MB; on the other machine: $out/report.sh"
