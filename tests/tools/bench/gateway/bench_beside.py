#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""bench_beside.py BUILD [ROUNDS] - what requests through the gateway cost other clients of the
daemon's socket, beside as many requests that come directly: the latency of a probe (400 null
requests a second) beside 2,000 null requests a second that one process sends, as tensors of the
Open Inference Protocol over HTTP or as frames over the socket. Both loads are sent at the lowest
priority, so that their own computing disturbs little. Rounds alternate, with each kind of load
twice, which shows how much two equal rounds differ. Prints medians of the rounds' p50 and p99."""
import json
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

RATE, PROBE_RATE, SECONDS, CONNECTIONS = 2000, 400, 4, 16
BUILD = Path(sys.argv[1])
ROUNDS = int(sys.argv[2]) if len(sys.argv) > 2 else 7
INFERCTL = BUILD / 'client/inferctl/inferctl'
NODES = [
    {
        'name': 'x',
        'op': 'Placeholder',
        'attr': {'dtype': {'type': 'DT_FLOAT'}, 'shape': {'shape': {'dim': [{'size': '4'}]}}},
    },
    {'name': 'y', 'op': 'Neg', 'input': ['x'], 'attr': {'T': {'type': 'DT_FLOAT'}}},
]


def write_model(folder):
    model = Path(folder, 'models', 'null', '1')
    model.mkdir(parents=True)
    text = {'format': 'graph-model', 'modelTopology': {'node': NODES}, 'weightsManifest': []}
    (model / 'model.json').write_text(json.dumps(text))


def wait_for(path):
    while not Path(path).exists():
        time.sleep(0.02)


def make_request():
    tensor = {'name': 'x', 'datatype': 'FP32', 'shape': [4]}
    tensor['parameters'] = {'binary_data_size': 16}
    head = json.dumps({'inputs': [tensor], 'parameters': {'binary_data_output': True}}).encode()
    return (
        b'POST /v2/models/null/infer HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n'
        b'Inference-Header-Content-Length: %d\r\n\r\n' % (len(head) + 16, len(head))
    ) + head + bytes(16)


def send_over_http(path, end_s):
    """Sends evenly spaced requests on several connections in turn, and takes the answer to the
    request before of the same connection."""
    os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
    request, waiting = make_request(), [False] * CONNECTIONS
    clients = [socket.socket(socket.AF_UNIX) for _ in range(CONNECTIONS)]
    for client in clients:
        client.connect(path)
    begin_s, sent = time.monotonic(), 0
    while (now_s := time.monotonic()) < end_s:
        due_s = begin_s + sent / RATE
        if now_s < due_s:
            time.sleep(due_s - now_s)
        at = sent % CONNECTIONS
        if waiting[at] and not clients[at].recv(4096).startswith(b'HTTP/1.1 200 '):
            os._exit(1)
        clients[at].sendall(request)
        waiting[at] = True
        sent += 1
    os._exit(0 if sent > RATE * SECONDS * 0.9 else 2)


class Load:
    """A process that sends RATE requests a second for about a second more than SECONDS."""

    def __init__(self, folder, kind):
        self.kind, end_s = kind, time.monotonic() + SECONDS + 1
        self.pid = os.fork()
        if self.pid != 0:
            return
        if kind == 'gateway':
            send_over_http(f'{folder}/http.sock', end_s)
        os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
        null = os.open('/dev/null', os.O_WRONLY)
        os.dup2(null, 1)
        count = str(RATE * (SECONDS + 1))
        socket_path = f'{folder}/inferd.sock'
        os.execv(
            INFERCTL,
            ['inferctl', 'bench', '--socket', socket_path, '-R', str(RATE), '-A', 'even']
            + ['-n', count, 'null'],
        )

    def end(self):
        status = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        assert status == 0, f'the load {self.kind} ended with {status}'


def probe(folder):
    command = [INFERCTL, 'bench', '--socket', f'{folder}/inferd.sock', '--json', '-A', 'even']
    command += ['-R', str(PROBE_RATE), '-n', str(PROBE_RATE * SECONDS), 'null']
    row = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    return row['median_ms'], row['p99_ms']


def measure(folder):
    kinds = ['direct', 'direct again', 'gateway', 'gateway again']
    figures = {kind: [] for kind in kinds}
    for number in range(ROUNDS):
        at = number % len(kinds)
        for kind in kinds[at:] + kinds[:at]:
            load = Load(folder, kind.split()[0])
            time.sleep(0.3)
            figures[kind].append(probe(folder))
            load.end()
    return figures


def main():
    with tempfile.TemporaryDirectory() as folder:
        write_model(folder)
        daemon = subprocess.Popen(
            [BUILD / 'daemon/inferd', f'--runtime-dir={folder}', f'--repository={folder}/models']
            + ['--backends=ref'],
            stderr=subprocess.DEVNULL,
        )
        gateway = subprocess.Popen(
            [BUILD / 'client/gateway/inferd-gateway', f'--listen=unix:{folder}/http.sock']
            + [f'--socket={folder}/inferd.sock']
        )
        try:
            wait_for(f'{folder}/inferd.sock')
            wait_for(f'{folder}/http.sock')
            command = [INFERCTL, 'wait', '--socket', f'{folder}/inferd.sock', 'null']
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
            figures = measure(folder)
        finally:
            for process in (gateway, daemon):
                process.terminate()
                process.wait()
    for kind, rounds in figures.items():
        p50, p99 = (statistics.median(row[i] for row in rounds) for i in (0, 1))
        listed = ' '.join(f'{row[1]:.2f}' for row in rounds)
        print(f'{kind:14} p50 {p50:.3f} ms, p99 {p99:.3f} ms (of each round: {listed})')


main()
