#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""test_python.py DAEMON SOURCE_ROOT [TEST...] - the Python client against the daemon: tensors,
sessions and mistakes."""
import gc
import re
import sys
import time
import unittest

sys.dont_write_bytecode = True
import python_case
import numpy
import inferd
from inferd import _transport, _errors, _proto
from python_case import ROOT, Case


class WithoutMemory(Case):
    """Another client of this user has all the regions there may be."""

    def setUp(self):
        super().setUp()
        self.holder = inferd.Client(python_case.daemon.socket)
        self.held = self.holder.empty(4)
        self.allow(1)
        self.addCleanup(self.allow, 1024)
        self.addCleanup(self.holder.close)

    def allow(self, regions):
        with inferd.Client(python_case.daemon.admin) as admin:
            admin.limits(regions_per_uid_max=regions)

    def test_large_tensors_go_through_the_socket_and_are_counted(self):
        self.add(3)
        self.assertEqual(self.client.statistics['without_shared_memory'], 0)
        for rows in (1024, 65537, 200001, 1025):  # from 16 KiB each to several frames
            self.add(rows)
        self.assertEqual(self.client.statistics['without_shared_memory'], 4)
        self.assertEqual(self.client.statistics['requests'], 5)

    def test_arrays_of_empty_and_outputs_work_all_the_same(self):
        a, y = self.client.empty((5000, 4)), self.client.empty((5000, 4))
        a[...] = 3
        result = self.client.infer('add', {'a': a, 'b': a}, out={'y': y})
        self.assertTrue((y == 6).all() and (result['y'] == 6).all())

    def test_memory_is_shared_again_once_the_daemon_allows_it(self):
        self.add(1024)
        self.allow(1024)
        end = time.monotonic() + 20
        before = 0
        while self.client.statistics['without_shared_memory'] > before and time.monotonic() < end:
            before = self.client.statistics['without_shared_memory']
            time.sleep(0.1)
            self.add(1024)
        self.assertLess(time.monotonic(), end)

    def test_what_was_shared_and_is_refused_to_the_next_connection_is_copied(self):
        a = self.holder.empty((5000, 4))  # refused: the one region is the first array's
        self.holder.reconnect()
        self.held[...], a[...] = 2, 5
        result = self.holder.infer('add', {'a': a, 'b': a})
        self.assertTrue((result['y'] == 10).all())


class Mistakes(Case):
    """What no daemon has to look at says what was wrong and what was wanted."""

    def test_arguments_are_checked(self):
        array = numpy.zeros((1, 4), numpy.float32)
        good = {'a': array, 'b': array}
        for kind, text, inputs, options in (
            (TypeError, r'inputs: a ndarray, wanted {name: array}', array, {}),
            (TypeError, r'out: a list, wanted {name: array}', good, {'out': [array]}),
            (TypeError, r'device 0, wanted a str', good, {'device': 0}),
            (ValueError, r"timeout '1', wanted seconds above 0, or None", good, {'timeout': '1'}),
            (ValueError, r'queue_timeout -1, wanted seconds above 0', good, {'queue_timeout': -1}),
            (ValueError, r'order_key -1, wanted a whole number', good, {'order_key': -1}),
            (
                ValueError,
                r"priority 'urgent', wanted one of normal, high, low",
                good,
                {'priority': 'urgent'},
            ),
        ):
            with self.assertRaisesRegex(kind, text):
                self.client.infer('add', inputs, **options)
        with self.assertRaisesRegex(TypeError, 'model None, wanted a str'):
            self.client.infer(None, good)
        with self.assertRaisesRegex(ValueError, r'shape \(-1, 4\), wanted sizes from 0'):
            self.client.empty((-1, 4))
        self.add(1)

    def test_a_device_that_is_not_there_is_told_with_those_that_are(self):
        error = self.fails('NOT_FOUND', 'NO_DEVICE', self.add, 1, device='gpu7')
        self.assertIn("'gpu7'", error.message)
        self.assertIn('wanted one of: ref', error.message)


class Sessions(Case):
    def ones(self, factor):
        return numpy.full((1, 4), factor, numpy.float32)

    def test_a_pair_is_kept_and_can_be_asked_for(self):
        with self.client.session({'y': 'b'}, {'b': (1, 4)}) as session:
            self.assertEqual(session.infer('add', {'a': self.ones(1)}), {})
            for step in range(2, 5):
                result = session.infer('add', {'a': self.ones(1)}, ['y'])
                numpy.testing.assert_array_equal(result['y'], self.ones(step))
            result = session.infer('add', {'a': self.ones(1), 'b': self.ones(70)}, ['y'])
            numpy.testing.assert_array_equal(result['y'], self.ones(71))
        with self.assertRaises(ValueError):
            session.infer('add', {'a': self.ones(1)})

    def test_models_tell_their_pairs_by_settings_or_names(self):
        for model, output in (('count', 'h_out'), ('told', 'y')):
            with self.client.session(model=model) as session:
                for step in (1, 2, 3):
                    result = session.infer(model, {'x': self.ones(1)}, [output])
                    self.assertEqual(result[output][0][0], step)
        problem = self.fails(
            'FAILED_PRECONDITION', 'BAD_PARAMETER', self.client.session, model='add'
        )
        self.assertIn("'add'", problem.message)
        self.fails('NOT_FOUND', 'MODEL_NOT_FOUND', self.client.session, model='absent')
        self.fails(
            'INVALID_ARGUMENT', 'BAD_PARAMETER', self.client.session, {'y': 's'}, model='told'
        )

    def test_order_is_kept_without_waiting(self):
        with self.client.session({'y': 'b'}, {'b': (1, 4)}) as session:
            pending = [session.submit('add', {'a': self.ones(1)}, ['y']) for _ in range(100)]
            for step, one in enumerate(pending):
                numpy.testing.assert_array_equal(one.result()['y'], self.ones(step + 1))

    def test_answers_of_an_order_key_come_in_order(self):
        x = numpy.zeros((256, 256), numpy.float32)
        slow = self.client.submit('slow', {'x': x}, order_key=5)
        behind = [self.client.submit('absent', {}, order_key=5) for _ in range(3)]
        self.assertFalse(any(one.done for one in behind))
        slow.cancel()
        for one in behind:
            self.fails('NOT_FOUND', 'MODEL_NOT_FOUND', one.result)
        self.assertTrue(slow.done)

    def test_tensors_are_kept_and_taken_by_name(self):
        with self.client.session() as session:
            session.infer('add', {'a': self.ones(1), 'b': self.ones(2)}, keep={'y': 'three'})
            result = session.infer('add', {'a': self.ones(10)}, take={'b': 'three'})
            numpy.testing.assert_array_equal(result['y'], self.ones(13))
            self.fails(
                'INVALID_ARGUMENT',
                'TENSOR_MISSING',
                session.infer,
                'add',
                {'a': self.ones(1)},
                take={'b': 'four'},
            )

    def test_without_a_first_value_it_says_so(self):
        with self.client.session({'y': 'b'}) as session:
            self.fails(
                'INVALID_ARGUMENT', 'TENSOR_MISSING', session.infer, 'add', {'a': self.ones(1)}
            )


class Inference(Case):
    def test_small_tensors_travel_inline(self):
        result = self.add(3, id='r7')
        self.assertEqual(
            (result.model, result.version, result.id, result.device), ('add', '1', 'r7', 'ref')
        )
        self.assertGreater(result.timing['compute_ns'], 0)
        self.assertGreaterEqual(result.timing['core_ns'], result.timing['compute_ns'])
        self.assertGreaterEqual(result.timing['threads'], 1)
        self.assertEqual(self.client.status()['regions'], 0)

    def test_shapes_that_are_odd_or_empty(self):
        for rows in (0, 1, 5, 17):
            self.add(rows)

    def test_large_tensors_travel_through_memory_that_is_used_again(self):
        regions = set()
        self.add(200_000)  # the output in pieces: there was no room for it yet
        for _ in range(5):
            self.add(200_000)  # 3.2 MB each, more than a frame may carry
            gc.collect()
            regions.add(self.client.status()['regions'])
        self.assertEqual(len(regions), 1, regions)

    def test_large_answers_come_in_pieces_at_first(self):
        y = self.add(100000)['y']
        self.assertIsNotNone(y.base)
        self.assertEqual(self.client._outputs[('add', '')], {'y': y.nbytes})
        self.add(100000)
        with self.client.session() as session:
            one = numpy.ones((100000, 4), numpy.float32)
            self.assertEqual(session.infer('add', {'a': one, 'b': one})['y'].sum(), 800000)

    def test_results_keep_their_memory(self):
        first = self.add(100_000)
        y = first['y'].copy()
        for _ in range(3):
            self.add(100_001)
        numpy.testing.assert_array_equal(first['y'], y)

    def test_arrays_of_shared_memory_are_not_copied(self):
        a, b, y = (self.client.empty((64, 4)) for _ in range(3))
        a[:], b[:], y[:] = 3, 4, 0
        result = self.client.infer('add', {'a': a, 'b': b}, out={'y': y})
        self.assertTrue((y == 7).all())
        self.assertTrue(numpy.shares_memory(result['y'], y))
        self.assertEqual(self.client.status()['regions'], 3)
        part = self.client.infer(
            'add', {'a': a[16:32], 'b': b[:16]}
        )  # 16 rows are 256 bytes: aligned
        self.assertTrue((part['y'] == 7).all())
        odd = self.client.infer('add', {'a': a[1:2], 'b': b[:1]})  # not aligned: copied
        self.assertTrue((odd['y'] == 7).all())

    def test_a_room_that_is_too_small_is_said(self):
        y = self.client.empty((2, 4))
        a = numpy.zeros((100, 4), numpy.float32)
        error = self.fails(
            'OUT_OF_RANGE',
            'OUTPUT_TOO_SMALL',
            self.client.infer,
            'add',
            {'a': a, 'b': a},
            out={'y': y},
        )
        self.assertEqual((error.tensor, error.expected), ('y', '1600'))
        with self.assertRaises(ValueError):
            self.client.infer(
                'add', {'a': a, 'b': a}, out={'y': numpy.zeros((100, 8), numpy.float32)[:, ::2]}
            )

    def test_outputs_go_to_any_array(self):
        a, y = numpy.ones((100, 4), numpy.float32), numpy.zeros((100, 4), numpy.float32)
        result = self.client.infer('add', {'a': a, 'b': a}, out={'y': y})
        self.assertTrue((y == 2).all())
        self.assertTrue(numpy.shares_memory(result['y'], y))
        self.fails(
            'OUT_OF_RANGE',
            'OUTPUT_TOO_SMALL',
            self.client.infer,
            'add',
            {'a': a, 'b': a},
            out={'y': y[:3]},
        )

    def test_arrays_in_any_layout(self):
        a = numpy.arange(24, dtype='>f4').reshape(4, 6)[:, 1:5]  # big-endian, not contiguous
        result = self.client.infer(
            'add', {'a': a, 'b': numpy.asfortranarray(a.astype(numpy.float32))}
        )
        numpy.testing.assert_array_equal(result['y'], 2 * a)
        result = self.client.infer('ints', {'a': numpy.array([1, -2, 2**31 - 1], numpy.int32)})
        numpy.testing.assert_array_equal(result['y'], [-1, 2, -(2**31 - 1)])

    def test_mistakes_are_named(self):
        a = numpy.zeros((1, 4), numpy.float32)
        self.fails('NOT_FOUND', 'MODEL_NOT_FOUND', self.client.infer, 'absent', {'a': a})
        self.fails('INVALID_ARGUMENT', 'TENSOR_MISSING', self.client.infer, 'add', {'a': a})
        error = self.fails(
            'INVALID_ARGUMENT', 'SHAPE_MISMATCH', self.client.infer, 'add', {'a': a, 'b': a[:, :3]}
        )
        self.assertEqual((error.tensor, error.expected, error.actual), ('b', '[?,4]', '[1,3]'))
        self.fails(
            'INVALID_ARGUMENT',
            'DTYPE_MISMATCH',
            self.client.infer,
            'add',
            {'a': a, 'b': a.astype(numpy.float64)},
        )
        text = numpy.array(['text'])
        self.fails(
            'INVALID_ARGUMENT', 'DTYPE_MISMATCH', self.client.infer, 'add', {'a': a, 'b': text}
        )
        with self.assertRaises(TypeError):
            self.client.infer('add', {'a': a, 'b': a.astype(numpy.complex64)})
        self.add(2)  # the connection goes on

    def test_names_may_have_the_number_of_the_first_output(self):
        x = numpy.arange(3, dtype=numpy.float32)
        large = numpy.arange(1 << 18, dtype=numpy.float32)  # 1 MiB: through shared memory
        for known in (False, True):
            if known:
                self.client.check('suffixed', {'r1i': x}, ['r1o'])
            for i, o in (('r1i', 'r1o:0'), ('r1i:0', 'r1o')):
                for data in (x, large, large):
                    result = self.client.infer('suffixed', {i: data}, [o])
                    self.assertEqual(list(result), ['r1o:0'])
                    numpy.testing.assert_array_equal(result[o], -data)
                out = numpy.zeros(3, numpy.float32)
                self.client.infer('suffixed', {i: x}, out={o: out})
                numpy.testing.assert_array_equal(out, -x)
        with self.assertRaises(KeyError):
            result['r1o:1']
        self.fails(
            'INVALID_ARGUMENT', 'TENSOR_UNKNOWN', self.client.infer, 'suffixed', {'r1i:1': x}
        )
        both = {'a': numpy.zeros((1, 4), numpy.float32), 'a:0': numpy.zeros((1, 4), numpy.float32)}
        self.fails('INVALID_ARGUMENT', 'BAD_PARAMETER', self.client.infer, 'add', both)

    def test_mistakes_are_found_here_once_the_model_is_known(self):
        a = numpy.zeros((1, 4), numpy.float32)
        wrong = {'a': a, 'b': a[:, :3]}
        self.fails('INVALID_ARGUMENT', 'SHAPE_MISMATCH', self.client.check, 'add', wrong)
        self.client.check('add', {'a': a, 'b': a}, ['y'])
        before = self.client.status()['requests_accepted']
        error = self.fails('INVALID_ARGUMENT', 'SHAPE_MISMATCH', self.client.infer, 'add', wrong)
        self.assertEqual((error.tensor, error.expected, error.actual), ('b', '[?,4]', '[1,3]'))
        self.fails('INVALID_ARGUMENT', 'TENSOR_MISSING', self.client.infer, 'add', {'a': a})
        self.fails('INVALID_ARGUMENT', 'TENSOR_UNKNOWN', self.client.infer, 'add', {'a': a, 'c': a})
        self.fails(
            'INVALID_ARGUMENT', 'TENSOR_UNKNOWN', self.client.infer, 'add', {'a': a, 'b': a}, ['z']
        )
        self.fails(
            'INVALID_ARGUMENT',
            'DTYPE_MISMATCH',
            self.client.infer,
            'add',
            {'a': a, 'b': a.astype(int)},
        )
        self.assertEqual(
            self.client.status()['requests_accepted'], before + 1, 'only the question itself'
        )
        self.add(2)
        # Cached metadata may be outdated: then the daemon reports the fault.
        self.client._known['add', ''] = self.client._known['add', ''][0], 0
        self.fails('INVALID_ARGUMENT', 'SHAPE_MISMATCH', self.client.infer, 'add', wrong)
        self.assertEqual(self.client._known, {})
        self.assertEqual(self.client.status()['requests_accepted'], before + 4)


class Tables(unittest.TestCase):
    def test_messages_are_those_of_the_schema(self):
        """Every field of the codec's table stands in inferd.proto with this number and kind."""
        text = re.sub(r'//.*', '', (ROOT / 'proto/wire/inferd.proto').read_text())
        kinds = {'u': '(uint64|uint32|int32)', 'i': '(int64|int32)', 'b': 'bool', 's': 'string'}
        for name, fields in _proto.MESSAGES.items():
            if name == 'Empty':
                continue
            body = re.search(r'message ' + name + r' *\{(.*?)\n? *\}', text, re.S)
            self.assertIsNotNone(body, name)
            start = body.start(1)
            depth, end = 1, start
            while depth:
                depth += {'{': 1, '}': -1}.get(text[end], 0)
                end += 1
            for number, (field, kind) in fields.items():
                wanted = ('repeated +' if kind[0] == '*' else '') + kinds.get(
                    kind.strip('*'), r'[\w.]+'
                )
                self.assertRegex(text[start:end], rf'\b{wanted} +{field} *= *{number};', name)

    def test_numbers_are_those_of_the_headers(self):
        frame = (ROOT / 'proto/wire/frame.h').read_text()
        status = (ROOT / 'proto/core/status.h').read_text()
        methods = {int(n) for n in re.findall(r'INF_METHOD_\w+ = (\d+)', frame)}
        self.assertLessEqual({number for number, _, _ in _transport._METHODS.values()}, methods)
        for name, number in re.findall(r'INF_REASON_(\w+) = (\d+)', status):
            self.assertEqual(_errors.REASONS[int(number)], '' if name == 'NONE' else name)

    def test_numbers_survive_the_codec(self):
        for value in (0, 1, 127, 128, 2**32, 2**64 - 1):
            message = {'queue_ns': value, 'input_ns': 0, 'compute_ns': 7, 'output_ns': 0}
            message |= {'core_ns': 0, 'threads': 2}
            self.assertEqual(_proto.decode('Timing', _proto.encode('Timing', message)), message)
        # -1, packed, as every protobuf library writes it; and a field that is not known.
        data = bytes.fromhex('0a01611a0bffffffffffffffffff0104') + bytes.fromhex('f83f05')
        self.assertEqual(_proto.decode('TensorMetadata', data)['shape'], [-1, 4])


python_case.main()
