#!/usr/bin/env python3
"""test_plans.py DAEMON INFERCTL SOURCE_ROOT [TEST...] - plans of models, which a load keeps for the
next one: they are used, they are never stale, and broken or foreign ones are not used."""
import os
import struct
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
sys.dont_write_bytecode = True
# It reads the same arguments.
from test_model_life import Server, place_model, topology, weights, write_model


class Plans(unittest.TestCase):
    def make(self, **settings):
        self.server = Server(watch='never', **settings)
        self.cache = self.server.folder / 'cache'
        self.cache.mkdir(exist_ok=True)
        self.server.settings['cache_dir'] = self.cache
        return self.server

    def plans(self):
        return sorted(self.cache.glob('plan-*'))

    def run_once(self, wanted=None, model='m'):
        """Starts the daemon, asks a model, waits for its plan, and stops. Returns the log."""
        self.server.start()
        if wanted is not None:
            self.assertEqual(self.server.ask(model), wanted)
        # The plan is kept before the next job of the loader: this load.
        self.server.ctl('load', model)
        log = self.server.log()
        self.server.process.terminate()
        self.server.process.wait()
        return log

    def test_the_next_start_reads_the_plan_and_not_the_model(self):
        self.make()
        place_model(self.server.models / 'm', 3)
        self.run_once(12)
        self.assertEqual(len(self.plans()), 1)
        before = self.plans()[0].stat()
        # A model whose files cannot be read any longer, although they look the same, is served.
        topology = self.server.models / 'm/model.json'
        text, times = topology.read_text(), topology.stat()
        topology.write_text(' ' * len(text))
        os.utime(topology, ns=(times.st_atime_ns, times.st_mtime_ns))
        log = self.run_once(12)
        self.assertNotIn('plan not used', log)
        after = self.plans()[0].stat()
        self.assertGreater(after.st_mtime_ns, before.st_mtime_ns)
        self.assertEqual(after.st_ino, before.st_ino)
        # Without plans, it is not.
        self.server.settings['plan_bytes_max'] = 0
        self.server.start()
        self.assertEqual(self.server.row('m')['state'], 'UNAVAILABLE')
        self.server.process.kill()
        self.server.process.wait()

    def test_changed_weights_are_not_hidden_by_a_plan(self):
        self.make()
        place_model(self.server.models / 'm', 3)
        self.run_once(12)
        (self.server.models / 'm/w.bin').write_bytes(weights(5))
        self.run_once(20)
        self.assertEqual(len(self.plans()), 2)
        # A file beside other models has weights that its own stamp does not cover.
        place_model(self.server.models / 'n', 7)
        (self.server.models / 'n/model.json').rename(self.server.models / 'x.json')
        (self.server.models / 'n/w.bin').rename(self.server.models / 'w.bin')
        (self.server.models / 'n').rmdir()
        self.run_once(28, 'x')
        self.assertEqual(len(self.plans()), 2)
        (self.server.models / 'w.bin').write_bytes(weights(8))
        self.run_once(32, 'x')

    def test_damaged_and_foreign_plans_are_replaced(self):
        self.make()
        place_model(self.server.models / 'm', 3)
        self.run_once(12)
        plan = self.plans()[0]
        good = plan.read_bytes()
        for bad, why in (
            (good[:-1], 'its size is not that in its header'),
            (b'', 'too short'),
            (good[:40] + b'?' + good[41:], 'its header is damaged'),
            (good[:8] + b'\1' + good[9:], 'it was made by another version'),
            (good[:400] + b'?' + good[401:], 'its description is damaged'),
            (good[:-60] + b'?' + good[-59:], None),
        ):
            plan.write_bytes(bad)
            log = self.run_once(12)
            if why is not None:
                self.assertRegex(log, f'plan not used, .* reason=".*{why}')
                # What was measured may differ.
                self.assertEqual(plan.read_bytes()[24:128], good[24:128], 'key and build')
                self.assertNotIn('plan not used', self.run_once(12))
        plan.chmod(0o666)
        self.assertIn("wanted a file of the daemon's user", self.run_once(12))
        self.assertEqual(plan.stat().st_mode & 0o777, 0o600)
        # A directory in the place of the plan is no reason not to serve.
        plan.unlink()
        plan.mkdir()
        self.assertIn('plan not used', self.run_once(12))

    def make_wide(self, **settings):
        """Places a model whose weights are large enough to be kept in packed form only."""
        self.make(**{'backends': 'cpu', 'race': 'never', **settings})
        folder = write_model(self.server.models / 'm', 3)
        text = topology().replace('"units": 3', '"units": 40').replace('[4, 3]', '[4, 40]')
        (folder / 'model.json').write_text(text)
        (folder / 'w.bin').write_bytes(struct.pack('<160f', *([3] * 160)))

    def test_packed_weights_are_kept(self):
        self.make_wide()
        self.assertNotIn('packed_bytes=0 ', self.run_once(12))
        self.assertEqual(len(self.plans()), 1)
        log = self.run_once(12)
        self.assertRegex(log, r'model loaded .* packed_bytes=[1-9]\d* packing_us=0\b')
        self.assertNotIn('plan not used', log)
        # Damaged packed weights, which are the last bytes of the file, are not used.
        plan = self.plans()[0]
        good = plan.read_bytes()
        for at in (-1, -300, -640):
            plan.write_bytes(good[:at] + bytes([good[at] ^ 0x40]) + good[at:][1:])
            self.assertRegex(self.run_once(12), 'plan not used, .* reason=".* is damaged')
            self.assertNotIn('plan not used', self.run_once(12))

    def test_weights_packed_for_other_kernels_are_not_used(self):
        self.make_wide()
        self.run_once(12)
        self.server.settings['cpu_isa_max'] = 'baseline'
        self.assertRegex(self.run_once(12), 'plan not used, .* reason="cpu: weights packed for')
        self.assertNotIn('plan not used', self.run_once(12))

    def test_a_plan_is_kept_again_if_the_model_is_compiled_for_other_shapes(self):
        self.make_wide()
        self.run_once(12)
        before = self.plans()[0].read_bytes()
        self.assertNotIn('plan not used', self.run_once(12))
        self.assertEqual(self.plans()[0].read_bytes(), before)
        (self.server.models / 'm/model.conf').write_text('warmup_shapes = d_input=3x4\n')
        self.assertNotIn('plan not used', self.run_once(12))
        after = self.plans()[0].read_bytes()
        self.assertNotEqual(after, before)
        self.assertNotIn('plan not used', self.run_once(12))
        self.assertEqual(self.plans()[0].read_bytes(), after)

    def test_a_model_that_ended_the_daemon_twice_is_quarantined(self):
        self.make(load_all='no')
        place_model(self.server.models / 'm', 3)
        place_model(self.server.models / 'n', 5)
        for _ in range(2):
            self.server.start()
            self.server.ctl('load', 'n')
            loads = (self.cache / 'loads.db').read_bytes()
            self.server.process.kill()
            self.server.process.wait()
            # As if the process had ended during the load: the line of its end is missing.
            lines = loads.splitlines(keepends=True)
            self.assertRegex(lines[-1], rb' 0 0 ')
            (self.cache / 'loads.db').write_bytes(b''.join(lines[:-1]))
        self.server.settings['load_all'] = 'yes'
        self.server.start()
        row = self.server.row('n')
        self.assertEqual(row['state'], 'UNAVAILABLE')
        self.assertIn('quarantined: the daemon ended 2 times', row['reason'])
        self.assertEqual(self.server.ask('m'), 12)
        # An admin may try, and a load that ends lifts the quarantine.
        self.assertEqual(self.server.ctl('load', 'n').returncode, 0)
        self.assertEqual(self.server.ask('n'), 20)
        self.server.process.terminate()
        self.server.process.wait()
        self.run_once(20, 'n')

    def test_plans_are_kept_within_their_limit(self):
        self.make(plan_bytes_max=3000)
        for i in range(6):
            write_model(self.server.models / f'm{i}', i + 1)
        self.run_once(4, 'm0')
        self.assertGreaterEqual(len(self.plans()), 1)
        self.assertLessEqual(sum(plan.stat().st_size for plan in self.plans()), 3000)


if __name__ == '__main__':
    unittest.main(argv=[sys.argv[0], *sys.argv[4:]], verbosity=2)
