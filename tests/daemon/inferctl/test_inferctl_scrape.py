#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""test_inferctl_scrape.py INFERD INFERCTL - inferctl metrics --http behind a socket, as
inferd-metrics.socket starts it, and inferctl metrics --watch and -o table."""
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

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.dont_write_bytecode = True
from tested_program import wait_until_accepts

INFERD, INFERCTL = map(os.path.abspath, sys.argv[1:])
SECONDS_MAX = 60
PROTOBUF = (
    'application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited'
)
# What metrics.proto of github.com/prometheus/client_model says about the messages that are used.
PROTO = """
syntax = "proto2";
package io.prometheus.client;
message LabelPair { optional string name = 1; optional string value = 2; }
enum MetricType { COUNTER = 0; GAUGE = 1; SUMMARY = 2; UNTYPED = 3; HISTOGRAM = 4; }
message Gauge { optional double value = 1; }
message Counter { optional double value = 1; }
message BucketSpan { optional sint32 offset = 1; optional uint32 length = 2; }
message Histogram {
  optional uint64 sample_count = 1; optional double sample_sum = 2;
  optional sint32 schema = 5; optional double zero_threshold = 6; optional uint64 zero_count = 7;
  repeated BucketSpan positive_span = 12; repeated sint64 positive_delta = 13;
}
message Metric {
  repeated LabelPair label = 1; optional Gauge gauge = 2; optional Counter counter = 3;
  optional Histogram histogram = 7;
}
message MetricFamily {
  optional string name = 1; optional string help = 2; optional MetricType type = 3;
  repeated Metric metric = 4;
}
"""


class Inetd:
    """Starts `inferctl metrics --http` for each connection, as systemd does with Accept=yes."""

    def __init__(self, folder):
        self.path = f'{folder}/metrics.sock'
        self.folder = folder
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(self.path)
        self.listener.listen(16)
        self.started = []
        threading.Thread(target=self.run, daemon=True).start()

    def run(self):
        while True:
            client, _ = self.listener.accept()
            program = [INFERCTL, 'metrics', '--all', '--http']
            program += ['--socket', f'{self.folder}/admin.sock']
            self.started.append(subprocess.Popen(program, stdin=client, stderr=subprocess.DEVNULL))
            client.close()


def ask(path, request):
    """Sends a request, and returns the head and the body of the answer."""
    with socket.socket(socket.AF_UNIX) as client:
        client.settimeout(SECONDS_MAX)
        client.connect(path)
        client.sendall(request)
        answer = b''
        while part := client.recv(65536):
            answer += part
    head, _, body = answer.partition(b'\r\n\r\n')
    return head.decode(), body


def get(path, accept):
    return ask(path, f'GET /metrics HTTP/1.1\r\nHost: a\r\nAccept: {accept}\r\n\r\n'.encode())


def split_delimited(body):
    """The messages of a delimited stream: each behind its length as a varint."""
    while body:
        size = shift = 0
        while True:
            byte, body = body[0], body[1:]
            size |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                break
        assert size <= len(body)
        yield body[:size]
        body = body[size:]


class Scrape(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp()
        Path(cls.folder, 'models').mkdir()
        cls.start()
        cls.inetd = Inetd(cls.folder)

    @classmethod
    def start(cls):
        cls.daemon = subprocess.Popen(
            [INFERD, f'--runtime-dir={cls.folder}', f'--repository={cls.folder}/models']
            + ['--backends=ref'],
            stderr=subprocess.DEVNULL,
        )
        wait_until_accepts(f'{cls.folder}/admin.sock', cls.daemon)

    @classmethod
    def stop(cls):
        cls.daemon.terminate()
        assert cls.daemon.wait(SECONDS_MAX) == 0

    @classmethod
    def tearDownClass(cls):
        cls.stop()
        shutil.rmtree(cls.folder)

    def test_the_format_is_the_one_that_was_asked_for(self):
        head, body = get(self.inetd.path, 'text/plain')
        self.assertIn('\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\n', head)
        self.assertIn(f'\r\nContent-Length: {len(body)}\r\n', head)
        self.assertIn(b'\ninferd_ready 1\n', body)
        head, body = get(self.inetd.path, 'application/openmetrics-text;version=1.0.0')
        self.assertIn('\r\nContent-Type: application/openmetrics-text; version=1.0.0', head)
        self.assertTrue(body.endswith(b'\n# EOF\n'))

    def test_other_requests_are_refused(self):
        for request, status in (
            (b'GET / HTTP/1.1\r\n\r\n', 404),
            (b'POST /metrics HTTP/1.1\r\nContent-Length: 0\r\n\r\n', 405),
            (b'nonsense\r\n\r\n', 400),
        ):
            head, body = ask(self.inetd.path, request)
            self.assertTrue(head.startswith(f'HTTP/1.1 {status} '), head)
            self.assertEqual(body, b'')

    def test_a_slow_client_delays_no_other(self):
        """A client that sends nothing, and one that reads nothing, do not stop other clients."""
        with socket.socket(socket.AF_UNIX) as idle, socket.socket(socket.AF_UNIX) as deaf:
            idle.connect(self.inetd.path)
            deaf.connect(self.inetd.path)
            deaf.sendall(b'GET /metrics HTTP/1.1\r\n\r\n')
            for _ in range(3):
                self.assertIn(b'inferd_ready 1', get(self.inetd.path, 'text/plain')[1])
            # The idle connection is ended after 5 seconds.
            idle.settimeout(SECONDS_MAX)
            self.assertTrue(idle.recv(100).startswith(b'HTTP/1.1 408 '))

    @unittest.skipIf(shutil.which('protoc') is None, 'protoc is not installed')
    def test_protobuf_has_the_histograms_of_json(self):
        folder = Path(self.folder)
        (folder / 'metrics.proto').write_text(PROTO)
        for _ in range(20):  # turns of the loop
            get(self.inetd.path, '*/*')
        head, body = get(self.inetd.path, PROTOBUF)
        self.assertIn('encoding=delimited', head)
        texts = {}
        for message in split_delimited(body):
            command = ['protoc', '-I', self.folder, 'metrics.proto']
            command.append('--decode=io.prometheus.client.MetricFamily')
            result = subprocess.run(command, input=message, capture_output=True, check=True)
            text = result.stdout.decode()
            self.assertNotRegex(text, r'(?m)^\s*\d+:', 'a field that the schema lacks')
            texts[text.split('"')[1]] = text
        self.assertIn('type: GAUGE', texts['inferd_ready'])
        self.assertIn('value: 1\n', texts['inferd_ready'])
        self.assertIn('type: COUNTER', texts['inferd_connections_accepted_total'])
        turns = texts['inferd_loop_turn_seconds']

        def numbers(key):
            lines = [line.split() for line in turns.splitlines()]
            return [int(line[1]) for line in lines if line[0] == key]

        # The deltas add up to the numbers of the buckets, and these to the count.
        total, value = 0, 0
        for delta in numbers('positive_delta:'):
            value += delta
            self.assertGreater(value, 0)
            total += value
        (count,) = numbers('sample_count:')
        self.assertGreaterEqual(count, 20)
        self.assertEqual(total + numbers('zero_count:')[0], count)
        self.assertEqual(sum(numbers('length:')), len(numbers('positive_delta:')))
        self.assertEqual(numbers('schema:'), [2])

    def test_a_daemon_that_is_gone_is_unavailable(self):
        self.stop()
        try:
            head, body = get(self.inetd.path, 'text/plain')
            self.assertTrue(head.startswith('HTTP/1.1 503 '), head)
        finally:
            self.start()

    def test_without_a_socket_http_is_refused(self):
        result = subprocess.run(
            [INFERCTL, 'metrics', '--http'],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
        )
        self.assertEqual(result.returncode, 2)
        self.assertIn('wants a socket', result.stderr)

    def ctl(self, *arguments):
        command = [INFERCTL, 'metrics', '--socket', f'{self.folder}/inferd.sock', *arguments]
        return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def test_a_table_has_a_row_for_each_sample(self):
        table = self.ctl('-o', 'table').communicate(timeout=SECONDS_MAX)[0].splitlines()
        self.assertEqual(table[0].split(), ['METRIC', 'LABELS', 'VALUE', 'P50', 'P99'])
        rows = [line.split() for line in table[1:]]
        metrics = json.loads(self.ctl('-o', 'json').communicate(timeout=SECONDS_MAX)[0])
        self.assertEqual(len(rows), sum(len(metric['samples']) for metric in metrics))
        self.assertIn(['inferd_ready', '1'], rows)
        self.assertIn(['inferd_models', 'state=ready', '0'], rows)

    def test_a_table_that_is_watched_has_rates(self):
        watch = self.ctl('-o', 'table', '--watch', '-i', '100')
        seen = []
        try:
            while sum('RATE' in line for line in seen) < 2:
                seen.append(watch.stdout.readline())
                self.assertNotEqual(seen[-1], '')
        finally:
            watch.send_signal(signal.SIGINT)
            watch.communicate(timeout=SECONDS_MAX)
        self.assertEqual(watch.returncode, -signal.SIGINT)
        first = next(i for i, line in enumerate(seen) if 'RATE' in line)
        self.assertNotIn('RATE', seen[0])
        # Each print is one call: at ten prints a second, the rate is at most ten, and above 0.
        rows = [line.split() for line in seen[first:]]
        key = ['inferd_calls_total', 'outcome=ok']
        (rate,) = [float(row[3]) for row in rows if row[:2] == key]
        self.assertGreater(rate, 0)
        self.assertLessEqual(rate, 10.5)

    def test_a_file_is_replaced_again_and_again(self):
        path = Path(self.folder, 'inferd.prom')
        watch = self.ctl('--textfile', str(path), '--watch', '-i', '50')
        inodes = set()
        end = time.monotonic() + SECONDS_MAX
        try:
            while len(inodes) < 3:
                self.assertLess(time.monotonic(), end)
                if path.exists():
                    inodes.add(path.stat().st_ino)
                    self.assertTrue(path.read_text().endswith('\n'))
                    self.assertIn('inferd_ready 1', path.read_text())
                time.sleep(0.01)
        finally:
            watch.terminate()
            watch.communicate(timeout=SECONDS_MAX)


if __name__ == '__main__':
    unittest.main(argv=sys.argv[:1], verbosity=2)
