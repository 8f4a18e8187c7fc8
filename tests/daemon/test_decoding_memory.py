#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""test_decoding_memory.py DAEMON SOURCE_ROOT [TEST...] - the memory of decoding sessions: what a
long session takes and is charged, and that all of it comes back. The model is one attention with
four heads, whose keys and values are the rows x that it was given."""
import os
import pathlib
import re
import signal
import subprocess
import sys
import time
import unittest

DAEMON, ROOT = map(os.path.abspath, sys.argv[1:3])
sys.path.insert(0, ROOT + '/client/python')
sys.path.insert(0, ROOT + '/tests/tools/gen')
sys.dont_write_bytecode = True
import numpy
import inferd
import onnx_writer
from bare_daemon import SECONDS_MAX, BareDaemon
from tested_program import is_sanitized

HEADS, SIZE = 4, 512
ROW_BYTES = 2 * HEADS * SIZE * 4  # keys and values, of floats
ROOM_LEAST = 256
STEPS = 2000
SANITIZED = is_sanitized(DAEMON)
MIB = 1 << 20
# Meson sets this variable, which makes malloc() write to all memory that it returns. Memory that
# the daemon does not use would then count.
os.environ['MALLOC_PERTURB_'] = '0'

# Runs as a process of its own, which the test kills.
CLIENT = """
import sys, numpy
sys.path.insert(0, sys.argv[1] + '/client/python')
import inferd
client = inferd.Client(sys.argv[2])
session = client.session({'present_k': 'past_k', 'present_v': 'past_v'})
x = numpy.ones((1, 4, 1, 512), numpy.float32)
for step in range(int(sys.argv[3])):
    y = session.infer('attention', {'x': x}, ['y'])['y']
    assert abs(y - 1).max() < 1e-3, y
