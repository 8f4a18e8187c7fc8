#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# check_tflite.sh RUN_MODELS CASES BACKEND KNOWN: runs the TFLite models of the folder CASES, if it
# is there, and compares the outputs with its references. Fails unless every failing or unsupported
# model is a line of the file KNOWN, and every line of KNOWN is such a model. Every file of
# CASES/refuse.tsv must be refused with a text that contains the given word.
set -eu

run_models=$1
cases=$2
backend=$3
known=$4

if [ ! -r "$cases/manifest.json" ]; then
    echo "SKIP: there is no $cases/manifest.json"
    exit 77
fi
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
status=0

"$run_models" "$cases/manifest.json" --backend "$backend" >"$folder/out" 2>/dev/null || true
tail -n 1 "$folder/out"
# The name of a model is the first word of a line. The last line is a summary.
sed '$d' "$folder/out" | grep -E ' FAIL| unsupported: ' | cut -d ' ' -f 1 | sort -u \
    >"$folder/bad" || true
grep -v '^#' "$known" | cut -d ' ' -f 1 | sort -u >"$folder/known"
if ! diff "$folder/known" "$folder/bad" >"$folder/diff"; then
    echo "not as $known says ('<': passes now, '>': fails):"
    cat "$folder/diff"
    sed '$d' "$folder/out" | grep -E ' FAIL| unsupported: ' | head -n 40
    status=1
fi

# The files to refuse, as a manifest of models without cases.
python3 - "$cases" "$folder/refuse.json" <<'END'
import csv, json, sys
cases, out = sys.argv[1:]
rows = csv.DictReader(open(cases + '/refuse.tsv'), delimiter='\t')
models = [{'id': row['file'], 'model': row['file'], 'cases': []} for row in rows]
json.dump({'models': models}, open(out, 'w'))
END
ln -s "$(realpath "$cases")/refuse" "$folder/refuse"
"$run_models" "$folder/refuse.json" --backend "$backend" >"$folder/refused" 2>/dev/null || true
if ! tail -n 1 "$folder/refused" | grep -q 'models, '; then
    echo "run_models did not reach the end of refuse.tsv"
    status=1
fi
tail -n +2 "$cases/refuse.tsv" | while IFS='	' read -r file kind word _; do
    line=$(grep -F "$file " "$folder/refused" || true)
    case $kind in may_run) continue ;; esac
    if [ -z "$line" ]; then
        echo "$file: was not refused"
    elif [ "$word" != - ] && ! echo "$line" | grep -qiF -- "$word"; then
        echo "$file: the refusal lacks '$word': $line"
    fi
done >"$folder/wrong"
if [ -s "$folder/wrong" ]; then
    cat "$folder/wrong"
    status=1
fi
exit "$status"
