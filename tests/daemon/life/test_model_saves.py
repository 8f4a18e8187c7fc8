#!/usr/bin/env python3
"""test_model_saves.py DAEMON INFERCTL SOURCE_ROOT [TEST...] - models that the daemon puts into its
repository, and removes from it."""
import json
import subprocess
import sys
import time
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
sys.dont_write_bytecode = True
# It reads the same arguments.
from life_case import QUIET_S, Asking, DAEMON, Server, inferd, place_model, weights, write_model


class Saves(unittest.TestCase):
    """inferctl load --save puts models into the repository."""

    def start(self, **settings):
        self.server = Server(**settings)
        self.outside = self.server.folder / 'outside'
        self.server.start()
        self.addCleanup(self.server.stop)
        return self.server

    def save(self, name, path, code=0):
        done = self.server.ctl('load', '--save', name, str(path))
        self.assertEqual(done.returncode, code, done)
        return done.stdout + done.stderr

    def tree(self):
        """Returns all names in the repository, hidden ones too, but not the lists of saves."""
        models = self.server.models
        names = [str(path.relative_to(models)) for path in models.rglob('*')]
        return sorted(name for name in names if not name.endswith('/.saved'))

    def test_a_saved_model_is_served_at_the_next_start(self):
        server = self.start()
        write_model(self.outside, 2)
        (self.outside / 'model.conf').write_text('batch_rows_max = 1\n')
        (self.outside / 'model.plan').write_text('not ours')
        (self.outside / '.hidden').write_text('x')
        (self.outside / 'more').mkdir()
        (self.outside / 'more/labels.txt').write_text('cat')
        self.assertIn('m is saved in the repository and ready', self.save('m', self.outside))
        self.assertEqual(server.ask('m'), 8)
        self.assertEqual(
            self.tree(),
            ['m', 'm/1', 'm/1/model.json', 'm/1/more', 'm/1/more/labels.txt', 'm/1/w.bin']
            + ['m/model.conf'],
        )
        # The watch of the repository finds what is served already.
        time.sleep(QUIET_S)
        self.assertEqual((server.row('m')['version'], server.ask('m')), ('1', 8))
        for path in self.outside.rglob('*.*'):
            path.unlink(missing_ok=True)
        server.process.terminate()
        server.process.wait()
        server.start()
        self.assertEqual(server.ask('m'), 8)
        self.assertEqual(server.row('m')['version'], '1')

    def test_the_next_save_is_the_next_version(self):
        server = self.start()
        self.save('m', write_model(self.outside, 1))
        (server.models / 'm/model.conf').write_text('versions = all\n')
        asking = Asking(server.socket, 'm')
        for version in range(2, 5):
            self.save('m', write_model(self.outside, version))
            self.assertEqual(server.row('m')['version'], str(version))
        self.assertEqual(asking.stop(), [4, 8, 12, 16])
        self.assertEqual(server.ask('m', version='2'), 8)
        # The settings of the repository stay.
        (self.outside / 'model.conf').write_text('versions = 1\n')
        self.save('m', self.outside)
        self.assertEqual((server.models / 'm/model.conf').read_text(), 'versions = all\n')
        # A model without directories of versions is version 1.
        place_model(server.models / 'plain', 3)
        server.wait_until(lambda: server.row('plain').get('state') == 'READY')
        self.save('plain', write_model(self.outside, 5))
        self.assertEqual(server.row('plain')['version'], '2')
        self.assertEqual(server.ask('plain'), 20)

    def test_a_model_that_does_not_load_is_not_saved(self):
        server = self.start()
        write_model(self.outside, 2)
        (self.outside / 'w.bin').write_bytes(b'short')
        self.assertIn('w.bin', self.save('m', self.outside, 1))
        self.assertEqual((self.tree(), list(server.models.iterdir())), ([], []))
        # The watch of the repository finds nothing either.
        time.sleep(QUIET_S)
        self.assertEqual(server.rows(), [])
        self.save('m', write_model(self.outside, 3))
        before = self.tree()
        asking = Asking(server.socket, 'm')
        (self.outside / 'w.bin').write_bytes(b'short')
        self.save('m', self.outside, 1)
        # A file that has its weights beside it, a link, a directory without a model, another name.
        write_model(self.outside, 4)
        self.assertIn('save their directory', self.save('m', self.outside / 'model.json', 4))
        (self.outside / 'link').symlink_to('/etc/passwd')
        self.save('m', self.outside, 1)
        (self.outside / 'link').unlink()
        self.save('m', self.server.folder / 'run', 1)
        (server.models / 'x.onnx').write_bytes(b'x')
        self.assertIn("the file 'x.onnx'", self.save('x', self.outside, 1))
        (server.models / 'x.onnx').unlink()
        self.save('n', self.outside / 'absent', 4)
        self.assertEqual(self.tree(), before)
        self.assertEqual(asking.stop(), [12])
        # What an earlier process left behind is no obstacle.
        for name in ('.n.new', 'm/.new'):
            (server.models / name / '1').mkdir(parents=True)
            (server.models / name / '1/model.json').write_text('half')
        self.save('n', self.outside)
        self.save('m', self.outside)
        self.assertEqual(server.ask('m') + server.ask('n'), 32)
        self.assertFalse([name for name in self.tree() if '/.' in name or name[0] == '.'])

    def test_failed_loads_leave_no_row_of_models_that_are_nowhere(self):
        server = self.start()
        self.assertEqual(server.ctl('load', 'absent').returncode, 4)
        self.assertEqual(server.ctl('load', 'm', str(self.outside / 'absent')).returncode, 4)
        self.assertEqual(server.rows(), [])
        # A model of the repository that does not load keeps its row, whatever an admin tries.
        (write_model(server.models / 'bad', 1) / 'w.bin').write_bytes(b'short')
        server.wait_until(lambda: server.row('bad').get('state') == 'UNAVAILABLE')
        self.assertEqual(server.ctl('load', 'bad', str(self.outside / 'absent')).returncode, 4)
        self.assertEqual(server.row('bad').get('state'), 'UNAVAILABLE')
        (write_model(self.outside, 1) / 'w.bin').write_bytes(b'short')
        self.save('bad', self.outside, 1)
        self.assertEqual(server.row('bad').get('state'), 'UNAVAILABLE')
        # A row goes with the files of a model that never was served.
        for path in (server.models / 'bad').iterdir():
            path.unlink()
        (server.models / 'bad').rmdir()
        server.wait_until(lambda: server.rows() == [])

    def test_what_was_saved_can_be_deleted(self):
        server = self.start()
        write_model(self.outside, 1)
        (self.outside / 'model.conf').write_text('labels = old=1\n')
        self.save('m', self.outside)
        self.save('m', write_model(self.outside, 2))
        self.assertEqual(server.ask('m'), 8)
        place_model(server.models / 'byhand', 5)
        server.wait_until(lambda: server.row('byhand').get('state') == 'READY')
        write_model(server.folder / 'elsewhere', 6)
        self.assertEqual(server.ctl('load', 'path', str(server.folder / 'elsewhere')).returncode, 0)
        before = self.tree()
        for name, options, code, text in (
            ('m', (), 1, 'has 2 versions in the repository, from 1 to 2'),
            ('m', ('--version', '3'), 4, "no version '3'"),
            ('m', ('--version', 'new'), 4, "no label 'new'"),
            ('byhand', (), 1, 'not put into the repository by a save'),
            ('path', (), 1, 'was loaded from a path'),
            ('absent', (), 4, 'no directory of it'),
        ):
            self.assertIn(text, self.delete(name, *options, code=code))
        self.assertEqual(self.tree(), before)
        self.assertEqual([server.ask(name) for name in ('m', 'byhand', 'path')], [8, 20, 24])
        # A version that is served by its label, while the other one is asked.
        asking = Asking(server.socket, 'm')
        self.delete('m', '--version', 'old')
        self.assertEqual(asking.stop(), [8])
        server.wait_until(
            lambda: [row['version'] for row in server.rows() if row['name'] == 'm'] == ['2']
        )
        (server.models / 'm/model.conf').write_text('versions = latest\n')
        # The served version: the next one takes its place.
        self.save('m', write_model(self.outside, 3))
        self.assertEqual((server.row('m')['version'], server.ask('m')), ('3', 12))
        asking = Asking(server.socket, 'm', timeout=10)
        self.delete('m', '--version', '3')
        self.assertEqual(asking.stop(), [12, 8])
        self.assertEqual(server.row('m')['version'], '2')
        answer = server.ctl('unload', 'm', '--delete', '-o', 'json')
        self.assertEqual(json.loads(answer.stdout), {'model': 'm', 'state': 'DELETED'})
        # The settings were changed by hand, and stay.
        time.sleep(QUIET_S)
        self.assertEqual([name for name in self.tree() if name[0] == 'm'], ['m', 'm/model.conf'])
        self.assertEqual([row['name'] for row in server.rows() if row['state'] == 'READY'],
                         ['byhand', 'path'])
        with inferd.Client(f'{server.folder}/run/admin.sock') as admin:
            admin.load('n', str(self.outside), save=True)
            self.assertEqual(server.ask('n'), 12)
            (server.models / 'n/1/theirs').write_text('x')
            admin.unload('n', '1', delete=True)
        self.assertEqual([name for name in self.tree() if name[0] == 'n'],
                         ['n', 'n/1', 'n/1/theirs', 'n/model.conf'])
        told = 'model deleted name=n version=1 (files of others stay)'
        server.wait_until(lambda: told in server.log())
        with inferd.Client(server.socket) as client, self.assertRaisesRegex(inferd.Error, 'admin'):
            client.unload('byhand', delete=True)

    def delete(self, name, *options, code=0):
        done = self.server.ctl('unload', name, '--delete', *options)
        self.assertEqual(done.returncode, code, done)
        return done.stdout + done.stderr

    def test_a_model_that_is_not_loaded_can_be_deleted(self):
        server = self.start(watch='never')
        self.save('m', write_model(self.outside, 1))
        self.assertEqual(server.ctl('unload', 'm').returncode, 0)
        self.assertIn('its files are deleted', self.delete('m'))
        self.assertEqual((self.tree(), server.rows()), ([], []))
        # One that is idle, and one whose load failed.
        (self.outside / 'model.conf').write_text('idle_unload_ms = 1\n')
        self.save('m', self.outside)
        server.wait_until(lambda: server.row('m').get('state') == 'IDLE')
        self.delete('m')
        self.save('m', self.outside)
        (server.models / 'm/1/w.bin').write_bytes(b'short')
        server.wait_until(lambda: server.row('m').get('state') == 'IDLE')
        with self.assertRaises(inferd.Error):
            server.ask('m', timeout=10)
        server.wait_until(lambda: server.row('m').get('state') == 'UNAVAILABLE')
        self.delete('m')
        self.assertEqual((self.tree(), server.rows()), ([], []))

    def test_a_complete_directory_has_its_marker(self):
        server = self.start(ready_file='DONE')
        self.save('m', write_model(self.outside, 2))
        self.assertIn('m/1/DONE', self.tree())
        self.assertEqual(server.ask('m'), 8)

    def start_mounted(self, commands):
        """Starts a daemon in a mount namespace, after shell commands on its repository."""
        server = self.server = Server()
        self.outside = write_model(server.folder / 'outside', 2)
        program = server.folder / 'mounted'
        program.write_text(f'#!/bin/sh\ncd {server.models} && {commands} && exec {DAEMON} "$@"\n')
        program.chmod(0o755)
        if subprocess.run(['unshare', '-m', 'true'], capture_output=True).returncode != 0:
            self.skipTest('no mount namespaces')
        server.start(['unshare', '-m', str(program)])
        self.addCleanup(server.stop)

    def test_a_read_only_repository_is_refused(self):
        self.start_mounted('mount --bind . . && mount -o remount,bind,ro .')
        self.assertIn('cannot write to the repository', self.save('m', self.outside, 1))
        self.assertEqual(self.server.rows(), [])

    def test_a_deletion_from_a_read_only_repository_is_refused(self):
        self.start_mounted('mount --bind . .')
        self.save('m', self.outside)
        name = str(self.server.models)
        enter = ['nsenter', '-m', '-t', str(self.server.process.pid)]
        subprocess.run([*enter, 'mount', '-o', 'remount,bind,ro', name], check=True)
        before = self.tree()
        self.assertIn('cannot write to the repository', self.delete('m', code=1))
        self.assertEqual((self.tree(), self.server.ask('m')), (before, 8))
        subprocess.run([*enter, 'mount', '-o', 'remount,bind,rw', name], check=True)
        self.delete('m')
        self.assertEqual(self.tree(), [])
        # The watch notices the deletion too, and has the model looked for.
        self.server.wait_until(lambda: self.server.rows() == [])

    def test_a_full_disk_leaves_nothing(self):
        self.start_mounted('mount -t tmpfs -o size=256k,nr_inodes=20 none .')
        self.save('m', self.outside)
        (self.outside / 'large.bin').write_bytes(b'x' * 300_000)
        for name in ('m', 'n'):
            self.assertIn('No space left on device', self.save(name, self.outside, 1))
        root = Path(f'/proc/{self.server.process.pid}/root{self.server.models}')
        names = sorted(str(path.relative_to(root)) for path in root.rglob('*'))
        self.assertEqual(
            names, ['m', 'm/.saved', 'm/1', 'm/1/.saved', 'm/1/model.json', 'm/1/w.bin']
        )
        self.assertEqual(self.server.ask('m'), 8)

    def test_a_save_needs_a_repository_and_a_file(self):
        server = self.start()
        self.assertEqual(server.ctl('load', '--save', 'm').returncode, 2)
        server.stop()
        self._cleanups.clear()
        self.server = Server()
        self.server.settings['repository'] = ''
        self.outside = self.server.folder / 'outside'
        self.server.start()
        self.addCleanup(self.server.stop)
        self.assertIn('there is no repository', self.save('m', write_model(self.outside, 2), 4))


if __name__ == '__main__':
    unittest.main(argv=[sys.argv[0], *sys.argv[4:]], verbosity=2)
