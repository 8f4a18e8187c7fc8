# SPDX-License-Identifier: Apache-2.0
"""A daemon with small models and a gateway in front of it, for the tests of this folder."""
import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

DAEMON, GATEWAY = map(os.path.abspath, sys.argv[1:3])
SECONDS_MAX = 60


def placeholder(name, dtype, *dims):
    shape = {'shape': {'dim': [{'size': str(size)} for size in dims]}}
    return {'name': name, 'op': 'Placeholder', 'attr': {'dtype': {'type': dtype}, 'shape': shape}}


def node(name, op, *inputs, **attributes):
    return {'name': name, 'op': op, 'input': list(inputs), 'attr': attributes}


def matmul(name, left):
    no = {'b': False}
    return node(name, 'MatMul', left, 'x', T=FLOAT, transpose_a=no, transpose_b=no)


FLOAT = {'type': 'DT_FLOAT'}
MODELS = {
    'add': [
        placeholder('a', 'DT_FLOAT', -1, 4),
        placeholder('b', 'DT_FLOAT', -1, 4),
        node('y', 'AddV2', 'a', 'b', T=FLOAT),
    ],
    'ints': [placeholder('a', 'DT_INT32', -1), node('y', 'Neg', 'a', T={'type': 'DT_INT32'})],
    'large': [placeholder('x', 'DT_FLOAT', -1), node('y', 'Neg', 'x', T=FLOAT)],
    'inverse': [placeholder('x', 'DT_FLOAT', -1), node('y', 'Reciprocal', 'x', T=FLOAT)],
    # Adds up what a sequence sends: the output y is the input s of the next request.
    'sum': [
        placeholder('s', 'DT_FLOAT', 2),
        placeholder('x', 'DT_FLOAT', 2),
        node('y', 'AddV2', 's', 'x', T=FLOAT),
        node('z', 'Neg', 'y', T=FLOAT),
    ],
    # A chain of products that takes plain loops long enough to be cancelled.
    'slow': [placeholder('x', 'DT_FLOAT', 256, 256)]
    + [matmul(f's{i + 1}', f's{i}' if i else 'x') for i in range(60)],
}


def write_models(folder):
    for name, nodes in MODELS.items():
        path = Path(folder) / name / '1'
        path.mkdir(parents=True)
        model = {'format': 'graph-model', 'modelTopology': {'node': nodes}, 'weightsManifest': []}
        if name == 'sum':
            outputs = {name: {'name': name + ':0'} for name in 'yz'}
            inputs = {name: {'name': name + ':0'} for name in 'sx'}
            model['signature'] = {'inputs': inputs, 'outputs': outputs}
            (path.parent / 'model.conf').write_text('session_pairs = y = s\n')
        (path / 'model.json').write_text(json.dumps(model))


# A request for the model add, which answers 11, 22, 33, 44.
ADD = {
    'inputs': [
        {'name': 'a', 'shape': [1, 4], 'datatype': 'FP32', 'data': [1, 2, 3, 4]},
        {'name': 'b', 'shape': [1, 4], 'datatype': 'FP32', 'data': [10, 20, 30, 40]},
    ]
}


def binary_body(request, *tensors):
    """A body with binary tensors, and the header fields that belong to it."""
    text = json.dumps(request).encode()
    headers = {
        'Content-Type': 'application/octet-stream',
        'Inference-Header-Content-Length': str(len(text)),
    }
    return text + b''.join(tensors), headers


class Daemon:
    def __init__(self, folder, *options):
        self.folder, self.options = folder, options
        self.socket = f'{folder}/inferd.sock'
        self.start()

    def start(self):
        self.process = subprocess.Popen(
            [
                DAEMON,
                f'--runtime-dir={self.folder}',
                f'--cache-dir={self.folder}',
                f'--repository={self.folder}/models',
                '--backends=ref',
                '--drain-timeout-ms=200',
                *self.options,
            ],
            stderr=subprocess.DEVNULL,
        )

    def end(self):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(SECONDS_MAX)


