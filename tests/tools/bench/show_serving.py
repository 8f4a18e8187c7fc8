#!/usr/bin/env python3
"""show_serving.py DAEMON SOURCE_ROOT [--connections N] - what holding clients, deadlines, cancels
and idling cost.

Starts a daemon of its own and prints a line for each figure. A program to read, not a test: on a
machine that is busy otherwise only the ratios within one run mean anything."""
import argparse
import json
import multiprocessing
import resource
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

parser = argparse.ArgumentParser()
parser.add_argument('daemon')
parser.add_argument('root', type=Path)
parser.add_argument('--connections', type=int, default=10000)
options = parser.parse_args()
sys.path.insert(0, str(options.root / 'client/python'))
sys.dont_write_bytecode = True
import numpy
import inferd

SIZE = 256
FLOAT = {'type': 'DT_FLOAT'}


def write_models(folder):
    """slow: a chain of products, some 200 ms on plain loops; null: next to nothing."""

    def placeholder(*dims):
        return {
            'name': 'x',
            'op': 'Placeholder',
            'attr': {
                'dtype': FLOAT,
                'shape': {'shape': {'dim': [{'size': str(size)} for size in dims]}},
            },
        }

    chain = [
        {
            'name': f's{i + 1}',
            'op': 'MatMul',
            'input': [f's{i}' if i else 'x', 'x'],
            'attr': {'T': FLOAT},
        }
        for i in range(20)
    ]
    null = [{'name': 'y', 'op': 'Neg', 'input': ['x'], 'attr': {'T': FLOAT}}]
    for name, nodes in (
        ('slow', [placeholder(SIZE, SIZE)] + chain),
        ('null', [placeholder(4)] + null),
    ):
        path = Path(folder) / name / '1'
        path.mkdir(parents=True)
        (path / 'model.json').write_text(
            json.dumps(
                {'format': 'graph-model', 'modelTopology': {'node': nodes}, 'weightsManifest': []}
            )
        )


def quantile(values, part):
    values = sorted(values)
    return values[min(int(len(values) * part), len(values) - 1)]


def show(name, text):
    print(f'{name:44} {text}', flush=True)


class Daemon:
    def __init__(self, folder, *arguments):
        self.socket = folder + '/inferd.sock'
        self.process = subprocess.Popen(
            [options.daemon, '--runtime-dir=' + folder, *arguments], stderr=subprocess.DEVNULL
        )
        while True:
            try:
                with inferd.Client(self.socket) as client:
                    if all(model['state'] == 'READY' for model in client.models()) and (
                        '--load-all=no' in arguments or len(client.models()) == 2
                    ):
                        return
            except inferd.Error:
                assert self.process.poll() is None, 'the daemon has ended'
            time.sleep(0.02)

    def status(self, key):
        for line in Path(f'/proc/{self.process.pid}/status').read_text().splitlines():
            if line.startswith(key + ':'):
                return int(line.split()[1])

    def all_switches(self):
        """Voluntary context switches of all threads: how often one of them had been asleep."""
        total = 0
        for task in Path(f'/proc/{self.process.pid}/task').iterdir():
            for line in (task / 'status').read_text().splitlines():
                if line.startswith('voluntary_ctxt_switches'):
                    total += int(line.split()[1])
        return total

    def stop(self):
        self.process.terminate()
        self.process.wait(60)


def idle(folder):
    daemon = Daemon(folder, '--load-all=no')
    show('resident, devices found, no model', f"{daemon.status('VmRSS') / 1024:.1f} MiB")
    time.sleep(1)
    before = daemon.all_switches()
    time.sleep(10)
    show('wake-ups in 10 s of idling, all threads', daemon.all_switches() - before)
    daemon.stop()


