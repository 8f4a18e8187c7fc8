#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""bench_top.py BUILD [ROUNDS] [INTERVAL_MS] - what inferctl top costs other clients: the 99th
percentile of latency in an open loop at three times the rate that the daemon can serve, with and
without inferctl top on a terminal. Rounds alternate, and each has a second run without it,
which shows how much two equal runs differ."""
import json
import os
import pty
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

BUILD = Path(sys.argv[1])
ROUNDS = int(sys.argv[2]) if len(sys.argv) > 2 else 9
INTERVAL_MS = sys.argv[3] if len(sys.argv) > 3 else '2000'
INFERCTL = BUILD / 'client/inferctl/inferctl'
SECONDS, TIMEOUT_MS, OVERLOAD = 5, 250, 3


def matmul(name, left):
    no = {'b': False}
    attributes = {'T': {'type': 'DT_FLOAT'}, 'transpose_a': no, 'transpose_b': no}
    return {'name': name, 'op': 'MatMul', 'input': [left, 'x'], 'attr': attributes}


def write_model(folder):
    """Products of a small matrix, which take milliseconds, so that sending it costs little."""
    dims = {'shape': {'dim': [{'size': '96'}, {'size': '96'}]}}
    attributes = {'dtype': {'type': 'DT_FLOAT'}, 'shape': dims}
    nodes = [{'name': 'x', 'op': 'Placeholder', 'attr': attributes}]
    nodes += [matmul(f's{i + 1}', f's{i}' if i else 'x') for i in range(60)]
    model = {'format': 'graph-model', 'modelTopology': {'node': nodes}, 'weightsManifest': []}
    folder.mkdir(parents=True)
    (folder / 'model.json').write_text(json.dumps(model))


class Top:
    """inferctl top on a terminal of 80 x 24, whose output is read and thrown away."""

    def __init__(self, socket):
        self.control, terminal = pty.openpty()
        self.process = subprocess.Popen(
            [INFERCTL, 'top', '--all', '--socket', socket, '-i', INTERVAL_MS],
            stdin=terminal,
            stdout=terminal,
        )
        os.close(terminal)
        self.bytes = 0
        self.reader = threading.Thread(target=self.read)
        self.reader.start()

    def read(self):
        try:
            while part := os.read(self.control, 65536):
                self.bytes += len(part)
        except OSError:
            pass

    def end(self):
        self.process.terminate()
        assert self.process.wait() == 0 and self.bytes > 1000
        self.reader.join()
        os.close(self.control)


def main():
    with tempfile.TemporaryDirectory() as folder:
        write_model(Path(folder, 'models', 'work', '1'))
        data, admin = f'{folder}/inferd.sock', f'{folder}/admin.sock'
        daemon = subprocess.Popen(
            [BUILD / 'daemon/inferd', f'--runtime-dir={folder}', f'--repository={folder}/models']
            + [f'--cache-dir={folder}', '--race=never'],
            stderr=subprocess.DEVNULL,
        )

        def bench(*arguments):
            command = [INFERCTL, 'bench', '--socket', data, '--json', *map(str, arguments), 'work']
            for _ in range(5):
                # Waits until the queue of the previous run is empty: the first request has the
                # time limit too, and would fail behind other requests.
                time.sleep(1)
                result = subprocess.run(command, capture_output=True)
                if result.returncode == 0:
                    return json.loads(result.stdout)
            sys.exit(f'inferctl bench: {result.stderr.decode()}')

        while not Path(data).exists():
            time.sleep(0.02)
        subprocess.run(
            [INFERCTL, 'wait', '--socket', data, 'work'], check=True, stdout=subprocess.DEVNULL
        )
        rate = int(OVERLOAD * bench('-n', 1000, '-c', 4)['per_second'])
        figures = {'without': [], 'without again': [], 'with top': []}
        for number in range(ROUNDS):
            order = list(figures)
            for name in order[number % 3 :] + order[: number % 3]:
                top = Top(admin) if name == 'with top' else None
                row = bench('-R', rate, '-n', rate * SECONDS, '-t', TIMEOUT_MS)
                if top is not None:
                    top.end()
                figures[name].append(row['p99_ms'])
        daemon.terminate()
        daemon.wait()
    print(f'{rate} requests/s, top every {INTERVAL_MS} ms, {ROUNDS} rounds of {SECONDS} s')
    for name, rounds in figures.items():
        ratio = statistics.median(a / b for a, b in zip(rounds, figures['without']))
        print(
            f'{name:14} p99 {statistics.median(rounds):6.2f} ms '
            f'({min(rounds):.2f} to {max(rounds):.2f}), ratio {ratio:.3f}'
        )


main()
