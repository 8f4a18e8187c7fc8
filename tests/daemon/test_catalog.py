#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""test_catalog.py SOURCE_ROOT - the catalogue of journal entries explains each MESSAGE_ID, and the
daemon logs each line that has one."""
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path


def main(root):
    root = Path(root)
    table = (root / 'daemon/system/journal.def').read_text()
    rows = re.findall(r'^INF_JOURNAL_MESSAGE\("([^"]+)", "([0-9a-f]{32})"\)$', table, re.M)
    assert len(rows) > 10 and len({number for _, number in rows}) == len(rows), rows
    catalogue = root / 'systemd/inferd.catalog'
    numbers = re.findall(r'^-- ([0-9a-f]{32})\nSubject: \S.*\n', catalogue.read_text(), re.M)
    assert numbers == [number for _, number in rows], 'the catalogue has other numbers'
    sources = ''.join(path.read_text() for path in (root / 'daemon').rglob('*.c'))
    for text, _ in rows:
        assert f'"{text}' in sources, f'no line of the log begins with "{text}"'
    if shutil.which('journalctl') is None:
        return 0
    # journalctl itself reads the file.
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / 'usr/lib/systemd/catalog'
        place.mkdir(parents=True)
        (Path(folder) / 'var/lib/systemd/catalog').mkdir(parents=True)
        shutil.copy(catalogue, place)
        done = subprocess.run(
            ['journalctl', f'--root={folder}', '--update-catalog'], capture_output=True, text=True
        )
        assert done.returncode == 0, done
        said = subprocess.run(
            ['journalctl', f'--root={folder}', '--list-catalog'], capture_output=True, text=True
        )
        assert len(said.stdout.splitlines()) == len(rows), said
    return 0


sys.exit(main(*sys.argv[1:]))
