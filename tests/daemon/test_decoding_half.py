#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""test_decoding_half.py DAEMON INFERCTL SOURCE_ROOT [TEST...] - decoding steps on a device that
computes in fp16 (odd_devices.h), which overflow there: each is computed again in fp32."""
import os
import subprocess
import sys
import unittest

DAEMON, INFERCTL, ROOT = map(os.path.abspath, sys.argv[1:4])
sys.path.insert(0, ROOT + '/client/python')
sys.path.insert(0, ROOT + '/tests/tools/gen')
sys.dont_write_bytecode = True
import numpy
import inferd
import onnx_writer
from bare_daemon import BareDaemon

SIZE = 4


def write_attention(last):
    """An attention over the rows of a session, softmax(x rows^T) rows, times x, and then `last`.
    The product with x overflows in fp16 if x is larger than 256."""
    graph = onnx_writer.Graph()
    rows = graph.node('Concat', ['past_rows', 'x'], axis=2)
    scores = graph.node('MatMul', ['x', graph.node('Transpose', [rows], perm=[0, 1, 3, 2])])
    mean = graph.node('MatMul', [graph.node('Softmax', [scores], axis=-1), rows])
    graph.output(rows, 'present_rows')
    graph.output(graph.node(last, [graph.node('Mul', [mean, 'x'])]), 'y')
    shapes = [[1, 1, count, SIZE] for count in ('n', 'past', 'total')]
    inputs = [onnx_writer.port('x', shapes[0]), onnx_writer.port('past_rows', shapes[1])]
    outputs = [onnx_writer.port('y', shapes[0]), onnx_writer.port('present_rows', shapes[2])]
    return graph, inputs, outputs


class Half(unittest.TestCase):
    def start(self, backend, last):
        self.daemon = BareDaemon(DAEMON, '--backends=' + backend)
        self.addCleanup(self.daemon.end)
        self.daemon.load_graph('attention', *write_attention(last))
        self.client = inferd.Client(self.daemon.socket)
        self.addCleanup(self.client.close)
        self.session = self.client.session({'present_rows': 'past_rows'})
        self.addCleanup(self.session.close)

    def step(self, value, **options):
        """Appends a row. Returns an element of y, its precision, and the flags of the answer."""
        x = numpy.full((1, 1, 1, SIZE), value, numpy.float32)
        result = self.session.infer('attention', {'x': x}, ['y'], **options)
        return result['y'].ravel()[0], result.precision, set(result.flags)

    def test_a_step_that_overflows_is_computed_again(self):
        self.start('half', 'Neg')
        self.assertEqual(self.step(2, precision='fp16'), (-4, 'fp16', set()))
        self.assertEqual(self.step(300, precision='fp16'), (-90000, 'fp32', {'again'}))
        self.assertEqual(self.step(2, precision='fp16'), (-600, 'fp16', set()))

    def test_an_overflow_that_the_device_reports_counts(self):
        """The output is finite: 1 / infinity."""
        self.start('telling', 'Reciprocal')
        self.assertEqual(self.step(2, precision='fp16'), (0.25, 'fp16', set()))
        y, precision, flags = self.step(300, precision='fp16')
        self.assertAlmostEqual(y, 1 / 90000, delta=1e-9)
        self.assertEqual((precision, flags), ('fp32', {'again'}))

    def test_a_model_whose_steps_overflow_is_demoted(self):
        self.start('half', 'Neg')
        place = [INFERCTL, '--socket=' + self.daemon.admin, 'place', 'attention', 'half', '-Pfp16']
        subprocess.run(place, check=True, stdout=subprocess.DEVNULL)
        self.assertEqual(self.step(2), (-4, 'fp16', set()))
        self.assertEqual(self.step(300), (-90000, 'fp32', {'again'}))
        self.assertEqual(self.step(2), (-600, 'fp32', set()))
        self.assertIn('\ninferd_models_demoted_total 1\n', self.client.metrics())


if __name__ == '__main__':
    unittest.main(argv=sys.argv[:1] + sys.argv[4:])
