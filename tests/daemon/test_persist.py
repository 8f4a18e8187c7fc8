#!/usr/bin/env python3
"""test_persist.py DAEMON INFERCTL SOURCE_ROOT [TEST...] - what admins set with --persist: it holds
after a restart, is shown, and can be taken back."""
import json
import os
import signal
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / 'life'))
sys.path.insert(0, str(Path(__file__).parent / 'handover'))
sys.path.insert(0, str(Path(sys.argv[3]) / 'client/python/inferd'))
sys.dont_write_bytecode = True
# It reads the same arguments.
from life_case import Server, place_model, write_model
from raw_client import TYPES, Raw

FLAG_PERSIST = 105  # a method


class Persistence(unittest.TestCase):
    def start(self, state='state', **settings):
        self.server = Server(**{'backends': 'cpu,ref', 'race': 'never', **settings})
        self.state = self.server.folder / state
        self.server.settings['state_dir'] = self.state
        (self.server.folder / 'state').mkdir()
        place_model(self.server.models / 'm', 3)
        self.server.start()
        self.addCleanup(lambda: self.server.stop())
        return self.server

    def restart(self, hard=False):
        self.server.process.send_signal(signal.SIGKILL if hard else signal.SIGTERM)
        self.server.process.wait()
        self.server.start()

    def ctl(self, *arguments, code=0):
        done = self.server.ctl(*arguments)
        self.assertEqual(done.returncode, code, done)
        return done.stdout + done.stderr

    def flag(self, name):
        rows = json.loads(self.ctl('flags', '-o', 'json'))
        [row] = [row for row in rows if row['name'] == name]
        return str(row['value']), row['origin']

    def setting(self, name, model='m'):
        rows = json.loads(self.ctl('flags', '-o', 'json', '--model', model))
        [row] = [row for row in rows if row['name'] == name]
        return str(row['value']), row['origin']

    def test_flags_hold_after_a_restart_until_they_are_reset(self):
        self.start(slow_ms=700)
        self.ctl('flags', 'set', 'slow_ms', '500', '--persist')
        self.ctl('flags', 'set', 'log_level', 'debug', '--persist')
        self.ctl('flags', 'set', 'drift_after_ms', '1234')
        self.assertEqual(self.flag('slow_ms'), ('500', 'persisted'))
        self.assertEqual(
            (self.state / 'settings').read_text().splitlines()[2:],
            ['- slow_ms = 500', '- log_level = debug'],
        )
        self.assertEqual((self.state / 'settings').stat().st_mode & 0o777, 0o600)
        self.restart(hard=True)
        self.assertEqual(self.flag('slow_ms'), ('500', 'persisted'))
        self.assertEqual(self.flag('log_level'), ('debug', 'persisted'))
        self.assertIn('debug ', self.server.log())
        self.assertEqual(self.flag('drift_after_ms'), ('60000', 'default'))
        # The way back, to the value of the configuration.
        self.ctl('flags', 'reset', 'slow_ms')
        self.assertEqual(self.flag('slow_ms'), ('700', 'argument'))
        self.ctl('flags', 'reset', 'log_level')
        self.assertEqual(self.flag('log_level'), ('info', 'default'))
        self.restart()
        self.assertEqual(self.flag('slow_ms'), ('700', 'argument'))
        self.assertEqual((self.state / 'settings').read_text().count('='), 0)
        # A flag that was set for this run only is reset too.
        self.ctl('flags', 'set', 'slow_ms', '9')
        self.ctl('flags', 'reset', 'slow_ms')
        self.assertEqual(self.flag('slow_ms'), ('700', 'argument'))

    def test_a_flag_follows_its_setting_although_the_client_has_left(self):
        self.start(slow_ms=700)
        admin = f'{self.server.folder}/run/admin.sock'
        for value in range(501, 521):
            client = Raw(admin)
            # FlagSetRequest: name = 1, value = 2, persist = 100.
            meta = b'\x0a\x07slow_ms' + b'\x12\x03%d' % value + b'\xa0\x06\x01'
            client.send(TYPES['REQUEST'], 1, meta, method=FLAG_PERSIST)
            client.socket.close()
            self.server.wait_until(
                lambda: f'- slow_ms = {value}' in (self.state / 'settings').read_text()
                if (self.state / 'settings').exists() else False
            )
            self.server.wait_until(lambda: self.flag('slow_ms') == (str(value), 'persisted'))

    def test_a_smaller_limit_of_the_queue_can_be_reset_after_a_restart(self):
        self.start()
        configured = self.flag('queue_requests_max')
        self.ctl('flags', 'set', 'queue_requests_max', '8', '--persist')
        self.restart()
        self.assertEqual(self.flag('queue_requests_max'), ('8', 'persisted'))
        self.ctl('flags', 'reset', 'queue_requests_max')
        self.assertEqual(self.flag('queue_requests_max'), configured)

    def test_what_cannot_be_kept_changes_nothing(self):
        self.start(state='absent')
        text = self.ctl('flags', 'set', 'slow_ms', '500', '--persist', code=1)
        self.assertIn('not persistent: the file in state_dir cannot be written', text)
        self.assertEqual(self.flag('slow_ms'), ('1000', 'default'))
        before = self.setting('device')
        text = self.ctl('place', 'm', 'ref', '--persist', code=1)
        self.assertIn('not persistent', text)
        self.assertEqual(self.setting('device'), before)
        self.assertEqual(self.server.ask('m'), 12)
        self.server.settings['state_dir'] = ''
        self.restart()
        text = self.ctl('flags', 'set', 'slow_ms', '500', '--persist', code=1)
        self.assertIn('state_dir names no directory', text)

    def test_wrong_values_and_names_are_refused(self):
        self.start()
        for arguments, code, why in (
            (('flags', 'set', 'slow_ms', 'soon', '--persist'), 1, 'wanted'),
            (('flags', 'set', 'slow_mss', '1', '--persist'), 4, "did you mean 'slow_ms'"),
            (('flags', 'set', 'backends', 'cpu', '--persist'), 1, 'read at start'),
            (('flags', 'reset', 'slow_mss'), 4, "did you mean 'slow_ms'"),
            (('flags', 'reset'), 2, 'reset NAME'),
            (('place', 'm', 'cpu', '--forget'), 2, 'MODEL only'),
            (('place', 'm', '--persist'), 2, 'wants'),
            (('place', 'n', 'cpu', '--persist'), 4, "'n'"),
            (('place', 'm', 'gpu9', '--persist'), 4, 'gpu9'),
            (('place', 'n', '--forget'), 4, "'n'"),
        ):
            self.assertIn(why, self.ctl(*arguments, code=code), arguments)
        self.assertFalse((self.state / 'settings').exists())

    def test_placements_hold_after_a_restart_until_they_are_forgotten(self):
        self.start()
        place_model(self.server.models / 'n', 5)
        (self.server.models / 'm/model.conf').write_text('device = cpu\nslow_ms = 77\n')
        self.restart()
        self.assertEqual(self.setting('device'), ('cpu', 'model'))
        self.ctl('place', 'm', '--policy', 'stability')
        self.ctl('place', 'm', 'ref', '--persist')
        # All that was set by hand is kept, and nothing else.
        self.assertEqual(
            sorted((self.state / 'settings').read_text().splitlines()[2:]),
            ['m device = ref', 'm policy = stability'],
        )
        self.assertEqual(self.setting('device'), ('ref', 'persisted'))
        self.restart(hard=True)
        self.assertEqual(self.setting('device'), ('ref', 'persisted'))
        self.assertEqual(self.setting('policy'), ('stability', 'persisted'))
        self.assertEqual(self.setting('slow_ms'), ('77', 'model'))
        self.assertEqual(self.server.row('m')['device'], 'ref')
        self.assertEqual(self.setting('device', 'n')[1], 'default')
        # A load by hand, and one of changed files, do not forget it.
        self.ctl('load', 'm')
        self.assertEqual(self.setting('device'), ('ref', 'persisted'))
        (self.server.models / 'm/model.conf').write_text('device = cpu\nslow_ms = 78\n')
        self.server.wait_until(lambda: self.setting('slow_ms')[0] == '78')
        self.assertEqual(self.setting('device'), ('ref', 'persisted'))
        # For this run only.
        self.ctl('place', 'm', 'cpu')
        self.assertEqual(self.setting('device'), ('cpu', 'admin'))
        self.restart()
        self.assertEqual(self.setting('device'), ('ref', 'persisted'))
        self.ctl('place', 'm', '--forget')
        self.assertEqual(self.setting('device'), ('cpu', 'model'))
        self.assertEqual(self.setting('policy')[1], 'default')
        self.restart()
        self.assertEqual(self.setting('device'), ('cpu', 'model'))
        self.assertEqual(self.server.row('m')['device'], 'cpu')
        self.assertEqual(self.server.ask('m'), 12)

    def test_a_damaged_file_is_read_as_far_as_it_makes_sense(self):
        self.start()
        self.server.process.kill()
        self.server.process.wait()
        lines = ['# text', 'nonsense', '- slow_ms = 500', '- unknown = 1', '- slow_ms_ = x = y']
        lines += ['- log_level = loud', '- backends = ref', 'm device = gpu9', 'm unknown = 1']
        lines += ['m batch_rows_max = many', 'x' * 5000, '']
        (self.state / 'settings').write_text('\n'.join(lines))
        self.server.start()
        self.assertEqual(self.flag('slow_ms'), ('500', 'persisted'))
        self.assertEqual(self.flag('log_level'), ('info', 'default'))
        self.assertEqual(self.flag('backends')[1], 'argument')
        log = self.server.log()
        self.assertIn('a line of the file of persistent settings is not used', log)
        self.assertIn('persistent flag not used name=unknown', log)
        self.assertIn('persistent flag not used name=log_level', log)
        self.assertIn("gpu9", self.server.row('m')['reason'])
        self.ctl('load', 'n', str(write_model(self.server.folder / 'outside', 7)))
        self.assertIn('load it again', self.ctl('place', 'n', '--forget', code=1))

    def test_a_reload_does_not_undo_a_persistent_flag(self):
        self.start()
        self.server.process.terminate()
        self.server.process.wait()
        conf = self.server.folder / 'inferd.conf'
        conf.write_text('slow_ms = 600\n')
        self.server.settings['config'] = conf
        self.server.start()
        self.ctl('flags', 'set', 'slow_ms', '500', '--persist')
        conf.write_text('slow_ms = 800\n')
        self.server.process.send_signal(signal.SIGHUP)
        self.server.wait_until(lambda: 'configuration read again' in self.server.log())
        self.assertEqual(self.flag('slow_ms'), ('500', 'persisted'))
        self.ctl('flags', 'reset', 'slow_ms')
        self.assertEqual(self.flag('slow_ms'), ('800', 'file'))


if __name__ == '__main__':
    unittest.main(argv=[sys.argv[0], *sys.argv[4:]], verbosity=2)
