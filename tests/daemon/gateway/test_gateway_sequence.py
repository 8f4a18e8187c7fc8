#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""test_gateway_sequence.py DAEMON GATEWAY [TEST...] - sequences: requests that share state.

The model `sum` adds what the requests of a sequence send.
"""
import json
import signal
import tempfile
import threading
import time

import gateway_case
from gateway_case import Case, Connection


def body(value, **parameters):
    tensor = {'name': 'x', 'shape': [2], 'datatype': 'FP32', 'data': [value, 2 * value]}
    return {'inputs': [tensor], 'outputs': [{'name': 'z'}], 'parameters': parameters}


class SequenceCase(Case):
    def send(self, value, **parameters):
        return self.infer('sum', body(value, **parameters))

    def total(self, value, **parameters):
        answer = self.send(value, **parameters)
        self.assertEqual(answer.status, 200, answer.body)
        first, second = answer.json()['outputs'][0]['data']
        self.assertEqual(second, 2 * first)
        return -first

    def wait_for_sequences(self, count):
        gateway_case.wait_until(
            lambda: self.metric('sequences') == count, f'not {count} sequences'
        )

    def assert_unknown(self, **parameters):
        answer = self.send(1, **parameters)
        self.assertEqual(answer.status, 400)
        self.assertIn('sequence_start', answer.json()['error'])


class Owners(SequenceCase):
    tokens = ('token-of-the-first', 'token-of-the-second')

    @classmethod
    def setUpClass(cls):
        cls.file = tempfile.NamedTemporaryFile('w', prefix='inferd-tokens.')
        cls.file.write('\n'.join(cls.tokens))
        cls.file.flush()
        cls.options = (f'--tokens={cls.file.name}',)
        cls.token = cls.tokens[0]
        super().setUpClass()

    @classmethod
    def ask(cls, method, path, body=None, headers=None, admin=False):
        given = {'Authorization': 'Bearer ' + cls.token, **(headers or {})}
        return super().ask(method, path, body, given, admin)

    def use(self, number):
        type(self).token = self.tokens[number]

    def test_a_sequence_belongs_to_its_token(self):
        self.use(0)
        self.assertEqual(self.total(1, sequence_id=7, sequence_start=True), 1)
        self.use(1)
        self.assert_unknown(sequence_id=7)
        self.assertEqual(self.total(100, sequence_id=7, sequence_start=True), 100)
        self.use(0)
        self.assertEqual(self.total(1, sequence_id=7, sequence_end=True), 2)
        self.use(1)
        self.assertEqual(self.total(100, sequence_id=7, sequence_end=True), 200)
        self.wait_for_sequences(0)


class Sequences(SequenceCase):
    def test_state_is_kept_from_start_to_end(self):
        self.assertEqual(self.total(1, sequence_id=7, sequence_start=True), 1)
        self.assertEqual(self.total(10, sequence_id=7), 11)
        self.assertEqual(self.total(100, sequence_id=7, sequence_start=False), 111)
        self.assertEqual(self.metric('sequences'), 1)
        self.assertEqual(self.total(1000, sequence_id=7, sequence_end=True), 1111)
        self.assert_unknown(sequence_id=7)
        self.wait_for_sequences(0)

    def test_sequences_are_independent(self):
        names = [1, '1', 'é', 2**63 - 1]
        for i, name in enumerate(names):
            self.assertEqual(self.total(i + 1, sequence_id=name, sequence_start=True), i + 1)
        for i, name in enumerate(names):
            end = {'sequence_id': name, 'sequence_end': True}
            self.assertEqual(self.total(10, **end), i + 11)
        self.wait_for_sequences(0)

    def test_a_start_begins_again(self):
        self.assertEqual(self.total(5, sequence_id=3, sequence_start=True), 5)
        self.assertEqual(self.total(1, sequence_id=3, sequence_start=True), 1)
        self.assertEqual(self.total(1, sequence_id=3, sequence_end=True), 2)
        both = {'sequence_start': True, 'sequence_end': True}
        self.assertEqual(self.total(4, sequence_id=3, **both), 4)
        self.assert_unknown(sequence_id=3, sequence_end=True)
        self.wait_for_sequences(0)

    def test_a_failed_request_keeps_the_state(self):
        self.assertEqual(self.total(5, sequence_id=4, sequence_start=True), 5)
        wrong = body(1, sequence_id=4)
        wrong['inputs'][0].update(shape=[3], data=[1, 2, 3])
        self.assertEqual(self.infer('sum', wrong).status, 400)
        self.assertEqual(self.total(5, sequence_id=4, sequence_end=True), 10)

    def test_pipelined_requests_run_in_order(self):
        count = 30
        with self.gateway.connect() as client:
            for i in range(count):
                flags = {'sequence_start': i == 0, 'sequence_end': i == count - 1}
                text = json.dumps(body(1, sequence_id='p', **flags)).encode()
                head = b'POST /v2/models/sum/infer HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n'
                client.sendall(head % len(text) + (b'Connection: close\r\n' * (i == count - 1))
                               + b'\r\n' + text)
            received = self.read_all(client)
        answers = [json.loads(part.split(b'\r\n\r\n')[1].split(b'HTTP/1.1')[0])
                   for part in received.split(b'HTTP/1.1 200 OK')[1:]]
        sums = [-answer['outputs'][0]['data'][0] for answer in answers]
        self.assertEqual(sums, list(range(1, count + 1)))

    def test_no_sequence(self):
        for name in (0, ''):
            answer = self.send(1, sequence_id=name, sequence_start=True)
            self.assertEqual(answer.status, 400)
            self.assertIn("'s'", answer.json()['error'])
        self.assertEqual(self.metric('sequences'), 0)

    def test_wrong_parameters(self):
        for parameters in (
            {'sequence_id': -1},
            {'sequence_id': 1.5},
            {'sequence_id': True},
            {'sequence_id': 'x' * 129},
            {'sequence_id': 'a\0b'},
            {'sequence_id': 1, 'sequence_start': 1},
            {'sequence_id': 1, 'sequence_end': 'yes'},
        ):
            self.assertEqual(self.send(1, **parameters).status, 400, parameters)
        self.assertEqual(self.total(1, sequence_id='x' * 128, sequence_start=True,
                                    sequence_end=True), 1)

    def test_models_without_state_have_no_sequences(self):
        start = {'sequence_id': 1, 'sequence_start': True}
        for model, statuses in (('add', (400, 409)), ('none', (404,))):
            answer = self.infer(model, body(1, **start))
            self.assertIn(answer.status, statuses, answer.body)
        self.wait_for_sequences(0)

    def test_a_client_that_goes_away(self):
        self.assertEqual(self.total(1, sequence_id=9, sequence_start=True), 1)
        self.daemon.process.send_signal(signal.SIGSTOP)
        try:
            connections = [Connection(self.gateway) for _ in range(3)]
            for connection in connections:
                text = json.dumps(body(1, sequence_id=9, sequence_end=True))
                connection.request('POST', '/v2/models/sum/infer', text)
                time.sleep(0.1)
                connection.close()
        finally:
            self.daemon.process.send_signal(signal.SIGCONT)
        self.wait_for_sequences(0)
        self.assert_unknown(sequence_id=9)


class SequenceLimits(SequenceCase):
    options = ('--sequences-max=3', '--sequence-idle-ms=1500')

    def test_the_number_is_bounded_and_idle_ones_end(self):
        for i in range(3):
            self.assertEqual(self.total(1, sequence_id=i + 1, sequence_start=True), 1)
        answer = self.send(1, sequence_id=4, sequence_start=True)
        self.assertEqual(answer.status, 429)
        self.assertIn('Retry-After', answer.headers)
        self.assertEqual(self.total(1, sequence_id=2, sequence_start=True), 1)
        begin = time.monotonic()
        while time.monotonic() < begin + 2:
            self.total(1, sequence_id=2)
            time.sleep(0.2)
        self.assertEqual(self.metric('sequences'), 1)
        self.assert_unknown(sequence_id=1)
        self.wait_for_sequences(0)
        self.assertEqual(self.total(1, sequence_id=4, sequence_start=True), 1)

    def test_requests_of_one_sequence_are_bounded(self):
        self.assertEqual(self.total(1, sequence_id='b', sequence_start=True), 1)
        self.daemon.process.send_signal(signal.SIGSTOP)
        statuses = []
        threads = [
            threading.Thread(target=lambda: statuses.append(self.send(1, sequence_id='b').status))
            for _ in range(70)
        ]
        try:
            for thread in threads:
                thread.start()
            gateway_case.wait_until(lambda: len(statuses) == 6, 'not refused')
        finally:
            self.daemon.process.send_signal(signal.SIGCONT)
        for thread in threads:
            thread.join()
        self.assertEqual(sorted(statuses), [200] * 64 + [429] * 6)
        self.assertEqual(self.total(1, sequence_id='b', sequence_end=True), 66)


class SequenceRestart(SequenceCase):
    def test_a_sequence_is_lost_with_the_daemon(self):
        self.assertEqual(self.total(1, sequence_id=1, sequence_start=True), 1)
        self.daemon.end()
        answer = self.send(1, sequence_id=1)
        self.assertEqual(answer.status, 409, answer.body)
        self.assertIn('lost', answer.json()['error'])
        self.assert_unknown(sequence_id=1)
        self.assertIn(self.send(1, sequence_id=2, sequence_start=True).status, (503, 504))
        self.daemon.start()
        gateway_case.wait_until(self.all_models_are_ready, 'the models are not ready')
        self.assertEqual(self.total(1, sequence_id=1, sequence_start=True, sequence_end=True), 1)
        self.wait_for_sequences(0)


if __name__ == '__main__':
    gateway_case.main()
