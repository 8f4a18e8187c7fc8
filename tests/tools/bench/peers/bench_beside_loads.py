#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""bench_beside_loads.py BUILD SOURCE_ROOT [--rounds N] [--seconds S] [--rate N] [--plans]

The latency of requests for one model while others are loaded: by turns, S seconds without loads and
S seconds in which ResNet-50 is loaded again and again, from its file or, with --plans, from its
plan. Prints the 50th and 99th percentile of both, and how many loads there were. Needs numpy.
"""
import argparse
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

parser = argparse.ArgumentParser()
parser.add_argument('build')
parser.add_argument('root')
parser.add_argument('--rounds', type=int, default=5)
parser.add_argument('--seconds', type=float, default=4)
parser.add_argument('--rate', type=float, default=60)
parser.add_argument('--plans', action='store_true')
options = parser.parse_args()
root = Path(options.root).resolve()
sys.path.insert(0, str(root / 'client/python'))
import inferd
import numpy


def generate(folder, name, *command):
    (folder / name).mkdir(parents=True)
    generator = [sys.executable, root / 'tests/tools/gen' / command[0], *command[1:]]
    subprocess.run([*generator, folder / name / 'model.onnx'], check=True)


class Loads(threading.Thread):
    """Unloads and loads a model until it is stopped."""

    def __init__(self, path):
        super().__init__(daemon=True)
        self.path, self.end, self.count = path, False, 0
        self.start()

    def run(self):
        with inferd.Client(self.path) as admin:
            while not self.end:
                admin.load('resnet')
                admin.unload('resnet')
                self.count += 1


def ask(client, picture):
    """Sends requests at an even rate, and returns their latencies from the time at which each was
    to be sent."""
    begin, waits = time.monotonic(), []
    for i in range(int(options.seconds * options.rate)):
        due = begin + i / options.rate
        time.sleep(max(0.0, due - time.monotonic()))
        client.infer('mobilenet', {'x': picture})
        waits.append((time.monotonic() - due) * 1000)
    return waits


def main():
    with tempfile.TemporaryDirectory(prefix='inferd-beside-') as temporary:
        folder = Path(temporary)
        generate(folder / 'models', 'mobilenet', 'gen_mobilenet_v2.py', '--float')
        generate(folder / 'models', 'resnet', 'gen_resnet50.py')
        (folder / 'run').mkdir()
        (folder / 'cache').mkdir()
        command = [f'{options.build}/daemon/inferd', f'--runtime-dir={folder}/run', '--watch=never',
                   f'--repository={folder}/models', f'--cache-dir={folder}/cache',
                   '--backends=cpu', '--race=never']
        if not options.plans:
            command.append('--plan-bytes-max=0')
        process = subprocess.Popen(command, stderr=open(folder / 'log', 'w'))
        try:
            while (folder / 'log').read_text().count('model loaded') < 2:
                time.sleep(0.1)
            picture = numpy.zeros((1, 3, 224, 224), numpy.float32)
            quiet, beside, loads = [], [], 0
            with inferd.Client(f'{folder}/run/inferd.sock') as client:
                ask(client, picture)
                for _ in range(options.rounds):
                    quiet.append(ask(client, picture))
                    loader = Loads(f'{folder}/run/admin.sock')
                    beside.append(ask(client, picture))
                    loader.end = True
                    loader.join()
                    loads += loader.count
        finally:
            process.terminate()
            process.wait()
        for name, rounds in (('without loads', quiet), (f'beside {loads} loads', beside)):
            waits = sorted(wait for one in rounds for wait in one)
            p99 = [sorted(one)[int(len(one) * 0.99)] for one in rounds]
            print(f'{name}: p50 {statistics.median(waits):.2f} ms, '
                  f'p99 {waits[int(len(waits) * 0.99)]:.2f} ms; in each round',
                  *(f'{value:.2f}' for value in p99))


main()
