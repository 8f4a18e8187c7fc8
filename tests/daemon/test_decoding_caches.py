#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""test_decoding_caches.py DAEMON SOURCE_ROOT [TEST...] - caches of a fixed size in sessions: rows
are written over them in place, at any positions, and a request that fails changes none."""
import os
import sys
import time
import unittest

DAEMON, ROOT = map(os.path.abspath, sys.argv[1:3])
sys.path.insert(0, ROOT + '/client/python')
sys.path.insert(0, ROOT + '/tests/tools/gen')
sys.dont_write_bytecode = True
import numpy
import inferd
from bare_daemon import BareDaemon
from onnx_writer import FLOAT, INT64, Graph, port

PAIRS = {'present.a': 'past.a', 'present.b': 'past.b'}
BATCH, ROOM, WIDTH = 2, 7, 5


class Caches(unittest.TestCase):
    def setUp(self):
        # A race after the load would take processor time.
        self.daemon = BareDaemon(DAEMON, '--race=never')
        self.addCleanup(self.daemon.end)
        self.numbers = numpy.random.default_rng(2)

    def load(self, mode, shape, positions=('at', 'at')):
        """Loads a model of two caches. `y` has the sums of the rows of both."""
        graph, batch = Graph(), shape[0]
        caches = [
            graph.node('TensorScatter', [name, 'x', at], axis=1, mode=mode)
            for name, at in zip(PAIRS.values(), positions)
        ]
        axes = graph.const(INT64, [1], [1])
        sums = [graph.node('ReduceSum', [cache, axes], keepdims=0) for cache in caches]
        graph.output(graph.node('Concat', sums, axis=1), 'y')
        for value, name in zip(caches, PAIRS):
            graph.output(value, name)
        inputs = [port('x', [batch, 'n', shape[2]])]
        inputs += [port(at, [batch], INT64) for at in sorted(set(positions))]
        inputs += [port(name, shape) for name in PAIRS.values()]
        outputs = [port('y', [batch, 2 * shape[2]])] + [port(name, shape) for name in PAIRS]
        path = self.daemon.folder + '/model.onnx'
        graph.write_ports(path, 'caches', inputs, outputs, {'': 24})
        self.daemon.load('caches', path)
        self.client = inferd.Client(self.daemon.socket)
        self.addCleanup(self.client.close)
        session = self.client.session(PAIRS)
        self.addCleanup(session.close)
        return session

    def step(self, session, caches, count, **positions):
        """Writes `count` random rows, in the session and in `caches`, and compares the results."""
        x = self.numbers.normal(size=(BATCH, count, WIDTH)).astype(numpy.float32)
        y = session.infer('caches', {'x': x, **positions}, ['y'])['y']
        for cache, at in zip(caches, sorted(positions) * 2):
            for item, position in enumerate(positions[at]):
                for row in range(count):
                    cache[item, (int(position) + row) % ROOM] = x[item, row]
        wanted = numpy.concatenate([cache.sum(axis=1) for cache in caches], axis=1)
        numpy.testing.assert_allclose(y, wanted, atol=1e-5)

    def check_caches(self, session, caches, **positions):
        """Writes a row and lets the answer have the caches."""
        x = numpy.zeros((BATCH, 1, WIDTH), numpy.float32)
        results = session.infer('caches', {'x': x, **positions}, list(PAIRS))
        for cache, name, at in zip(caches, PAIRS, sorted(positions) * 2):
            for item, position in enumerate(positions[at]):
                cache[item, int(position) % ROOM] = 0
            numpy.testing.assert_array_equal(results[name], cache)

    def empty_caches(self):
        return [numpy.zeros((BATCH, ROOM, WIDTH), numpy.float32) for _ in PAIRS]

    def test_rows_at_any_positions(self):
        session, caches = self.load('circular', [BATCH, ROOM, WIDTH]), self.empty_caches()
        for i in range(40):
            count = 1 + i % 3
            at = self.numbers.integers(-(2**62), 2**62, BATCH) if i % 5 == 4 else [i, 2 * i + 3]
            self.step(session, caches, count, at=numpy.array(at))
            if i % 9 == 8:
                self.check_caches(session, caches, at=numpy.array([i, i]))

    def test_each_cache_has_positions_of_its_own(self):
        session = self.load('circular', [BATCH, ROOM, WIDTH], ('at', 'there'))
        caches = self.empty_caches()
        for i in range(20):
            self.step(session, caches, 1 + i % 2, at=numpy.array([i, 4 * i]),
                      there=numpy.array([3 * i + 1, i + 2]))
        self.check_caches(session, caches, at=numpy.array([0, 1]), there=numpy.array([3, 2]))

    def test_a_request_that_fails_changes_nothing(self):
        """The caches are written one after another; only the second one finds a bad position. The
        rows of the first one are not those that the next request copies."""
        session = self.load('linear', [BATCH, ROOM, WIDTH], ('at', 'there'))
        caches = self.empty_caches()
        for i in range(6):
            good = {'at': numpy.array([i, 0]), 'there': numpy.array([1, i])}
            self.step(session, caches, 1, **good)
            x = numpy.full((BATCH, 1, WIDTH), 1e6, numpy.float32)
            for bad in (-1, ROOM):
                with self.assertRaises(inferd.Error):
                    session.infer('caches', {'x': x, 'at': numpy.array([ROOM - 1 - i, 6]),
                                             'there': numpy.array([i, bad])}, ['y'])
        self.check_caches(session, caches, at=numpy.array([2, 2]), there=numpy.array([2, 2]))

    def test_forked_sessions_do_not_write_to_each_other(self):
        session, caches = self.load('linear', [BATCH, ROOM, WIDTH]), self.empty_caches()
        for i in range(3):
            self.step(session, caches, 1, at=numpy.array([i, i]))
        fork, copies = session.fork(), [cache.copy() for cache in caches]
        self.addCleanup(fork.close)
        for i in range(3, 6):
            self.step(session, caches, 1, at=numpy.array([i, 0]))
            self.step(fork, copies, 1, at=numpy.array([0, i]))
        self.check_caches(session, caches, at=numpy.array([1, 1]))
        self.check_caches(fork, copies, at=numpy.array([1, 1]))

    def test_models_that_write_along_different_axes_share_a_cache(self):
        """The rows that one model wrote are not those of the layout of the other one."""
        sizes, session = [BATCH, ROOM, WIDTH], self.load('linear', [BATCH, ROOM, WIDTH])
        graph, given = Graph(), [BATCH, ROOM, 1]
        graph.output(graph.node('TensorScatter', ['past.a', 'x', 'at'], axis=2), 'present.a')
        graph.output(graph.node('ReduceSum', ['x'], keepdims=0), 'y')
        inputs = [port('x', given), port('at', [BATCH], INT64), port('past.a', sizes)]
        outputs = [port('present.a', sizes), port('y', [])]
        path = self.daemon.folder + '/columns.onnx'
        graph.write_ports(path, 'columns', inputs, outputs, {'': 24})
        self.daemon.load('columns', path)
        caches = self.empty_caches()
        for i in range(6):
            self.step(session, caches, 1, at=numpy.array([ROOM - 1 - i, i]))
            x = self.numbers.normal(size=given).astype(numpy.float32)
            at = numpy.array([i % WIDTH, (i + 1) % WIDTH])
            session.infer('columns', {'x': x, 'at': at}, ['y'])
            for item, column in enumerate(at):
                caches[0][item, :, column] = x[item, :, 0]
        self.check_caches(session, caches, at=numpy.array([1, 1]))

    def test_a_step_copies_rows_only(self):
        """40 copies of 64 MiB take longer than 40 sums of one row by two orders of magnitude."""
        rows, width = 32 << 10, 512
        graph = Graph()
        graph.output(graph.node('TensorScatter', ['past.a', 'x', 'at'], axis=1), 'present.a')
        graph.output(graph.node('ReduceSum', ['x'], keepdims=0), 'y')
        shape = [1, rows, width]
        path = self.daemon.folder + '/model.onnx'
        inputs = [port('x', [1, 1, width]), port('at', [1], INT64), port('past.a', shape)]
        outputs = [port('present.a', shape), port('y', [])]
        graph.write_ports(path, 'caches', inputs, outputs, {'': 24})
        self.daemon.load('caches', path)
        x = numpy.ones((1, 1, width), numpy.float32)
        with inferd.Client(self.daemon.socket) as client:
            with client.session({'present.a': 'past.a'}) as session:
                for i in range(44):
                    if i == 4:  # both buffers have been copied
                        begun = self.daemon.processor_ns()
                    session.infer('caches', {'x': x, 'at': numpy.array([i])}, ['y'])
                took = self.daemon.processor_ns() - begun
        a, b = numpy.ones((2, rows * width), numpy.float32)
        begun = time.process_time_ns()
        for _ in range(40):
            numpy.copyto(b, a)
        self.assertLess(took, (time.process_time_ns() - begun) / 2)


if __name__ == '__main__':
    unittest.main(argv=sys.argv[:1] + sys.argv[3:])
