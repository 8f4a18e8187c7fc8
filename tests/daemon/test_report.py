#!/usr/bin/env python3
"""test_report.py DAEMON INFERCTL SOURCE_ROOT - inferctl report has the documented files, and
nothing private."""
import getpass
import json
import sys
import tarfile
import unittest
from pathlib import Path

from test_why_slow import Case, rows

# Every file of a report. The log is there if journalctl can be run.
JSON = 'status environment flags limits devices backends models memory slow'
FILES = {f'{name}.json' for name in JSON.split()} | {'events.json', 'version.txt', 'health.txt'}
SECRET_ID = 'id-of-a-request-7c1f'


class Report(Case):
    def test_a_report_is_whole_and_has_nothing_private(self):
        self.start('--slow-ms=1')
        private = self.folder / 'folder-of-a-client-55d2' / '1'
        private.mkdir(parents=True)
        (private / 'model.json').write_bytes(
            (self.folder / 'models/add/1/model.json').read_bytes()
        )
        self.assertEqual(self.ctl('load', 'mine', str(private)).returncode, 0)
        client = self.connect()
        client.infer('add', rows(4000), id=SECRET_ID)
        self.assertIn(SECRET_ID, self.ctl('slow', '--all').stdout)

        path = str(self.folder / 'report.tar.xz')
        said = self.ctl('report', '-o', path)
        self.assertEqual(said.returncode, 0, said)
        with tarfile.open(path, 'r:xz') as packed:
            files = {
                Path(member.name).name: packed.extractfile(member).read().decode()
                for member in packed.getmembers()
                if member.isfile()
            }
            self.assertTrue(all(member.uname in ('', 'root') for member in packed.getmembers()))
        self.assertEqual(set(files) - {'log.txt'}, FILES | {'metrics.txt'})
        for name in JSON.split():
            json.loads(files[f'{name}.json'])
        self.assertIn('inferctl ', files['version.txt'])
        self.assertIn('healthy: version', files['health.txt'])
        self.assertIn('inferd_inferences_total{', files['metrics.txt'])
        self.assertIn('model_ready', files['events.json'])
        self.assertEqual(json.loads(files['slow.json'])[0]['model'], 'add')
        flags = {flag['name']: flag for flag in json.loads(files['flags.json'])}
        self.assertEqual(
            (flags['slow_ms']['value'], flags['slow_ms']['origin']), ('1', 'argument')
        )
        self.assertIn('mine', files['models.json'])
        for name, text in files.items():
            for secret in (SECRET_ID, 'folder-of-a-client-55d2'):
                self.assertNotIn(secret, text, name)
        if getpass.getuser() != 'root':
            self.assertNotIn(getpass.getuser(), files['events.json'])

    def test_mistakes_are_named(self):
        self.start()
        said = self.ctl('report')
        self.assertEqual((said.returncode, '-o FILE' in said.stderr), (2, True), said)
        said = self.ctl('report', '-o', '/nowhere/at/all.tar.xz')
        self.assertEqual((said.returncode, 'tar failed' in said.stderr), (7, True), said)


if __name__ == '__main__':
    unittest.main(argv=sys.argv[:1])
