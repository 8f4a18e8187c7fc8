#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""test_joined_steps.py ODD_DAEMON DAEMON SOURCE_ROOT [TEST...] - decoding steps of several sessions
in one run. The model attends to all rows so far. Answers are compared with those that NumPy
computes for each session alone.

ODD_DAEMON computes on a device whose runs take 40 ms longer than on ref (odd_devices.h), so that
the trial after the load finds that joined steps pay, however busy the machine is. DAEMON computes
on cpu."""
import os
import random
import re
import sys
import time
import unittest

ODD_DAEMON, DAEMON, ROOT = map(os.path.abspath, sys.argv[1:4])
sys.path.insert(0, ROOT + '/client/python')
sys.dont_write_bytecode = True
sys.path.insert(0, ROOT + '/tests/tools/gen')
import numpy
import inferd
from bare_daemon import BareDaemon
from onnx_writer import FLOAT, INT32, INT64, Graph, port

TOKENS, WIDTH, INNER = 12, 32, 48
SESSIONS = 6

generator = numpy.random.default_rng(5)
TABLE = generator.normal(0, 0.2, (TOKENS, WIDTH)).astype(numpy.float32)
FIRST = generator.normal(0, 0.05, (WIDTH, INNER)).astype(numpy.float32)
SECOND = generator.normal(0, 0.01, (INNER, WIDTH)).astype(numpy.float32)


def write_model(path):
    graph = Graph()

    def weights(array):
        return graph.const(FLOAT, list(array.shape), array.tobytes())

    x = graph.node('Gather', [weights(TABLE), 'ids'])
    hidden = graph.node('Relu', [graph.node('MatMul', [x, weights(FIRST)])])
    hidden = graph.node('MatMul', [hidden, weights(SECOND)])
    rows = graph.node('Concat', ['past_key_values.0.key', hidden], axis=1)
    keys = graph.node('Transpose', [rows], perm=[0, 2, 1])
    scores = graph.node('Softmax', [graph.node('MatMul', [hidden, keys])], axis=-1)
    graph.output(graph.node('MatMul', [scores, rows]), 'y')
    graph.output(rows, 'present.0.key')
    inputs = [port('ids', [1, 'n'], INT64), port('past_key_values.0.key', [1, 'length', WIDTH])]
    outputs = [port('y', [1, 'n', WIDTH]), port('present.0.key', [1, 'total', WIDTH])]
    graph.write_ports(path, 'model', inputs, outputs, {'': 17})


ROWS = numpy.maximum(TABLE @ FIRST, 0) @ SECOND  # the row of each token


def expected(tokens, count=1):
    """What the model answers to the last `count` tokens of a text."""
    rows = ROWS[tokens].astype(numpy.float64)
    scores = numpy.exp(rows[-count:] @ rows.T)
    return scores @ rows / scores.sum(axis=1, keepdims=True)


HEADS = 4
QUERY, KEY, VALUE = generator.normal(0, 0.5, (3, WIDTH, WIDTH)).astype(numpy.float32)


def write_grouped_model(path):
    """GroupQueryAttention: its past may have a fixed size or grow with each request."""
    graph = Graph()

    def weights(array):
        return graph.const(FLOAT, list(array.shape), array.tobytes())

    x = graph.node('Gather', [weights(TABLE), 'ids'])
    operands = [graph.node('MatMul', [x, weights(matrix)]) for matrix in (QUERY, KEY, VALUE)]
    pasts = ['past_key_values.0.key', 'past_key_values.0.value']
    one, index = graph.const(INT64, [1], [1]), graph.const(INT64, [], [1])
    ends = graph.node('Sub', [graph.node('ReduceSum', ['mask', one], keepdims=0), index])
    total = graph.node('Gather', [graph.node('Shape', ['mask']), index], axis=0)
    lengths = [graph.node('Cast', [value], to=INT32) for value in (ends, total)]
    results = graph.add('GroupQueryAttention', [*operands, *pasts, *lengths], 3, 'com.microsoft',
                        num_heads=HEADS, kv_num_heads=HEADS)
    for value, name in zip(results, ('y', 'present.0.key', 'present.0.value')):
        graph.output(value, name)
    rows = [1, HEADS, 'length', WIDTH // HEADS]
    inputs = [port('ids', [1, 'n'], INT64), port('mask', [1, 'all'], INT64),
              *(port(past, rows) for past in pasts)]
    rows[2] = 'total'
    outputs = [port('y', [1, 'n', WIDTH]), port('present.0.key', rows),
               port('present.0.value', rows)]
    graph.write_ports(path, 'model', inputs, outputs, {'': 17, 'com.microsoft': 1})


def expected_grouped(text):
    """What the model with GroupQueryAttention answers to the last token of a text."""
    rows = TABLE[text].astype(numpy.float64)
    query, keys, values = (
        (rows @ matrix).reshape(len(text), HEADS, -1).transpose(1, 0, 2)
        for matrix in (QUERY, KEY, VALUE)
    )
    scores = numpy.einsum('hs,hns->hn', query[:, -1], keys) / numpy.sqrt(WIDTH // HEADS)
    weights = numpy.exp(scores - scores.max(axis=1, keepdims=True))
    weights /= weights.sum(axis=1, keepdims=True)
    return numpy.einsum('hn,hns->hs', weights, values).reshape(-1)


class JoinedSteps(unittest.TestCase):
    def setUp(self):
        self.start(ODD_DAEMON, '--backends=steady', '--race=never')
        self.wait_for_trial()

    def start(self, program, *options, write=write_model):
        self.daemon = BareDaemon(program, '--cpu-slots=1', '--cpu-threads=2', *options)
        self.addCleanup(self.daemon.end)
        write(self.daemon.folder + '/model.onnx')
        self.daemon.load('model', self.daemon.folder + '/model.onnx')
        self.client = inferd.Client(self.daemon.socket)
        self.addCleanup(self.client.close)

    def wait_for_trial(self):
        """Waits until steps are joined. The trial runs while there are no requests."""
        for pause in range(1, 12):
            time.sleep(pause)
            sessions, texts = self.start_texts([1] * SESSIONS)
            self.step(sessions, texts)
            for session in sessions:
                session.close()
            self.joined = self.count_joined()
            if self.joined > 0:
                return
        self.fail('steps are not joined')

    def count_joined(self):
        """The sum over all steps of the other steps in their runs."""
        rows, runs = self.daemon.count_batch_rows()
        return rows - runs

    def session(self, client=None):
        session = (client or self.client).session(model='model')
        self.addCleanup(session.close)
        return session

    def send(self, session, text, count=1):
        return session.submit('model', {'ids': numpy.array([text[-count:]])}, ['y'])

    def check(self, answer, text, count=1):
        wanted = expected(text, count)
        numpy.testing.assert_allclose(answer.result(60)['y'][0], wanted, rtol=1e-4, atol=1e-5)

    def start_texts(self, lengths):
        """Sessions with texts of these lengths."""
        numbers = random.Random(len(lengths))
        texts = [[numbers.randrange(TOKENS) for _ in range(length)] for length in lengths]
        sessions = [self.session() for _ in texts]
        for session, text in zip(sessions, texts):
            self.check(self.send(session, text, len(text)), text, len(text))
        return sessions, texts

    def step(self, sessions, texts):
        """Sends one more token of each text at once, and checks the answers."""
        for text in texts:
            text.append((text[-1] * 5 + len(text)) % TOKENS)
        answers = [self.send(session, text) for session, text in zip(sessions, texts)]
        for answer, text in zip(answers, texts):
            self.check(answer, text)

    def expect_joined(self, count=1):
        self.assertGreaterEqual(self.count_joined() - self.joined, count)

    def test_sessions_of_any_length_have_their_own_answers(self):
        sessions, texts = self.start_texts([1, 2, 5, 30, 100, 240])
        for _ in range(40):  # the buffers of the last one grow
            self.step(sessions, texts)
        self.expect_joined(20)

    def test_answers_are_the_same_on_cpu(self):
        self.doCleanups()
        self.start(DAEMON)  # whether steps are joined depends on the machine
        sessions, texts = self.start_texts([1, 2, 5, 30, 100, 240])
        for _ in range(40):
            self.step(sessions, texts)

    def test_caches_that_may_grow_are_joined(self):
        self.doCleanups()
        self.start(ODD_DAEMON, '--backends=steady', '--race=never', write=write_grouped_model)
        sessions = [self.session() for _ in range(SESSIONS)]
        texts = [list(range(length)) for length in (1, 2, 3, 5, 8, 11)]

        def send(session, text, count):
            given = {
                'ids': numpy.array([text[-count:]]),
                'mask': numpy.ones((1, len(text)), numpy.int64),
            }
            return session.submit('model', given, ['y'])

        def check(answers):
            for answer, text in zip(answers, texts):
                numpy.testing.assert_allclose(answer.result(60)['y'][0, -1], expected_grouped(text),
                                              rtol=1e-4, atol=1e-5)

        check([send(session, text, len(text)) for session, text in zip(sessions, texts)])
        for pause in range(1, 12):  # the trial runs while there are no requests
            time.sleep(pause)
            for _ in range(4):
                for text in texts:
                    text.append((text[-1] * 5 + len(text)) % TOKENS)
                check([send(session, text, 1) for session, text in zip(sessions, texts)])
            if self.count_joined() > 0:
                return
        self.fail('steps are not joined')

    def test_a_limit_of_rows_is_one_of_steps(self):
        for limit, joined in ((1, False), (2, True)):
            self.doCleanups()
            self.start(
                ODD_DAEMON, '--backends=steady', '--race=never', f'--batch-rows-max={limit}'
            )
            if joined:
                self.wait_for_trial()
            before = self.count_joined()
            sessions, texts = self.start_texts([1] * SESSIONS)
            for _ in range(3):
                self.step(sessions, texts)
            self.assertEqual(self.count_joined() > before, joined)
            self.assertLessEqual(self.count_joined() - before, SESSIONS * 4 * (limit - 1))

    def test_larger_buffers_have_programs_compiled_beside_the_steps(self):
        """The trial has compiled the executables for the smallest buffers, of 256 rows."""
        for length in (300, 600):
            sessions, texts = self.start_texts([length] * SESSIONS)
            before = self.count_joined()
            for _ in range(100):
                self.step(sessions, texts)
                if self.count_joined() > before:
                    break
            else:
                self.fail(f'steps behind {length} rows are not joined')

    def test_sessions_that_were_rewound_or_forked(self):
        sessions, texts = self.start_texts([20, 7, 7])
        self.step(sessions, texts)
        sessions += [sessions[0].fork(), sessions[0].fork(), sessions[1].fork()]
        for fork in sessions[3:]:
            self.addCleanup(fork.close)
        texts += [list(texts[0]), list(texts[0]), list(texts[1])]
        self.step(sessions, texts)
        for text in texts:
            del text[4:]
        for session in sessions:
            session.rewind(4)
        # Each one goes on with another token.
        for number, text in enumerate(texts):
            text.append(number)
        answers = [self.send(session, text) for session, text in zip(sessions, texts)]
        for answer, text in zip(answers, texts):
            self.check(answer, text)
        for _ in range(5):
            self.step(sessions, texts)
        self.expect_joined()

    def test_a_step_that_fails_harms_no_other_one(self):
        sessions, texts = self.start_texts([3] * SESSIONS)
        for round in range(5):
            bad = round % SESSIONS
            answers = [
                session.submit('model', {'ids': numpy.array([[TOKENS if i == bad else 1]])}, ['y'])
                for i, session in enumerate(sessions)
            ]
            for i, (answer, text) in enumerate(zip(answers, texts)):
                if i == bad:
                    with self.assertRaisesRegex(inferd.Error, 'INVALID_ARGUMENT'):
                        answer.result(60)
                else:
                    text.append(1)
                    self.check(answer, text)
            self.step(sessions, texts)
        self.expect_joined()

    def test_a_session_that_keeps_failing_leaves_the_others(self):
        sessions, texts = self.start_texts([3] * SESSIONS)
        for _ in range(6):
            bad = sessions[0].submit('model', {'ids': numpy.array([[TOKENS]])}, ['y'])
            self.step(sessions[1:], texts[1:])
            with self.assertRaisesRegex(inferd.Error, 'INVALID_ARGUMENT'):
                bad.result(60)
        # In each round one step may run alone. The steps of the first round may run one by one.
        self.expect_joined(5 * 4)

    def test_clients_that_leave_in_the_middle(self):
        sessions, texts = self.start_texts([4] * 3)
        for _ in range(8):
            with inferd.Client(self.daemon.socket) as leaving:
                others = [leaving.session(model='model') for _ in range(3)]
                for _ in range(2):
                    for other in others:
                        self.send(other, [1])
                for text in texts:
                    text.append(2)
                answers = [self.send(session, text) for session, text in zip(sessions, texts)]
            for answer, text in zip(answers, texts):
                self.check(answer, text)
        self.expect_joined()
        for session in sessions:
            session.close()
        for _ in range(100):
            held = re.search(r'^inferd_session_memory_bytes (\d+)', self.client.metrics(), re.M)
            if held.group(1) == '0':
                break
        self.assertEqual(held.group(1), '0')

    def test_steps_that_are_cancelled_are_answered_once(self):
        sessions, texts = self.start_texts([4] * SESSIONS)
        for round in range(8):
            answers = [self.send(session, text + [3]) for session, text in zip(sessions, texts)]
            answers[round % SESSIONS].cancel()
            for i, (answer, text) in enumerate(zip(answers, texts)):
                try:
                    self.check(answer, text + [3])
                    text.append(3)
                except inferd.Error as error:
                    self.assertEqual(i, round % SESSIONS, error)
            # A cancelled step may have been committed before it was cancelled.
            sessions[round % SESSIONS] = self.session()
            text = texts[round % SESSIONS] = [1, 2]
            self.check(self.send(sessions[round % SESSIONS], text, 2), text, 2)
            self.step(sessions, texts)
        self.expect_joined()


if __name__ == '__main__':
    unittest.main(argv=sys.argv[:1] + sys.argv[4:])
