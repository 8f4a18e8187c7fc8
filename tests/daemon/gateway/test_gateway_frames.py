#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""test_gateway_frames.py DAEMON GATEWAY [TEST...] - frames of HTTP/2 that clients of gRPC send
slowly, in large numbers, or with wrong sizes."""
import socket
import struct
import time

import gateway_case
from grpc_case import (
    CONTINUATION,
    DATA,
    HEADERS,
    OIP,
    PING,
    PREFACE,
    RST,
    SETTINGS,
    GrpcCase,
    call_fields,
    field,
    frame,
    message,
    tensor,
)

CALL = call_fields(b'ModelInfer')


class FullSocket(GrpcCase):
    def test_a_full_socket_is_waited_for(self):
        # The client opens its windows, sends all calls, reads nothing until the socket is full, and
        # then sends nothing more: only an event of the socket makes the gateway go on. Its timer,
        # which fires once a second, would need 20 s for 4 MB.
        count, calls = 16_000, 70  # fewer bytes for each call than its window
        request = OIP.ModelInferRequest(
            model_name='large',
            inputs=[tensor('x', 'FP32', [count])],
            raw_input_contents=[bytes(4 * count)],
        )
        body = message(request)
        settings = frame(SETTINGS, 0, 0, struct.pack('>HI', 4, 2**31 - 1))
        window = frame(8, 0, 0, struct.pack('>I', 2**31 - 1 - 65535))
        with self.gateway.connect() as client:
            client.sendall(PREFACE + settings + window)
            for stream in range(1, 2 * calls, 2):
                client.sendall(frame(HEADERS, 4, stream, CALL))
                for i in range(0, len(body), 16384):
                    last = i + 16384 >= len(body)
                    client.sendall(frame(DATA, int(last), stream, body[i : i + 16384]))
            time.sleep(0.5)
            stream = client.makefile('rb')
            begin, received, ended = time.monotonic(), 0, 0
            while ended < calls:
                head = stream.read(9)
                payload = stream.read(int.from_bytes(head[:3], 'big'))
                received += len(payload) if head[3] == DATA else 0
                self.assertNotEqual(head[3], RST, payload)
                ended += head[3] == HEADERS and head[4] & 1
            self.assertGreater(received, 4 * count * calls)
            self.assertLess(time.monotonic() - begin, 8)


class Frames(GrpcCase):
    options = ('--body-timeout-ms=1000',)

    def flood(self, count, make):
        """Sends frames until the gateway closes the connection; returns how many were sent."""
        with self.gateway.connect() as client:
            client.settimeout(5)
            sent = 0
            try:
                client.sendall(PREFACE)
                for i in range(count):
                    client.sendall(make(i))
                    sent += 1
            except OSError:
                pass
        self.assertEqual(self.ask('GET', '/v2/health/live').status, 200)
        return sent

    def test_preface_byte_by_byte(self):
        with self.gateway.connect() as client:
            for i in range(len(PREFACE)):
                client.sendall(PREFACE[i : i + 1])
            self.assertEqual(client.recv(9)[3], SETTINGS)

    def test_rapid_reset(self):
        def make(i):
            stream = 2 * i + 1
            return frame(HEADERS, 4, stream, CALL) + frame(RST, 0, stream, struct.pack('>I', 8))

        self.assertLess(self.flood(100000, make), 50000)

    def test_continuations_without_end(self):
        def make(i):
            return frame(CONTINUATION if i else HEADERS, 0, 1, field(b'x-%06d' % i, b'a' * 100))

        self.assertLess(self.flood(100000, make), 50000)

    def test_settings_and_pings_that_are_not_read(self):
        self.assertLess(self.flood(1000000, lambda i: frame(PING, 0, 0, bytes(8)) * 100), 900000)

    def test_a_size_that_is_a_lie(self):
        for size, body in ((2**32 - 1, b'x' * 100), (0, b'x'), (1000, b'x')):
            with self.gateway.connect() as client:
                client.sendall(
                    PREFACE
                    + frame(HEADERS, 4, 1, CALL)
                    + frame(DATA, 1, 1, struct.pack('>BI', 0, size) + body)
                )
                client.settimeout(10)
                # A literal field, or one with an index, whose value is the status 3.
                self.assertIn(b'3', self.read_until(client, HEADERS))

    def assert_little_memory(self, before):
        grown = self.gateway.resident_bytes() - before
        print(f'{self.id()}: {grown >> 10} KiB')
        self.assertLess(grown, 16 << 20)
        self.assertEqual(self.ask('GET', '/v2/health/live').status, 200)

    def test_fields_that_grow_when_they_are_decoded(self):
        # A field of 4,000 bytes enters the table, and each further byte repeats it: 48 MB.
        entry = b'\x40\x01x\x7f' + bytes([0x80 | (3873 & 0x7F), 3873 >> 7]) + b'v' * 4000
        before = self.gateway.resident_bytes()
        for _ in range(10):
            with self.gateway.connect() as client:
                client.settimeout(10)
                try:
                    client.sendall(PREFACE + frame(HEADERS, 5, 1, CALL + entry + b'\xbe' * 12000))
                    while client.recv(65536):
                        if self.gateway.resident_bytes() - before > 16 << 20:
                            break
                        client.shutdown(socket.SHUT_WR)
                except OSError:
                    pass
        self.assert_little_memory(before)

    def test_sizes_that_are_lies_take_no_memory(self):
        before = self.gateway.resident_bytes()
        with self.gateway.connect() as client:
            client.sendall(PREFACE)
            for i in range(200):
                stream = 2 * i + 1
                prefix = struct.pack('>BI', 0, 2**32 - 1)
                client.sendall(frame(HEADERS, 4, stream, CALL) + frame(DATA, 0, stream, prefix))
            gateway_case.wait_until(lambda: self.metric('body_bytes') >= 200 * 4096, 'no bodies')
            self.assert_little_memory(before)
        gateway_case.wait_until(lambda: self.metric('body_bytes') == 0, 'bodies are kept')

    def test_half_a_message_is_reset_after_its_timeout(self):
        before = self.metric('timeouts_total')
        with self.gateway.connect() as client:
            client.settimeout(10)
            client.sendall(PREFACE + frame(HEADERS, 4, 1, CALL) + frame(DATA, 0, 1, b'\0\0'))
            payload = self.read_until(client, RST)
            self.assertEqual(payload, struct.pack('>I', 8))
        self.assertEqual(self.metric('timeouts_total'), before + 1)


if __name__ == '__main__':
    gateway_case.main()
