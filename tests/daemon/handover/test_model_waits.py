#!/usr/bin/env python3
"""test_model_waits.py DAEMON SOURCE_ROOT [TEST...] - requests for a model that is being loaded wait
for it in the daemon, and each gets exactly one answer."""
import os
import signal
import struct
import time

from handover_case import ERROR_FLAG, NOT_BEGUN, ONES, HandoverCase, ask, decode, main
from models import write_chain, write_check
from raw_client import FINAL, SESSION_OPEN, TYPES

CANCELLED, DEADLINE, NOT_FOUND, PRECONDITION, UNAVAILABLE = 1, 4, 5, 9, 14
LOADING, MODEL_NOT_FOUND, MODEL_FAILED, BY_CLIENT = 12, 13, 28, 43
METADATA, LOAD, UNLOAD, REQUEST_LIST = 5, 17, 18, 70
CHAIN = 0.00576  # each output of write_chain() for ones
# Most requests of one client that wait (daemon/policy/model_waits.h).
PER_CLIENT = 128
# Rows of a check that take the reference device about a second, and that no test waits for.
SECOND, LONG = 256, 256 * 60


class ModelWaitsCase(HandoverCase):
    def start_slow(self, rows, value=CHAIN, *arguments):
        """Starts a daemon that loads the model `a`, with a check of so many rows, and then `m`."""
        write_chain(self.models / 'a')
        write_check(self.models / 'a', rows, value)
        self.start(*arguments, wait=False)
        return self.connect()

    def request(self, client, model='a', data=ONES, **fields):
        return client.request('ModelInferRequest', ask(model=model, **fields), data)

    def next_reply(self, client):
        frame = client.next()
        while frame.type == TYPES['DATA']:
            frame = client.next()
        self.assertEqual((frame.type, frame.flags & FINAL), (TYPES['RESPONSE'], FINAL))
        return frame

    def check_reply(self, client, stream, value=CHAIN):
        frame = self.next_reply(client)
        self.assertEqual(frame.stream, stream)
        self.assertFalse(frame.flags & ERROR_FLAG, frame.flags & ERROR_FLAG and frame.status())
        for element in struct.unpack('<3f', frame.data):
            self.assertAlmostEqual(element, value, places=5)

    def wait_until_waiting(self, count):
        """Returns when so many requests wait for a model."""
        client = self.connect(self.manager.admin)
        end = time.monotonic() + 20
        while True:
            frame = client.call('Empty', {}, method=REQUEST_LIST)
            rows = decode('RequestListResponse', frame.meta).get('requests', [])
            rows = [row for row in rows if row.get('phase') == 'load']
            if len(rows) == count:
                break
            self.assertLess(time.monotonic(), end, f'{len(rows)} wait, wanted {count}')
            time.sleep(0.005)
        client.close()
        return rows

    def test_all_questions_are_answered_when_the_model_is_loaded(self):
        client = self.start_slow(rows=SECOND)
        memory = client.register(1, 8192)
        memory[:16] = ONES
        first = self.request(client)
        about = client.request('ModelMetadataRequest', {'name': 'a'}, method=METADATA)
        placed = {'name': 'a_input', 'datatype': 'FP32', 'shape': [1, 4],
                  'location': {'region_id': 1, 'length': 16}}
        second = client.request('ModelInferRequest', {'model_name': 'a', 'inputs': [placed]})
        rows = self.wait_until_waiting(3)
        self.assertEqual({row['model'] for row in rows}, {'a'})
        # A request for `m` waits too, for the load of `m` behind that of `a`, or for the scan.
        third = self.request(client, 'm')
        frames = {frame.stream: frame for frame in (self.next_reply(client) for _ in range(4))}
        self.assertEqual(set(frames), {first, about, second, third})
        for stream, frame in frames.items():
            self.assertFalse(frame.flags & ERROR_FLAG, stream)
        self.assertEqual(decode('ModelMetadataResponse', frames[about].meta)['name'], 'a')
        self.assertEqual(struct.unpack('<3f', frames[third].data), (12.0,) * 3)
        for stream in (first, second):
            for element in struct.unpack('<3f', frames[stream].data):
                self.assertAlmostEqual(element, CHAIN, places=5)
        self.check_books()

    def test_a_waiting_request_keeps_its_charge_and_its_age(self):
        client = self.start_slow(SECOND, CHAIN, '--request-bytes-per-uid-max=1M')
        rows = 40000  # more than half of what the user may have in flight
        for wait in (True, False):
            self.request(client, 'm', ONES * rows, rows=rows)
            if wait:
                self.wait_until_waiting(1)
            begin = time.monotonic()
            frame = self.next_reply(client)
            waited_ns = (time.monotonic() - begin) * 1e9
            self.assertFalse(frame.flags & ERROR_FLAG, frame.flags & ERROR_FLAG and frame.status())
            queue_ns = decode('ModelInferResponse', frame.meta)['timing']['queue_ns']
            if wait:
                self.assertGreater(queue_ns, waited_ns / 4)

    def test_opening_a_session_waits_for_the_model(self):
        client = self.start_slow(rows=SECOND)
        message = {'session_id': 1, 'model_name': 'a'}
        stream = client.request('SessionOpenRequest', message, method=SESSION_OPEN)
        self.wait_until_waiting(1)
        frame = self.next_reply(client)
        # The model has no output that fits an input, which only the loaded model tells.
        self.assertEqual((frame.stream, frame.status()['code']), (stream, PRECONDITION))

    def test_replies_with_one_order_key_keep_their_order(self):
        client = self.start_slow(rows=2 * SECOND)
        self.wait_until_loading()
        first = self.request(client, order_key=7)
        self.wait_until_waiting(1)
        second = self.request(client, 'x', order_key=7)  # fails at once
        self.check_reply(client, first)
        frame = self.next_reply(client)
        self.assertEqual((frame.stream, frame.status()['code']), (second, NOT_FOUND))
        self.check_books()

    def wait_until_loading(self):
        """Returns when the repository has been read."""
        end = time.monotonic() + 20
        while ' of 2 models' not in self.manager.status:
            self.assertLess(time.monotonic(), end, self.manager.status)
            time.sleep(0.005)

    def test_a_deadline_ends_the_wait(self):
        client = self.start_slow(rows=LONG)
        soon, late = 300_000_000, 60_000_000_000
        for times in ((soon, 0), (0, soon), (soon, late), (late, soon)):
            begin = time.monotonic()
            self.request(client, **dict(zip(('timeout_ns', 'queue_timeout_ns'), times)))
            frame = self.next_reply(client)
            self.check_failure(frame, LOADING, DEADLINE)
            self.assertEqual(frame.status()['phase'], 'load')
            self.assertGreaterEqual(time.monotonic() - begin, 0.29)
        self.check_books()

    def test_a_failed_load_gives_its_reason(self):
        client = self.start_slow(rows=SECOND, value=7.0)
        self.request(client)
        self.wait_until_waiting(1)
        frame = self.next_reply(client)
        self.check_failure(frame, MODEL_FAILED, PRECONDITION)
        self.assertIn('wanted 7', frame.status()['message'])
        self.check_books()

    def test_a_failed_load_by_path_gives_its_reason(self):
        client = self.start_slow(rows=1)
        write_chain(self.models.parent / 'outside')
        write_check(self.models.parent / 'outside', SECOND, 7.0)
        admin = self.connect(self.manager.admin)
        order = {'model_name': 'b', 'path': str(self.models.parent / 'outside')}
        admin.request('RepositoryModelLoadRequest', order, method=LOAD)
        self.wait_until_waiting(1)
        self.request(client, 'b')
        self.wait_until_waiting(2)
        frame = self.next_reply(client)
        self.check_failure(frame, MODEL_FAILED, UNAVAILABLE)
        self.assertIn('wanted 7', frame.status()['message'])
        # After that, nothing is known about the model.
        self.request(client, 'b')
        self.check_failure(self.next_reply(client), MODEL_NOT_FOUND, NOT_FOUND)
        self.check_books()

    def test_an_unloaded_model_is_gone(self):
        client = self.start_slow(rows=SECOND * 4)
        self.request(client)
        self.wait_until_waiting(1)
        admin = self.connect(self.manager.admin)
        frame = admin.call('RepositoryModelUnloadRequest', {'model_name': 'a'}, method=UNLOAD)
        self.assertEqual(frame.flags, FINAL, frame.flags & ERROR_FLAG and frame.status())
        self.check_failure(self.next_reply(client), MODEL_NOT_FOUND, NOT_FOUND)
        self.check_books()

    def test_clients_that_cancel_or_leave_get_their_credit_back(self):
        client = self.start_slow(rows=LONG)
        stream = self.request(client)
        self.wait_until_waiting(1)
        client.send(TYPES['CANCEL'], stream)
        self.check_failure(self.next_reply(client), BY_CLIENT, CANCELLED)
        other = self.connect()
        for _ in range(20):
            self.request(other)
        self.wait_until_waiting(20)
        other.close()
        self.wait_until_waiting(0)
        self.check_books()

    def test_a_request_beyond_the_limit_of_a_client_is_refused_at_once(self):
        client, other = self.start_slow(rows=LONG), self.connect()
        for _ in range(PER_CLIENT + 3):
            self.request(client)
        for _ in range(3):
            frame = self.next_reply(client)
            self.check_failure(frame, LOADING)
            self.assertGreater(frame.status()['retry_after_ms'], 0)
        self.request(other)
        self.wait_until_waiting(PER_CLIENT + 1)

    def test_a_daemon_that_stops_has_not_begun_them(self):
        client = self.start_slow(rows=LONG)
        self.request(client)
        self.wait_until_waiting(1)
        os.kill(self.manager.pid, signal.SIGTERM)
        self.check_failure(self.next_reply(client), NOT_BEGUN)
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(self.manager.pid, 0)[1]), 0)
        self.manager.pid = None

    def test_the_next_process_answers_after_a_crash(self):
        write_chain(self.models / 'a')
        write_check(self.models / 'a', LONG)
        self.start(wait=False)
        client = self.kept()
        self.request(client)
        self.wait_until_waiting(1)
        self.manager.end(signal.SIGKILL)
        self.manager.start(wait=False)
        self.check_failure(self.next_reply(client), NOT_BEGUN)


if __name__ == '__main__':
    main()
