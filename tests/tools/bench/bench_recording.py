#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""bench_recording.py BUILD [ROUNDS] - what counting requests for the metrics costs: null requests
to inferd and to inferd-uncounted of a build directory, in turns. A second inferd shows how much two
equal daemons differ. Prints requests per second and processor time of the daemon for each request,
as medians of all rounds, and as ratios of the rounds."""
import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

BUILD = Path(sys.argv[1])
ROUNDS = int(sys.argv[2]) if len(sys.argv) > 2 else 15
DAEMONS = {
    'counted': BUILD / 'daemon/inferd',
    'counted again': BUILD / 'daemon/inferd',
    'not counted': BUILD / 'tests/tools/inferd-uncounted',
}
RUNS, STREAMS = 20000, 32
# Each daemon runs on one processor and the load generator on another: where the scheduler puts
# them changes the rate by half, which is far more than what is measured.
DAEMON_CPU, LOAD_CPU = '0', '1'
NODES = [
    {
        'name': 'x',
        'op': 'Placeholder',
        'attr': {'dtype': {'type': 'DT_FLOAT'}, 'shape': {'shape': {'dim': [{'size': '4'}]}}},
    },
    {'name': 'y', 'op': 'Neg', 'input': ['x'], 'attr': {'T': {'type': 'DT_FLOAT'}}},
]


class Daemon:
    def __init__(self, program, folder):
        self.socket = f'{folder}/inferd.sock'
        model = Path(folder, 'models', 'null', '1')
        model.mkdir(parents=True)
        text = {'format': 'graph-model', 'modelTopology': {'node': NODES}, 'weightsManifest': []}
        (model / 'model.json').write_text(json.dumps(text))
        self.process = subprocess.Popen(
            ['taskset', '-c', DAEMON_CPU, program, f'--runtime-dir={folder}']
            + [f'--repository={folder}/models', '--backends=ref', '--slow-ms=0'],
            stderr=subprocess.DEVNULL,
        )
        while not Path(self.socket).exists():
            time.sleep(0.02)
        self.ctl('wait', 'null')

    def ctl(self, verb, *arguments):
        command = ['taskset', '-c', LOAD_CPU]
        command += [BUILD / 'client/inferctl/inferctl', verb, '--socket', self.socket, *arguments]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout

    def read_cpu_s(self):
        """Processor time of all threads."""
        tasks = Path(f'/proc/{self.process.pid}/task').iterdir()
        return sum(int((task / 'schedstat').read_text().split()[0]) for task in tasks) / 1e9

    def measure(self):
        """Requests per second, and microseconds of processor time for each."""
        before_s, start_s = self.read_cpu_s(), time.monotonic()
        self.ctl('bench', '-n', str(RUNS), '-c', str(STREAMS), 'null')
        took_s = time.monotonic() - start_s
        return RUNS / took_s, (self.read_cpu_s() - before_s) / RUNS * 1e6

    def end(self):
        self.process.terminate()
        self.process.wait()


def main():
    with tempfile.TemporaryDirectory() as folder:
        daemons = {}
        for name, program in DAEMONS.items():
            place = Path(folder, name.replace(' ', '-'))
            place.mkdir()
            daemons[name] = Daemon(program, place)
        figures = {name: [] for name in daemons}
        try:
            for daemon in daemons.values():
                daemon.measure()
            for number in range(ROUNDS):
                order = list(daemons)
                for name in order[number % 3 :] + order[: number % 3]:
                    figures[name].append(daemons[name].measure())
        finally:
            for daemon in daemons.values():
                daemon.end()
    base = figures['counted']
    for name, rounds in figures.items():
        rate, cpu = (statistics.median(row[i] for row in rounds) for i in (0, 1))
        ratios = [
            statistics.median(row[i] / one[i] for row, one in zip(rounds, base)) for i in (0, 1)
        ]
        print(
            f'{name:14} {rate:8.0f} requests/s ({ratios[0]:.3f})  '
            f'{cpu:6.2f} us of processor time ({ratios[1]:.3f})'
        )


main()
