#!/usr/bin/env python3
"""check_words.py ROOT - things that must not stand in the tree.

Unfinished work, generated files, environment reads outside their room, banned functions, absolute
paths of one machine, wall-clock time in the daemon.
"""
import re
import subprocess
import sys
from pathlib import Path

RULES = [
    # (what, pattern, files it looks at, files that may)
    (
        'unfinished work',
        r'\b(TODO|FIXME|XXX|HACK)\b',
        r'\.(c|h|py|sh|comp|glsl)$|meson\.build$',
        r'check_words\.py$',
    ),
    (
        'getenv outside its room',
        r'\b(secure_)?getenv\(',
        r'^(daemon|client|backends|proto)/.*\.[ch]$',
        r'^daemon/(config/config|system/log|system/notify)\.c$'
        r'|^client/lib/connect\.c$|^client/inferctl/',
    ),
    (
        'unbounded or variable-size memory',
        r'\b(alloca|sprintf|strcpy|strcat|gets)\(',
        r'^(daemon|client|backends|proto)/.*\.[ch]$',
        r'$^',
    ),
    ('atoi', r'\bato[ilf]\(', r'^(daemon|client|backends|proto)/.*\.[ch]$', r'$^'),
    (
        'wall-clock time',
        r'\bCLOCK_REALTIME\b|[^_\w]time\(NULL\)|gettimeofday\(',
        r'^(daemon|backends|proto)/.*\.[ch]$',
        # OTLP wants times since 1970; files have them.
        r'^daemon/(observe/trace_writer|model/fingerprint)\.c$',
    ),
    (
        '#if outside the headers for it',
        r'^\s*#\s*(if|ifdef|elif)\b(?!.*_H\b)',
        r'^(daemon|backends|proto)/.*\.[ch]$',
        r'proto/core/attributes\.h$|backends/graph/kinds\.def'
        r'|backends/cpu/kernels/(vec|qvec|qvec_(avx2|avx512|neon)|pause|exponential|reduce)\.h$'
        r'|backends/cpu/kernels/map/(halves|lookup_loop)\.h$',
    ),
    ('a path of one machine', r'/(?:work|home)/\w+', r'.*', r'check_words\.py$'),
]
GENERATED = re.compile(r'\.(o|a|so|spv|pyc)$|\.pb-c\.[ch]$')


def main(root):
    root = Path(root)
    files = subprocess.run(
        ['git', '-C', root, 'ls-files'], capture_output=True, text=True, check=True
    ).stdout.split('\n')
    faults = [
        f'{name}: generated, must not be committed' for name in files if GENERATED.search(name)
    ]
    for name in filter(None, files):
        try:
            lines = (root / name).read_text().splitlines()
        except (UnicodeDecodeError, FileNotFoundError, IsADirectoryError):
            continue
        for what, pattern, looks_at, may in RULES:
            if not re.search(looks_at, name) or re.search(may, name):
                continue
            faults += [
                f'{name}:{number}: {what}: {line.strip()}'
                for number, line in enumerate(lines, 1)
                if re.search(pattern, line)
            ]
    print('\n'.join(faults) or f'{len(files)} files hold nothing they must not')
    return len(faults)


if __name__ == '__main__':
    sys.exit(1 if main(*sys.argv[1:]) else 0)
