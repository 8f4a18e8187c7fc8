#!/bin/sh
# check_format.sh ROOT - every C file is as .clang-format wants it; skipped without clang-format 14.
cd "$1" || exit 1
if ! command -v clang-format >/dev/null; then
    echo "SKIP: clang-format is not installed"
    exit 77
fi
case "$(clang-format --version)" in
*"version 14."*) ;;
*) echo "SKIP: $(clang-format --version), wanted 14"; exit 77 ;;
esac
git ls-files '*.c' '*.h' | xargs clang-format --dry-run --Werror
