#!/usr/bin/env python3
"""test_configure.py SOURCE_ROOT - `meson setup` where XNNPACK is missing fails and names the
packages and the option, and succeeds if that option asks for a build without XNNPACK."""
import os
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(sys.argv[1])
# A compiler that knows no library XNNPACK. Meson asks it to link with the library, and then looks
# into the folders that the compiler searches.
COMPILER = '''#!/bin/sh
for argument; do
    case $argument in
        -lXNNPACK) echo "cannot find -lXNNPACK" >&2; exit 1 ;;
        --print-search-dirs) echo "libraries: =/nonexistent"; exit 0 ;;
    esac
done
exec cc "$@"
'''


def configure(*options):
    """Runs `meson setup` in an empty folder; returns the exit status and the output."""
    with tempfile.TemporaryDirectory() as folder:
        compiler = Path(folder, 'without-xnnpack')
        compiler.write_text(COMPILER)
        compiler.chmod(0o755)
        done = subprocess.run(
            ['meson', 'setup', folder + '/build', str(ROOT), '-Dtests=disabled', *options],
            env={**os.environ, 'CC': str(compiler)},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        return done.returncode, done.stdout


class Configure(unittest.TestCase):
    def test_without_xnnpack_it_fails_and_says_what_to_type(self):
        status, output = configure()
        self.assertNotEqual(status, 0, output)
        self.assertIn('apt-get install libxnnpack-dev libpthreadpool-dev libcpuinfo-dev', output)
        self.assertIn('-Dxnnpack=disabled', output)

    def test_a_build_without_xnnpack_can_be_asked_for(self):
        status, output = configure('-Dxnnpack=disabled')
        self.assertEqual(status, 0, output)


if __name__ == '__main__':
    if shutil.which('meson') is None:
        print('SKIP: meson is not in PATH')
        sys.exit(77)
    unittest.main(argv=sys.argv[:1])
