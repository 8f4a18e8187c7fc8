#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""test_strings.py DAEMON INFERCTL SOURCE_ROOT [TEST...] - tensors of strings through the socket:
the Python client, inferctl, limits, and bytes that are no tensor of strings."""
import json
import os
import random
import signal
import struct
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

DAEMON, INFERCTL, ROOT = map(os.path.abspath, sys.argv[1:4])
sys.path.insert(0, ROOT + '/client/python')
sys.path.insert(0, ROOT + '/tests/tools/gen')
sys.dont_write_bytecode = True
import numpy
import inferd
from inferd import _inference
from onnx_writer import BOOL, FLOAT, INT64, STRING, Graph, port

SECONDS_MAX = 60
OPSETS = {'': 20, 'ai.onnx.ml': 3, 'com.microsoft': 1}
DOUBLINGS = 30
# Sessions of a user may keep so many MiB.
KEPT_MIB_MAX = 32
NOTHING = numpy.empty(0, object)


def write(folder, name, inputs, outputs, build):
    graph = Graph()
    named = build(graph)
    for output, value in zip(outputs, named):
        graph.output(value, output[0])
    path = Path(folder) / name / '1'
    path.mkdir(parents=True)
    graph.write_ports(
        path / 'model.onnx',
        name,
        [port(*one) for one in inputs],
        [port(*one) for one in outputs],
        OPSETS,
    )


def write_models(folder):
    def text(graph):
        mark = graph.const(STRING, [1], ['!'])
        parts, counts = graph.add('StringSplit', ['x'], 2)
        return [
            graph.node('StringConcat', ['x', mark]),
            graph.node('Equal', ['x', graph.const(STRING, [1], ['yes'])]),
            parts,
            counts,
        ]

    def double(graph):
        y = 'x'
        for _ in range(DOUBLINGS):
            y = graph.node('StringConcat', [y, y])
        return [y]

    def label(graph):
        labels = ['cat', 'dog', 'gnu']
        index = graph.node('ArgMax', ['x'], axis=1, keepdims=0)
        return [graph.node('Gather', [graph.const(STRING, [3], labels), index])]

    def numbers(graph):
        return [graph.node('Cast', ['x'], to=1)]

    def pipeline(graph):
        """As skl2onnx writes a text classifier: tokens, counts of n-grams, a linear model."""
        x = graph.node(
            'StringNormalizer', ['x'], case_change_action='LOWER', is_case_sensitive=0
        )
        x = graph.node(
            'Tokenizer',
            [x],
            domain='com.microsoft',
            mark=0,
            mincharnum=1,
            pad_value='#',
            separators=['[^a-z]+'],
        )
        x = graph.node(
            'TfIdfVectorizer',
            [x],
            mode='TF',
            min_gram_length=1,
            max_gram_length=2,
            max_skip_count=0,
            ngram_counts=[0, 3],
            ngram_indexes=[2, 0, 1, 3],
            pool_strings=['good', 'bad', 'film', 'not', 'good'],
        )
        counts = graph.node('Identity', [x])
        label, scores = graph.add(
            'LinearClassifier',
            [x],
            2,
            domain='ai.onnx.ml',
            classlabels_strings=['worse', 'better'],
            coefficients=[1.0, 0.0, -1.0, 2.0, -1.0, 0.0, 1.0, -2.0],
            intercepts=[0.0, 0.5],
            multi_class=0,
            post_transform='NONE',
        )
        index = graph.node(
            'LabelEncoder',
            [label],
            domain='ai.onnx.ml',
            keys_strings=['better', 'worse'],
            values_int64s=[1, 2],
            default_int64=-1,
        )
        zipped = graph.node(
            'ZipMap', [scores], domain='ai.onnx.ml', classlabels_strings=['worse', 'better']
        )
        return [counts, label, zipped, index]

    write(
        folder,
        'pipeline',
        [('x', ['n'], STRING)],
        [
            ('counts', ['n', 4], FLOAT),
            ('label', ['n'], STRING),
            ('scores', ['n', 2], FLOAT),
            ('index', ['n'], INT64),
        ],
        pipeline,
    )
    write(folder, 'echo', [('x', ['n'], STRING)], [('y', ['n'], STRING)], lambda graph: ['x'])
    write(folder, 'pair', [('x', [2, 3], STRING)], [('y', [2, 3], STRING)], lambda graph: ['x'])
    write(
        folder,
        'text',
        [('x', ['n'], STRING)],
        [
            ('joined', ['n'], STRING),
            ('same', ['n'], BOOL),
            ('parts', ['n', 'm'], STRING),
            ('counts', ['n'], INT64),
        ],
        text,
    )
    write(
        folder,
        'both',
        [('a', ['n'], STRING), ('b', ['m'], STRING)],
        [('y', ['k'], STRING)],
        lambda graph: [graph.node('Concat', ['a', 'b'], axis=0)],
    )
    write(folder, 'double', [('x', ['n'], STRING)], [('y', ['n'], STRING)], double)
    write(folder, 'label', [('x', ['n', 3], FLOAT)], [('y', ['n'], STRING)], label)
    write(folder, 'numbers', [('x', ['n'], STRING)], [('y', ['n'], FLOAT)], numbers)


class Daemon:
    def __init__(self):
        self.folder = tempfile.TemporaryDirectory()
        path = self.folder.name
        write_models(path + '/models')
        self.socket, self.admin = path + '/inferd.sock', path + '/admin.sock'
        self.process = subprocess.Popen(
            [DAEMON, '--runtime-dir=' + path, '--repository=' + path + '/models']
            + ['--backends=cpu,ref', '--drain-timeout-ms=200', '--cache-dir=' + path]
            + [f'--session-bytes-per-uid-max={KEPT_MIB_MAX}M'],
            stderr=subprocess.DEVNULL,
        )
        end = time.monotonic() + SECONDS_MAX
        while time.monotonic() < end:
            try:
                with inferd.Client(self.socket) as client:
                    states = [model['state'] for model in client.models()]
                    if len(states) == 8 and set(states) == {'READY'}:
                        return
            except inferd.Disconnected:
                pass
            time.sleep(0.02)
        self.stop()
        sys.exit('the daemon did not load its models')

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(30)
        self.folder.cleanup()


class Case(unittest.TestCase):
    def setUp(self):
        self.client = inferd.Client(daemon.socket)
        self.addCleanup(self.client.close)

    def echo(self, strings, **options):
        result = self.client.infer('echo', {'x': strings}, **options)
        return list(result['y'])

    def fails(self, code, call, *arguments):
        with self.assertRaises(inferd.Error) as caught:
            call(*arguments)
        self.assertEqual(caught.exception.code, code, caught.exception)
        return caught.exception


class Clients(Case):
    def test_strings_come_back_as_bytes(self):
        self.assertEqual(self.echo(['a', 'bc', '', 'ü€𝄞']), [b'a', b'bc', b'', 'ü€𝄞'.encode()])
        self.assertEqual(self.echo([b'a\0', b'\0\0', b'\xff\xfe']), [b'a\0', b'\0\0', b'\xff\xfe'])
        self.assertEqual(self.echo(numpy.array(['x', 'yz'])), [b'x', b'yz'])
        self.assertEqual(self.echo(numpy.array([b'x', b'yz'], object)), [b'x', b'yz'])
        self.assertEqual(self.echo(numpy.empty(0, object)), [])

    def test_shapes_and_other_outputs(self):
        strings = numpy.array([['a', 'b', 'c'], ['d', 'e', 'f']])
        y = self.client.infer('pair', {'x': strings})['y']
        self.assertEqual(y.shape, (2, 3))
        self.assertEqual(y[1][2], b'f')
        result = self.client.infer('text', {'x': ['yes', 'no  way', '']})
        self.assertEqual(list(result['joined']), [b'yes!', b'no  way!', b'!'])
        self.assertEqual(list(result['same']), [True, False, False])
        self.assertEqual(result['parts'].tolist(), [[b'yes', b''], [b'no', b'way'], [b'', b'']])
        self.assertEqual(list(result['counts']), [1, 2, 0])

    def test_a_pipeline_of_scikit_learn(self):
        x = ['A GOOD film', 'bad, bad!', 'not good', '']
        result = self.client.infer('pipeline', {'x': x})
        # Columns: bad, film, good, not good.
        wanted = [[0, 1, 1, 0], [2, 0, 0, 0], [0, 0, 1, 1], [0, 0, 0, 0]]
        self.assertEqual(result['counts'].tolist(), wanted)
        self.assertEqual(list(result['label']), [b'better', b'worse', b'worse', b'better'])
        self.assertEqual(result['scores'].tolist(), [[-1, 1.5], [2, -1.5], [1, -0.5], [0, 0.5]])
        self.assertEqual(list(result['index']), [1, 2, 2, 1])

    def test_only_outputs_that_are_wanted(self):
        result = self.client.infer('text', {'x': ['a b']}, outputs=['parts'])
        self.assertEqual(list(result), ['parts'])
        self.assertEqual(result['parts'].tolist(), [[b'a', b'b']])

    def test_labels_that_are_constants(self):
        x = numpy.array([[0, 1, 0], [3, 2, 1], [0, 0, 9]], numpy.float32)
        y = self.client.infer('label', {'x': x})['y']
        self.assertEqual(list(y), [b'dog', b'cat', b'gnu'])

    def test_large_strings_go_through_shared_memory(self):
        strings = [bytes([i]) * (i * 997) for i in range(200)]  # 20 MB each way
        for _ in range(3):  # the first answer teaches the client how much room it needs
            self.assertEqual(self.echo(strings), strings)

    def test_many_empty_strings(self):
        strings = numpy.full(10**6, b'', object)
        begin = time.monotonic()
        y = self.client.infer('echo', {'x': strings})['y']
        self.assertEqual(y.shape, (10**6,))
        self.assertTrue((y == b'').all())
        self.assertLess(time.monotonic() - begin, 30)

    def test_what_is_no_string(self):
        for wrong in [[1, 'a'], [None], numpy.array([object()])]:
            with self.assertRaises(TypeError):
                self.client.infer('echo', {'x': numpy.array(wrong, object)})
        self.assertEqual(
            self.fails(
                'INVALID_ARGUMENT', self.client.infer, 'echo', {'x': numpy.zeros(2, numpy.float32)}
            ).reason,
            'DTYPE_MISMATCH',
        )
        self.assertEqual(
            self.fails(
                'INVALID_ARGUMENT', self.client.infer, 'label', {'x': [['a', 'b', 'c']]}
            ).reason,
            'DTYPE_MISMATCH',
        )

    def test_texts_that_are_no_numbers(self):
        y = self.client.infer('numbers', {'x': ['1', '-2.5e3', 'NaN', 'inf']})['y']
        numpy.testing.assert_array_equal(y, numpy.float32([1, -2500, numpy.nan, numpy.inf]))
        for text in ['', 'x', '1 ', ' 1', '0x10', '1\0', '9' * 2000]:
            with self.subTest(text=text):
                self.fails('INVALID_ARGUMENT', self.client.infer, 'numbers', {'x': [text]})

    def test_the_description_names_the_type(self):
        told = self.client.metadata('echo')
        self.assertEqual(told['inputs'][0]['datatype'], 'BYTES')
        self.assertEqual(told['outputs'][0]['datatype'], 'BYTES')


class Sessions(Case):
    """The model `both` makes one tensor of its two inputs a and b."""

    def test_strings_are_kept_and_taken_by_name(self):
        with self.client.session() as session:
            self.assertEqual(len(session.infer('echo', {'x': ['a', 'ü', '']}, keep={'y': 'k'})), 0)
            y = session.infer('both', {'b': [b'z\0\xff']}, take={'a': 'k'})['y']
            self.assertEqual(list(y), [b'a', 'ü'.encode(), b'', b'z\0\xff'])
            # What is kept stays until a request keeps something else.
            self.assertEqual(len(session.infer('both', {}, take={'a': 'k', 'b': 'k'})['y']), 6)
            session.infer('echo', {'x': NOTHING}, keep={'y': 'k'})
            y = session.infer('both', {'b': ['q']}, take={'a': 'k'})['y']
            self.assertEqual(list(y), [b'q'])

    def test_a_pair_of_strings_begins_with_empty_ones(self):
        with self.client.session({'y': 'a'}, {'a': (2,)}) as session:
            y = session.infer('both', {'b': ['b']}, outputs=['y'])['y']
            self.assertEqual(list(y), [b'', b'', b'b'])
            y = session.infer('both', {'b': ['c' * 3000]}, outputs=['y'])['y']
            self.assertEqual(list(y), [b'', b'', b'b', b'c' * 3000])
            with session.fork() as other:
                other.infer('both', {'b': ['other']})
            y = session.infer('both', {'b': NOTHING}, outputs=['y'])['y']
            self.assertEqual(list(y), [b'', b'', b'b', b'c' * 3000])

    def test_a_request_that_fails_changes_nothing(self):
        with self.client.session({'y': 'x'}, {'x': (1,)}) as session:
            session.infer('echo', {'x': ['a']})
            self.fails('RESOURCE_EXHAUSTED', session.infer, 'double', {})
            self.assertEqual(list(session.infer('echo', {}, outputs=['y'])['y']), [b'a'])

    def test_types_do_not_mix(self):
        with self.client.session() as session:
            session.infer('numbers', {'x': ['1', '2']}, keep={'y': 'k'})
            failure = self.fails(
                'INVALID_ARGUMENT', lambda: session.infer('echo', {}, take={'x': 'k'})
            )
            self.assertEqual(failure.reason, 'DTYPE_MISMATCH')
            session.infer('echo', {'x': ['1', '2', '3']}, keep={'y': 'k'})
            failure = self.fails(
                'INVALID_ARGUMENT', lambda: session.infer('label', {}, take={'x': 'k'})
            )
            self.assertEqual(failure.reason, 'DTYPE_MISMATCH')

    def test_the_user_is_charged_for_kept_strings(self):
        for _ in range(2):  # a closed session gives all of it back
            with self.client.session() as session:
                session.infer('echo', {'x': ['s' * (1 << 20)]}, keep={'y': 'k'})
                both, sizes = {'a': 'k', 'b': 'k'}, [1]
                with self.assertRaises(inferd.Error) as caught:
                    for _ in range(10):
                        session.infer('both', {}, take=both, keep={'y': 'k'})
                        sizes.append(2 * sizes[-1])
                self.assertEqual(caught.exception.reason, 'QUOTA_BYTES', caught.exception)
                self.assertEqual(sizes[-1], KEPT_MIB_MAX // 2)
                y = session.infer('both', {'b': NOTHING}, take={'a': 'k'})['y']
                self.assertEqual(list(y), [b's' * (1 << 20)] * sizes[-1])


class Limits(Case):
    def test_a_run_that_makes_too_many_bytes(self):
        self.assertEqual(
            list(self.client.infer('double', {'x': ['']})['y']), [b'']
        )  # nothing doubled is nothing
        failure = self.fails('RESOURCE_EXHAUSTED', self.client.infer, 'double', {'x': ['a']})
        self.assertIn('strings of more than 268435456 bytes in one run', str(failure))
        self.assertEqual(self.echo(['still', 'here']), [b'still', b'here'])

    def test_the_memory_of_a_run_is_given_back(self):
        def resident():
            with open(f'/proc/{daemon.process.pid}/statm') as file:
                return int(file.read().split()[1]) * os.sysconf('SC_PAGESIZE')

        self.echo(['warm'])
        before = resident()
        for _ in range(3):
            self.fails('RESOURCE_EXHAUSTED', self.client.infer, 'double', {'x': ['a']})
        self.assertLess(resident() - before, 64 << 20)

    def test_more_strings_than_allowed(self):
        patched = numpy.lib.stride_tricks.as_strided(numpy.array([b''], object), (1 << 25,), (0,))
        with Packed(b''):
            failure = self.fails('INVALID_ARGUMENT', self.send, patched)
        self.assertIn('strings', str(failure))
        self.assertEqual(self.echo(numpy.empty(0, object)), [])

    def test_more_strings_in_one_request_than_allowed(self):
        count = 9 << 20
        half = numpy.lib.stride_tricks.as_strided(numpy.array([b''], object), (count,), (0,))
        with Packed(bytes(4 * count)):
            failure = self.fails('RESOURCE_EXHAUSTED', self.send, half, 'both', 'ab')
        self.assertIn('more than 16777216 strings in one request', str(failure))

    def send(self, strings, model='echo', names='x'):
        """Sends an array that the client does not look at."""
        original = _inference._as_array
        _inference._as_array = lambda name, value: value
        try:
            return self.client.infer(model, {name: strings for name in names})
        finally:
            _inference._as_array = original


class Packed:
    """Makes the Python client send these bytes instead of the strings of a tensor."""

    def __init__(self, data):
        self.data = data

    def __enter__(self):
        self.original = _inference._pack
        _inference._pack = lambda strings: self.data

    def __exit__(self, *_):
        _inference._pack = self.original


def packed(*strings):
    return b''.join(struct.pack('<I', len(text)) + text for text in strings)


class Hostile(Case):
    """Bytes that are no tensor of strings, in the frame and in shared memory."""

    def refused(self, data, count, text=''):
        for padding in (0, 32 << 10):  # above 16 KiB the client uses shared memory
            body = data
            if padding:
                body = packed(b'p' * padding) + data
            with Packed(body):
                failure = self.fails(
                    'INVALID_ARGUMENT',
                    self.client.infer,
                    'echo',
                    {'x': ['-'] * (count + (padding > 0))},
                )
            self.assertEqual(failure.reason, 'SIZE_MISMATCH')
            self.assertIn(text, str(failure))
        self.assertEqual(self.echo(['fine']), [b'fine'])

    def test_lengths_that_overrun(self):
        self.refused(struct.pack('<I', 5) + b'four', 1, 'reaches beyond')
        self.refused(struct.pack('<I', 0xFFFFFFFF) + b'four', 1, 'reaches beyond')
        self.refused(struct.pack('<I', 0xFFFFFFFC) + b'four', 1, 'reaches beyond')
        self.refused(struct.pack('<I', 0x80000000), 1, 'reaches beyond')

    def test_sums_that_overflow(self):
        data = packed(b'ab') + struct.pack('<I', 0xFFFFFFFF) * 3
        self.refused(data, 4, 'reaches beyond')

    def test_bytes_that_are_left_over(self):
        self.refused(packed(b'a', b'b'), 1, 'follow the last')
        self.refused(packed(b'a') + b'\0', 1, 'follow the last')

    def test_bytes_that_are_missing(self):
        self.refused(packed(b'a'), 2)
        self.refused(b'', 1)
        self.refused(b'\1\0\0', 1)

    def test_a_tensor_without_a_length(self):
        original = _inference.encode

        def without_location(name, message):
            for entry in message.get('inputs', ()):
                entry.pop('location', None)
            return original(name, message)

        _inference.encode = without_location
        try:
            failure = self.fails('INVALID_ARGUMENT', self.client.infer, 'echo', {'x': ['a']})
        finally:
            _inference.encode = original
        self.assertIn('needs a location with its length', str(failure))

    def test_an_output_region_that_is_too_small(self):
        original = _inference.encode
        memory = self.client.empty(64)

        def into_region(name, message):
            region, offset = self.client._memory.find(memory)
            message['outputs'] = [
                {'name': 'y', 'location': {'offset': offset, 'length': 64, 'region_id': region.id}}
            ]
            return original(name, message)

        _inference.encode = into_region
        try:
            # A request with an order key is not sent again with more room.
            failure = self.fails(
                'OUT_OF_RANGE',
                lambda: self.client.infer('echo', {'x': ['a' * 61]}, order_key=1),
            )
        finally:
            _inference.encode = original
        self.assertEqual(failure.reason, 'OUTPUT_TOO_SMALL')
        self.assertEqual((failure.expected, failure.actual), ('65', '64'))

    def test_random_bytes(self):
        numbers = random.Random(7)
        valid = packed(b'', b'abc', b'\xff' * 300, b'z')
        for _ in range(400):
            data = bytearray(valid)
            for _ in range(numbers.randrange(1, 4)):
                kind = numbers.randrange(3)
                at = numbers.randrange(len(data) or 1)
                if kind == 0 and data:
                    data[at] = numbers.randrange(256)
                elif kind == 1:
                    del data[at:]
                else:
                    data[at:at] = bytes(numbers.randrange(256) for _ in range(3))
            wanted = self.parse(bytes(data), 4)
            with Packed(bytes(data)):
                try:
                    got = list(self.client.infer('echo', {'x': ['-'] * 4})['y'])
                except inferd.Error as failure:
                    self.assertEqual(failure.reason, 'SIZE_MISMATCH')
                    got = None
            self.assertEqual(got, wanted, bytes(data))

    @staticmethod
    def parse(data, count):
        """What the bytes mean by the definition; None: they are no tensor of so many strings."""
        strings = []
        for _ in range(count):
            if len(data) < 4:
                return None
            size = struct.unpack('<I', data[:4])[0]
            if len(data) < 4 + size:
                return None
            strings.append(data[4 : 4 + size])
            data = data[4 + size :]
        return None if data else strings

    def test_memory_that_changes_during_the_run(self):
        """The strings are copied once: a client that writes on during a run changes the answer to
        its own request only, and gets what it wrote, or an error, but no other bytes.
        """
        memory = self.client.empty(1 << 17, numpy.uint8)
        body = numpy.frombuffer(packed(*[b'abcdefgh'] * 8000), numpy.uint8)
        memory[: len(body)] = body
        region, offset = self.client._memory.find(memory)
        original = _inference.encode

        def from_region(name, message):
            message['inputs'][0]['location'] = {
                'offset': offset,
                'length': len(body),
                'region_id': region.id,
            }
            return original(name, message)

        _inference.encode = from_region
        answers = refusals = 0
        try:
            with Packed(b''):
                for round in range(200):
                    memory[: len(body)] = body
                    pending = self.client.submit('echo', {'x': ['-'] * 8000})
                    for at in range(0, len(body), 1201):  # lengths and characters alike
                        memory[at] = round
                    try:
                        answers += pending.result()['y'].shape == (8000,)
                    except inferd.Error as failure:
                        self.assertEqual(failure.reason, 'SIZE_MISMATCH')
                        refusals += 1
        finally:
            _inference.encode = original
        self.assertEqual(answers + refusals, 200)
        self.assertEqual(self.echo(['fine']), [b'fine'])


class Inferctl(Case):
    def ctl(self, *arguments):
        return subprocess.run(
            [INFERCTL, 'infer', '--socket', daemon.socket, *arguments],
            capture_output=True,
            text=True,
            timeout=SECONDS_MAX,
        )

    def test_a_text(self):
        said = self.ctl('echo', '-i', 'x=hello there')
        self.assertEqual(said.returncode, 0, said)
        self.assertIn('strings of y\nhello there\n', said.stdout)
        said = self.ctl('text', '-i', 'a b', '--json')
        self.assertEqual(said.returncode, 0, said)

    def test_the_lines_of_a_file(self):
        with tempfile.TemporaryDirectory() as folder:
            lines = Path(folder) / 'lines'
            lines.write_bytes(b'one\r\ntwo words\n\nlast')
            said = self.ctl('echo', '-i', f'x=@{lines}', '--json')
            self.assertEqual(said.returncode, 0, said)
            answer = json.loads(said.stdout)
            self.assertEqual(answer['outputs'][0]['strings'], ['one', 'two words', '', 'last'])
            six = Path(folder) / 'six'
            six.write_text('a\nb\nc\nd\ne\nf\n')
            said = self.ctl('pair', '-i', f'x=@{six}', '--json')
            self.assertEqual(json.loads(said.stdout)['outputs'][0]['shape'], [2, 3])
            said = self.ctl('pair', '-i', f'x=@{lines}')
            self.assertNotEqual(said.returncode, 0)
            self.assertIn('4 strings do not fit its shape [2,3]', said.stderr)
            said = self.ctl('echo', '-i', f'x=@{folder}/none')
            self.assertIn('No such file', said.stderr)

    def test_an_at_sign_and_a_missing_input(self):
        said = self.ctl('echo', '-i', 'x=@@home')
        self.assertIn('strings of y\n@home\n', said.stdout)
        said = self.ctl('echo')
        self.assertIn("input 'x' is missing: wanted BYTES [?]", said.stderr)

    def test_outputs_in_files(self):
        with tempfile.TemporaryDirectory() as folder:
            said = self.ctl('text', '-i', 'x=a b', '-o', folder)
            self.assertEqual(said.returncode, 0, said)
            self.assertEqual(json.loads((Path(folder) / 'parts.json').read_text()), ['a', 'b'])
            self.assertEqual(numpy.load(Path(folder) / 'counts.npy').tolist(), [2])


if __name__ == '__main__':
    daemon = Daemon()
    try:
        unittest.main(argv=[sys.argv[0], *sys.argv[4:]])
    finally:
        daemon.stop()
