#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""bench_top.py BUILD [ROUNDS] [INTERVAL_MS] - what watching a daemon costs its clients: the 99th
percentile of latency in an open loop at three times the rate that the daemon can serve, and the
rate of answers in time, alone, with inferctl top on a terminal, with inferctl trace, and with spans
of all requests (trace_rate=1). Rounds alternate, and each has a second run alone, which shows how
much two equal runs differ."""
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
    """Products of a small matrix, which take milliseconds, so that sending it costs little and
    the load generator keeps its rate."""
    dims = {'shape': {'dim': [{'size': '96'}, {'size': '96'}]}}
    attributes = {'dtype': {'type': 'DT_FLOAT'}, 'shape': dims}
    nodes = [{'name': 'x', 'op': 'Placeholder', 'attr': attributes}]
    nodes += [matmul(f's{i + 1}', f's{i}' if i else 'x') for i in range(500)]
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


class Trace:
    """inferctl trace, which writes to a file."""

    def __init__(self, socket):
        self.path = f'{socket}.trace'
        self.process = subprocess.Popen(
            [INFERCTL, 'trace', '--socket', socket, '-d', f'{SECONDS + 1}s', '-o', self.path],
            stdout=subprocess.DEVNULL,
        )

    def end(self):
        assert self.process.wait() == 0 and os.path.getsize(self.path) > 10000


class Daemon:
    def __init__(self, folder, *options):
        self.data, self.admin = f'{folder}/inferd.sock', f'{folder}/admin.sock'
        write_model(Path(folder, 'models', 'work', '1'))
        self.process = subprocess.Popen(
            [BUILD / 'daemon/inferd', f'--runtime-dir={folder}', f'--repository={folder}/models']
            + [f'--cache-dir={folder}', '--race=never', *options],
            stderr=subprocess.DEVNULL,
        )
        while not Path(self.data).exists():
            time.sleep(0.02)
        command = [INFERCTL, 'wait', '--socket', self.data, 'work']
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)

    def bench(self, *arguments):
        options = ['--socket', self.data, '--json', *map(str, arguments)]
        for _ in range(5):
            # Waits until the queue of the previous run is empty: the first request has the time
            # limit too, and would fail behind other requests.
            time.sleep(1)
            result = subprocess.run([INFERCTL, 'bench', *options, 'work'], capture_output=True)
            if result.returncode == 0:
                return json.loads(result.stdout)
        sys.exit(f'inferctl bench: {result.stderr.decode()}')

    def end(self):
        self.process.terminate()
        self.process.wait()


def main():
    with tempfile.TemporaryDirectory() as plain, tempfile.TemporaryDirectory() as traced:
        daemon = Daemon(plain)
        with_spans = Daemon(traced, '--trace-rate=1', f'--trace-file={traced}/spans')
        rate = int(OVERLOAD * daemon.bench('-n', 1000, '-c', 4)['per_second'])
        watchers = {'alone': None, 'alone again': None, 'top': Top, 'trace': Trace, 'spans': None}
        figures = {name: [] for name in watchers}
        rates = {name: [] for name in watchers}
        for number in range(ROUNDS):
            order = list(watchers)
            at = number % len(order)
            for name in order[at:] + order[:at]:
                watcher = watchers[name](daemon.admin) if watchers[name] else None
                watched = with_spans if name == 'spans' else daemon
                row = watched.bench('-R', rate, '-n', rate * SECONDS, '-t', TIMEOUT_MS)
                if watcher is not None:
                    watcher.end()
                figures[name].append(row['p99_ms'])
                rates[name].append(row['per_second'])
        assert os.path.getsize(f'{traced}/spans') > 10000
        daemon.end()
        with_spans.end()
    print(f'{rate} requests/s, top every {INTERVAL_MS} ms, {ROUNDS} rounds of {SECONDS} s')
    for name, rounds in figures.items():
        ratio = statistics.median(a / b for a, b in zip(rounds, figures['alone']))
        rate_ratio = statistics.median(a / b for a, b in zip(rates[name], rates['alone']))
        print(
            f'{name:14} p99 {statistics.median(rounds):6.2f} ms '
            f'({min(rounds):.2f} to {max(rounds):.2f}), ratio {ratio:.3f}, '
            f'{statistics.median(rates[name]):.0f} answers/s, ratio {rate_ratio:.3f}'
        )


main()
