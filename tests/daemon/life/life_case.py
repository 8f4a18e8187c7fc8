# SPDX-License-Identifier: Apache-2.0
"""A daemon with a repository of small models that change while clients ask, for the tests of the
life of a model. The arguments of the test are DAEMON INFERCTL SOURCE_ROOT."""
import atexit
import json
import os
import signal
import struct
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

DAEMON, INFERCTL = map(os.path.abspath, sys.argv[1:3])
sys.path.insert(0, str(Path(sys.argv[3]) / 'client/python'))
sys.dont_write_bytecode = True
try:
    import numpy
except ImportError:
    print('numpy is not installed')
    sys.exit(77)  # skipped
import inferd

SECONDS_MAX = 20
SETTLE_MS = 100
# Long enough that a change that settles would have been noticed.
QUIET_S = 5 * SETTLE_MS / 1000


def topology(inputs=4, outputs=3):
    """Returns the text of a Keras model: one Dense layer without bias."""
    config = {
        'name': 'd',
        'units': outputs,
        'activation': 'linear',
        'use_bias': False,
        'batch_input_shape': [None, inputs],
    }
    layers = {'name': 'm', 'layers': [{'class_name': 'Dense', 'config': config}]}
    weights = [{'name': 'd/kernel', 'shape': [inputs, outputs], 'dtype': 'float32'}]
    return json.dumps(
        {
            'modelTopology': {'class_name': 'Sequential', 'config': layers},
            'weightsManifest': [{'paths': ['w.bin'], 'weights': weights}],
        }
    )


def weights(factor):
    """Returns weights with which each output is `factor` times the sum of the inputs."""
    return struct.pack('<12f', *([factor] * 12))


def write_model(folder, factor):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / 'w.bin').write_bytes(weights(factor))
    (folder / 'model.json').write_text(topology())
    return folder


def place_model(folder, factor):
    """Puts a complete model at its place by a rename."""
    write_model(folder.parent / '.new', factor).rename(folder)


class Asking(threading.Thread):
    """Asks a model for the sum of ones until it is stopped, and keeps all distinct answers."""

    def __init__(self, socket, model, **options):
        super().__init__(daemon=True)
        self.socket, self.model, self.options = socket, model, options
        self.answers, self.count, self.failure, self.end = [], 0, None, False
        self.start()

    def run(self):
        try:
            with inferd.Client(self.socket) as client:
                while not self.end:
                    answer = client.infer(
                        self.model, {'d_input': numpy.ones((1, 4), numpy.float32)}, **self.options
                    )
                    values = set(next(iter(answer.values())).ravel().tolist())
                    assert len(values) == 1, values
                    if self.answers[-1:] != list(values):
                        self.answers += values
                    self.count += 1
        except BaseException as error:
            self.failure = error

    def stop(self):
        # The answer after the next one was asked for after this call.
        count, end = self.count, time.monotonic() + SECONDS_MAX
        while self.count < count + 2 and self.failure is None and time.monotonic() < end:
            time.sleep(0.005)
        self.end = True
        self.join()
        if self.failure is not None:
            raise self.failure
        assert self.count > 0
        return self.answers


class Server:
    """A daemon with a repository of its own."""

    def __init__(self, **settings):
        self.holder = tempfile.TemporaryDirectory(prefix='inferd-life-')
        self.folder = Path(self.holder.name)
        self.models = self.folder / 'models'
        self.models.mkdir()
        (self.folder / 'run').mkdir()
        self.settings = {'watch_settle_ms': SETTLE_MS, 'backends': 'ref', **settings}
        self.prefix = []  # a command that runs the daemon

    def start(self, program=(DAEMON,), wait=True):
        arguments = [f'--{name}={value}' for name, value in self.settings.items()]
        self.log_path = self.folder / 'log'
        with open(self.log_path, 'w') as log:
            self.process = subprocess.Popen(
                [
                    *self.prefix,
                    *program,
                    f'--runtime-dir={self.folder}/run',
                    f'--repository={self.models}',
                    *arguments,
                ],
                stderr=log,
            )
        atexit.register(self.process.kill)
        self.socket = str(self.folder / 'run/inferd.sock')
        self.admin = str(self.folder / 'run/admin.sock')
        self.wait_until(lambda: 'serving version' in self.log())
        if wait:
            self.wait_until(lambda: not self.rows_loading())
        return self

    def rows_loading(self):
        return [row for row in self.rows() if row['state'] == 'LOADING']

    def log(self):
        return self.log_path.read_text()

    def wait_until(self, condition, seconds_max=SECONDS_MAX):
        end = time.monotonic() + seconds_max
        while not condition():
            assert self.process.poll() is None, self.log()
            assert time.monotonic() < end, self.log()
            time.sleep(0.02)

    def ctl(self, verb, *arguments):
        return subprocess.run(
            [INFERCTL, verb, '--socket', f'{self.folder}/run/admin.sock', *arguments],
            capture_output=True,
            text=True,
            timeout=SECONDS_MAX,
        )

    def reload(self):
        """Returns the exit code and the report of `inferctl reload`."""
        answer = self.ctl('reload', '-o', 'json')
        return answer.returncode, json.loads(answer.stdout)

    def rows(self):
        answer = self.ctl('models', '-o', 'json')
        return json.loads(answer.stdout) if answer.returncode == 0 else []

    def row(self, name):
        return next((row for row in self.rows() if row['name'] == name), {})

    def ask(self, model, **options):
        """Returns the one value of an answer."""
        with inferd.Client(self.socket) as client:
            answer = client.infer(model, {'d_input': numpy.ones((1, 4), numpy.float32)}, **options)
        return next(iter(answer.values())).ravel().tolist()[0]

    def wait_for_answer(self, value, model='m', **options):
        self.wait_until(lambda: self.ask(model, **options) == value)

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        code = self.process.wait(SECONDS_MAX)
        log = self.log()
        self.holder.cleanup()
        assert code == 0, log
