#!/usr/bin/env python3
"""bench_place.py DAEMON INFERCTL MODELS [--model NAME]... [--runs N] [--check] - where automatic choice puts each model
of a folder, and what that costs beside the best that could be named.

For each model: a first start (served at once, races when nothing is served), a second one (the decision is there
already), and then, in turns, rounds of the model's own placement and of every candidate pinned by inferctl place. With
--check it fails where automatic choice takes more than 1.05 times the best. A program to read, not a test."""
import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROUNDS = 5
RATIO_MAX = 1.05

parser = argparse.ArgumentParser()
parser.add_argument('daemon')
parser.add_argument('inferctl')
parser.add_argument('models', type=Path)
parser.add_argument('--model', action='append')
parser.add_argument('--runs', type=int, default=40)
parser.add_argument('--check', action='store_true')
options = parser.parse_args()


class Daemon:
    """A daemon of our own, with a cache directory that outlives it."""

    def __init__(self, folder):
        self.folder = Path(folder)
        self.socket = self.folder / 'admin.sock'
        self.process = subprocess.Popen([options.daemon, f'--runtime-dir={folder}', f'--cache-dir={folder}/cache',
                                         f'--repository={folder}/models', '--log-level=warning'])
        while self.process.poll() is None and not self.socket.exists():
            time.sleep(0.01)

    def ask(self, *arguments):
        done = subprocess.run([options.inferctl, '--socket', self.socket, *arguments, '--json'],
                              capture_output=True, text=True)
        if done.returncode != 0:
            raise RuntimeError(done.stderr.strip())
        return json.loads(done.stdout)

    def stop(self):
        self.process.terminate()
        self.process.wait()


def find_models():
    for folder in sorted(options.models.iterdir()):
        if options.model and folder.name not in options.model:
            continue
        files = [path for pattern in ('model.json', '*.onnx', '*.tflite') for path in sorted(folder.rglob(pattern))]
        if files:
            yield folder.name, files[0]


def median_ms(daemon, model):
    rows = daemon.ask('bench', model, '-n', str(options.runs))
    return (rows[0] if isinstance(rows, list) else rows)['median_ms']


def wait_for_race(daemon, model):
    """What explain says once a decision was measured, and how long that took; at most 120 s."""
    begin = time.monotonic()
    while True:
        told = daemon.ask('explain', model)
        if told['source'] != 'rule' or time.monotonic() - begin > 120:
            return told, time.monotonic() - begin
        time.sleep(0.2)


def modes_of(told):
    """What can be named: a device, and a precision where it raced."""
    return sorted({(row['device'], row['precision']) for row in told['candidates']
                   if row['verdict'] in ('chosen', 'slower')})


def measure(name, path):
    with tempfile.TemporaryDirectory(prefix='bench-place-') as folder:
        Path(folder, 'cache').mkdir()
        Path(folder, 'models').mkdir()
        daemon = Daemon(folder)
        try:
            daemon.ask('load', name, str(path))
            first, race_s = wait_for_race(daemon, name)
        finally:
            daemon.stop()
        daemon = Daemon(folder)
        try:
            daemon.ask('load', name, str(path))
            second = daemon.ask('explain', name)
            modes = modes_of(second)
            times = {mode: [] for mode in [None] + modes}
            for _ in range(ROUNDS):
                for mode in times:
                    device, precision = mode if mode else ('auto', 'auto')
                    daemon.ask('place', name, device, '--precision', precision)
                    times[mode].append(median_ms(daemon, name))
        finally:
            daemon.stop()
    best = min(modes, key=lambda mode: statistics.median(times[mode]), default=None)
    auto = statistics.median(times[None])
    ratio = auto / statistics.median(times[best]) if best else 1
    print(f"{name:32} {second['device']:8} {second['precision']:5} {second['source']:7} {race_s:6.1f} "
          f"{auto:9.3f} {best[0] + ' ' + best[1] if best else '-':14} "
          f"{statistics.median(times[best]) if best else auto:9.3f} {ratio:6.3f}", flush=True)
    return ratio


print(f"{'model':32} {'auto on':8} {'in':5} {'by':7} {'race s':>6} {'auto ms':>9} {'best pinned':14} {'ms':>9} {'ratio':>6}")
worst = 0
for model, file in find_models():
    try:
        worst = max(worst, measure(model, file))
    except (RuntimeError, KeyError) as error:
        print(f'{model:32} {error}', flush=True)
print(f'worst ratio {worst:.3f}, wanted at most {RATIO_MAX}')
sys.exit(options.check and worst > RATIO_MAX)
