#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# check_models.sh RUN_MODELS MANIFEST BACKEND KNOWN: runs real models, where they are at hand. All
# but those that the file KNOWN names answer as their own runtime does.
set -eu

if [ ! -r "$2" ]; then
    echo "SKIP: there is no $2"
    exit 77
fi
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"$1" "$2" --backend "$3" >"$folder/out" 2>/dev/null || true
tail -n 1 "$folder/out" | tee "$folder/end"
grep -q ' models, ' "$folder/end" || {
    echo "run_models did not reach the end of $2"
    exit 1
}
# The name of a model is the first word of a line. The last line is a summary.
sed '$d' "$folder/out" | grep -E ' FAIL| unsupported: ' >"$folder/bad" || true
grep -v '^#' "$4" | cut -d ' ' -f 1 | sed 's/$/ /' >"$folder/known"
if grep -v -F -f "$folder/known" "$folder/bad"; then
    exit 1
fi