def connections(folder):
    count = options.connections
    resource.setrlimit(
        resource.RLIMIT_NOFILE,
        (
            min(count + 200, resource.getrlimit(resource.RLIMIT_NOFILE)[1]),
            resource.getrlimit(resource.RLIMIT_NOFILE)[1],
        ),
    )
    daemon = Daemon(
        folder,
        '--load-all=no',
        f'--connections-max={count + 10}',
        f'--connections-per-uid-max={count + 10}',
    )
    hello = (
        bytes.fromhex('06000000 00000000 0000000000000000 01 00 0000 0000 0000'.replace(' ', ''))
        + b'\x08\x01\x1a\x02py'
    )
    held = []
    before = daemon.status('VmRSS')
    begin = time.monotonic()
    for number in range(1, count + 1):
        one = socket.socket(socket.AF_UNIX)
        one.connect(daemon.socket)
        one.sendall(hello)
        assert one.recv(4096)[16] == 2, 'no HELLO_ACK'
        held.append(one)
        if number == 1000:
            grown = daemon.status('VmRSS') - before
            show('1,000 greeted connections, resident each', f'{grown * 1024 / 1000:.0f} bytes')
    seconds = time.monotonic() - begin
    grown = daemon.status('VmRSS') - before
    show(f'{count:,} greeted and held', f'{grown * 1024 / count:.0f} bytes each, {seconds:.1f} s')
    with inferd.Client(daemon.socket) as client:
        begin = time.monotonic()
        for _ in range(1000):
            client.ready()
        show('a question meanwhile, mean of 1,000', f'{(time.monotonic() - begin) * 1e3:.0f} us')
    for one in held:
        one.close()
    daemon.stop()


def lateness(folder):
    write_models(folder + '/models')
    daemon = Daemon(folder, '--repository=' + folder + '/models', '--backends=ref', '--race=never')
    x = numpy.zeros((SIZE, SIZE), numpy.float32)

    def keep_busy():
        with inferd.Client(daemon.socket) as client:
            pending = []
            while True:
                pending = [one for one in pending if not one.done]
                while len(pending) < 4:
                    pending.append(client.submit('slow', {'x': x}))
                time.sleep(0.01)

    busy = multiprocessing.Process(
        target=keep_busy
    )  # not a thread, which would hold the interpreter's lock
    busy.start()
    time.sleep(1)
    late, cancelled, slept = [], [], []
    with inferd.Client(daemon.socket) as client:
        mine = client.empty((SIZE, SIZE))  # nothing is copied, nor registered again
        for number in range(200):
            timeout = 0.010 + number % 7 * 0.001
            begin = time.monotonic()
            time.sleep(timeout)
            slept.append(time.monotonic() - begin - timeout)
            begin = time.monotonic()
            try:
                # A priority that waits, so that the answer is the deadline's and not the model's.
                client.infer('slow', {'x': mine}, timeout=timeout, priority='low')
            except inferd.Error as error:
                if error.reason == 'IN_QUEUE':
                    late.append(time.monotonic() - begin - timeout)
            one = client.submit('slow', {'x': mine}, priority='low')
            time.sleep(0.002)
            begin = time.monotonic()
            one.cancel()
            try:
                one.result()
            except inferd.Error:
                cancelled.append(time.monotonic() - begin)
    busy.terminate()
    busy.join()
    show(
        'a bare sleep of as long, late by',
        f'p50 {quantile(slept, .5) * 1e6:.0f} us, p99 {quantile(slept, .99) * 1e6:.0f} us',
    )
    if late:
        show(
            'deadlines in the queue, answer late by',
            f'p50 {quantile(late, .5) * 1e6:.0f} us, p99 {quantile(late, .99) * 1e6:.0f} us, '
            f'worst {max(late) * 1e6:.0f} us of {len(late)}',
        )
    show(
        'cancelled requests, answered after',
        f'p50 {quantile(cancelled, .5) * 1e6:.0f} us, p99 '
        f'{quantile(cancelled, .99) * 1e6:.0f} us, worst {max(cancelled) * 1e6:.0f} us '
        f'of {len(cancelled)}',
    )
    daemon.stop()


for part in (idle, connections, lateness):
    with tempfile.TemporaryDirectory() as folder:
        part(folder)
