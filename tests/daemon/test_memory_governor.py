#!/usr/bin/env python3
"""test_memory_governor.py DAEMON INFERCTL SOURCE_ROOT [FAKE_SYSTEM] [TEST...] - more models than
fit into the daemon's budget of memory: who is unloaded for whom, what is refused, and what happens
when the kernel reports that memory is short. FAKE_SYSTEM is the library that imitates the kernel's
files (tests/support/daemon/fake_system.c); without it, tests of resident memory and of these files
are skipped."""
import json
import os
import random
import socket
import struct
import sys
import threading
import time
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parent / 'life'))
sys.dont_write_bytecode = True
from memory_group import MemoryGroup
from life_case import SECONDS_MAX, Server  # it reads the same arguments
import inferd
import numpy

FAKE_SYSTEM = sys.argv[4] if len(sys.argv) > 4 and sys.argv[4].endswith('.so') else None
UNITS = 1024
MODEL_BYTES = 4 * UNITS * UNITS
MIB = 1 << 20


def write_model(folder, factor, settings=''):
    """Writes a model whose outputs are each `factor` times the sum of the inputs."""
    folder.mkdir(parents=True)
    config = {
        'name': 'd',
        'units': UNITS,
        'activation': 'linear',
        'use_bias': False,
        'batch_input_shape': [None, UNITS],
    }
    layers = {'name': 'm', 'layers': [{'class_name': 'Dense', 'config': config}]}
    kernel = {'name': 'd/kernel', 'shape': [UNITS, UNITS], 'dtype': 'float32'}
    (folder / 'w.bin').write_bytes(struct.pack('<f', factor) * (UNITS * UNITS))
    text = {
        'modelTopology': {'class_name': 'Sequential', 'config': layers},
        'weightsManifest': [{'paths': ['w.bin'], 'weights': [kernel]}],
    }
    (folder / 'model.json').write_text(json.dumps(text))
    if settings:
        (folder / 'model.conf').write_text(settings)


def ask(client, model, timeout=SECONDS_MAX):
    """Asks a model for one row. Returns the only value of the answer."""
    row = numpy.ones((1, UNITS), numpy.float32)
    answer = client.infer(model, {'d_input': row}, timeout=timeout)
    values = set(next(iter(answer.values())).ravel().tolist())
    assert len(values) == 1, values
    return values.pop()


