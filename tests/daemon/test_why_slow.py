#!/usr/bin/env python3
"""test_why_slow.py DAEMON INFERCTL SOURCE_ROOT - each cause that the page
docs/howto/find-why-a-model-is-slow.md names is made, and then found as the page says: from metrics,
slow or clients alone."""
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

DAEMON, INFERCTL, ROOT = map(os.path.abspath, sys.argv[1:4])
sys.path.insert(0, ROOT + '/client/python')
sys.dont_write_bytecode = True
import numpy

import inferd

SECONDS_MAX = 60
FLOAT = {'type': 'DT_FLOAT'}
NO = {'b': False}


def placeholder(name, *dims):
    shape = {'shape': {'dim': [{'size': str(size)} for size in dims]}}
    return {'name': name, 'op': 'Placeholder', 'attr': {'dtype': FLOAT, 'shape': shape}}


def node(name, op, *inputs, **attributes):
    return {'name': name, 'op': op, 'input': list(inputs), 'attr': attributes}


def product(i):
    left = f's{i}' if i else 'x'
    return node(f's{i + 1}', 'MatMul', left, 'x', T=FLOAT, transpose_a=NO, transpose_b=NO)


MODELS = {
    'add': [
        placeholder('a', -1, 4),
        placeholder('b', -1, 4),
        node('y', 'AddV2', 'a', 'b', T=FLOAT),
    ],
    # A chain of products that takes the plain loops of ref tens of milliseconds.
    'slow': [placeholder('x', 256, 256)] + [product(i) for i in range(3)],
}


def write_models(folder):
    for name, nodes in MODELS.items():
        path = folder / name / '1'
        path.mkdir(parents=True)
        model = {'format': 'graph-model', 'modelTopology': {'node': nodes}, 'weightsManifest': []}
        (path / 'model.json').write_text(json.dumps(model))


def rows(count):
    return {'a': numpy.ones((count, 4), numpy.float32), 'b': numpy.ones((count, 4), numpy.float32)}


SQUARE = {'x': numpy.zeros((256, 256), numpy.float32)}


class Case(unittest.TestCase):
    def start(self, *arguments):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        write_models(self.folder / 'models')
        self.process = subprocess.Popen(
            [DAEMON, f'--runtime-dir={self.folder}', f'--repository={self.folder}/models']
            + ['--backends=ref', '--drain-timeout-ms=200', *arguments],
            stderr=subprocess.DEVNULL,
        )
        self.addCleanup(self.stop)
        for name in MODELS:
            self.until(lambda: self.ctl('wait', name).returncode == 0, name)

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        self.assertEqual(self.process.wait(SECONDS_MAX), 0)

    def connect(self):
        client = inferd.Client(f'{self.folder}/inferd.sock')
        self.addCleanup(client.close)
        return client

    def ctl(self, verb, *arguments):
        return subprocess.run(
            [INFERCTL, verb, '--socket', f'{self.folder}/admin.sock', *arguments],
            capture_output=True,
            text=True,
            timeout=SECONDS_MAX,
        )

    def read(self, verb, *arguments):
        said = self.ctl(verb, '--all', '-o', 'json', *arguments)
        self.assertEqual(said.returncode, 0, said)
        return json.loads(said.stdout)

    def metric(self, name, **labels):
        """Returns the sum of the samples of a metric that have these labels."""
        sum = 0
        for line in self.ctl('metrics', '--all').stdout.splitlines():
            found = re.match(r'(\w+)(?:\{(.*)\})? (\S+)$', line)
            if not found or found.group(1) != name:
                continue
            has = dict(re.findall(r'(\w+)="([^"]*)"', found.group(2) or ''))
            if labels.items() <= has.items():
                sum += float(found.group(3))
        return sum

    def until(self, holds, why):
        end = time.monotonic() + SECONDS_MAX
        while not holds():
            self.assertLess(time.monotonic(), end, why)
            time.sleep(0.02)