class Gateway:
    """A gateway on Unix sockets: `path` for clients, `admin_path` for administrators."""

    def __init__(self, folder, *options):
        self.path, self.admin_path = f'{folder}/http.sock', f'{folder}/http-admin.sock'
        self.process = subprocess.Popen(
            [
                GATEWAY,
                f'--listen=unix:{self.path}',
                f'--listen-admin=unix:{self.admin_path}',
                f'--socket={folder}/inferd.sock',
                f'--admin-socket={folder}/admin.sock',
                *options,
            ]
        )

    def connect(self, admin=False):
        """A plain socket to the gateway."""
        client = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        client.settimeout(SECONDS_MAX)
        try:
            client.connect(self.admin_path if admin else self.path)
        except OSError:
            client.close()
            raise
        return client

    def resident_bytes(self):
        with open(f'/proc/{self.process.pid}/statm') as statm:
            return int(statm.read().split()[1]) * 4096

    def end(self):
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(SECONDS_MAX)


class Connection(http.client.HTTPConnection):
    """An HTTP connection over a Unix socket."""

    def __init__(self, gateway, admin=False):
        super().__init__('localhost')
        self.gateway, self.admin = gateway, admin

    def connect(self):
        self.sock = self.gateway.connect(self.admin)


class Answer:
    def __init__(self, response):
        self.status = response.status
        self.headers = response.headers
        self.body = response.read()

    def json(self):
        return json.loads(self.body)


def wait_until(condition, what):
    end = time.monotonic() + SECONDS_MAX
    while not condition():
        assert time.monotonic() < end, what
        time.sleep(0.02)


def start_daemon(options):
    """The daemon with these options, which classes of tests share."""
    for daemon in DAEMONS:
        if daemon.options == options:
            return daemon
    folder = tempfile.TemporaryDirectory(prefix='inferd-gateway.')
    write_models(folder.name + '/models')
    daemon = Daemon(folder.name, *options)
    daemon.temporary = folder
    DAEMONS.append(daemon)
    return daemon


DAEMONS = []


class Case(unittest.TestCase):
    """One gateway for all tests of a class."""

    options = ()
    daemon_options = ()

    @classmethod
    def setUpClass(cls):
        cls.daemon = start_daemon(cls.daemon_options)
        cls.gateway = Gateway(cls.daemon.folder, *cls.options)
        wait_until(cls.all_models_are_ready, 'the models are not ready')

    @classmethod
    def all_models_are_ready(cls):
        try:
            return all(
                cls.ask('GET', f'/v2/models/{name}/ready').status == 200 for name in MODELS
            )
        except OSError:
            return False

    @classmethod
    def tearDownClass(cls):
        status = cls.gateway.end()
        assert status == 0, f'the gateway ended with status {status}'

    @classmethod
    def ask(cls, method, path, body=None, headers=None, admin=False):
        connection = Connection(cls.gateway, admin)
        try:
            connection.request(method, path, body, headers or {})
            return Answer(connection.getresponse())
        finally:
            connection.close()

    @classmethod
    def infer(cls, model, request, headers=None):
        return cls.ask('POST', f'/v2/models/{model}/infer', json.dumps(request), headers)

    @classmethod
    def metric(cls, name):
        """The value of a metric of the gateway."""
        for line in cls.ask('GET', '/metrics').body.decode().splitlines():
            if line.startswith(f'inferd_gateway_{name} '):
                return float(line.split()[1])
        raise KeyError(name)

    def exchange(self, text, admin=False):
        """All bytes that the gateway answers to `text` before it closes the connection."""
        with self.gateway.connect(admin) as client:
            try:
                client.sendall(text)
            except OSError:
                pass  # the gateway has closed it
            return self.read_all(client)

    def read_all(self, client):
        received = b''
        try:
            while more := client.recv(65536):
                received += more
        except ConnectionResetError:
            pass
        return received


def main():
    try:
        unittest.main(argv=[sys.argv[0]] + sys.argv[3:])
    finally:
        for daemon in DAEMONS:
            daemon.end()
            daemon.temporary.cleanup()
