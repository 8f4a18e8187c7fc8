#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""test_kernel_races.py DAEMON INFERCTL SOURCE_ROOT [TEST...] - kernels race after a model serves:
a load does not wait for them, requests disturb them, and winners are taken up without a gap."""
import re
import sys
import threading
import time
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / 'life'))
sys.path.insert(0, str(Path(__file__).parents[1] / 'tools/gen'))
sys.dont_write_bytecode = True
# It reads the same arguments.
from life_case import Server, inferd, numpy
from onnx_writer import INT64, Graph, port

SIDE, CHANNELS = 56, 64
SHAPE = (1, CHANNELS, SIDE, SIDE)


def write_network(folder, lists_places=False):
    """Writes two convolutions of 3x3, for which several kernels compete. With `lists_places` the
    output is the places of the elements that are not 0, whose number depends on values."""
    graph = Graph()
    value = 'x'
    for _ in range(2):
        weights = graph.noise(CHANNELS, CHANNELS, 3, 3)
        value = graph.node(
            'Conv', [value, weights], kernel_shape=[3, 3], strides=[1, 1], pads=[1] * 4
        )
        value = graph.node('Relu', [value])
    folder.mkdir()
    if lists_places:
        value = graph.node('NonZero', [value])
        ports = [port('x', SHAPE)], [port(value, (4, 'count'), INT64)]
    else:
        ports = [port('x', SHAPE)], [port(value, SHAPE)]
    graph.write_ports(folder / 'model.onnx', 'net', *ports)


# The device is named, so that no race of devices places the model too.
class KernelRaces(unittest.TestCase):
    def start(self, **network):
        self.server = Server(watch='never', backends='cpu', device='cpu')
        self.cache = self.server.folder / 'cache'
        self.cache.mkdir()
        self.server.settings['cache_dir'] = self.cache
        write_network(self.server.models / 'net', **network)
        self.server.start()
        self.addCleanup(self.server.stop)
        if self.choices('later') + self.choices('measured') == 0:
            self.skipTest('this processor has one kernel for each node')
        return self.server

    def choices(self, how):
        answer = self.server.ctl('metrics')
        found = re.search(rf'kernel_choices_total{{.*how="{how}"}} (\d+)', answer.stdout)
        self.assertIsNotNone(found, (answer, self.server.log()))
        return int(found[1])

    def ask(self, client):
        picture = numpy.linspace(-1, 1, numpy.prod(SHAPE), dtype=numpy.float32)
        return next(iter(client.infer('net', {'x': picture.reshape(SHAPE)}).values()))

    def wait_for_race(self, count=1):
        pattern = r'kernels raced name=net changed=(\w+) disturbed=(\w+)'
        end = time.monotonic() + 100
        while len(re.findall(pattern, self.server.log())) < count:
            self.assertLess(time.monotonic(), end, self.server.log())
            time.sleep(0.02)
        return re.findall(pattern, self.server.log())[count - 1]

    def count_loads(self):
        return self.server.log().count('model loaded name=net')

    def test_a_load_does_not_wait_and_the_next_start_knows_the_winners(self):
        server = self.start()
        with inferd.Client(server.socket) as client:
            before = self.ask(client)
            changed, disturbed = self.wait_for_race()
            self.assertEqual(disturbed, 'no')
            log = server.log()
            self.assertLess(log.index('model loaded name=net'), log.index('kernels raced name=net'))
            self.assertGreater(self.choices('measured'), 0)
            server.wait_until(lambda: self.count_loads() == (2 if changed == 'yes' else 1))
            after = self.ask(client)
            numpy.testing.assert_allclose(after, before, rtol=0.01, atol=0.01 * abs(before).max())
        # Jobs of the loader come one after the other: the plan with the winners is kept now.
        server.ctl('load', 'net')
        server.process.terminate()
        server.process.wait()
        server.start()
        with inferd.Client(server.socket) as client:
            numpy.testing.assert_array_equal(self.ask(client), after)
        self.assertEqual(self.choices('later'), 0)
        self.assertEqual(self.choices('measured'), 0)
        self.assertGreater(self.choices('known'), 0)
        self.assertIn('packing_us=0', server.log())
        time.sleep(0.5)
        self.assertNotIn('kernels raced', server.log())

    def test_kernels_of_a_model_whose_sizes_depend_on_values_race_after_it_serves(self):
        server = self.start(lists_places=True)
        with inferd.Client(server.socket) as client:
            before = self.ask(client)
            self.assertEqual(self.wait_for_race()[1], 'no')
            # Sums that are nearly 0 may change their sign with other kernels.
            change = self.ask(client).shape[1] - before.shape[1]
            self.assertLess(abs(change), 0.001 * before.shape[1])
        later = self.choices('later')
        self.assertGreater(later, 0)
        self.assertEqual(server.ctl('load', 'net').returncode, 0)
        self.assertEqual(self.choices('later'), later, 'a kernel did not race')

    def test_requests_disturb_a_race_which_is_tried_again(self):
        server = Server(watch='never', backends='cpu', device='cpu', load_all='no')
        write_network(server.models / 'net')
        self.server = server.start()
        self.addCleanup(server.stop)
        end = threading.Event()
        failures = []

        def keep_asking():
            try:
                with inferd.Client(server.socket) as client:
                    while not end.is_set():
                        self.ask(client)
            except Exception as error:
                failures.append(error)

        server.ctl('load', 'net')
        askers = [threading.Thread(target=keep_asking) for _ in range(3)]
        for asker in askers:
            asker.start()
        try:
            if self.choices('later') == 0:
                self.skipTest('this processor has one kernel for each node')
            _, disturbed = self.wait_for_race()
            # The race may have ended before the first request.
            if disturbed == 'yes':
                self.assertEqual(self.count_loads(), 1)
        finally:
            end.set()
            for asker in askers:
                asker.join()
        self.assertEqual(failures, [])
        if disturbed == 'yes':
            self.assertEqual(self.wait_for_race(2)[1], 'no')


if __name__ == '__main__':
    unittest.main(argv=sys.argv[:1] + sys.argv[4:])
