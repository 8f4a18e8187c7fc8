#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""test_gateway_hostile.py DAEMON GATEWAY [TEST...] - requests that break rules, slow clients."""
import gzip
import json
import re
import socket
import struct
import sys
import time
import zlib
from pathlib import Path

import gateway_case
from gateway_case import Case

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from tested_program import is_sanitized

SLOW_MS = 400  # timeouts of the gateway in the tests of slow clients


def tensor(**changes):
    result = {'name': 'x', 'shape': [2], 'datatype': 'FP32', 'data': [1, 2]}
    result.update(changes)
    return {key: value for key, value in result.items() if value is not None}


def request(**changes):
    return {'inputs': [tensor(**changes)]}


class Framing(Case):
    """Requests whose borders another implementation may see at another place."""

    def status_of(self, text):
        received = self.exchange(text)
        self.assertTrue(received.startswith(b'HTTP/1.1 '), (text[:200], received[:200]))
        self.assertEqual(received.count(b'HTTP/1.1 '), 1, (text[:200], received))
        return int(received[9:12])

    def check(self, status, *heads):
        for head in heads:
            # A second request that must not be seen: its answer would be a second status line.
            inner = b'GET /v2/health/live HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n'
            text = head + b'\r\n\r\n' + b'5\r\nhello\r\n0\r\n\r\n' + inner
            self.assertEqual(self.status_of(text), status, head)
        self.assertEqual(self.ask('GET', '/v2/health/live').status, 200)

    def post(self, *fields):
        return b'\r\n'.join((b'POST /v2/models/add/infer HTTP/1.1', b'Host: x') + fields)

    def test_ambiguous_lengths(self):
        self.check(
            400,
            self.post(b'Content-Length: 5', b'Transfer-Encoding: chunked'),
            self.post(b'Transfer-Encoding: chunked', b'Content-Length: 5'),
            self.post(b'Content-Length: 5', b'Content-Length: 5'),
            self.post(b'Content-Length: 5', b'Content-Length: 6'),
            self.post(b'Content-Length: 5, 5'),
            self.post(b'Content-Length: +5'),
            self.post(b'Content-Length: -5'),
            self.post(b'Content-Length: 0x5'),
            self.post(b'Content-Length: 5 5'),
            self.post(b'Content-Length:'),
            self.post(b'Content-Length: 99999999999999999999'),
            self.post(b'Transfer-Encoding: chunked', b'Transfer-Encoding: chunked'),
            self.post(b'Transfer-Encoding: identity, chunked'),
            self.post(b'Transfer-Encoding: chunked, identity'),
            self.post(b'Transfer-Encoding: gzip, chunked'),
            self.post(b'Transfer-Encoding: chunked,'),
            b'POST /v2 HTTP/1.0\r\nTransfer-Encoding: chunked',
        )
        self.check(
            501,
            self.post(b'Transfer-Encoding: xchunked'),
            self.post(b'Transfer-Encoding: "chunked"'),
            self.post(b'Transfer-Encoding: chunked; q=1'),
            self.post(b'Transfer-Encoding:'),
        )

    def test_ambiguous_lines(self):
        self.check(
            400,
            self.post(b'Content-Length : 5'),
            self.post(b' Content-Length: 5'),
            self.post(b'X: 1', b' Content-Length: 5'),
            self.post(b'X: 1', b'\tfolded'),
            self.post(b': empty'),
            self.post(b'NoColon'),
            self.post(b'X: a\0b'),
            self.post(b'X: a\rb'),
            self.post(b'X: a\nContent-Length: 5'),
            self.post(b'X\x80: 1'),
            self.post(b'Host: y'),
            b'POST /v2 HTTP/1.1',
            b'GET  /v2 HTTP/1.1\r\nHost: x',
            b'GET /v2  HTTP/1.1\r\nHost: x',
            b'GET /v2 x HTTP/1.1\r\nHost: x',
            b'GET http://x/v2 HTTP/1.1\r\nHost: x',
            b'GET * HTTP/1.1\r\nHost: x',
            b'GE\tT /v2 HTTP/1.1\r\nHost: x',
            b' GET /v2 HTTP/1.1\r\nHost: x',
            b'\r\nGET /v2 HTTP/1.1\r\nHost: x',
        )
        self.check(
            505,
            b'GET /v2 HTTP/1.99999999999\r\nHost: x',
            b'GET /v2 HTTP/2.0\r\nHost: x',
            b'GET /v2 http/1.1\r\nHost: x',
            b'GET /v2 HTTP/1.1 \r\nHost: x',
        )

    def test_lines_that_end_with_lf_alone(self):
        self.assertEqual(self.status_of(b'GET /v2 HTTP/1.1\nHost: x\n\n'), 400)
        self.assertEqual(self.status_of(b'\x16\x03\x01\x02\x00\x01\x00\n'), 400)  # TLS

    def chunked(self, body):
        return self.status_of(self.post(b'Transfer-Encoding: chunked') + b'\r\n\r\n' + body)

    def test_chunks(self):
        for body in (
            b'0x5\r\nhello\r\n0\r\n\r\n',
            b'+5\r\nhello\r\n0\r\n\r\n',
            b'-5\r\nhello\r\n0\r\n\r\n',
            b' 5\r\nhello\r\n0\r\n\r\n',
            b'5 \r\nhello\r\n0\r\n\r\n',
            b'5;a=b\r\nhello\r\n0\r\n\r\n',
            b'5\nhello\r\n0\r\n\r\n',
            b'5\r\nhelloX\r\n0\r\n\r\n',
            b'5\r\nhello\n0\r\n\r\n',
            b'\r\nhello\r\n0\r\n\r\n',
            b'fffffffffffffff0\r\nhello',
            b'100000000\r\nhello',
            b'5\r\nhello\r\n0\r\nTrailer: x\r\n\r\n',
        ):
            self.assertEqual(self.chunked(body), 400, body)
        self.assertEqual(self.chunked(b'ffffffff\r\nx'), 413)

    def test_a_chunk_that_is_larger_than_the_limit(self):
        # Many chunks of 1 MiB: refused when the data exceeds the maximum.
        with self.gateway.connect() as client:
            client.sendall(self.post(b'Transfer-Encoding: chunked') + b'\r\n\r\n')
            sent = 0
            try:
                while sent < 200 << 20:
                    client.sendall(b'100000\r\n' + b' ' * (1 << 20) + b'\r\n')
                    sent += 1 << 20
            except OSError:
                pass
            self.assertLess(sent, 80 << 20)
        self.assertEqual(self.metric('body_bytes'), 0)

    def test_too_many_chunks(self):
        self.assertEqual(self.chunked(b'1\r\n \r\n' * 70000), 413)

    def test_large_heads(self):
        self.assertEqual(self.status_of(self.post(b'X: ' + b'a' * 20000) + b'\r\n\r\n'), 431)
        many = (b'X-%d: 1' % i for i in range(200))
        self.assertEqual(self.status_of(self.post(*many) + b'\r\n\r\n'), 431)
        with self.gateway.connect() as client:
            sent = 0
            try:
                client.sendall(b'GET /v2 HTTP/1.1\r\n')
                while sent < 64 << 20:
                    sent += client.send(b'X-Header: ' + b'a' * 1000 + b'\r\n')
            except OSError:
                pass
            self.assertLess(sent, 4 << 20)

    def test_large_bodies_are_refused_before_they_arrive(self):
        head = self.post(b'Content-Length: 100000000000') + b'\r\n\r\n'
        self.assertEqual(self.status_of(head), 413)

    def test_expectations(self):
        self.assertEqual(self.status_of(self.post(b'Expect: 200-ok') + b'\r\n\r\n'), 417)

    def test_codings(self):
        self.assertEqual(self.status_of(self.post(b'Content-Encoding: br') + b'\r\n\r\n'), 415)
        twice = self.post(b'Content-Encoding: gzip', b'Content-Encoding: gzip')
        self.assertEqual(self.status_of(twice + b'\r\n\r\n'), 400)


