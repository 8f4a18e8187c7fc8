#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""test_core_time.py DAEMON SOURCE_ROOT [TEST...] - the core time of runs with helper threads: what
an answer says about a decoding step, what a user is charged for batches, and that runs follow the
cores that the daemon may use."""
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
        # On a busy machine a helper may come late.
        while len(sizes) < 60 * 32 or (not helped and time.monotonic() < begin + 60):
            pending = [self.client.submit('wide', {'x': x}) for _ in range(32)]
            results = [one.result() for one in pending]
            sizes += [result.batch_size for result in results]
            helped = helped or any(result.timing['threads'] > 1 for result in results)
        charged, elapsed = self.charged_seconds() - before, time.monotonic() - begin
        self.assertGreater(max(sizes), 1, 'no batch ran')
        self.assertTrue(helped, 'no batch had a helper')
        self.assertLess(charged, CORES * elapsed)

    def test_runs_follow_the_cores_of_the_process(self):
        graph, value = onnx_writer.Graph(), 'x'
        weight = graph.noise(SIZE, SIZE)
        for _ in range(4 * LAYERS):
            value = graph.node('Add', [graph.node('MatMul', [value, weight]), 'x'])
        graph.output(value, 'y')
        port = [onnx_writer.port(name, [64, SIZE]) for name in 'xy']
        self.daemon.load_graph('deep', graph, port[:1], port[1:])
        x = {'x': numpy.ones((64, SIZE), numpy.float32)}
        every = os.sched_getaffinity(self.daemon.pid)

        def threads():
            return self.client.infer('deep', x).timing['threads']

        def wait_for_helper():
            # On a busy machine a helper may come late.
            end = time.monotonic() + 60
            while threads() == 1:
                self.assertLess(time.monotonic(), end)

        wait_for_helper()
        # A cpuset changes the affinity of all threads in this way.
        for cores in ({min(every)}, every, {max(every)}):
            for thread in os.listdir(f'/proc/{self.daemon.pid}/task'):
                os.sched_setaffinity(int(thread), cores)
            end = time.monotonic() + 1
            while time.monotonic() < end:
                threads()
            if len(cores) > 1:
                wait_for_helper()
            else:
                self.assertEqual({threads() for _ in range(20)}, {1})


if __name__ == '__main__':
    unittest.main(argv=sys.argv[:1] + sys.argv[3:])
