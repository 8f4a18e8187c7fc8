# SPDX-License-Identifier: Apache-2.0
"""A daemon and a Python client of it, for test_python.py and test_python_server.py."""
import json
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

DAEMON, ROOT = sys.argv[1], Path(sys.argv[2])
sys.path.insert(0, str(ROOT / 'client/python'))
sys.dont_write_bytecode = True
try:
    import numpy
except ImportError:
    print('numpy is not installed')
    sys.exit(77)  # skipped
import inferd


def placeholder(name, dtype, *dims):
    shape = {'shape': {'dim': [{'size': str(size)} for size in dims]}}
    return {'name': name, 'op': 'Placeholder', 'attr': {'dtype': {'type': dtype}, 'shape': shape}}


def node(name, op, *inputs, **attributes):
    return {'name': name, 'op': op, 'input': list(inputs), 'attr': attributes}


FLOAT = {'type': 'DT_FLOAT'}
MODELS = {
    'add': [
        placeholder('a', 'DT_FLOAT', -1, 4),
        placeholder('b', 'DT_FLOAT', -1, 4),
        node('y', 'AddV2', 'a', 'b', T=FLOAT),
    ],
    'ints': [placeholder('a', 'DT_INT32', -1), node('y', 'Neg', 'a', T={'type': 'DT_INT32'})],
    # Its signature calls the tensors 'r1i:0' and 'r1o:0'.
    'suffixed': [placeholder('r1i', 'DT_FLOAT', -1), node('r1o', 'Neg', 'r1i', T=FLOAT)],
    # States: one whose names tell it, and one whose settings do.
    'count': [
        placeholder('x', 'DT_FLOAT', 1, 4),
        placeholder('h_in', 'DT_FLOAT', 1, 4),
        node('h_out', 'AddV2', 'x', 'h_in', T=FLOAT),
    ],
    'told': [
        placeholder('x', 'DT_FLOAT', 1, 4),
        placeholder('s', 'DT_FLOAT', 1, 4),
        node('y', 'AddV2', 'x', 's', T=FLOAT),
    ],
    # A chain of products that takes plain loops long enough to be waited for.
    'slow': [placeholder('x', 'DT_FLOAT', 256, 256)]
    + [
        node(
            f's{i + 1}',
            'MatMul',
            f's{i}' if i else 'x',
            'x',
            T=FLOAT,
            transpose_a={'b': False},
            transpose_b={'b': False},
        )
        for i in range(60)
    ],
}


def write_models(folder):
    for name, nodes in MODELS.items():
        path = Path(folder) / name / '1'
        path.mkdir(parents=True)
        model = {'format': 'graph-model', 'modelTopology': {'node': nodes}, 'weightsManifest': []}
        if name == 'suffixed':
            model['signature'] = {
                'inputs': {'r1i:0': {'name': 'r1i:0'}},
                'outputs': {'r1o:0': {'name': 'r1o:0'}},
            }
        (path / 'model.json').write_text(json.dumps(model))
    (Path(folder) / 'told' / 'model.conf').write_text('session_pairs = y = s\n')


class Daemon:
    def __init__(self):
        self.folder = tempfile.TemporaryDirectory()
        path = self.folder.name
        write_models(path + '/models')
        self.socket, self.admin = path + '/inferd.sock', path + '/admin.sock'
        self.start()

    def launch(self):
        path = self.folder.name
        self.process = subprocess.Popen(
            [
                DAEMON,
                '--runtime-dir=' + path,
                '--cache-dir=' + path,
                '--repository=' + path + '/models',
                # Each load of 'slow' runs it, which no load from a plan does.
                '--plan-bytes-max=0',
                '--backends=ref',
                '--drain-timeout-ms=200',
                '--trace-file=' + path + '/spans',
            ],
            stderr=subprocess.DEVNULL,
        )

    def start(self):
        """Starts the daemon, and waits until it has loaded every model."""
        self.launch()
        end = time.monotonic() + 60
        while time.monotonic() < end:
            try:
                with inferd.Client(self.socket) as client:
                    models = client.models()
                    if len(models) == len(MODELS) and all(
                        model['state'] == 'READY' for model in models
                    ):
                        return
            except inferd.Disconnected:
                pass
            time.sleep(0.02)
        self.stop()
        sys.exit('the daemon did not start')

    def end(self):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(30)

    def stop(self):
        self.end()
        self.folder.cleanup()


daemon = None  # the daemon of all tests, which main() starts


class Case(unittest.TestCase):
    def setUp(self):
        self.client = inferd.Client(daemon.socket)
        self.addCleanup(self.client.close)

    def add(self, rows, **options):
        a = numpy.arange(rows * 4, dtype=numpy.float32).reshape(rows, 4)
        b = numpy.full((rows, 4), 0.5, numpy.float32)
        result = self.client.infer('add', {'a': a, 'b': b}, **options)
        numpy.testing.assert_array_equal(result['y'], a + b)
        return result

    def fails(self, code, reason, call, *arguments, **options):
        with self.assertRaises(inferd.Error) as caught:
            call(*arguments, **options)
        self.assertEqual(
            (caught.exception.code, caught.exception.reason), (code, reason), caught.exception
        )
        return caught.exception


def main():
    """Runs the tests of the program."""
    global daemon
    daemon = Daemon()
    try:
        program = unittest.main(argv=[sys.argv[0], *sys.argv[3:]], exit=False)
    finally:
        daemon.stop()
    sys.exit(0 if program.result.wasSuccessful() else 1)
