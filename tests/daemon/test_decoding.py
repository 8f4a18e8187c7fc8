#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""test_decoding.py DAEMON SOURCE_ROOT GENERATE [TEST...] - a decoder whose key/value cache stays in
the session. The model of gen_decoder.py gives each token the share that it has among the tokens
that followed the last one so far, which this test counts."""
import os
import random
import re
import signal
import subprocess
import sys
import time
import unittest

DAEMON, ROOT, GENERATE = map(os.path.abspath, sys.argv[1:4])
sys.path.insert(0, ROOT + '/client/python')
sys.dont_write_bytecode = True
sys.path.insert(0, ROOT + '/tests/tools/gen')
import numpy
import inferd
import onnx_writer
from bare_daemon import SECONDS_MAX, BareDaemon

TOKENS = 96
# Bytes of the keys and values of one token: 22 + 96 + 96 + 96 floats.
ROW_BYTES = 4 * (22 + 3 * TOKENS)
ROOM_LEAST = 256


def expected(tokens):
    """The shares of the tokens that followed tokens[-1] so far; of all tokens if none did."""
    followers = [new for old, new in zip(tokens, tokens[1:]) if old == tokens[-1]]
    counts = numpy.bincount(followers or tokens, minlength=TOKENS)
    return counts / counts.sum()


class Decoding(unittest.TestCase):
    def start(self, *arguments):
        self.daemon = BareDaemon(DAEMON, *arguments)
        self.addCleanup(self.daemon.end)
        model = self.daemon.folder + '/decoder.onnx'
        program = ROOT + '/tests/tools/gen/gen_decoder.py'
        subprocess.run([sys.executable, program, model], check=True)
        self.daemon.load('decoder', model)
        self.client = inferd.Client(self.daemon.socket)
        self.addCleanup(self.client.close)

    def session(self):
        session = self.client.session(model='decoder')
        self.addCleanup(session.close)
        return session

    def feed(self, session, text, count):
        """Sends the last `count` tokens of `text`; the session has those before. Checks the answer
        to each of them."""
        logits = session.infer('decoder', {'input_ids': numpy.array([text[-count:]])})['logits']
        self.assertEqual(logits.shape, (1, count, TOKENS))
        for i in range(count):
            wanted = expected(text[: len(text) - count + i + 1])
            numpy.testing.assert_allclose(logits[0, i], wanted, atol=2e-5)

    def read_cache(self, session, text):
        """Sends `text` to a new session. Returns its cache as inputs of the decoder."""
        names = [f'{layer}.{name}' for layer in (0, 1) for name in ('key', 'value')]
        wanted = ['present.' + name for name in names]
        cache = session.infer('decoder', {'input_ids': numpy.array([text])}, wanted)
        return {'past_key_values.' + name: cache['present.' + name].copy() for name in names}

    def bytes_of_sessions(self):
        text = self.client.metrics()
        return int(re.search(r'^inferd_session_memory_bytes (\d+)', text, re.M).group(1))

    def test_a_long_text(self):
        """The cache grows beyond several buffers, by tokens and by prompts of several tokens."""
        self.start()
        session, numbers, text = self.session(), random.Random(1), []
        for count in [1, 5] + [1] * 300 + [7, 1, 1, 290] + [1] * 60:
            text += [numbers.randrange(12) for _ in range(count)]
            self.feed(session, text, count)
        # Twice the rows of the prompt of 290 tokens may be needed at least.
        rows = -(-len(text) // ROOM_LEAST) * ROOM_LEAST + ROOM_LEAST
        self.assertGreater(self.bytes_of_sessions(), len(text) * ROW_BYTES)
        self.assertLess(self.bytes_of_sessions(), rows * ROW_BYTES + 4096)

    def test_memory_does_not_grow_with_each_step(self):
        self.start()
        session, text, sizes = self.session(), [], set()
        for step in range(200):
            text.append(step % 7)
            self.feed(session, text, 1)
            sizes.add(self.bytes_of_sessions())
        self.assertEqual(len(sizes), 1)

    def test_rewinding_forgets_the_last_tokens(self):
        self.start()
        session, text = self.session(), [1, 2, 3, 1, 2]
        self.feed(session, text, 5)
        self.feed(session, text + [3, 1, 4], 3)
        session.rewind(5)
        text += [5]
        self.feed(session, text, 1)
        session.rewind(6)  # changes nothing
        with self.assertRaisesRegex(inferd.Error, 'has 6 rows, wanted 7 or more'):
            session.rewind(7)
        text += [1, 2, 2]
        self.feed(session, text, 3)
        session.rewind(0)
        self.feed(session, [9, 9], 2)

    def test_truncating_gives_memory_back(self):
        self.start()
        session, text = self.session(), [step % 5 for step in range(600)]
        self.feed(session, text, 600)
        self.feed(session, text + [1], 1)
        large = self.bytes_of_sessions()
        session.rewind(10)
        self.assertEqual(self.bytes_of_sessions(), large)
        text = text[:8]
        session.rewind(8, release=True)
        text += [2]
        self.feed(session, text, 1)
        self.assertLess(self.bytes_of_sessions(), ROOM_LEAST * ROW_BYTES + 4096)
        session.rewind(0, release=True)
        self.assertLess(self.bytes_of_sessions(), 4096)
        self.feed(session, [3, 3, 4], 3)

    def test_forked_sessions_go_on_by_themselves(self):
        self.start()
        session, text = self.session(), [1, 2, 3, 1]
        self.feed(session, text, 4)
        forks = [session.fork() for _ in range(3)]
        for number, fork in enumerate(forks):
            self.feed(fork, text + [number], 1)
        session.rewind(2)
        self.feed(session, [1, 2, 9], 1)
        for number, fork in enumerate(forks):
            again = fork.fork()
            self.feed(again, text + [number, 7], 1)
            again.close()
            self.feed(fork, text + [number, 1, 2], 2)
        session.close()
        self.feed(forks[0], text + [0, 1, 2, 3], 1)
        for fork in forks:
            fork.close()
        self.assertEqual(self.bytes_of_sessions(), 0)

    def test_sessions_that_are_busy_or_keep_no_history(self):
        self.start()
        session = self.session()
        with self.assertRaisesRegex(inferd.Error, 'FAILED_PRECONDITION.*keeps no history'):
            session.rewind(0)
        ids = numpy.zeros((1, 400), numpy.int64)
        pending = [session.submit('decoder', {'input_ids': ids}) for _ in range(3)]
        for refused in (lambda: session.rewind(0), session.fork):
            with self.assertRaisesRegex(inferd.Error, 'FAILED_PRECONDITION.*not answered yet'):
                refused()
        for one in pending:
            one.result()
        session.rewind(0)
        with self.assertRaisesRegex(inferd.Error, 'SESSION_LOST'):
            gone = self.client.session(model='decoder')
            gone.close()
            gone._id = 12345
            gone.rewind(0)

    def test_a_request_that_fails_changes_nothing(self):
        self.start()
        session, text = self.session(), [4, 5, 4]
        self.feed(session, text, 3)
        for bad in ([[1000]], [[5, 5, 5, 1000, 5]]):
            with self.assertRaises(inferd.Error):
                session.infer('decoder', {'input_ids': numpy.array(bad)})
        text += [5]
        self.feed(session, text, 1)

    def test_an_output_that_is_asked_for_is_returned_and_kept(self):
        self.start()
        session, text = self.session(), [3, 1, 2]
        self.feed(session, text, 3)
        text += [7]
        ids = numpy.array([[7]])
        result = session.infer('decoder', {'input_ids': ids}, ['logits', 'present.1.value'])
        numpy.testing.assert_array_equal(result['present.1.value'][0, 0].argmax(axis=1), text)
        numpy.testing.assert_allclose(result['logits'][0, 0], expected(text), atol=2e-5)
        text += [3]
        self.feed(session, text, 1)

    def test_a_cache_that_is_sent_begins_a_history(self):
        """The cache of one session, sent to another one."""
        self.start()
        first, text = self.session(), [6, 7, 6]
        inputs = self.read_cache(first, text)
        second = self.session()
        text += [7]
        result = second.infer('decoder', {'input_ids': numpy.array([[7]]), **inputs})
        numpy.testing.assert_allclose(result['logits'][0, 0], expected(text), atol=2e-5)
        self.feed(second, text + [6], 1)
        second.rewind(2)
        self.feed(second, text[:2] + [1], 1)

    def test_rows_that_are_not_numbers_are_forgotten(self):
        self.start()
        first, text = self.session(), [6, 7, 6]
        inputs = self.read_cache(first, text)
        for rows in inputs.values():
            rows[0, 0, 2] = numpy.nan
        second, one = self.session(), {'input_ids': numpy.array([[1]])}
        second.infer('decoder', {**one, **inputs})
        self.assertTrue(numpy.isnan(second.infer('decoder', one)['logits']).any())
        second.rewind(2)
        self.feed(second, [6, 7, 3], 1)

    def test_other_models_do_not_see_that_a_session_was_extended(self):
        """The rows of `several` are independent, so that they run in batches. All its outputs are
        returned after a step of a session, which returned `logits` only."""
        self.start()
        graph, names = onnx_writer.Graph(), ['a', 'b', 'c']
        for number, name in enumerate(names):
            factor = graph.const(onnx_writer.FLOAT, [], [number + 1.0])
            graph.output(graph.node('Mul', ['x', factor]), name)
        ports = [onnx_writer.port(name, ['rows', 8]) for name in ['x', *names]]
        self.daemon.load_graph('several', graph, ports[:1], ports[1:])
        session, text = self.session(), []
        x = numpy.arange(16, dtype=numpy.float32).reshape(2, 8)
        for step in range(3):
            text.append(step)
            self.feed(session, text, 1)
            result = self.client.infer('several', {'x': x})
            for number, name in enumerate(names):
                numpy.testing.assert_array_equal(result[name], (number + 1) * x)

    def test_a_history_may_be_another_input_too(self):
        """Input `other` is given the rows of the session, which lie apart in its memory."""
        self.start()
        graph = onnx_writer.Graph()
        graph.output(graph.node('Concat', ['past_rows', 'x'], axis=2), 'present_rows')
        most = graph.node('ReduceMax', ['other'], axes=[2], keepdims=1)
        graph.output(graph.node('Add', ['x', most]), 'y')
        port = onnx_writer.port
        inputs = [port(name, [1, 2, size, 3]) for name, size in
                  (('x', 'n'), ('past_rows', 'past'), ('other', 'm'))]
        outputs = [port('y', [1, 2, 'n', 3]), port('present_rows', [1, 2, 'total', 3])]
        self.daemon.load_graph('twice', graph, inputs, outputs)
        session = self.client.session({'present_rows': 'past_rows'})
        self.addCleanup(session.close)
        x = numpy.arange(6, dtype=numpy.float32).reshape(1, 2, 1, 3) + 1
        session.infer('twice', {'x': x, 'other': x}, ['y'])
        result = session.infer('twice', {'x': x}, ['y'], take={'other': 'past_rows'})
        numpy.testing.assert_array_equal(result['y'], 2 * x)

    def test_rows_of_a_request_that_could_not_be_kept_are_forgotten(self):
        """The run succeeds and appends rows that are not numbers, but there is no memory to keep
        `y`. The next run must not see the rows: 0 * NaN is NaN."""
        self.start('--session-bytes-per-uid-max=1M')
        graph, size = onnx_writer.Graph(), 800
        rows = graph.node('Concat', ['past_rows', 'x'], axis=2)
        scores = graph.node('MatMul', ['x', graph.node('Transpose', [rows], perm=[0, 1, 3, 2])])
        result = graph.node('MatMul', [graph.node('Softmax', [scores], axis=-1), rows])
        graph.output(rows, 'present_rows')
        graph.output(result, 'y')
        ports = [(name, [1, 1, rows, size]) for name, rows in (('x', 'n'), ('past_rows', 'past'))]
        inputs = [onnx_writer.port(*port) for port in ports]
        ports = (('y', 'n'), ('present_rows', 'total'))
        outputs = [onnx_writer.port(name, [1, 1, rows, size]) for name, rows in ports]
        self.daemon.load_graph('attention', graph, inputs, outputs)
        session = self.client.session({'present_rows': 'past_rows'})
        self.addCleanup(session.close)
        x = numpy.ones((1, 1, 1, size), numpy.float32)
        self.assertGreater((ROOM_LEAST + 100) * size * 4, 1 << 20)
        session.infer('attention', {'x': x}, ['y'])
        many = numpy.full((1, 1, 100, size), numpy.nan, numpy.float32)
        with self.assertRaisesRegex(inferd.Error, 'RESOURCE_EXHAUSTED/QUOTA_BYTES'):
            session.infer('attention', {'x': many}, keep={'y': 'y'})
        result = session.infer('attention', {'x': x}, ['y'])
        numpy.testing.assert_allclose(result['y'], x, atol=1e-5)

    def test_memory_is_bounded_for_each_user(self):
        """A larger buffer is charged beside the one from which the rows are copied."""
        rows = 2 * ROOM_LEAST
        self.start('--session-bytes-per-uid-max=1M')
        session, text = self.session(), [step % 3 for step in range(100)]
        self.assertGreater(5 * ROOM_LEAST * ROW_BYTES, 1 << 20)
        self.feed(session, text, 100)
        while len(text) < rows:
            count = min(100, rows - len(text))
            text += [1] * count
            self.feed(session, text, count)
        for _ in range(2):
            with self.assertRaisesRegex(inferd.Error, 'RESOURCE_EXHAUSTED/QUOTA_BYTES'):
                self.feed(session, text + [1], 1)
        session.rewind(100)
        self.feed(session, text[:100] + [1], 1)

    def test_a_client_that_is_killed_leaves_nothing(self):
        self.start()
        program = f"""
