#!/usr/bin/env python3
"""test_plans.py DAEMON INFERCTL SOURCE_ROOT [TEST...] - plans of models, which a load keeps for the
next one: they are used, they are never stale, and broken or foreign ones are not used."""
import os
import struct
import subprocess
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / 'life'))
sys.dont_write_bytecode = True
# It reads the same arguments.
from life_case import (
    DAEMON,
    INFERCTL,
    Server,
    inferd,
    numpy,
    place_model,
    topology,
    weights,
    write_model,
)

# A daemon with devices for tests, and the input with which a run on its device `lazy` crashes
# (tests/support/device/odd_devices.h).
ODD = os.environ.get('INFERD_ODD')
CRASH = 66666


def onnx_field(number, payload):
    """Returns a field of protobuf: a number, a text or bytes."""
    if isinstance(payload, int):
        return bytes([number << 3, payload])
    payload = payload.encode() if isinstance(payload, str) else payload
    size = len(payload)
    length = bytes([size]) if size < 128 else bytes([size & 127 | 128, size >> 7])
    return bytes([number << 3 | 2]) + length + payload


def onnx_model(factor):
    """Returns an ONNX file: d_input [1,4] times a matrix of `factor`, [4,3]."""

    def port(name, *dims):
        shape = b''.join(onnx_field(1, onnx_field(1, dim)) for dim in dims)
        tensor = onnx_field(1, 1) + onnx_field(2, shape)
        return onnx_field(1, name) + onnx_field(2, onnx_field(1, tensor))

    matrix = onnx_field(1, 4) + onnx_field(1, 3) + onnx_field(2, 1) + onnx_field(8, 'w')
    matrix += onnx_field(9, struct.pack('<12f', *([factor] * 12)))
    node = onnx_field(1, 'd_input') + onnx_field(1, 'w') + onnx_field(2, 'y')
    node += onnx_field(4, 'MatMul')
    graph = onnx_field(1, node) + onnx_field(2, 'g') + onnx_field(5, matrix)
    graph += onnx_field(11, port('d_input', 1, 4)) + onnx_field(12, port('y', 1, 3))
    return onnx_field(1, 8) + onnx_field(7, graph) + onnx_field(8, onnx_field(2, 13))