class Governor(unittest.TestCase):
    def make(self, count, **settings):
        """Writes models m0, m1, ... whose factors are 1, 2, ..."""
        self.server = Server(batch_rows_max=1, race='never', **settings)
        for i in range(count):
            write_model(self.server.models / f'm{i}', i + 1)
        return self.server

    def samples(self, name):
        answer = self.server.ctl('metrics', '-o', 'json')
        self.assertEqual(answer.returncode, 0, answer.stderr)
        return next(m['samples'] for m in json.loads(answer.stdout) if m['name'] == name)

    def value(self, name, **labels):
        return next(s['value'] for s in self.samples(name) if s['labels'] == labels)

    def used(self):
        return sum(s['value'] for s in self.samples('inferd_memory_used_bytes'))

    def states(self):
        return {row['name']: row['state'] for row in self.server.rows()}

    def count(self, state):
        return list(self.states().values()).count(state)

    def limit_for(self, models):
        """Starts the daemon with one model to see what it takes. Returns a limit for `models` such
        models, which leaves half of another one."""
        self.server.settings['memory_max'] = 1 << 40
        self.server.settings['load_all'] = 'no'
        self.server.start()
        with inferd.Client(f'{self.server.folder}/run/admin.sock') as admin:
            admin.load('m0')
        process = self.value('inferd_memory_used_bytes', use='process')
        size = self.value('inferd_memory_used_bytes', use='models')
        self.assertGreaterEqual(size, MODEL_BYTES)
        self.assertGreater(process, 0)
        self.server.process.terminate()
        self.server.process.wait(SECONDS_MAX)
        self.server.settings['load_all'] = 'yes'
        return int(process + size * (models + 0.5))

    def start(self, models, group=None):
        """Starts the daemon with a limit for `models` models. `group` is a control group for it,
        whose limit is as much larger as that of a unit is."""
        self.server.settings['memory_max'] = self.limit_for(models)
        if group is not None:
            group.limit(int(self.server.settings['memory_max'] / 0.9))
            self.server.prefix = group.prefix()
        self.server.start()
        self.addCleanup(self.server.stop)
        self.server.wait_until(
            lambda: not self.server.rows_loading() and self.value('inferd_model_loads_pending') == 0
        )

    def test_forty_models_on_a_budget_for_twelve(self):
        self.make(40)
        # Sanitizers take more memory than the group would have.
        group = MemoryGroup.make() if FAKE_SYSTEM is not None else None
        if group is not None:
            self.addCleanup(group.remove)  # after the daemon has ended
        self.start(12, group)
        states = list(self.states().values())
        self.assertEqual((states.count('READY'), states.count('IDLE')), (12, 28), states)
        # A model that takes a little more than its files is loaded, and unloaded again.
        deferred = self.value('inferd_model_loads_deferred_total')
        self.assertEqual(deferred + self.value('inferd_model_unloads_total', cause='memory'), 28)
        self.assertGreater(deferred, 20)
        loads = self.value('inferd_model_loads_total', outcome='ok')
        early = self.value('inferd_model_unloads_total', cause='memory')
        answered, failures, most = [], [], 0

        def run(seed):
            choose = random.Random(seed)
            try:
                with inferd.Client(self.server.socket) as client:
                    for _ in range(100):
                        # A few models are asked often and many seldom, as it is in practice.
                        i = min(int(choose.paretovariate(0.7)) - 1, 39)
                        answered.append(i)
                        assert ask(client, f'm{i}') == UNITS * (i + 1)
            except BaseException as error:
                failures.append(error)

        threads = [threading.Thread(target=run, args=(seed,)) for seed in range(4)]
        for thread in threads:
            thread.start()
        while any(thread.is_alive() for thread in threads):
            most = max(most, self.used())
            time.sleep(0.02)
        self.assertEqual(failures, [])
        self.assertEqual(len(answered), 400)
        self.assertGreater(len(set(answered)), 12)
        self.assertLessEqual(most, self.server.settings['memory_max'])
        self.assertLessEqual(self.count('READY'), 12)
        reloads = self.value('inferd_model_loads_total', outcome='ok') - loads
        unloads = self.value('inferd_model_unloads_total', cause='memory') - early
        self.assertGreater(reloads, 0)
        self.assertGreaterEqual(reloads, unloads)
        print(
            f'{len(answered)} requests of {len(set(answered))} models: hit rate '
            f'{1 - reloads / len(answered):.3f}, {reloads} loads, {unloads} unloads, '
            f'{most / MIB:.1f} of {self.server.settings["memory_max"] / MIB:.1f} MiB'
        )
        if group is None:
            print('no control group may be made: the kernel has enforced no limit')
            return
        self.assertEqual(group.kills(), 0)
        print(
            f'control group: at most {group.peak_bytes() / MIB:.1f} of '
            f'{self.server.settings["memory_max"] / 0.9 / MIB:.1f} MiB, no process was killed'
        )

    def test_a_model_in_constant_use_makes_room_for_others(self):
        self.make(2)
        self.start(1)
        end, failures = threading.Event(), []

        def run(i):
            try:
                with inferd.Client(self.server.socket) as client:
                    while not end.is_set():
                        assert ask(client, f'm{i}') == UNITS * (i + 1)
            except BaseException as error:
                failures.append(error)

        threads = [threading.Thread(target=run, args=(0,)) for _ in range(3)]
        for thread in threads:
            thread.start()
        with inferd.Client(self.server.socket) as client:
            for _ in range(3):
                self.assertEqual(ask(client, 'm1'), 2 * UNITS)
                self.assertEqual(ask(client, 'm0'), UNITS)
        end.set()
        for thread in threads:
            thread.join()
        self.assertEqual(failures, [])

    def test_what_never_fits_is_refused_with_the_numbers(self):
        self.make(2)
        (self.server.models / 'm0/model.conf').write_text('pinned = yes\n')
        self.start(1)
        self.assertEqual(self.states(), {'m0': 'READY', 'm1': 'IDLE'})
        with inferd.Client(self.server.socket) as client:
            with self.assertRaises(inferd.Error) as refused:
                ask(client, 'm1', timeout=5)
        text = str(refused.exception)
        limit = self.server.settings['memory_max'] / MIB
        self.assertRegex(text, rf"model 'm1' wants \d\.\d MiB, memory_max is {limit:.1f} MiB")
        self.assertRegex(text, r'pinned or loaded by path have \d\.\d MiB: m0')
        self.assertEqual(self.states(), {'m0': 'READY', 'm1': 'IDLE'})
        answer = self.server.ctl('load', 'm1')
        self.assertNotEqual(answer.returncode, 0)
        self.assertIn('memory_max is', answer.stderr)
        self.assertGreaterEqual(self.value('inferd_model_loads_refused_total'), 2)
        # When the pinned model is gone, the other one fits.
        self.assertEqual(self.server.ctl('unload', 'm0').returncode, 0)
        with inferd.Client(self.server.socket) as client:
            self.server.wait_until(lambda: self.try_to_ask(client, 'm1') == 2 * UNITS)

    def try_to_ask(self, client, model):
        try:
            return ask(client, model)
        except inferd.Error:
            return None

    def test_status_shows_the_budget(self):
        self.make(1, memory_max=1 << 30).start()
        self.addCleanup(self.server.stop)
        status = json.loads(self.server.ctl('status', '-o', 'json').stdout)
        self.assertEqual(status['memory_max_bytes'], 1 << 30)
        self.assertGreaterEqual(status['memory_used_bytes'], MODEL_BYTES)
        self.assertAlmostEqual(status['memory_used_bytes'], self.used(), delta=MIB)

    @unittest.skipIf(FAKE_SYSTEM is None, 'sanitizers keep memory that was freed')
    def test_reading_metrics_takes_no_memory(self):
        self.make(2).start()
        self.addCleanup(self.server.stop)
        # Models that were freed make the allocator keep large blocks.
        self.assertEqual(self.server.ctl('unload', 'm1').returncode, 0)

        def anonymous():
            status = open(f'/proc/{self.server.process.pid}/status').read()
            return int(status.split('RssAnon:')[1].split()[0]) << 10

        def growth():
            before = anonymous()
            for _ in range(8):
                self.samples('inferd_memory_used_bytes')
            return anonymous() - before

        self.samples('inferd_memory_used_bytes')
        # Work in the background, such as a race of kernels, may take memory during one reading.
        self.assertLess(min(growth() for _ in range(5)), MIB)

    def test_a_request_that_needs_too_much_is_refused_before_it_runs(self):
        self.make(1).start()
        self.addCleanup(self.server.stop)
        with inferd.Client(self.server.socket) as client:
            self.assertEqual(ask(client, 'm0'), UNITS)
            rows = numpy.ones((512, UNITS), numpy.float32)
            self.assertEqual(client.infer('m0', {'d_input': rows})['d'].shape, (512, UNITS))
            self.assertEqual(
                self.server.ctl('flags', 'set', 'request_memory_max', '1000').returncode, 0
            )
            # The executable is there already, and is refused nevertheless.
            for count in (512, 300):
                with self.assertRaises(inferd.Error) as refused:
                    client.infer('m0', {'d_input': rows[:count]})
                self.assertRegex(
                    str(refused.exception),
                    r'intermediate results of this request take \d+ bytes, '
                    r'request_memory_max is 1000',
                )
            self.assertEqual(
                self.server.ctl('flags', 'set', 'request_memory_max', '0').returncode, 0
            )
            self.assertEqual(client.infer('m0', {'d_input': rows})['d'].shape, (512, UNITS))