class Causes(Case):
    def test_a_client_that_does_not_read(self):
        # With one region for the user, tensors travel through the socket.
        self.start('--regions-per-uid-max=1')
        holder, client = self.connect(), self.connect()
        held = holder.empty((5000, 4))
        # One answer of 6 MiB. Several would be read in part while the client sends requests.
        pending = client.submit('add', rows(3 << 17))

        def unread():
            return max(row['unread_bytes'] for row in self.read('clients'))

        self.until(lambda: unread() > 1 << 20, 'no client has unread answers')
        worst = max(self.read('clients'), key=lambda row: row['unread_bytes'])
        self.assertEqual(worst['pid'], os.getpid())
        # The device becomes idle, although the client has not read: no request waits for it.
        self.until(
            lambda: self.metric('inferd_device_queue_depth', device='ref') == 0,
            'requests wait for the device',
        )
        for row in self.read('slow'):
            self.assertLess(row['queue_ns'], 1e9, row)
        self.assertTrue((pending.result()['y'] == 2).all())
        self.until(lambda: unread() == 0, 'answers that were read count as unread')
        del held

    def test_a_model_that_takes_long(self):
        self.start('--slow-ms=5')
        client = self.connect()
        # On a busy machine a thread may wait for a processor, so one good request is enough.
        for _ in range(10):
            client.infer('slow', SQUARE)
        rows = self.read('slow')
        row = max(rows, key=lambda row: row['compute_ns'] / row['duration_ns'])
        self.assertEqual(row['model'], 'slow')
        self.assertGreater(row['compute_ns'], 0.8 * row['duration_ns'], row)
        self.assertLess(row['queue_ns'], 0.2 * row['duration_ns'], row)
        self.assertEqual(row['ahead'], 0, row)

    def test_a_device_with_too_many_requests(self):
        self.start('--slow-ms=5', '--batch-rows-max=1')
        others, client = self.connect(), self.connect()
        waiting = [others.submit('slow', SQUARE) for _ in range(20)]
        self.until(
            lambda: self.metric('inferd_device_queue_depth', device='ref') > 4, 'no queue is long'
        )
        for pending in waiting:
            pending.result()
        row = max(self.read('slow'), key=lambda row: row['queue_ns'])
        self.assertGreater(row['queue_ns'], 0.5 * row['duration_ns'], row)
        self.assertGreater(row['ahead'], 4, row)
        self.assertEqual(row['behind_uid'], os.getuid(), row)
        self.assertGreater(
            self.metric('inferd_inference_queue_seconds_sum', model='slow'),
            self.metric('inferd_inference_compute_seconds_sum', model='slow'),
        )
        client.infer('add', rows(1))

    def test_a_disk_that_takes_nothing(self):
        # Spans go to a FIFO whose reader is paused.
        path = Path(tempfile.mkdtemp(dir='/tmp')) / 'spans'
        os.mkfifo(path)
        reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
        self.addCleanup(os.close, reader)
        self.start(f'--trace-file={path}', '--trace-rate=1')
        client = self.connect()
        for _ in range(1400):
            client.infer('add', rows(1))
        self.assertGreater(self.metric('inferd_traces_dropped_total'), 100)
        self.assertLess(self.metric('inferd_traces_written_total'), 200)
        # No request waits for the disk. On a busy machine a few may wait for a processor.
        self.assertEqual(self.metric('inferd_inferences_total', outcome='ok'), 1400)
        self.assertLess(len(self.read('slow')), 14)

    def test_too_little_memory(self):
        # Without shared memory, the requests of this user may hold 1 MiB, and each has 256 KiB.
        self.start('--regions-per-uid-max=1', '--request-bytes-per-uid-max=1M')
        holder = self.connect()
        held = holder.empty((5000, 4))
        refused = 0
        waiting = [self.connect().submit('slow', SQUARE) for _ in range(8)]
        for pending in waiting:
            try:
                pending.result()
            except inferd.Error as error:
                self.assertEqual(error.reason, 'QUOTA_BYTES', error)
                refused += 1
        self.assertGreater(refused, 0)
        counted = self.metric('inferd_inferences_total', outcome='rejected', reason='QUOTA_BYTES')
        self.assertEqual(counted, refused)
        self.assertEqual(self.metric('inferd_inferences_total', outcome='ok'), 8 - refused)
        del held


if __name__ == '__main__':
    unittest.main(argv=sys.argv[:1] + sys.argv[4:])
