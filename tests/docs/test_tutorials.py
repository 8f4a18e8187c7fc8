#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""test_tutorials.py ROOT BUILD PAGE... - runs the commands of the tutorials.

All blocks of a page run in one shell, in the order of the page, in a folder that looks like the
root of the repository:
  ```sh           commands; the page fails if one of them fails
  ```python       a program for python3
  ```c file=F     the text of file F
Other blocks are text. Where a page says build/quickstart, the given build folder is used.
`pkg-config inferd` finds the library of that build.
"""
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

BLOCK = re.compile(r'^```(\S+)(?: file=(\S+))?\n(.*?)^```', re.M | re.S)


def script_of(page, folder, build):
    """The shell script that a page is."""
    lines = ['set -euo pipefail', 'set -m', 'trap \'jobs -p | xargs -r kill -9 2>/dev/null\' EXIT']
    for number, (kind, path, text) in enumerate(BLOCK.findall(page.read_text())):
        text = text.replace('$PWD/build/quickstart', str(build))
        if path:
            (folder / f'block{number}').write_text(text)
            lines.append(f'cp block{number} {path}')
        elif kind == 'sh':
            lines += [f'echo "--- block {number}"', text]
        elif kind == 'python':
            (folder / f'block{number}.py').write_text(text)
            lines += [f'echo "--- block {number}"', f'python3 block{number}.py']
    return '\n'.join(lines)


def run(page, root, build):
    with tempfile.TemporaryDirectory(prefix='inferd-docs.') as name:
        folder = Path(name)
        for part in ('tests', 'client', 'docs'):
            (folder / part).symlink_to(root / part)
        (folder / 'inferd.pc').write_text(
            'Name: inferd\nDescription: built\nVersion: 0\n'
            f'Cflags: -I{root}/client\nLibs: -L{build}/client -Wl,-rpath,{build}/client -linferd\n'
        )
        # Pages say python3: the interpreter that runs this test, which has NumPy.
        (folder / 'bin').mkdir()
        (folder / 'bin/python3').symlink_to(sys.executable)
        environment = dict(
            os.environ,
            PKG_CONFIG_PATH=name,
            XDG_CACHE_HOME=name,
            PATH=f'{folder}/bin:{os.environ["PATH"]}',
        )
        environment.pop('INFERD_SOCKET', None)
        result = subprocess.run(
            ['bash', '-c', script_of(page, folder, build)],
            cwd=folder,
            env=environment,
            text=True,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=170,
        )
    print(f'{page.name}: {"ok" if result.returncode == 0 else "FAILED"}')
    if result.returncode:
        print(result.stdout[-4000:])
    return result.returncode != 0


def main(root, build, *pages):
    for tool in ('cc', 'pkg-config'):
        if not shutil.which(tool):
            print(f'SKIP: there is no {tool}')
            return 77
    return any([run(Path(page), Path(root).resolve(), Path(build).resolve()) for page in pages])


if __name__ == '__main__':
    sys.exit(main(*sys.argv[1:]))
