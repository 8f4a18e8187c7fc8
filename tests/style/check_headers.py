#!/usr/bin/env python3
"""check_headers.py ROOT BUILD CC - every header compiles alone, and documents every prototype.

A prototype is documented when a comment stands right above it, or above the run of prototypes it
belongs to (no blank line between them).
"""
import re
import subprocess
import sys
import tempfile
from pathlib import Path

PARTS = ('proto', 'backends', 'client', 'daemon')
PROTOTYPE = re.compile(
    r'^(?!typedef|static|#|extern|struct \w+ \{|enum|union|//|\s|\})[\w].*\b(inf|inferd)_\w+\($|'
    r'^(?!typedef|static|#|//|\s|\}|INF_)[\w][^=;{]*\b(?:inf|inferd)_\w+\('
)


def compile_alone(root, build, cc, header):
    with tempfile.NamedTemporaryFile('w', suffix='.c') as source:
        source.write(f'#include "{header.relative_to(root)}"\ntypedef int unused_;\n')
        source.flush()
        result = subprocess.run(
            [
                cc,
                '-std=gnu17',
                '-D_GNU_SOURCE',
                '-Wall',
                '-Wextra',
                '-Werror',
                '-fsyntax-only',
                f'-I{root}',
                f'-I{build}',
                source.name,
            ],
            capture_output=True,
            text=True,
        )
    return (
        [f'{header.relative_to(root)}: does not compile alone\n{result.stderr}']
        if result.returncode
        else []
    )


def undocumented(root, header):
    faults, above = [], ''
    for number, line in enumerate(header.read_text().splitlines(), 1):
        if PROTOTYPE.match(line) and above in ('', '}') and not line.startswith('#'):
            faults.append(f'{header.relative_to(root)}:{number}: no comment above: {line.strip()}')
        if not line.strip():
            above = ''
        elif line.startswith('//'):
            above = '//'
        elif above != '//' or line.startswith('}'):
            above = line.strip()[:1] if line.startswith('}') else above or 'code'
    return faults


def main(root, build, cc):
    root = Path(root)
    faults = []
    headers = sorted(p for part in PARTS for p in (root / part).rglob('*.h'))
    for header in headers:
        faults += compile_alone(root, build, cc, header)
        faults += undocumented(root, header)
    print('\n'.join(faults) or f'{len(headers)} headers compile alone and are documented')
    return len(faults)


if __name__ == '__main__':
    sys.exit(1 if main(*sys.argv[1:]) else 0)
