#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""bench_steps.py BUILD [--seconds S] [--history N] [--sessions N,...] [--threads N] MODEL.onnx... -
decoding with several sessions at once: tokens a second of all together.

Two daemons take turns: one runs steps of several sessions together, the other one does not
(--batch-rows-max=1). Each client has a process of its own and a session with another length, near N
rows (default 64), and sends steps of one token; the logits are not read. Printed: tokens a second
without and with joined steps, their ratio, and the steps of a run. The line before the figures of a
model says what the daemon measured about joined steps while it was idle."""
import argparse
import json
import multiprocessing
import os
import subprocess
import sys
import time

ROOT = os.path.abspath(os.path.dirname(__file__) + '/../../../..')
sys.path[:0] = [ROOT + '/client/python', ROOT + '/tests/daemon']
sys.dont_write_bytecode = True
import numpy
import inferd
from bare_daemon import BareDaemon

ROUNDS = 2


def step_inputs(names, length, count):
    """The inputs of the models of gen_transformers.py: `count` tokens behind `length` others."""
    given = {
        'input_ids': numpy.full((1, count), 7, numpy.int64),
        'attention_mask': numpy.ones((1, length + count), numpy.int64),
        'position_ids': numpy.arange(length, length + count, dtype=numpy.int64)[None],
        'seqlens_k': numpy.array([length + count - 1], numpy.int32),
        'total_sequence_length': numpy.array(length + count, numpy.int32),
    }
    return {name: value for name, value in given.items() if name in names}


def decode(socket, length, barrier, seconds, results):
    """Sends steps for some seconds, and puts their number."""
    with inferd.Client(socket) as client:
        names = {tensor['name'] for tensor in client.metadata('model')['inputs']}
        session = client.session(model='model')
        session.infer('model', step_inputs(names, 0, length), ['logits'])
        for phase in range(2):  # the first one compiles
            barrier.wait(60)
            end, steps = time.monotonic() + (seconds if phase else 1.5), 0
            while time.monotonic() < end:
                session.infer('model', step_inputs(names, length, 1), ['logits'])
                length += 1
                steps += 1
        results.put(steps)


def measure(daemon, sessions, arguments):
    barrier, results = multiprocessing.Barrier(sessions), multiprocessing.Queue()
    clients = [
        multiprocessing.Process(
            daemon=True,
            target=decode,
            args=(daemon.socket, arguments.history + 3 * i, barrier, arguments.seconds, results),
        )
        for i in range(sessions)
    ]
    before = daemon.count_batch_rows()
    for process in clients:
        process.start()
    steps = sum(results.get(timeout=30 + arguments.seconds) for _ in clients)
    for process in clients:
        process.join()
    rows, count = (now - old for now, old in zip(daemon.count_batch_rows(), before))
    return steps / arguments.seconds, rows / max(count, 1)


def wait_until_idle(daemon):
    """Waits until the races of kernels and the trial of joined steps are over, at most a minute.
    They are over when the daemon uses less than 2 % of a processor for a second."""
    for _ in range(60):
        before_ns = daemon.processor_ns()
        time.sleep(1)
        if daemon.processor_ns() - before_ns < 2e7:
            return


def explain(daemon, build):
    """Returns what `inferctl explain` says about joined steps of the model."""
    command = [build + '/client/inferctl/inferctl', '--socket', daemon.socket, '-o', 'json',
               'explain', 'model']
    return json.loads(subprocess.check_output(command))['joined_steps']


def compare(daemons, arguments):
    for path in arguments.models:
        for daemon in daemons:
            daemon.load('model', os.path.abspath(path))
        for daemon in daemons:
            wait_until_idle(daemon)
        found = explain(daemons[1], arguments.build)
        print(f'{os.path.basename(path)[:-5]}: {found}', flush=True)
        for sessions in map(int, arguments.sessions.split(',')):
            best, joined = [0, 0], 0
            for _ in range(ROUNDS):
                for i, daemon in enumerate(daemons):
                    rate, rows = measure(daemon, sessions, arguments)
                    best[i] = max(best[i], rate)
                    joined = rows if i else joined
            print(
                f'{os.path.basename(path)[:-5]:28} {sessions} sessions: {best[0]:7.1f} '
                f'{best[1]:7.1f} tokens/s, {best[1] / best[0]:.2f}, {joined:.1f} steps in a run',
                flush=True,
            )


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('build')
    parser.add_argument('--seconds', type=float, default=3)
    parser.add_argument('--history', type=int, default=64)
    parser.add_argument('--sessions', default='1,2,4,8')
    parser.add_argument('--threads', type=int, default=1)
    parser.add_argument('models', nargs='+')
    arguments = parser.parse_args()
    options = ['--cpu-slots=1', f'--cpu-threads={arguments.threads}']
    daemons = [
        BareDaemon(arguments.build + '/daemon/inferd', *options, extra)
        for extra in ('--batch-rows-max=1', '--batch-rows-max=32')
    ]
    try:
        compare(daemons, arguments)
    finally:
        for daemon in daemons:
            daemon.end()


if __name__ == '__main__':
    main()
