#!/usr/bin/env python3
"""test_handover_load.py DAEMON SOURCE_ROOT [--rounds N] [--clients N] [--systemd] [--all] - clients
with regions and sessions ask all the time while the daemon is restarted and killed: no connection
is lost, and each request gets exactly one answer. Prints how long clients had to wait. With
--systemd, the unit inferd.service of the running systemd is restarted instead. --all prints every
wait."""
import argparse
import os
import select
import signal
import struct
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

parser = argparse.ArgumentParser()
parser.add_argument('daemon')
parser.add_argument('root')
parser.add_argument('--rounds', type=int, default=5)
parser.add_argument('--clients', type=int, default=50)
parser.add_argument('--systemd', action='store_true')
parser.add_argument('--all', action='store_true')
options = parser.parse_args()
sys.path[:0] = [str(Path(__file__).parent), str(Path(options.root) / 'client/python/inferd')]
sys.dont_write_bytecode = True
from _proto import decode
from manager import Manager
from models import write_state_model, write_sum
from raw_client import ERROR_FLAG, INFER, SESSION_OPEN, STATUS, TYPES, Raw

NOT_BEGUN, OUTCOME_UNKNOWN, SESSION_LOST = 49, 50, 31
ONES = struct.pack('<4f', 1, 1, 1, 1)
SUM = {'name': 'a_input', 'datatype': 'FP32', 'shape': [1, 4]}
PAIR = {'output': 'a', 'input': 'a_input', 'shape': [1, 4], 'shaped': True}
WAIT_S = 60  # no answer takes longer, however loaded the machine is


class Worker(threading.Thread):
    """One client. It has up to `depth` requests in flight: inline, in a region, of a session."""

    def __init__(self, path, number):
        super().__init__(daemon=True)
        self.client = Raw(path, timeout=WAIT_S)
        self.depth = 1 + number % 3
        self.memory = self.client.register(1, 8192)
        self.memory[:16] = ONES
        self.open_session()
        self.counts = {'ok': 0, 'not_begun': 0, 'unknown': 0, 'session_lost': 0}
        self.gaps = []  # (end of the wait, its length), of the longest waits
        self.turn, self.end, self.failure = number, False, None
        self.sent = {}
        self.start()

    def open_session(self):
        frame = self.client.call(
            'SessionOpenRequest', {'session_id': 3, 'states': [PAIR]}, method=SESSION_OPEN
        )
        assert not frame.flags & ERROR_FLAG, frame.status()

    def ask(self):
        self.turn += 1
        kind = ('inline', 'region', 'session')[self.turn % 3]
        message = {'model_name': 'm', 'inputs': [SUM]}
        if kind == 'region':
            message['inputs'] = [{**SUM, 'location': {'region_id': 1, 'length': 16}}]
            output = {'name': 'a', 'location': {'region_id': 1, 'offset': 4096, 'length': 12}}
            message['outputs'] = [output]
        elif kind == 'session':
            # Each request sends the state again, so that a lost session has a clear begin.
            message = {'model_name': 's', 'inputs': [SUM], 'session_id': 3}
            message['outputs'] = [{'name': 'a'}]
        stream = self.client.request(
            'ModelInferRequest', message, b'' if kind == 'region' else ONES, INFER, kind
        )
        self.sent[stream] = time.monotonic()

    def check(self, frame):
        now = time.monotonic()
        waited = now - self.sent.pop(frame.stream)
        if waited > 0.02:
            self.gaps.append((now, waited))
        if frame.flags & ERROR_FLAG:
            status = frame.status()
            name = {NOT_BEGUN: 'not_begun', OUTCOME_UNKNOWN: 'unknown',
                    SESSION_LOST: 'session_lost'}.get(status['reason'])
            assert name is not None, status
            self.counts[name] += 1
            if name == 'session_lost':
                self.lost = True
            return
        if frame.wanted == 'inline':
            assert struct.unpack('<3f', frame.data) == (12.0,) * 3, frame.data
        elif frame.wanted == 'region':
            assert struct.unpack('<3f', self.memory[4096:4108]) == (12.0,) * 3
        else:
            assert struct.unpack('<4f', frame.data) == (2.0,) * 4, frame.data
        self.counts['ok'] += 1

    def drain(self, left):
        while len(self.client.open) > left:
            frame = self.client.next()
            assert frame.type == TYPES['RESPONSE'], frame.type
            self.check(frame)

    def reopen(self):
        """Opens the session again, as a client must that was told that it is lost."""
        self.drain(0)
        while True:
            frame = self.client.call(
                'SessionOpenRequest', {'session_id': 3, 'states': [PAIR]}, method=SESSION_OPEN
            )
            # The process may have ended before or after it opened the session: 18 is EXISTS.
            if not frame.flags & ERROR_FLAG or frame.status()['reason'] == 18:
                break
            assert frame.status()['reason'] in (NOT_BEGUN, OUTCOME_UNKNOWN), frame.status()
        self.lost = False

    def run(self):
        self.lost = False
        try:
            while not self.end:
                while len(self.client.open) < self.depth:
                    self.ask()
                self.drain(self.depth - 1)
                if self.lost:
                    self.reopen()
            self.drain(0)
            # Nothing may follow the last answer.
            ready, _, _ = select.select([self.client.socket], [], [], 0.2)
            assert not ready and not self.client.buffer, 'there are frames behind the last answer'
        except BaseException as error:
            self.failure = error


