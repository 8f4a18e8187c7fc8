#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""test_gateway_haproxy.py DAEMON GATEWAY [TEST...] - two instances behind Debian's HAProxy.

The configuration is that of docs/howto/scale. Instances are killed and restarted, and some requests
are written so that two parsers may disagree on where they end.
"""
import http.client
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unittest
from pathlib import Path

import gateway_case

HAPROXY = shutil.which('haproxy') or '/usr/sbin/haproxy'
CONFIGURATION = Path(__file__).resolve().parents[3] / 'docs/howto/scale/haproxy.cfg'
CLIENTS = 4
SLOW_START_MS = 200


def infer_body(name):
    vector = {'shape': [1, 4], 'datatype': 'FP32', 'data': [1, 2, 3, 4]}
    return {'id': name, 'inputs': [dict(vector, name='a'), dict(vector, name='b')]}


class Instance:
    """A daemon and its gateway, which both can be killed and started again."""

    def __init__(self):
        self.folder = tempfile.TemporaryDirectory(prefix='inferd-scale.')
        gateway_case.write_models(self.folder.name + '/models')
        self.daemon = gateway_case.Daemon(self.folder.name)
        self.gateway = gateway_case.Gateway(self.folder.name)

    def kill(self, name):
        process = getattr(self, name).process
        process.send_signal(signal.SIGKILL)
        process.wait(gateway_case.SECONDS_MAX)

    def restart(self, name):
        if name == 'daemon':
            self.daemon.start()
        else:
            self.gateway = gateway_case.Gateway(self.folder.name)

    def end(self):
        self.gateway.end()
        self.daemon.end()
        self.folder.cleanup()


class Balancer:
    def __init__(self, folder, instances):
        self.path, self.grpc_path = f'{folder}/rest.sock', f'{folder}/grpc.sock'
        self.statistics = f'{folder}/statistics.sock'
        text = CONFIGURATION.read_text()
        changes = {
            'global\n': f'global\n    stats socket {self.statistics}\n',
            'slowstart 5s': f'slowstart {SLOW_START_MS}ms',
            '127.0.0.1:8080': f'unix@{self.path}',
            '127.0.0.1:8081': f'unix@{self.grpc_path}',
            '127.0.0.1:8001': f'unix@{instances[0].gateway.path}',
            '127.0.0.1:8002': f'unix@{instances[1].gateway.path}',
        }
        for old, new in changes.items():
            assert old in text, f'{CONFIGURATION} has no {old}'
            text = text.replace(old, new)
        configuration = Path(folder) / 'haproxy.cfg'
        configuration.write_text(text)
        self.process = subprocess.Popen([HAPROXY, '-db', '-q', '-f', str(configuration)])

    def servers(self):
        """The state of each server of the backend for REST, such as UP or DOWN 1/2."""
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(self.statistics)
            client.sendall(b'show stat\n')
            received = b''
            while more := client.recv(65536):
                received += more
        rows = [line.split(',') for line in received.decode().splitlines() if line]
        state = rows[0].index('status')
        return {row[1]: row[state] for row in rows if row[0] == 'rest_instances'}

    def is_up(self, *names):
        try:
            servers = self.servers()
        except OSError:
            return False
        return all(servers[name] == 'UP' for name in names)

    def end(self):
        self.process.terminate()
        self.process.wait(gateway_case.SECONDS_MAX)

    def connect(self, admin=False):
        client = socket.socket(socket.AF_UNIX)
        client.settimeout(gateway_case.SECONDS_MAX)
        client.connect(self.path)
        return client


class Client(threading.Thread):
    """Sends requests that may run twice until it is stopped."""

    def __init__(self, balancer, number):
        super().__init__()
        self.balancer, self.number = balancer, number
        self.stopped = False
        self.times, self.failures = [], []

    def send(self, connection, count):
        name = f'{self.number}-{count}'
        if count % 4 == 0:
            connection.request('GET', '/v2/models/add')
        else:
            headers = {'Idempotency-Key': name}
            body = json.dumps(infer_body(name))
            connection.request('POST', '/v2/models/add/infer', body, headers)
        answer = gateway_case.Answer(connection.getresponse())
        if answer.status != 200:
            self.failures.append((name, answer.status, answer.body))
        elif count % 4 != 0 and answer.json()['id'] != name:
            self.failures.append((name, 'the answer of another request', answer.body))

    def run(self):
        connection = gateway_case.Connection(self.balancer)
        count = 0
        while not self.stopped:
            count += 1
            begin = time.monotonic()
            try:
                self.send(connection, count)
            except (OSError, http.client.HTTPException) as error:
                self.failures.append((count, repr(error)))
                connection.close()
            self.times.append(time.monotonic() - begin)
        connection.close()


class BalancerCase(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory(prefix='inferd-haproxy.')
        cls.instances = [Instance(), Instance()]
        cls.balancer = Balancer(cls.folder.name, cls.instances)
        cls.addClassCleanup(cls.end)
        gateway_case.wait_until(
            lambda: cls.balancer.is_up('a', 'b') and cls.models_are_ready(), 'no instance is up'
        )

    @classmethod
    def models_are_ready(cls):
        for instance in cls.instances:
            connection = gateway_case.Connection(instance.gateway)
            try:
                connection.request('GET', '/v2/models/add/ready')
                if connection.getresponse().status != 200:
                    return False
            except OSError:
                return False
            finally:
                connection.close()
        return True

    @classmethod
    def end(cls):
        cls.balancer.end()
        for instance in cls.instances:
            instance.end()
        cls.folder.cleanup()

    def ask(self, method, path, body=None, headers=None):
        connection = gateway_case.Connection(self.balancer)
        try:
            connection.request(method, path, body, headers or {})
            return gateway_case.Answer(connection.getresponse())
        finally:
            connection.close()

    def infer(self, name):
        return self.ask('POST', '/v2/models/add/infer', json.dumps(infer_body(name)))


class Failures(BalancerCase):
    def restart_each(self):
        """Kills and restarts each process of each instance, one after the other."""
        for name, instance in zip('ab', self.instances):
            for process in ('gateway', 'daemon'):
                instance.kill(process)
                gateway_case.wait_until(
                    lambda: not self.balancer.is_up(name), f'{process} of {name} is not missed'
                )
                instance.restart(process)
                gateway_case.wait_until(
                    lambda: self.balancer.is_up(name) and self.models_are_ready(),
                    f'{process} of {name} does not return',
                )
                time.sleep(1.5 * SLOW_START_MS / 1000)

    def test_no_idempotent_request_fails_while_instances_are_killed(self):
        clients = [Client(self.balancer, number) for number in range(CLIENTS)]
        for client in clients:
            client.start()
        try:
            self.restart_each()
        finally:
            for client in clients:
                client.stopped = True
            for client in clients:
                client.join(gateway_case.SECONDS_MAX)
        failures = [failure for client in clients for failure in client.failures]
        times = sorted(t for client in clients for t in client.times)
        self.assertGreater(len(times), 200)
        print(
            f'{len(times)} requests, {len(failures)} failed, '
            f'p50 {times[len(times) // 2] * 1000:.1f} ms, '
            f'p99 {times[len(times) * 99 // 100] * 1000:.1f} ms, '
            f'maximum {times[-1] * 1000:.0f} ms'
        )
        self.assertEqual(failures[:5], [])

    def test_without_instances_clients_are_told_when_to_try_again(self):
        for instance in self.instances:
            instance.kill('gateway')
        try:
            gateway_case.wait_until(
                lambda: not self.balancer.is_up('a') and not self.balancer.is_up('b'),
                'the ends are not noticed',
            )
            answer = self.ask('GET', '/v2')
            self.assertEqual(answer.status, 503)
            self.assertEqual(answer.headers['Retry-After'], '1')
            self.assertIn('no instance', answer.json()['error'])
        finally:
            for instance in self.instances:
                instance.restart('gateway')
        gateway_case.wait_until(lambda: self.balancer.is_up('a', 'b'), 'no instance is up')


class Borders(BalancerCase):
    """Each text hides a second request, whose id is `smuggled`. If the balancer and the gateway
    agree on where the first one ends, the second is a part of its body and gets no answer."""

    inner_body = json.dumps(infer_body('smuggled')).encode()
    inner = (
        b'POST /v2/models/add/infer HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s'
        % (len(inner_body), inner_body)
    )

    def check(self, head, body):
        with self.balancer.connect() as client:
            try:
                client.sendall(head + b'\r\n\r\n' + body)
                client.shutdown(socket.SHUT_WR)
                received = b''
                while more := client.recv(65536):
                    received += more
            except OSError:
                received = b''
        self.assertNotIn(b'smuggled', received, head)
        self.assertNotIn(b'HTTP/1.1 200', received, head)
        for number in range(3):
            answer = self.infer(f'after-{number}')
            self.assertEqual((answer.status, answer.json()['id']), (200, f'after-{number}'), head)

    def post(self, *fields):
        return b'\r\n'.join((b'POST /v2/models/add/infer HTTP/1.1', b'Host: x') + fields)

    def test_a_length_that_ends_before_the_chunks(self):
        size = b'%x\r\n' % len(self.inner)
        body = size + self.inner + b'\r\n0\r\n\r\n'
        length = b'Content-Length: %d' % len(size)
        for fields in (
            (length, b'Transfer-Encoding: chunked'),
            (b'Transfer-Encoding: chunked', length),
            (length, length, b'Transfer-Encoding: chunked'),
            (length, b'Transfer-Encoding: CHUNKED'),
        ):
            self.check(self.post(*fields), body)

    def test_chunks_that_end_before_the_length(self):
        body = b'0\r\n\r\n' + self.inner
        length = b'Content-Length: %d' % len(body)
        for coding in (
            b'Transfer-Encoding : chunked',
            b' Transfer-Encoding: chunked',
            b'X: y\r\n Transfer-Encoding: chunked',
            b'X: y\nTransfer-Encoding: chunked',
            b'X: y\rTransfer-Encoding: chunked',
            b'Transfer-Encoding: xchunked',
            b'Transfer-Encoding: "chunked"',
            b'Transfer-Encoding:\x0bchunked',
            b'Transfer-Encoding: chunked, identity',
            b'Transfer_Encoding: chunked',
            b'Transfer-Encoding\0: chunked',
        ):
            self.check(self.post(length, coding), body)

    def test_two_lengths(self):
        body = b'{}' + self.inner
        for first, second in ((2, len(body)), (len(body), 2)):
            fields = b'Content-Length: %d', b'Content-Length: %d'
            self.check(self.post(fields[0] % first, fields[1] % second), body)
            self.check(self.post(b'Content-Length: %d, %d' % (first, second)), body)

    def test_sizes_of_chunks(self):
        coding = b'Transfer-Encoding: chunked'
        hidden = self.inner + b'\r\n0\r\n\r\n'
        size = len(self.inner)
        for line in (b'0x%x', b'+%x', b'-%x', b'%x ;a', b'%x;a=\n', b'%x\n', b'1%015x0'):
            self.check(self.post(coding), line % size + b'\r\n' + hidden)

    def test_administration_is_refused(self):
        self.assertEqual(self.ask('POST', '/v2/repository/index').status, 403)


if __name__ == '__main__':
    if not os.path.exists(HAPROXY):
        print('SKIP: haproxy is not installed')
        sys.exit(77)
    gateway_case.main()