import sys, numpy
sys.path.insert(0, {ROOT + '/client/python'!r})
import inferd
session = inferd.Client({self.daemon.socket!r}).session(model='decoder')
for _ in range(40):
    session.infer('decoder', {{'input_ids': numpy.zeros((1, 20), numpy.int64)}})
fork = session.fork()
print('ready', flush=True)
while True:
    fork.infer('decoder', {{'input_ids': numpy.zeros((1, 1), numpy.int64)}})
    fork.rewind(800)
"""
        process = subprocess.Popen([sys.executable, '-c', program], stdout=subprocess.PIPE)
        self.addCleanup(process.stdout.close)
        self.assertEqual(process.stdout.readline(), b'ready\n')
        self.assertGreater(self.bytes_of_sessions(), 800 * ROW_BYTES)
        process.send_signal(signal.SIGKILL)
        process.wait(SECONDS_MAX)
        end = time.monotonic() + SECONDS_MAX
        while self.bytes_of_sessions() > 0:
            self.assertLess(time.monotonic(), end, 'sessions of a killed client')
            time.sleep(0.05)

    def test_the_examples_continue_a_text(self):
        self.start()
        text, length = 'the cat and the hat and the ', 30
        tokens = [ord(character) - 32 for character in text]
        while len(tokens) < len(text) + length:
            tokens.append(int(expected(tokens).argmax()))
        wanted = ''.join(chr(32 + token) for token in tokens) + '\n'
        options = ['--socket', self.daemon.socket, '--length', str(length)]
        environment = dict(os.environ, PYTHONPATH=ROOT + '/client/python')
        for command in [GENERATE], [sys.executable, ROOT + '/client/examples/generate.py']:
            result = subprocess.run(
                [*command, *options, text],
                check=True,
                timeout=SECONDS_MAX,
                stdout=subprocess.PIPE,
                env=environment,
            )
            self.assertEqual(result.stdout.decode(), wanted)


if __name__ == '__main__':
    unittest.main(argv=sys.argv[:1] + sys.argv[4:])
