#!/usr/bin/env python3
"""bench_trace.py DAEMON INFERCTL [ROUNDS] - what watching a daemon costs its clients: the p99
latency of requests at three times the rate that the daemon can serve, alone, with inferctl trace,
with inferctl top and with trace_rate=1. The rounds alternate, and their medians are compared.
Prints a table; it is no test. Run it on a machine that does nothing else."""
import atexit
import json
import os
import signal
import statistics
import struct
import subprocess
import sys
import tempfile
import time
from pathlib import Path

DAEMON, INFERCTL = map(os.path.abspath, sys.argv[1:3])
ROUNDS = int(sys.argv[3]) if len(sys.argv) > 3 else 5
SECONDS, SIZE = 4, 1024
QUIET = {'stdout': subprocess.DEVNULL, 'stderr': subprocess.DEVNULL}


def write_model(folder):
    """A chain of four dense layers of SIZE units."""
    folder.mkdir(parents=True)
    layers, manifest = [], []
    for i in range(4):
        config = {'name': f'd{i}', 'units': SIZE, 'activation': 'relu', 'use_bias': False}
        if i == 0:
            config['batch_input_shape'] = [None, SIZE]
        layers.append({'class_name': 'Dense', 'config': config})
        manifest.append({'name': f'd{i}/kernel', 'shape': [SIZE, SIZE], 'dtype': 'float32'})
    topology = {'class_name': 'Sequential', 'config': {'layers': layers}}
    weights = [{'paths': ['w.bin'], 'weights': manifest}]
    (folder / 'model.json').write_text(
        json.dumps({'modelTopology': topology, 'weightsManifest': weights})
    )
    (folder / 'w.bin').write_bytes(struct.pack('<f', 0.01) * (4 * SIZE * SIZE))


class Daemon:
    def __init__(self, folder, *arguments):
        self.run = f'{folder}/run'
        os.mkdir(self.run)
        self.process = subprocess.Popen(
            [DAEMON, f'--runtime-dir={self.run}', f'--repository={folder}/models', *arguments],
            stderr=subprocess.DEVNULL,
        )
        atexit.register(self.process.kill)
        self.ctl('wait', '-t', '60000', 'm')

    def argv(self, verb, *arguments, admin=False):
        name = 'admin.sock' if admin else 'inferd.sock'
        return [INFERCTL, verb, '--socket', f'{self.run}/{name}', *arguments]

    def ctl(self, verb, *arguments):
        end = time.monotonic() + 60
        while True:
            said = subprocess.run(self.argv(verb, *arguments), capture_output=True, text=True)
            if said.returncode == 0:
                return said.stdout
            assert time.monotonic() < end, said
            time.sleep(0.1)

    def bench(self, *arguments):
        return json.loads(self.ctl('bench', '-o', 'json', 'm', *arguments))

    def end(self):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(30)


def watch(daemon, kind, folder):
    """Starts the program that watches; None: none does."""
    if kind == 'trace':
        argv = daemon.argv('trace', '-d', '600s', '-o', f'{folder}/trace.json', admin=True)
    elif kind == 'top':
        script = ' '.join(daemon.argv('top', '--once', '--all', admin=True))
        argv = ['sh', '-c', f'while {script}; do sleep 0.2; done']
    else:
        return None
    return subprocess.Popen(argv, **QUIET)


def measure(kind, folder, rate):
    arguments = ['--trace-rate=1', f'--trace-file={folder}/spans'] if kind == 'spans' else []
    daemon = Daemon(folder, *arguments)
    watcher = watch(daemon, kind, folder)
    row = daemon.bench('-R', str(rate), '-n', str(rate * SECONDS), '-C', '4')
    if watcher is not None:
        watcher.terminate()
        watcher.wait(30)
    daemon.end()
    return row


def main():
    kinds = ('alone', 'trace', 'top', 'spans')
    found = {kind: [] for kind in kinds}
    with tempfile.TemporaryDirectory() as folder:
        write_model(Path(folder) / 'models' / 'm')
        daemon = Daemon(folder)
        served = daemon.bench('-c', '32', '-n', '10000')['per_second']
        daemon.end()
        rate = max(int(3 * served), 1)
        print(f'served {served:.0f}/s, offered {rate}/s, {ROUNDS} rounds of {SECONDS} s')
    for _ in range(ROUNDS):
        for kind in kinds:
            with tempfile.TemporaryDirectory() as folder:
                write_model(Path(folder) / 'models' / 'm')
                found[kind].append(measure(kind, folder, rate)['p99_ms'])
    alone = statistics.median(found['alone'])
    print('watched by   p99 ms of each round                      median  change   bound')
    for kind in kinds:
        median = statistics.median(found[kind])
        change = 100 * (median / alone - 1)
        rounds = ' '.join(f'{ms:8.2f}' for ms in found[kind])
        verdict = 'ok' if change <= 5 else 'MISSED'
        print(f'{kind:10} {rounds}  {median:8.2f} {change:+6.1f} %  +5 % {verdict}')


if __name__ == '__main__':
    sys.exit(main())
