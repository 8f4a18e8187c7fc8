#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""test_gateway_connections.py DAEMON GATEWAY [TEST...] - connections of HTTP/1.1, those to a daemon
that is busy or restarts, and how the gateway is started."""
import json
import os
import re
import struct
import subprocess
import sys
import threading
import time
from pathlib import Path

import gateway_case
from gateway_case import ADD, Case, Connection, binary_body


class Connections(Case):
    def test_a_connection_is_kept(self):
        connection = Connection(self.gateway)
        before = self.metric('connections_total')
        for _ in range(5):
            connection.request('POST', '/v2/models/add/infer', json.dumps(ADD))
            response = connection.getresponse()
            self.assertEqual(response.status, 200)
            response.read()
        connection.close()
        self.assertEqual(self.metric('connections_total'), before + 2)

    def test_pipelined_requests_are_answered_in_order(self):
        one = b'GET /v2/models/%s/ready HTTP/1.1\r\nHost: x\r\n\r\n'
        with self.gateway.connect() as client:
            client.sendall(b''.join(one % name for name in (b'add', b'none', b'ints')) * 30)
            client.sendall(b'GET /v2 HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n')
            received = self.read_all(client)
        statuses = [part[:3] for part in received.split(b'HTTP/1.1 ')[1:]]
        self.assertEqual(statuses, [b'200', b'404', b'200'] * 30 + [b'200'])

    def test_chunked_body_in_small_pieces(self):
        body = json.dumps(ADD).encode()
        with self.gateway.connect() as client:
            client.sendall(
                b'POST /v2/models/add/infer HTTP/1.1\r\nHost: x\r\nConnection: close\r\n'
                b'Transfer-Encoding: chunked\r\n\r\n'
            )
            for i in range(0, len(body), 7):
                piece = body[i : i + 7]
                client.sendall(b'%x\r\n%s\r\n' % (len(piece), piece))
            client.sendall(b'0\r\n\r\n')
            received = self.read_all(client)
        self.assertTrue(received.startswith(b'HTTP/1.1 200'), received)
        self.assertIn(b'[11.0,22.0,33.0,44.0]', received)

    def test_byte_by_byte(self):
        text = b'GET /v2/health/live HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n'
        with self.gateway.connect() as client:
            for i in range(len(text)):
                client.sendall(text[i : i + 1])
            self.assertTrue(self.read_all(client).startswith(b'HTTP/1.1 200'))

    def test_expect_continue(self):
        body = json.dumps(ADD).encode()
        with self.gateway.connect() as client:
            client.sendall(
                b'POST /v2/models/add/infer HTTP/1.1\r\nHost: x\r\nConnection: close\r\n'
                b'Expect: 100-continue\r\nContent-Length: %d\r\n\r\n' % len(body)
            )
            self.assertEqual(client.recv(100), b'HTTP/1.1 100 Continue\r\n\r\n')
            client.sendall(body)
            self.assertTrue(self.read_all(client).startswith(b'HTTP/1.1 200'))

    def test_http_1_0_closes(self):
        received = self.exchange(b'GET /v2/health/live HTTP/1.0\r\n\r\n')
        self.assertTrue(received.startswith(b'HTTP/1.1 200'))
        self.assertIn(b'Connection: close', received)

    def test_a_client_that_goes_away_cancels_its_request(self):
        ones = struct.pack('<65536f', *([0.0] * 65536))
        body, headers = binary_body(
            {
                'inputs': [
                    {
                        'name': 'x',
                        'shape': [256, 256],
                        'datatype': 'FP32',
                        'parameters': {'binary_data_size': len(ones)},
                    }
                ]
            },
            ones,
        )
        cancelled = self.metric('inferences_cancelled_total')
        started = self.metric('inferences_started_total')
        connection = Connection(self.gateway)
        connection.request('POST', '/v2/models/slow/infer', body, headers)
        gateway_case.wait_until(
            lambda: self.metric('inferences_started_total') > started, 'not started'
        )
        begin = time.monotonic()
        connection.close()
        gateway_case.wait_until(
            lambda: self.metric('inferences_cancelled_total') == cancelled + 1, 'not cancelled'
        )
        self.assertLess(time.monotonic() - begin, 5)
        self.assertEqual(self.infer('add', ADD).status, 200)


class Credit(Case):
    daemon_options = ('--requests-per-connection-max=2',)

    def test_requests_wait_until_the_daemon_allows_them(self):
        slow = {
            'inputs': [
                {'name': 'x', 'shape': [256, 256], 'datatype': 'FP32', 'data': [0.0] * 65536}
            ]
        }
        answers = []
        threads = [
            threading.Thread(target=lambda: answers.append(self.infer('slow', slow)))
            for _ in range(4)
        ]
        for thread in threads:
            thread.start()
        gateway_case.wait_until(
            lambda: self.metric('inferences_waiting') >= 2, 'no request waits'
        )
        late = self.infer('add', dict(ADD, parameters={'timeout': 1000}))
        self.assertEqual((late.status, 'waited' in late.json()['error']), (504, True), late.body)
        # A client that goes away while its request waits.
        connection = Connection(self.gateway)
        connection.request('POST', '/v2/models/add/infer', json.dumps(ADD))
        connection.close()
        self.assertEqual(self.infer('add', ADD).status, 200)
        for thread in threads:
            thread.join(gateway_case.SECONDS_MAX)
        self.assertEqual([answer.status for answer in answers], [200] * 4)
        self.assertEqual(self.metric('inferences_waiting'), 0)


class Restart(Case):
    def test_requests_survive_a_restart_of_the_daemon(self):
        self.assertEqual(self.infer('add', ADD).status, 200)
        self.daemon.end()
        gateway_case.wait_until(
            lambda: self.ask('GET', '/v2/health/ready').status == 503, 'the end is not noticed'
        )
        self.assertEqual(self.ask('GET', '/v2/health/live').status, 200)
        answer = self.infer('add', ADD)
        self.assertEqual(answer.status, 503)
        self.assertGreaterEqual(int(answer.headers['Retry-After']), 1)
        self.daemon.start()
        gateway_case.wait_until(lambda: self.infer('add', ADD).status == 200, 'no answer')
        self.assertEqual(self.ask('GET', '/v2/health/ready').status, 200)


class Program(Case):
    def run_gateway(self, *arguments):
        return subprocess.run(
            [gateway_case.GATEWAY, *arguments],
            capture_output=True,
            text=True,
            timeout=gateway_case.SECONDS_MAX,
        )

    def test_wrong_arguments(self):
        for arguments in (['--no-such'], ['word'], ['--connections-max=0'], ['--timeout-ms=1x']):
            self.assertEqual(self.run_gateway(*arguments).returncode, 2, arguments)
        self.assertEqual(self.run_gateway().returncode, 1)
        self.assertEqual(self.run_gateway('--listen=nowhere').returncode, 1)
        self.assertIn('--listen', self.run_gateway('--help').stdout)

    def test_the_manual_has_every_option(self):
        page = Path(__file__).resolve().parents[3] / 'docs/man/inferd-gateway.8'
        manual = page.read_text()
        options = re.findall(r'--([a-z-]+)', self.run_gateway('--help').stdout)
        self.assertGreater(len(options), 12)
        for name in options:
            self.assertIn(f'.It Fl Fl {name}', manual)
        for name, value in re.findall(r'--([a-z-]+) +\(default: (\d+)\)',
                                      self.run_gateway('--help').stdout):
            section = manual.split(f'.It Fl Fl {name} ')[1].split('.It ')[0]
            self.assertIn(f'Default: {value}.', section, name)

    def test_sockets_of_systemd(self):
        folder = self.daemon.folder
        script = (
            'import fcntl, os, socket, sys\n'
            'for number, name in enumerate(("a", "b")):\n'
            '    made = socket.socket(socket.AF_UNIX)\n'
            f'    made.bind("{folder}/passed-" + name)\n'
            '    made.listen()\n'
            '    fcntl.fcntl(made.fileno(), fcntl.F_DUPFD, 10 + number)\n'
            '    made.close()\n'
            'os.dup2(10, 3)\n'
            'os.dup2(11, 4)\n'
            'os.environ.update(LISTEN_FDS="2", LISTEN_PID=str(os.getpid()),\n'
            '    LISTEN_FDNAMES="inferd-gateway:inferd-gateway-admin")\n'
            'os.execv(sys.argv[1], sys.argv[1:])\n'
        )
        process = subprocess.Popen(
            [sys.executable, '-c', script, gateway_case.GATEWAY, f'--socket={folder}/inferd.sock']
        )
        try:
            for name, status in (('a', b'403'), ('b', b'200')):
                gateway_case.wait_until(
                    lambda: os.path.exists(f'{folder}/passed-{name}'), 'no socket'
                )
                text = b'POST /v2/repository/index HTTP/1.1\r\nHost: x\r\n\r\n'
                connection = Connection(self.gateway)
                connection.gateway = type(
                    'Passed',
                    (),
                    {'connect': lambda _, admin: self.connect_path(f'{folder}/passed-{name}')},
                )()
                connection.request('POST', '/v2/repository/index')
                self.assertEqual(str(connection.getresponse().status).encode(), status, text)
        finally:
            process.terminate()
            self.assertEqual(process.wait(gateway_case.SECONDS_MAX), 0)

    def connect_path(self, path):
        import socket

        client = socket.socket(socket.AF_UNIX)
        client.settimeout(gateway_case.SECONDS_MAX)

        def try_connect():
            try:
                client.connect(path)
                return True
            except OSError:
                return False

        gateway_case.wait_until(try_connect, 'no listener')
        return client


if __name__ == '__main__':
    gateway_case.main()