class Tensors(Case):
    def check_refused(self, *requests, model='large', says=''):
        for wrong in requests:
            text = wrong if isinstance(wrong, (str, bytes)) else json.dumps(wrong)
            answer = self.ask('POST', f'/v2/models/{model}/infer', text)
            self.assertEqual(answer.status, 400, (text[:200], answer.body))
            self.assertIn(says, answer.json()['error'])
        self.assertEqual(self.infer('large', request()).status, 200)

    def test_shapes(self):
        self.check_refused(
            request(shape=[-2]),
            request(shape=[-1]),
            request(shape=[3]),
            request(shape=[1]),
            request(shape=[2.0]),
            request(shape=['2']),
            request(shape=2),
            request(shape=None),
            request(shape=[1] * 9),
            request(shape=[1] * 100000),
            request(shape=[2**31]),
            request(shape=[2**62, 4]),
            request(shape=[2**30, 2**30, 2**30]),
            request(shape=[2**31 - 1] * 8),
            request(shape=[2, 1], data=[[1], [2, 3]]),
            request(shape=[2, 2], data=[[1, 2], 3]),
            request(shape=[2, 2], data=[1, [2], 3, 4]),
            request(shape=[2], data=[[1], [2]]),
        )
        # A wrong rank or name is found by the daemon.
        self.check_refused(request(shape=[2, 1]), request(name='y'))

    def test_integers_out_of_range_in_a_shape(self):
        self.check_refused('{"inputs":[{"name":"x","datatype":"FP32","data":[1],"shape":[%s]}]}'
                           % (2**64))
        self.check_refused('{"inputs":[{"name":"x","datatype":"FP32","data":[1],"shape":[1e400]}]}')

    def test_elements(self):
        self.check_refused(
            request(data=[1, '2']),
            request(data=[1, None]),
            request(data=[1, True]),
            request(data=[1, 1e39]),
            request(data=[1, {}]),
            request(data={'0': 1}),
            request(data='12'),
            request(data=None),
            request(datatype='FP16'),
            request(datatype='fp32'),
            request(datatype='INT128'),
            request(datatype=None),
            request(datatype=7),
        )
        for value in (2**31, -(2**31) - 1, 1.5, 2**63, '1'):
            wrong = {'inputs': [{'name': 'a', 'shape': [1], 'datatype': 'INT32', 'data': [value]}]}
            self.check_refused(wrong, model='ints')

    def test_each_integer_type_has_its_range(self):
        for bits in (8, 16, 32):
            for name, low, high in (
                (f'INT{bits}', -(2 ** (bits - 1)), 2 ** (bits - 1) - 1),
                (f'UINT{bits}', 0, 2**bits - 1),
            ):
                for value in (low - 1, high + 1):
                    answer = self.infer('large', request(datatype=name, data=[0, value]))
                    self.assertIn('out of the range', answer.json()['error'])
                for value in (low, high):
                    # The model wants FP32, which only the daemon knows.
                    answer = self.infer('large', request(datatype=name, data=[0, value]))
                    self.assertNotIn('out of the range', answer.json()['error'])

    def test_json(self):
        self.check_refused(
            '',
            '{',
            'null',
            '[]',
            '{}',
            '{"inputs":[]}',
            '{"inputs":{}}',
            '{"inputs":[1]}',
            '{"inputs":[{}]}',
            b'\xff\xfe',
            b'{"inputs":[{"name":"\xff"}]}',
            json.dumps(request()) + 'x',
            json.dumps(request())[:-1],
            '{"id":"a","id":"b","inputs":[]}',
            dict(request(), id=7),
            dict(request(), id='i' * 300),
            dict(request(), id='a\0b'),
            dict(request(), parameters=[]),
            dict(request(), parameters={'timeout': -1}),
            dict(request(), parameters={'timeout': '1'}),
            dict(request(), parameters={'binary_data_output': 1}),
            dict(request(), outputs={}),
            dict(request(), outputs=[{}]),
            dict(request(), outputs=[{'name': 7}]),
            dict(request(), outputs=[{'name': 'none'}]),
            dict(request(), outputs=[{'name': 'y'}] * 65),
            {'inputs': [tensor()] * 65},
            {'inputs': [tensor(), tensor()]},
            request(name=''),
            request(name='n' * 300),
        )

    def test_deep_json(self):
        for depth in (17, 100, 2049, 250000):
            for text in ('[' * depth, '{"a":' * depth, '[' * depth + ']' * depth):
                self.check_refused(text, '{"inputs":' + text, says='nests deeper')

    def test_json_that_takes_much_memory(self):
        for text in ('[' + '[],' * 400000 + '0]', '[' + '0,' * 2200000 + '0]'):
            self.check_refused(text, says='too many values')

    def test_json_text_of_more_than_the_maximum(self):
        answer = self.ask('POST', '/v2/models/large/infer', ' ' * (17 << 20))
        self.assertEqual(answer.status, 413)

    def binary(self, sizes, data, json_length=None, shape=(2,)):
        inputs = [
            tensor(data=None, shape=list(shape), parameters={'binary_data_size': size})
            for size in sizes
        ]
        text = json.dumps({'inputs': inputs}).encode()
        length = len(text) if json_length is None else json_length
        headers = {'Inference-Header-Content-Length': str(length)}
        return self.ask('POST', '/v2/models/large/infer', text + data, headers)

    def test_binary_sizes(self):
        self.assertEqual(self.binary([8], bytes(8)).status, 200)
        for sizes, data in (
            ([8], bytes(7)),
            ([8], bytes(9)),
            ([8], b''),
            ([7], bytes(7)),
            ([0], b''),
            ([-8], bytes(8)),
            ([2**63 - 1], bytes(8)),
            ([8, 8], bytes(8)),
            (['8'], bytes(8)),
            ([8.0], bytes(8)),
        ):
            answer = self.binary(sizes, data)
            self.assertEqual(answer.status, 400, (sizes, answer.body))
        for length in (1, 10**6, 10**17):
            self.assertEqual(self.binary([8], bytes(8), json_length=length).status, 400)
        for length in ('-1', '1e3', '0x10', '', '99999999999999999999'):
            self.assertEqual(self.binary([8], bytes(8), json_length=length).status, 400)
        self.assertEqual(self.binary([8], bytes(8), json_length=0).status, 501)

    def test_binary_sizes_of_large_bodies(self):
        # Large enough for shared memory.
        size = 1 << 20
        self.assertEqual(self.binary([size], bytes(size), shape=[size // 4]).status, 200)
        self.assertEqual(self.binary([size], bytes(size - 1), shape=[size // 4]).status, 400)
        self.assertEqual(self.binary([size + 4], bytes(size), shape=[size // 4]).status, 400)
        self.assertEqual(self.binary([size], bytes(size), shape=[size // 4 + 1]).status, 400)
        self.assertEqual(self.metric('body_bytes'), 0)

    def test_binary_size_without_the_header_field(self):
        wrong = request(data=None, parameters={'binary_data_size': 8})
        self.assertEqual(self.infer('large', wrong).status, 400)
        wrong = request(parameters={'binary_data_size': 8})
        self.assertEqual(self.infer('large', wrong).status, 400)

    def test_compressed_bodies(self):
        text = json.dumps(request()).encode()
        good = gzip.compress(text)
        for coding, body in (
            ('gzip', good[:-1]),
            ('gzip', good + b'x'),
            ('gzip', good[:20] + b'\xff' + good[21:]),
            ('gzip', text),
            ('gzip', b''),
            ('deflate', good),
            ('deflate', zlib.compress(text)[:-4]),
        ):
            headers = {'Content-Encoding': coding}
            answer = self.ask('POST', '/v2/models/large/infer', body, headers)
            self.assertEqual(answer.status, 400, (coding, body[:30]))

    def test_a_body_that_expands_a_thousand_times(self):
        bomb = zlib.compress(b' ' * (1 << 30), 9)
        begin = time.monotonic()
        answer = self.ask(
            'POST', '/v2/models/large/infer', bomb, {'Content-Encoding': 'deflate'}
        )
        self.assertEqual(answer.status, 413)
        self.assertIn('decompressed', answer.json()['error'])
        self.assertLess(time.monotonic() - begin, 10)


class SlowClients(Case):
    options = (
        '--connections-max=50',
        f'--head-timeout-ms={SLOW_MS}',
        f'--body-timeout-ms={SLOW_MS}',
        f'--write-timeout-ms={SLOW_MS}',
    )

    def test_a_byte_now_and_then_does_not_hold_a_connection(self):
        for head in (b'GET /v2 HTTP/1.1\r\nX-Slow: ',
                     b'POST /v2 HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n'):
            begin = time.monotonic()
            with self.gateway.connect() as client:
                client.sendall(head)
                client.settimeout(SLOW_MS / 10000)
                received = b''
                while time.monotonic() < begin + 30:
                    try:
                        received = client.recv(1000)
                        break
                    except TimeoutError:
                        client.sendall(b'a')
                self.assertTrue(received.startswith(b'HTTP/1.1 408'), received)
                self.assertLess(time.monotonic() - begin, 10)

    def test_half_bodies(self):
        for _ in range(20):
            with self.gateway.connect() as client:
                client.sendall(
                    b'POST /v2/models/large/infer HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n'
                    b'Inference-Header-Content-Length: 100\r\n\r\n{'
                )
        gateway_case.wait_until(lambda: self.metric('body_bytes') == 0, 'bodies are kept')

    def test_idle_connections_make_room(self):
        idle = [self.gateway.connect() for _ in range(50)]
        try:
            for _ in range(10):
                self.assertEqual(self.ask('GET', '/v2/health/live').status, 200)
            self.assertGreater(self.metric('connections_evicted_total'), 0)
        finally:
            for client in idle:
                client.close()

    def test_busy_connections_end_after_their_timeout(self):
        busy = [self.gateway.connect() for _ in range(50)]
        try:
            for client in busy:
                client.sendall(b'GET /v2 HTTP/1.1\r\n')
            begin = time.monotonic()
            self.assertEqual(self.ask('GET', '/v2/health/live').status, 200)
            self.assertLess(time.monotonic() - begin, 30)
        finally:
            for client in busy:
                client.close()

    def test_a_client_that_does_not_read_its_response(self):
        # 800 KB of response: more than the buffers of the sockets take.
        count = 200000
        body = struct.pack(f'<{count}f', *([1.0] * count))
        text = json.dumps(
            {
                'parameters': {'binary_data_output': True},
                'inputs': [
                    tensor(data=None, shape=[count], parameters={'binary_data_size': len(body)})
                ],
            }
        ).encode()
        head = (
            b'POST /v2/models/large/infer HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n'
            b'Inference-Header-Content-Length: %d\r\n\r\n' % (len(text) + len(body), len(text))
        )
        before = self.metric('timeouts_total')
        with self.gateway.connect() as client:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            client.sendall(head + text + body)
            gateway_case.wait_until(
                lambda: self.metric('timeouts_total') > before, 'the connection is kept'
            )


class Bodies(Case):
    options = ('--bodies-max-bytes=1000000',)

    def test_memory_of_bodies_is_bounded(self):
        head = (
            b'POST /v2/models/large/infer HTTP/1.1\r\nHost: x\r\nContent-Length: 600000\r\n\r\n'
        )
        with self.gateway.connect() as first, self.gateway.connect() as second:
            first.sendall(head)
            gateway_case.wait_until(lambda: self.metric('body_bytes') == 600000, 'no body')
            second.sendall(head)
            received = self.read_all(second)
            self.assertTrue(received.startswith(b'HTTP/1.1 503'), received)
            self.assertIn(b'Retry-After', received)


class Crowd(Case):
    options = ('--connections-max=2000',)

    def test_a_thousand_idle_connections_take_little_memory(self):
        if socket_limit() < 1200:
            self.skipTest('too few descriptors are allowed')
        self.ask('GET', '/v2')
        before = self.gateway.resident_bytes()
        idle = []
        try:
            for _ in range(1000):
                client = self.gateway.connect()
                client.sendall(b'GET /v2/health/live HTTP/1.1\r\nHost: x\r\n\r\n')
                idle.append(client)
            for client in idle:
                self.assertTrue(client.recv(1000).startswith(b'HTTP/1.1 200'))
            self.assertEqual(self.metric('connections'), 1001)
            grown = self.gateway.resident_bytes() - before
            print(f'1000 idle connections: {grown >> 10} KiB')
            # A sanitizer keeps more of it.
            self.assertLess(grown, (60 if is_sanitized(gateway_case.GATEWAY) else 20) << 20)
        finally:
            for client in idle:
                client.close()

    def descriptor_slots(self):
        """The size of the gateway's table of descriptors."""
        status = Path(f'/proc/{self.gateway.process.pid}/status').read_text()
        return int(re.search(r'FDSize:\s+(\d+)', status)[1])

    def test_ten_thousand_connections(self):
        if socket_limit() < 10200:
            self.skipTest('too few descriptors are allowed')
        self.ask('GET', '/v2')
        before, slots = self.gateway.resident_bytes(), self.descriptor_slots()
        crowd = []
        try:
            end = time.monotonic() + gateway_case.SECONDS_MAX
            while len(crowd) < 10000:
                try:
                    crowd.append(self.gateway.connect())
                except BlockingIOError:  # the kernel's queue is full
                    self.assertLess(time.monotonic(), end)
                    time.sleep(0.01)
            begin = time.monotonic()
            self.assertEqual(self.ask('GET', '/v2/health/live').status, 200)
            self.assertLess(time.monotonic() - begin, 10)
            grown = self.gateway.resident_bytes() - before
            print(f'10000 connections: {grown >> 10} KiB')
            self.assertLessEqual(self.metric('connections'), 2000)
            # While the table grows, the gateway waits in accept().
            self.assertEqual(self.descriptor_slots(), slots)
            self.assertLess(grown, 40 << 20)
        finally:
            for client in crowd:
                client.close()


class Descriptors(Case):
    def test_the_loop_rests_when_descriptors_are_exhausted(self):
        import resource

        if not hasattr(resource, 'prlimit'):
            self.skipTest('there is no prlimit')
        pid = self.gateway.process.pid
        before = resource.prlimit(pid, resource.RLIMIT_NOFILE)
        self.assertEqual(self.ask('GET', '/v2/health/live').status, 200)
        resource.prlimit(pid, resource.RLIMIT_NOFILE, (20, before[1]))
        clients = [self.gateway.connect() for _ in range(40)]
        try:
            time.sleep(0.2)
            begin = self.processor_seconds()
            time.sleep(1)
            self.assertLess(self.processor_seconds() - begin, 0.2)
        finally:
            resource.prlimit(pid, resource.RLIMIT_NOFILE, before)
            for client in clients:
                client.close()
        self.assertEqual(self.ask('GET', '/v2/health/live').status, 200)

    def processor_seconds(self):
        with open(f'/proc/{self.gateway.process.pid}/stat') as stat:
            fields = stat.read().rsplit(')', 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / 100


def socket_limit():
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return hard


if __name__ == '__main__':
    gateway_case.main()
