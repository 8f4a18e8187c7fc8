#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""check_language.py ROOT - the rules of language and layout that a machine can check
(docs/STYLE.md).

Comments and documents hold no phrase of the list below, no line is wider than 100 columns, every .c
file begins with a comment that says what it does, no static function is a single word, no folder
has more than 40 files side by side, and no file name ends in a word or number that says nothing.
"""
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

COLUMNS = 100
FILES_MAX = 40
# Phrases that a reader must decipher, or that stand for a plain word. See docs/STYLE.md,
# "Language".
PHRASES = re.compile(
    r'\b(?:'
    + '|'.join(
        [
            r'hangs? on',
            r'hanging on',
            r'anew',
            r'(?:is|are|was|were|be|been) told of',
            r'tells? of',
            r'no number\b(?! of)',
            r'nearer',
            r'whoever',
            r'whomever',
            r'bring(?:s|ing)? nearer',
            r'as ever',
            r'had better',
            r'what it has not',
            r'who waits',
            r'of whom',
            r'gives? way to who',
            r'any ?more\b(?! than)',
            r'hours before',
            r'was tried',
            r'were tried',
            r'in calm',
            r'in a manner of',
            r'somebody',
            r'nobody',
            r'everybody',
            r'begun anew',
        ]
    )
    + r')\b',
    re.I,
)
TEXT = re.compile(
    r'\.(c|h|def|proto|comp|glsl|py|sh|js|md|[158])$|meson\.build$|^(check|quickstart)$|\.in$|\.conf$'
)
CODE = re.compile(r'\.(c|h|def|proto|comp|glsl|py|sh)$|meson\.build$|^(check|quickstart)$')
STATIC = re.compile(r'^static (?:inline |_Noreturn |INF_\w+ )*[\w\s\*]*?\b(\w+)\((?!\()')
# Names of mathematical functions and of entries of tables that X-macros make may be one word.
WORDS = {'main'}
# Numbers that end a name of an architecture mean something.
ENDING = re.compile(r'(?<!x86)(?:_|^)(?:more|rest|impl|misc|util|utils|other|others|\d+)$')
EXCEPT = re.compile(r'^tests/style/check_language\.py$')
# Measurements and the changelog tell what was tried, and when.
HISTORY = re.compile(r'^docs/measurements/|^CHANGELOG')
GENERATED = re.compile(r'^docs/reference/(?:operators|onnx-operators|flags)\.md$|\.jsonl$')


def check_text(name, lines):
    faults = []
    for number, line in enumerate(lines, 1):
        if CODE.search(name) and len(line) > COLUMNS:
            faults.append(f'{name}:{number}: {len(line)} columns, wanted {COLUMNS} at most')
        match = PHRASES.search(line)
        if match and not HISTORY.search(name):
            faults.append(f'{name}:{number}: "{match.group(0)}": {line.strip()[:100]}')
    return faults


def check_c(name, lines):
    faults = []
    second = lines[1] if len(lines) > 1 else ''
    if name.endswith('.c') and not second.startswith('// '):
        faults.append(f'{name}: no comment at its head that says what it does')
    for number, line in enumerate(lines, 1):
        match = STATIC.match(line)
        if (
            match
            and '_' not in match.group(1)
            and match.group(1) not in WORDS
            and '=' not in line[: match.end()]
        ):
            faults.append(
                f'{name}:{number}: static function "{match.group(1)}": wanted verb_object'
            )
    return faults


def main(root):
    root = Path(root)
    files = subprocess.run(
        ['git', '-C', root, 'ls-files', '--cached', '--others', '--exclude-standard'],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.splitlines()
    faults = []
    for name in files:
        stem = Path(name).stem
        if ENDING.search(stem) and re.search(r'\.(c|h)$', name):
            faults.append(f'{name}: the name ends in a word that says nothing')
        if (
            not TEXT.search(name)
            or EXCEPT.search(name)
            or GENERATED.search(name)
            or not (root / name).is_file()
        ):
            continue
        lines = (root / name).read_text().splitlines()
        faults += check_text(name, lines)
        if re.search(r'\.[ch]$', name):
            faults += check_c(name, lines)
    counts = Counter(str(Path(name).parent) for name in files)
    faults += [
        f'{folder}: {count} files side by side, wanted {FILES_MAX} at most'
        for folder, count in counts.items()
        if count > FILES_MAX
    ]
    print('\n'.join(faults) or f'{len(files)} files keep the rules of language and layout')
    return bool(faults)


if __name__ == '__main__':
    sys.exit(main(*sys.argv[1:]))