print('ready', flush=True)
sys.stdin.readline()
"""


class DecodingMemory(unittest.TestCase):
    def start(self, settings='', positions=0, options=()):
        """If `positions` is not 0, rows of a table of so many, all 0, are added to the result."""
        self.daemon = BareDaemon(DAEMON, '--race=never', *options)
        self.addCleanup(self.daemon.end)
        graph = onnx_writer.Graph()
        keys, values = (graph.node('Concat', [f'past_{part}', 'x'], axis=2) for part in 'kv')
        scores = graph.node('MatMul', ['x', graph.node('Transpose', [keys], perm=[0, 1, 3, 2])])
        weights = graph.node('Softmax', [scores], axis=-1)
        y = graph.node('MatMul', [weights, values])
        if positions:
            sizes = [graph.node('Shape', [x]) for x in ('past_k', keys)]
            axis = graph.const(onnx_writer.INT64, [1], [2])
            ends = [graph.node('Gather', [size, axis], axis=0) for size in sizes]
            table = graph.const(onnx_writer.FLOAT, [positions, SIZE], [0.0] * (positions * SIZE))
            first = graph.const(onnx_writer.INT64, [1], [0])
            y = graph.node('Add', [y, graph.node('Slice', [table, *ends, first])])
        graph.output(y, 'y')
        graph.output(keys, 'present_k')
        graph.output(values, 'present_v')

        def port(name, rows):
            return onnx_writer.port(name, [1, HEADS, rows, SIZE])

        inputs = [port('x', 'n'), port('past_k', 'past'), port('past_v', 'past')]
        outputs = [port('y', 'n'), port('present_k', 'total'), port('present_v', 'total')]
        folder = pathlib.Path(self.daemon.folder) / 'attention'
        folder.mkdir()
        (folder / 'model.conf').write_text(settings, encoding='ascii')
        graph.write_ports(folder / 'model.onnx', 'attention', inputs, outputs, {'': 17})
        self.daemon.load('attention', folder)
        self.client = inferd.Client(self.daemon.socket)
        self.addCleanup(self.client.close)

    def session(self, **options):
        pairs = {'present_k': 'past_k', 'present_v': 'past_v'}
        session = self.client.session(pairs, **options)
        self.addCleanup(session.close)
        return session

    def feed(self, session, rows=1):
        x = numpy.ones((1, HEADS, rows, SIZE), numpy.float32)
        y = session.infer('attention', {'x': x}, ['y'])['y']
        numpy.testing.assert_allclose(y, x, atol=1e-3)

    def metric(self, name):
        text = self.client.metrics()
        return int(re.search(rf'^{name} (\d+)', text, re.M).group(1))

    def charged(self):
        return self.metric('inferd_session_memory_bytes')

    def resident(self):
        with open(f'/proc/{self.daemon.pid}/status', encoding='ascii') as file:
            return int(re.search(r'RssAnon:\s+(\d+) kB', file.read()).group(1)) << 10

    def wait_until(self, reached, text):
        end = time.monotonic() + SECONDS_MAX
        while not reached():
            self.assertLess(time.monotonic(), end, text())
            time.sleep(0.05)

    def test_buffers_double(self):
        """So sessions of any length need few executables."""
        self.start()
        session, sizes = self.session(), []
        for rows in [1] + [100] * 20:
            self.feed(session, rows)
            if self.charged() not in sizes:
                sizes.append(self.charged())
        rooms = [256, 512, 1024, 2048, 4096]
        self.assertEqual(sizes, [room * ROW_BYTES for room in rooms[: len(sizes)]])
        self.assertGreaterEqual(len(sizes), 4)

    def test_buffers_are_no_larger_than_a_table_of_the_model(self):
        self.start(positions=400)
        session = self.session()
        for rows, room in (100, 256), (100, 256), (100, 320), (20, 320), (60, 384):
            self.feed(session, rows)
            self.assertEqual(self.charged(), room * ROW_BYTES)

    def test_max_length_may_be_the_size_of_a_table(self):
        self.start('max_length = 400\n', positions=400)
        session = self.session()
        for rows in (100, 200, 99, 1):
            self.feed(session, rows)
            self.assertEqual(self.charged(), 400 * ROW_BYTES)

    def test_max_length_may_be_above_the_size_of_a_table(self):
        """The buffers then grow as without it, and no step copies the history."""
        for settings, options in (('max_length = 4000\n', {}), ('', {'max_length': 500})):
            self.start(settings, positions=400)
            session = self.session(**options)
            for rows, room in (100, 256), (100, 256), (100, 320), (20, 320), (60, 384):
                self.feed(session, rows)
                self.assertEqual(self.charged(), room * ROW_BYTES)

    def test_max_length_may_be_more_than_a_session_keeps(self):
        """The limit of a session is 1 GiB."""
        self.start('max_length = 100000\n')
        session = self.session()
        for rows in 100, 100:
            self.feed(session, rows)
            self.assertEqual(self.charged(), 256 * ROW_BYTES)

    def test_max_length_is_reserved_and_not_exceeded(self):
        self.start('max_length = 700\n')
        session = self.session()
        for _ in range(7):
            self.feed(session, 99)
            self.assertEqual(self.charged(), 1024 * ROW_BYTES)
        for rows in (8, 400):
            with self.assertRaisesRegex(inferd.Error, 'OUT_OF_RANGE.*max_length is 700'):
                self.feed(session, rows)
        self.feed(session, 7)
        self.assertEqual(self.charged(), 1024 * ROW_BYTES)
        with self.assertRaisesRegex(inferd.Error, 'would have 701 rows'):
            self.feed(session)
        session.rewind(10)
        self.feed(session, 600)

    def test_a_client_may_set_max_length(self):
        """The smaller one of the session's and the model's counts; a fork has that of its session,
        and so has the session after a restart."""
        self.start('max_length = 700\n')
        for wanted, most in ((300, 300), (900, 700)):
            session = self.session(max_length=wanted)
            self.feed(session, 100)
            self.assertEqual(self.charged(), (512 if most == 300 else 1024) * ROW_BYTES)
            fork = session.fork()
            self.feed(session, most - 100)
            for full in (session, fork):
                with self.assertRaisesRegex(inferd.Error, f'OUT_OF_RANGE.*max_length is {most}'):
                    self.feed(full, most - 99)
            fork.close()
            session.close()
        with self.assertRaisesRegex(inferd.Error, 'INVALID_ARGUMENT.*max_length is 1048577'):
            self.session(max_length=(1 << 20) + 1)

    def test_a_long_session_takes_what_its_rows_take(self):
        """A client makes 2,000 steps and is killed. Then nothing of it is left."""
        self.start()
        self.feed(self.session())
        before = self.resident()
        self.assertEqual(self.charged(), ROOM_LEAST * ROW_BYTES)
        command = [sys.executable, '-c', CLIENT, ROOT, self.daemon.socket, str(STEPS)]
        pipe = subprocess.PIPE
        with subprocess.Popen(command, stdin=pipe, stdout=pipe) as process:
            try:
                self.assertEqual(process.stdout.readline(), b'ready\n')
                wanted = STEPS * ROW_BYTES
                grown = self.resident() - before
                self.assertGreater(grown, wanted * 0.9)
                if not SANITIZED:
                    self.assertLess(grown, wanted * 1.25 + 8 * MIB)
                self.assertEqual(self.charged(), (ROOM_LEAST + 2048) * ROW_BYTES)
            finally:
                process.send_signal(signal.SIGKILL)
        self.wait_until(
            lambda: self.charged() == ROOM_LEAST * ROW_BYTES,
            lambda: f'{self.charged()} bytes stay charged',
        )
        self.wait_until(
            lambda: SANITIZED or self.resident() - before < wanted / 2,
            lambda: f'{self.resident() - before} of {grown} bytes stay',
        )

    def test_a_second_session_takes_its_charge_only(self):
        """What is compiled for each room belongs to the model, not to a session. Any number of
        sessions shares it, so memory grows by what the sessions are charged. With one slot, because
        the arenas of another one take memory when it first runs."""
        self.start(options=('--cpu-slots=1',))
        first = self.session()
        for _ in range(20):
            self.feed(first, 100)
        before, charged = self.resident(), self.charged()
        sessions = [self.session() for _ in range(3)]
        for _ in range(20):
            for session in sessions:
                self.feed(session, 100)
        grown, wanted = self.resident() - before, self.charged() - charged
        self.assertEqual(wanted, 3 * 2048 * ROW_BYTES)
        if not SANITIZED:
            self.assertLess(grown, wanted + 4 * MIB)
        self.assertGreater(grown, 3 * 2000 * ROW_BYTES * 0.9)


if __name__ == '__main__':
    unittest.main(argv=sys.argv[:1] + sys.argv[3:])