class Systemd:
    """The service of a running systemd."""

    data, admin = '/run/inferd/inferd.sock', '/run/inferd/admin.sock'

    def __init__(self, models):
        write_models(models)
        units = ('inferd.socket', 'inferd-admin.socket', 'inferd.service')
        subprocess.run(['systemctl', 'start', *units], check=True)
        end = time.monotonic() + WAIT_S
        for model in ('m', 's'):
            client = Raw(self.data)
            message = {'model_name': model, 'inputs': [SUM]}
            while client.call('ModelInferRequest', message, ONES).flags & ERROR_FLAG:
                assert time.monotonic() < end, 'the models are not loaded'
                time.sleep(0.05)
            client.close()

    def pid(self):
        shown = subprocess.run(
            ['systemctl', 'show', '-P', 'MainPID', 'inferd.service'], capture_output=True, text=True
        )
        return int(shown.stdout)

    def restart(self, number):
        before = self.pid()
        if number == signal.SIGTERM:
            subprocess.run(['systemctl', 'restart', 'inferd.service'], check=True)
            return
        os.kill(before, signal.SIGKILL)
        end = time.monotonic() + 30
        while self.pid() in (0, before):
            assert time.monotonic() < end, 'the service does not come back'
            time.sleep(0.01)


def write_models(folder):
    write_sum(folder / 'm')
    write_state_model(folder / 's')


def percentile(values, share):
    values = sorted(values)
    return values[min(len(values) - 1, int(len(values) * share))] if values else 0.0


def run_rounds(manager, workers, number, rounds):
    """Ends the daemon `rounds` times. Returns the longest wait of a client for each of them."""
    waits = []
    for _ in range(rounds):
        begin = time.monotonic()
        manager.restart(number)
        time.sleep(0.2)
        end = time.monotonic()
        for worker in workers:
            assert worker.failure is None, worker.failure
        # A request that still waits counts as far as it has come.
        open_since = [min(w.sent.copy().values(), default=end) for w in workers]
        longest = [end - min(open_since)]
        longest += [wait for w in workers for at, wait in w.gaps.copy() if at > begin]
        waits.append(max(longest))
    return waits


def check_books(path):
    client = Raw(path)
    status = decode('ServerStatusResponse', client.call('Empty', {}, method=STATUS).meta)
    client.close()
    answered = status['requests_ok'] + status['requests_failed']
    assert status['requests_in_flight'] == 1, status
    assert status['requests_accepted'] == answered + 1, status


def main():
    with tempfile.TemporaryDirectory(prefix='inferd-handover-') as folder:
        if options.systemd:
            manager = Systemd(Path('/var/lib/inferd/models'))
        else:
            models = Path(folder) / 'models'
            write_models(models)
            manager = Manager(
                folder,
                [os.path.abspath(options.daemon), f'--repository={models}', '--watch=never',
                 f'--cache-dir={folder}', '--backends=cpu,ref', '--race=never'],
            )
            manager.start()
            manager.wait_for_models()
        workers = [Worker(manager.data, i) for i in range(options.clients)]
        if not options.systemd:
            manager.wait_for_names('inferd-c-', options.clients)
            manager.wait_for_names('inferd-r-', options.clients)
        time.sleep(0.5)
        for name, number in (('restart', signal.SIGTERM), ('kill -9', signal.SIGKILL)):
            waits = run_rounds(manager, workers, number, options.rounds)
            print(
                f'{name}: {len(waits)} times, wait p50 {percentile(waits, 0.5) * 1000:.0f} ms, '
                f'p99 {percentile(waits, 0.99) * 1000:.0f} ms'
            )
            if options.all:
                print('  waits, ms:', *(round(wait * 1000) for wait in waits))
            counts = {k: sum(w.counts[k] for w in workers) for k in workers[0].counts}
            print('  so far', counts, flush=True)
            # A restart is a pause and no error.
            assert number != signal.SIGTERM or sum(counts.values()) == counts['ok'], counts
        for worker in workers:
            worker.end = True
        for worker in workers:
            worker.join()
            if worker.failure is not None:
                raise worker.failure
        check_books(manager.admin)
        counts = {k: sum(w.counts[k] for w in workers) for k in workers[0].counts}
        print(f'{len(workers)} clients, none lost; answers: {counts}')
        assert all(w.counts['ok'] > 0 for w in workers)
        if not options.systemd:
            assert manager.end() == 0
            manager.close()


main()