@unittest.skipIf(FAKE_SYSTEM is None, 'sanitizers replace what the imitation replaces')
class Kernel(Governor):
    """With imitated files of the kernel."""

    def start_in_group(self, count, high, has_triggers=True):
        """Returns the socket that stands for the kernel's trigger; without triggers, the file
        memory.pressure that the daemon reads instead."""
        server = self.make(count)
        root = server.folder / 'system'
        group = root / 'sys/fs/cgroup/a.slice/b.service'
        group.mkdir(parents=True)
        (group / 'memory.high').write_text(f'{high}\n')
        (root / 'sys/fs/cgroup/a.slice/memory.max').write_text(f'{high * 2}\n')
        (root / 'proc/self').mkdir(parents=True)
        (root / 'proc/self/cgroup').write_text('0::/a.slice/b.service\n')
        (root / 'proc/meminfo').write_text('MemTotal: 99999999 kB\nMemAvailable: 99999999 kB\n')
        pressure = group / 'memory.pressure'
        self.write_stall(pressure, 1000000)
        if has_triggers:
            listener = socket.create_server(('127.0.0.1', 0))
            self.addCleanup(listener.close)
            (root / 'port').write_text(str(listener.getsockname()[1]))
        os.environ.update(LD_PRELOAD=FAKE_SYSTEM, INF_FAKE_SYSTEM=str(root))
        try:
            server.start()
        finally:
            del os.environ['LD_PRELOAD'], os.environ['INF_FAKE_SYSTEM']
        self.addCleanup(server.stop)
        if not has_triggers:
            return pressure
        listener.settimeout(SECONDS_MAX)
        kernel = listener.accept()[0]
        self.addCleanup(kernel.close)
        return kernel

    def write_stall(self, file, total_us):
        """Writes how long tasks have waited for memory, over what the daemon keeps open."""
        with open(file, 'r+' if file.exists() else 'w') as out:
            for word in ('some', 'full'):
                out.write(f'{word} avg10=0.00 avg60=0.00 avg300=0.00 total={total_us}\n')

    def test_the_limit_is_that_of_the_control_group(self):
        self.start_in_group(1, 1000 * MIB)
        self.assertEqual(self.value('inferd_memory_limit_bytes'), 900 * MIB)
        self.assertIn('memory.high of /a.slice/b.service', self.server.log())

    def test_idle_models_go_when_memory_is_short(self):
        kernel = self.start_in_group(8, 1000 * MIB)
        self.assertEqual(kernel.recv(64), b'some 150000 2000000\0')
        (self.server.models / 'p').mkdir()
        self.assertEqual(self.count('READY'), 8)
        kernel.send(b'x', socket.MSG_OOB)
        self.server.wait_until(lambda: self.count('IDLE') == 2)
        self.assertEqual(self.value('inferd_model_unloads_total', cause='pressure'), 2)
        self.assertIn('memory is short', self.server.log())
        events = self.server.ctl('events', '-o', 'json').stdout
        self.assertEqual(events.count('"model_idle"'), 2)
        for _ in range(6):
            before = self.count('IDLE')
            kernel.send(b'x', socket.MSG_OOB)
            self.server.wait_until(lambda: self.count('IDLE') > before or before == 8)
        self.assertEqual(self.count('IDLE'), 8)
        with inferd.Client(self.server.socket) as client:
            for i in range(8):
                self.assertEqual(ask(client, f'm{i}'), UNITS * (i + 1))

    def test_pressure_is_read_where_no_trigger_can_be_set(self):
        file = self.start_in_group(8, 1000 * MIB, has_triggers=False)
        self.assertIn('pressure on memory is read every 2 s', self.server.log())
        # The time at start does not count, nor do 149 ms within 2 s.
        self.write_stall(file, 1149000)
        time.sleep(5)
        self.assertEqual(self.count('READY'), 8)
        self.write_stall(file, 1300000)
        self.server.wait_until(lambda: self.count('IDLE') == 2)
        self.assertEqual(self.value('inferd_model_unloads_total', cause='pressure'), 2)
        time.sleep(5)
        self.assertEqual(self.count('IDLE'), 2)

    def test_memory_goes_back_to_the_system(self):
        self.make(8).start()
        self.addCleanup(self.server.stop)

        def resident():
            return json.loads(self.server.ctl('status', '-o', 'json').stdout)['resident_bytes']

        def load(i):
            self.assertEqual(self.server.ctl('load', f'm{i}').returncode, 0)

        def unload(i):
            self.assertEqual(self.server.ctl('unload', f'm{i}').returncode, 0)

        for i in range(1, 8):
            unload(i)
        unload(0)
        # One round has touched everything that a load touches once.
        time.sleep(0.2)
        base = resident()
        for _ in range(5):
            for i in range(8):
                load(i)
            self.assertGreater(resident(), base + 8 * MODEL_BYTES)
            for i in range(8):
                unload(i)
        # What the allocator may keep at the end of its heap: glibc adapts its threshold to twice
        # the largest block that was freed.
        kept = 2 * MODEL_BYTES
        self.server.wait_until(lambda: resident() < base + 2 * MIB + kept)


# The tests of the base class are not repeated with imitated files.
for name in [name for name in dir(Governor) if name.startswith('test_')]:
    setattr(Kernel, name, None)


if __name__ == '__main__':
    rest = sys.argv[5:] if FAKE_SYSTEM else sys.argv[4:]
    unittest.main(argv=[sys.argv[0], *rest], verbosity=2)
