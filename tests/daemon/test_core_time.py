#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""test_core_time.py DAEMON SOURCE_ROOT [TEST...] - the core time of runs with helper threads: what
an answer says about a decoding step, and what a user is charged for batches."""
import os
import re
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
from bare_daemon import BareDaemon

CORES = len(os.sched_getaffinity(0))
SIZE, LAYERS = 512, 12


@unittest.skipIf(CORES < 2, 'there is one core, so no run has a helper')
class CoreTime(unittest.TestCase):
    def setUp(self):
        # With one slot every run is alone, so it has helpers.
        self.daemon = BareDaemon(DAEMON, '--plan-bytes-max=0', '--cpu-slots=1')
        self.addCleanup(self.daemon.end)
        self.client = inferd.Client(self.daemon.socket)
        self.addCleanup(self.client.close)

    def charged_seconds(self):
        text = self.client.metrics()
        found = re.findall(r'^inferd_user_device_seconds_total\{.*\} (\S+)', text, re.M)
        return sum(map(float, found))

    def test_a_decoding_step_counts_its_helpers(self):
        graph, port = onnx_writer.Graph(), onnx_writer.port
        rows = graph.node('Concat', ['past_rows', 'x'], axis=2)
        scores = graph.node('MatMul', ['x', graph.node('Transpose', [rows], perm=[0, 1, 3, 2])])
        result = graph.node('MatMul', [graph.node('Softmax', [scores], axis=-1), rows])
        graph.output(rows, 'present_rows')
        graph.output(result, 'y')
        shapes = [[1, 8, count, SIZE] for count in ('n', 'past', 'total')]
        inputs = [port('x', shapes[0]), port('past_rows', shapes[1])]
        outputs = [port('y', shapes[0]), port('present_rows', shapes[2])]
        self.daemon.load_graph('attention', graph, inputs, outputs)
        x = numpy.ones((1, 8, 16, SIZE), numpy.float32)
        with self.client.session({'present_rows': 'past_rows'}) as session:
            # On a busy machine a helper may come late, so one good round is enough.
            for _ in range(100):
                timing = session.infer('attention', {'x': x}, ['y']).timing
                if timing['threads'] > 1:
                    break
                session.rewind(16)
        self.assertGreater(timing['threads'], 1)
        self.assertGreater(timing['core_ns'], timing['compute_ns'])

    def test_a_user_is_charged_no_more_than_all_cores(self):
        """Each batch is charged once, however many batches the daemon has run before."""
        graph, value = onnx_writer.Graph(), 'x'
        for _ in range(LAYERS):
            value = graph.node('MatMul', [value, graph.noise(SIZE, SIZE)])
        graph.output(value, 'y')
        shape = ['rows', SIZE]
        inputs, outputs = [onnx_writer.port('x', shape)], [onnx_writer.port('y', shape)]
        self.daemon.load_graph('wide', graph, inputs, outputs)
        x = numpy.ones((1, SIZE), numpy.float32)
        sizes, helped, begin, before = [], False, time.monotonic(), self.charged_seconds()
        for _ in range(60):
            pending = [self.client.submit('wide', {'x': x}) for _ in range(32)]
            results = [one.result() for one in pending]
            sizes += [result.batch_size for result in results]
            helped = helped or any(result.timing['threads'] > 1 for result in results)
        charged, elapsed = self.charged_seconds() - before, time.monotonic() - begin
        self.assertGreater(max(sizes), 1, 'no batch ran')
        self.assertTrue(helped, 'no batch had a helper')
        self.assertLess(charged, CORES * elapsed)


if __name__ == '__main__':
    unittest.main(argv=sys.argv[:1] + sys.argv[3:])
