#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# check_contrib.sh RUN_CONTRIB CASES BACKEND LIST [--open]: runs recorded calls of com.microsoft and
# other operators, where they are at hand: those on LIST do not pass, all others do. Then the same
# with all inputs but the first as constants; with the argument --open, then again without the sizes
# of the first input.
set -eu

if [ ! -r "$2" ]; then
    echo "SKIP: $2 is not there"
    exit 77
fi
log=$(mktemp)
trap 'rm -f "$log"' EXIT
for constants in '' --constants ${5:+"--constants $5"}; do
    # shellcheck disable=SC2086 # one or two options
    "$1" "$2" --backend "$3" --list "$4" $constants >"$log" || {
        grep ' the list$' "$log" || true
        tail -n 1 "$log"
        exit 1
    }
    tail -n 1 "$log"
done