class Plans(unittest.TestCase):
    def make(self, **settings):
        self.server = Server(watch='never', **settings)
        self.cache = self.server.folder / 'cache'
        self.cache.mkdir(exist_ok=True)
        self.server.settings['cache_dir'] = self.cache
        return self.server

    def plans(self):
        return sorted(self.cache.glob('plan-*'))

    def run_once(self, wanted=None, model='m', program=(DAEMON,)):
        """Starts the daemon, asks a model, waits for its plan, and stops. Returns the log."""
        self.server.start(program)
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
        log = self.run_once(20)
        self.assertIn("plan is of other files, the model is read instead name=m", log)
        self.assertIn("'w.bin' has changed since", log)
        self.assertEqual(len(self.plans()), 1)
        # A neighbour that the load does not read leaves the plan valid.
        (self.server.models / 'm/log').write_text('line')
        self.assertNotIn('plan is of other files', self.run_once(20))
        # The same holds for a model file beside other models.
        place_model(self.server.models / 'n', 7)
        (self.server.models / 'n/model.json').rename(self.server.models / 'x.json')
        (self.server.models / 'n/w.bin').rename(self.server.models / 'w.bin')
        (self.server.models / 'n').rmdir()
        self.run_once(28, 'x')
        self.assertEqual(len(self.plans()), 2)
        (self.server.models / 'w.bin').write_bytes(weights(8))
        self.run_once(32, 'x')
        self.assertEqual(len(self.plans()), 2)

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
        self.assertIn("wanted a file of root or the daemon's user", self.run_once(12))
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

    def compile(self, model, *arguments, code=0):
        """Makes the plan of a model ahead, as on another machine, and returns what was printed."""
        done = subprocess.run(
            [INFERCTL, 'compile', *arguments, '--set', 'backends=cpu', model],
            capture_output=True,
            text=True,
            env={**os.environ, 'INFERD': DAEMON, 'INFERD_FLAGS': 'repository=,race=never'},
        )
        self.assertEqual(done.returncode, code, done)
        return done.stdout + done.stderr

    USED, UNUSED = 'plan beside the model used', 'plan beside the model not used'

    def test_a_plan_that_was_made_ahead_is_used_in_place_of_the_model(self):
        self.make_wide()
        model = self.server.models / 'm'
        self.compile(model, '-o', model / 'model.plan')
        self.assertEqual((model / 'model.plan').stat().st_mode & 0o777, 0o644)
        log = self.run_once(12)
        self.assertIn(self.USED + ' name=m file=model.plan', log)
        self.assertRegex(log, r'model loaded .* packed_bytes=[1-9]\d* packing_us=0\b')
        # The next start has it in the cache, and need not read the model to know that it fits.
        self.assertEqual(len(self.plans()), 1)
        log = self.run_once(12)
        self.assertNotIn('plan beside', log)
        self.assertIn('packing_us=0', log)
        # Without a cache, it is used each time.
        self.server.settings['plan_bytes_max'] = 0
        self.assertIn(self.USED, self.run_once(12))

    def test_a_plan_beside_other_files_is_not_used(self):
        self.make_wide(plan_bytes_max=0)
        model = self.server.models / 'm'
        # The default place is beside the model.
        self.assertIn('beside it', self.compile(model))
        self.assertIn(self.USED, self.run_once(12))
        # Settings, hidden and empty files and the check are not part of what is read.
        (model / 'model.conf').write_text('idle_unload_ms = 0\n')
        (model / 'DONE').touch()
        (model / '.hidden').write_text('x')
        (model / 'check').mkdir()
        numpy.save(model / 'check/input.0.npy', numpy.ones((1, 4), numpy.float32))
        numpy.save(model / 'check/output.0.npy', numpy.full((1, 40), 12, numpy.float32))
        self.assertIn(self.USED, self.run_once(12))
        (model / 'w.bin').write_bytes(struct.pack('<160f', *([5] * 160)))
        numpy.save(model / 'check/output.0.npy', numpy.full((1, 40), 20, numpy.float32))
        log = self.run_once(20)
        self.assertRegex(log, self.UNUSED + '.* reason="it was made from other files or settings')
        self.compile(model)
        self.assertIn(self.USED, self.run_once(20))
        (model / '.more').mkdir()
        (model / '.more' / 'more.bin').write_text('x')
        self.assertIn(self.UNUSED, self.run_once(20))

    def test_a_plan_of_a_single_file_lies_beside_it(self):
        self.make(backends='cpu', plan_bytes_max=0)
        source = self.server.folder / 'source'
        source.mkdir()
        (source / 'any.onnx').write_bytes(onnx_model(3))
        self.compile(source / 'any.onnx', '-o', self.server.models / 'x.plan')
        (source / 'any.onnx').rename(self.server.models / 'x.onnx')
        self.assertIn(self.USED + ' name=x file=x.plan', self.run_once(12, 'x'))
        # The same plan fits a directory with other files beside the model.
        (self.server.models / 'x').mkdir()
        for suffix in ('onnx', 'plan'):
            (self.server.models / f'x.{suffix}').rename(self.server.models / f'x/model.{suffix}')
        (self.server.models / 'x/labels.txt').write_text('cat')
        self.assertIn(self.USED + ' name=x file=model.plan', self.run_once(12, 'x'))
        # A model file with weights beside it has no plan of its own.
        place_model(self.server.folder / 'shards', 3)
        text = self.compile(self.server.folder / 'shards/model.json', code=1)
        self.assertIn('wanted the directory', text)

    def test_a_plan_of_another_user_build_or_machine_is_not_used(self):
        self.make_wide(plan_bytes_max=0)
        model = self.server.models / 'm'
        self.compile(model, '-o', model / 'model.plan')
        plan = model / 'model.plan'
        good = plan.read_bytes()
        plan.chmod(0o664)
        self.assertRegex(self.run_once(12), self.UNUSED + '.* reason=".*that others cannot write')
        plan.chmod(0o644)
        if os.geteuid() == 0:
            os.chown(plan, 12345, 12345)
            self.assertRegex(self.run_once(12), self.UNUSED + '.* reason=".*that others cannot')
            os.chown(plan, 0, 0)
        (model / 'target').write_bytes(good)
        plan.unlink()
        plan.symlink_to('target')
        self.assertIn(self.UNUSED, self.run_once(12))
        plan.unlink()
        (model / 'target').unlink()
        for at, why in ((26, 'header is damaged'), (500, 'damaged'), (-70, 'damaged')):
            plan.write_bytes(good[:at] + bytes([good[at] ^ 4]) + good[at:][1:])
            self.assertRegex(self.run_once(12), self.UNUSED + f'.* reason=".*{why}')
        plan.write_bytes(good)
        self.assertIn(self.USED, self.run_once(12))
        self.server.settings['cpu_isa_max'] = 'baseline'
        self.assertRegex(self.run_once(12), self.UNUSED + '.* reason="cpu: weights packed for')
        self.compile(model, '-o', plan, '--set', 'cpu_isa_max=baseline')
        self.assertIn(self.USED, self.run_once(12))
        self.server.settings['backends'] = 'ref'
        self.assertRegex(self.run_once(12), self.UNUSED + '.* reason="there is no device')

    def test_a_plan_beside_a_model_outside_of_the_repository_is_not_used(self):
        self.make(backends='cpu', plan_bytes_max=0)
        folder = write_model(self.server.folder / 'outside', 3)
        self.compile(folder)
        self.server.start()
        self.assertEqual(self.server.ctl('load', 'n', str(folder)).returncode, 0)
        self.assertEqual(self.server.ask('n'), 12)
        self.assertNotIn('plan beside', self.server.log())
        self.server.process.kill()
        self.server.process.wait()

    def test_compile_refuses_what_it_cannot_do(self):
        self.make()
        folder = write_model(self.server.folder / 'a', 3)
        self.assertIn('No such file', self.compile(self.server.folder / 'absent', code=4))
        self.assertIn('KEY=VALUE', self.compile(folder, '--set', 'race', code=2))
        self.assertIn('no such', self.compile(folder, '--set', 'nonsense=1', code=2))
        self.assertIn('absent', self.compile(folder, '-o', folder / 'absent/x.plan', code=4))
        self.assertIn("device 'gpu9'", self.compile(folder, '-d', 'gpu9', code=4))
        (folder / 'model.json').write_text('{"modelTopology": {}}')
        self.compile(folder, code=1)
        self.assertEqual(sorted(p.name for p in folder.iterdir()), ['model.json', 'w.bin'])

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

    def test_a_model_whose_runs_crash_is_quarantined(self):
        self.make(backends='lazy,ref', device='lazy', log_level='info')
        place_model(self.server.models / 'm', 3)
        place_model(self.server.models / 'n', 5)
        for _ in range(2):
            self.server.start((ODD,))
            self.assertEqual(self.server.ask('m'), 12)
            self.assertEqual(self.server.ask('n'), 20)
            with inferd.Client(self.server.socket) as client:
                crash = numpy.full((1, 4), CRASH, numpy.float32)
                with self.assertRaises(inferd.Error):
                    client.infer('n', {'d_input': crash})
            self.assertNotEqual(self.server.process.wait(), 0)
        self.server.start((ODD,))
        row = self.server.row('n')
        self.assertEqual(row['state'], 'UNAVAILABLE')
        self.assertIn('quarantined: the daemon ended 2 times while it was run', row['reason'])
        code, report = self.server.reload()
        self.assertEqual((code, [row['outcome'] for row in report['models']]),
                         (1, ['refused', 'unchanged']))
        self.assertEqual(self.server.ask('m'), 12)
        self.assertEqual(self.server.ctl('load', 'n').returncode, 0)
        self.assertEqual(self.server.ask('n'), 20)
        self.server.process.terminate()
        self.server.process.wait()
        self.run_once(20, 'n', (ODD,))

    def test_plans_are_kept_within_their_limit(self):
        self.make(plan_bytes_max=3000)
        for i in range(6):
            write_model(self.server.models / f'm{i}', i + 1)
        self.run_once(4, 'm0')
        self.assertGreaterEqual(len(self.plans()), 1)
        self.assertLessEqual(sum(plan.stat().st_size for plan in self.plans()), 3000)


if __name__ == '__main__':
    unittest.main(argv=[sys.argv[0], *sys.argv[4:]], verbosity=2)
