#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""test_give_way.py DAEMON SOURCE_ROOT [TEST...] - users and priorities share the cores: requests of
low priority give way to others, a small model is served beside a large one, and two users get equal
shares of the core time."""
import contextlib
import os
import re
import sys
import threading
import time
import unittest
from pathlib import Path

DAEMON, ROOT = map(os.path.abspath, sys.argv[1:3])
sys.path.insert(0, ROOT + '/client/python')
sys.path.insert(0, ROOT + '/tests/tools/gen')
sys.dont_write_bytecode = True
import numpy
import inferd
import onnx_writer
from bare_daemon import BareDaemon

SIZE = 256
LARGE_ROWS, PROBE_LAYERS, LARGE_LAYERS, LARGE_SECONDS = 256, 20, 200, 0.06
# How late a run of normal priority may start because of runs of low priority.
LATE_SECONDS = 0.005
SMALL_REQUESTS, ROUNDS = 600, 8
# Processor time that other programs may take in a round that counts, of all processors.
FOREIGN_SHARE = 0.03


def write_chain(daemon, name, rows, layers):
    """A model of matrix products, one after the other. Adding x keeps the values from vanishing,
    because products of very small numbers take many times as long."""
    graph, value = onnx_writer.Graph(), 'x'
    weight = graph.noise(SIZE, SIZE)
    for _ in range(layers):
        value = graph.node('Add', [graph.node('MatMul', [value, weight]), 'x'])
    graph.output(value, 'y')
    shape = [rows, SIZE]
    inputs, outputs = [onnx_writer.port('x', shape)], [onnx_writer.port('y', shape)]
    daemon.load_graph(name, graph, inputs, outputs)
    return numpy.ones((rows, SIZE), numpy.float32)


def read_ticks(path):
    """The processor time of a process and its threads so far, in clock ticks."""
    fields = Path(path).read_text().rpartition(')')[2].split()
    return int(fields[11]) + int(fields[12])


def median(values):
    return sorted(values)[len(values) // 2]


class GiveWay(unittest.TestCase):
    def setUp(self):
        self.daemon = BareDaemon(
            DAEMON, '--plan-bytes-max=0', '--race=never', '--cpu-slots=2', '--cpu-threads=2'
        )
        self.addCleanup(self.daemon.end)
        self.client = self.connect()
        self.small = write_chain(self.daemon, 'small', 1, 4)
        # All of a test must end before its requests of low priority have waited for two seconds.
        probe = write_chain(self.daemon, 'probe', LARGE_ROWS, PROBE_LAYERS)
        probe_s = min(self.time_infer('probe', probe) for _ in range(3))
        layers = int(PROBE_LAYERS * LARGE_SECONDS / probe_s)
        layers = max(PROBE_LAYERS, min(LARGE_LAYERS, layers))
        self.large = write_chain(self.daemon, 'large', LARGE_ROWS, layers)
        self.large_s = median([self.time_infer('large', self.large) for _ in range(5)])

    def connect(self):
        client = inferd.Client(self.daemon.socket)
        self.addCleanup(client.close)
        return client

    def time_infer(self, name, x, **options):
        begin = time.monotonic()
        self.client.infer(name, {'x': x}, **options)
        return time.monotonic() - begin

    @contextlib.contextmanager
    def busy(self, streams, **options):
        """Sends requests for the large model. The value is a list with their number."""
        stop, done = threading.Event(), [0]

        def run(client):
            while not stop.is_set():
                client.infer('large', {'x': self.large}, **options)
                done[0] += 1

        clients = [self.connect() for _ in range(streams)]
        threads = [threading.Thread(target=run, args=[client]) for client in clients]
        for thread in threads:
            thread.start()
        try:
            until = time.monotonic() + 30
            while done[0] == 0 and time.monotonic() < until:
                time.sleep(0.001)
            self.assertGreater(done[0], 0)
            yield done
        finally:
            stop.set()
            for thread in threads:
                thread.join()

    def keep_busy(self, streams, **options):
        """Sends requests for the large model until the test ends, and returns their number."""
        stack = contextlib.ExitStack()
        done = stack.enter_context(self.busy(streams, **options))
        self.addCleanup(stack.close)  # runs before the clients of the streams are closed
        return done

    def foreign_ticks(self):
        """The processor time of all programs but the daemon and this test, in clock ticks."""
        # With the time that a hypervisor gave to others.
        fields = [int(word) for word in Path('/proc/stat').read_text().split('\n')[0].split()[1:9]]
        idle = fields[3] + fields[4]
        own = read_ticks('/proc/self/stat') + read_ticks(f'/proc/{self.daemon.pid}/stat')
        return sum(fields) - idle - own

    def served_p99(self):
        """The 99th percentile of the time from the arrival of a request for the model "quick" to
        the end of its run, in seconds. The client's own delays do not count."""
        times = []
        for _ in range(SMALL_REQUESTS):
            timing = self.client.infer('quick', {'x': self.small}).timing
            times.append((timing['queue_ns'] + timing['compute_ns']) / 1e9)
        return sorted(times)[SMALL_REQUESTS * 99 // 100]

    def test_low_priority_leaves_a_slot_and_pauses(self):
        done = self.keep_busy(4, priority='low')
        times = [self.time_infer('small', self.small) for _ in range(60)]
        # If runs of low priority had all slots, most requests would wait for a part of one.
        self.assertLess(median(times), self.large_s / 10)
        # While a run of normal priority goes on, the others pause, so it has both cores. On a busy
        # machine a helper may come late, so one good round is enough.
        threads = []
        while 2 not in threads and len(threads) < ROUNDS:
            results = [self.client.infer('large', {'x': self.large}) for _ in range(10)]
            threads.append(median([result.timing['threads'] for result in results]))
        self.assertIn(2, threads)
        before = done[0]
        until = time.monotonic() + 30
        while done[0] < before + 4 and time.monotonic() < until:
            time.sleep(0.01)
        self.assertGreaterEqual(done[0], before + 4)

    def test_low_priority_gives_way_in_time(self):
        self.keep_busy(4, priority='low')
        # On a busy machine threads wait for a processor, so one good round is enough.
        late = []
        while not late or min(late) > LATE_SECONDS and len(late) < ROUNDS:
            results = [self.client.infer('small', {'x': self.small}) for _ in range(50)]
            waits = sorted(result.timing['queue_ns'] / 1e9 for result in results)
            late.append(waits[45])
        self.assertLess(min(late), LATE_SECONDS)

    def test_a_small_model_is_served_beside_a_large_one(self):
        """The 99th percentile of a small model beside runs of the large one, which have the same
        priority and all cores, is at most twice that of the small model alone."""
        write_chain(self.daemon, 'quick', 1, 80)
        quiet = []
        for _ in range(ROUNDS):
            before, begin = self.foreign_ticks(), time.monotonic()
            alone = self.served_p99()
            with self.busy(1):
                beside = self.served_p99()
            ticks = os.sysconf('SC_CLK_TCK') * os.cpu_count() * (time.monotonic() - begin)
            foreign = (self.foreign_ticks() - before) / ticks
            if foreign < FOREIGN_SHARE and beside <= 2 * alone:
                return
            if foreign < FOREIGN_SHARE:
                quiet.append((alone, beside))
        if len(quiet) < 3:
            self.skipTest('other programs used the processors')
        self.fail(quiet)

    def test_low_priority_is_not_starved(self):
        self.keep_busy(1, priority='normal')
        # A request of low priority counts as normal after two seconds.
        begin = time.monotonic()
        self.client.infer('large', {'x': self.large}, priority='low')
        self.assertLess(time.monotonic() - begin, 10 + 4 * self.large_s)

    def test_a_run_that_paused_is_charged_for_its_own_time(self):
        self.keep_busy(1, priority='normal')
        result = self.client.infer('large', {'x': self.large}, priority='low')
        took_s = result.timing['compute_ns'] / 1e9
        self.assertLess(result.timing['core_ns'] / 1e9, took_s + 2 * self.large_s)


if __name__ == '__main__':
    unittest.main(argv=sys.argv[:1] + sys.argv[3:])
