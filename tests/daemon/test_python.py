#!/usr/bin/env python3
"""test_python.py DAEMON SOURCE_ROOT [TEST...] - the Python client against the daemon."""
import gc
import json
import os
import re
import select
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest
from pathlib import Path

DAEMON, ROOT = sys.argv[1], Path(sys.argv[2])
sys.path.insert(0, str(ROOT / 'client/python'))
sys.dont_write_bytecode = True
try:
    import numpy
except ImportError:
    print('numpy is not installed')
    sys.exit(77)  # skipped
import inferd
from inferd import _transport, _errors, _proto


def placeholder(name, dtype, *dims):
    shape = {'shape': {'dim': [{'size': str(size)} for size in dims]}}
    return {'name': name, 'op': 'Placeholder', 'attr': {'dtype': {'type': dtype}, 'shape': shape}}


def node(name, op, *inputs, **attributes):
    return {'name': name, 'op': op, 'input': list(inputs), 'attr': attributes}


FLOAT = {'type': 'DT_FLOAT'}
MODELS = {
    'add': [
        placeholder('a', 'DT_FLOAT', -1, 4),
        placeholder('b', 'DT_FLOAT', -1, 4),
        node('y', 'AddV2', 'a', 'b', T=FLOAT),
    ],
    'ints': [placeholder('a', 'DT_INT32', -1), node('y', 'Neg', 'a', T={'type': 'DT_INT32'})],
    # Its signature calls the tensors 'r1i:0' and 'r1o:0'.
    'suffixed': [placeholder('r1i', 'DT_FLOAT', -1), node('r1o', 'Neg', 'r1i', T=FLOAT)],
    # States: one whose names tell it, and one whose settings do.
    'count': [
        placeholder('x', 'DT_FLOAT', 1, 4),
        placeholder('h_in', 'DT_FLOAT', 1, 4),
        node('h_out', 'AddV2', 'x', 'h_in', T=FLOAT),
    ],
    'told': [
        placeholder('x', 'DT_FLOAT', 1, 4),
        placeholder('s', 'DT_FLOAT', 1, 4),
        node('y', 'AddV2', 'x', 's', T=FLOAT),
    ],
    # A chain of products that takes plain loops long enough to be waited for.
    'slow': [placeholder('x', 'DT_FLOAT', 256, 256)]
    + [
        node(
            f's{i + 1}',
            'MatMul',
            f's{i}' if i else 'x',
            'x',
            T=FLOAT,
            transpose_a={'b': False},
            transpose_b={'b': False},
        )
        for i in range(60)
    ],
}


def write_models(folder):
    for name, nodes in MODELS.items():
        path = Path(folder) / name / '1'
        path.mkdir(parents=True)
        model = {'format': 'graph-model', 'modelTopology': {'node': nodes}, 'weightsManifest': []}
        if name == 'suffixed':
            model['signature'] = {
                'inputs': {'r1i:0': {'name': 'r1i:0'}},
                'outputs': {'r1o:0': {'name': 'r1o:0'}},
            }
        (path / 'model.json').write_text(json.dumps(model))
    (Path(folder) / 'told' / 'model.conf').write_text('session_pairs = y = s\n')


class Daemon:
    def __init__(self):
        self.folder = tempfile.TemporaryDirectory()
        path = self.folder.name
        write_models(path + '/models')
        self.socket, self.admin = path + '/inferd.sock', path + '/admin.sock'
        self.start()

    def launch(self):
        path = self.folder.name
        self.process = subprocess.Popen(
            [
                DAEMON,
                '--runtime-dir=' + path,
                '--cache-dir=' + path,
                '--repository=' + path + '/models',
                # Each load of 'slow' runs it, which no load from a plan does.
                '--plan-bytes-max=0',
                '--backends=ref',
                '--drain-timeout-ms=200',
                '--trace-file=' + path + '/spans',
            ],
            stderr=subprocess.DEVNULL,
        )

    def start(self):
        """Starts the daemon, and waits until it has loaded every model."""
        self.launch()
        end = time.monotonic() + 60
        while time.monotonic() < end:
            try:
                with inferd.Client(self.socket) as client:
                    models = client.models()
                    if len(models) == len(MODELS) and all(
                        model['state'] == 'READY' for model in models
                    ):
                        return
            except inferd.Disconnected:
                pass
            time.sleep(0.02)
        self.stop()
        sys.exit('the daemon did not start')

    def end(self):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(30)

    def stop(self):
        self.end()
        self.folder.cleanup()


class Case(unittest.TestCase):
    def setUp(self):
        self.client = inferd.Client(daemon.socket)
        self.addCleanup(self.client.close)

    def add(self, rows, **options):
        a = numpy.arange(rows * 4, dtype=numpy.float32).reshape(rows, 4)
        b = numpy.full((rows, 4), 0.5, numpy.float32)
        result = self.client.infer('add', {'a': a, 'b': b}, **options)
        numpy.testing.assert_array_equal(result['y'], a + b)
        return result

    def fails(self, code, reason, call, *arguments, **options):
        with self.assertRaises(inferd.Error) as caught:
            call(*arguments, **options)
        self.assertEqual(
            (caught.exception.code, caught.exception.reason), (code, reason), caught.exception
        )
        return caught.exception


class WithoutMemory(Case):
    """Another client of this user has all the regions there may be."""

    def setUp(self):
        super().setUp()
        self.holder = inferd.Client(daemon.socket)
        self.held = self.holder.empty(4)
        self.allow(1)
        self.addCleanup(self.allow, 1024)
        self.addCleanup(self.holder.close)

    def allow(self, regions):
        with inferd.Client(daemon.admin) as admin:
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


class Streams(Case):
    x = numpy.zeros((256, 256), numpy.float32)

    def test_many_are_in_flight_at_once(self):
        one = numpy.ones((2, 4), numpy.float32)
        pending = [
            self.client.submit('add', {'a': one * i, 'b': one}) for i in range(1000)
        ]  # beyond the credit
        for i, item in enumerate(pending):
            self.assertTrue((item.result()['y'] == i + 1).all())

    def test_a_deadline_ends_the_wait(self):
        begin = time.monotonic()
        self.fails(
            'DEADLINE_EXCEEDED', 'IN_EXEC', self.client.infer, 'slow', {'x': self.x}, timeout=0.05
        )
        self.assertLess(time.monotonic() - begin, 5)

    def test_a_request_has_to_be_begun_in_time(self):
        running = self.client.submit('slow', {'x': self.x}, queue_timeout=10)
        waiting = self.client.submit('slow', {'x': self.x}, queue_timeout=0.02)
        self.fails('DEADLINE_EXCEEDED', 'IN_QUEUE', waiting.result)
        self.assertFalse(running.done)
        running.cancel()
        self.fails('CANCELLED', 'BY_CLIENT', running.result)

    def test_waiting_can_end_before_the_request(self):
        pending = self.client.submit('slow', {'x': self.x})
        with self.assertRaises(TimeoutError):
            pending.result(timeout=0.01)
        self.assertFalse(pending.done)
        pending.cancel()
        self.fails('CANCELLED', 'BY_CLIENT', pending.result)
        pending.cancel()  # over: nothing happens
        self.add(2)

    def test_a_request_is_listed_and_cancelled_by_another_client(self):
        pending = self.client.submit('slow', {'x': self.x})
        with inferd.Client(daemon.socket) as other:
            rows = [row for row in other.requests() if row['model'] == 'slow']
            self.assertEqual(len(rows), 1)
            self.assertEqual(rows[0]['pid'], os.getpid())
            self.assertIn(rows[0]['client_id'], [row['client_id'] for row in other.clients()])
            other.cancel_request(rows[0]['client_id'], rows[0]['stream_id'])
            self.fails('CANCELLED', 'BY_CLIENT', pending.result)
            self.fails('NOT_FOUND', '', other.disconnect_client, 1 << 40)

    def test_an_event_loop_can_watch_the_socket(self):
        one = numpy.ones((1, 4), numpy.float32)
        pending = self.client.submit('add', {'a': one, 'b': one})
        end = time.monotonic() + 20
        while not pending.done and time.monotonic() < end:
            select.select([self.client], [], [], 1)
            self.client.process()
        self.assertTrue((pending.result()['y'] == 2).all())


class Threads(Case):
    """Several threads share one client."""

    def run_threads(self, *functions):
        failures = []

        def run(function):
            try:
                function()
            except BaseException as failure:
                failures.append(failure)

        threads = [
            threading.Thread(target=run, args=(function,), daemon=True) for function in functions
        ]
        for thread in threads:
            thread.start()
        end = time.monotonic() + 120
        for thread in threads:
            thread.join(max(end - time.monotonic(), 0))
        self.assertFalse(any(thread.is_alive() for thread in threads), 'a thread hangs')
        self.assertEqual(failures, [])

    def infer_often(self, number):
        def run():
            for i in range(200):
                # Inline, through shared memory, and beyond one frame.
                rows = (
                    20_000 + number
                    if i % 50 == 49
                    else (1500 + number if i % 10 == 9 else 1 + number)
                )
                a = numpy.full((rows, 4), number * 1000 + i, numpy.float32)
                result = self.client.infer('add', {'a': a, 'b': a})
                if result['y'].shape != (rows, 4) or not (result['y'] == 2 * a).all():
                    raise AssertionError(
                        f"the answer of another thread's request: {result['y'][0]}"
                    )

        return run

    def test_four_threads_get_their_own_answers(self):
        self.run_threads(*(self.infer_often(number) for number in range(4)))
        self.assertEqual(self.client.statistics['requests'], 800)

    def test_timeouts_hold_while_another_thread_receives(self):
        slow = self.client.submit('slow', {'x': numpy.zeros((256, 256), numpy.float32)})
        waited = []

        def wait_briefly():
            begin = time.monotonic()
            with self.assertRaises(TimeoutError):
                slow.result(timeout=0.05)
            waited.append(time.monotonic() - begin)

        def wait_and_cancel():
            time.sleep(0.2)
            slow.cancel()

        def wait_for_all():
            self.fails('CANCELLED', 'BY_CLIENT', slow.result)

        self.run_threads(wait_for_all, wait_briefly, wait_briefly, wait_and_cancel)
        self.assertLess(max(waited), 0.19)
        self.add(2)

    def test_close_wakes_the_threads_that_wait(self):
        client = inferd.Client(daemon.socket)
        slow = client.submit('slow', {'x': numpy.zeros((256, 256), numpy.float32)})

        def wait():
            with self.assertRaises(inferd.Disconnected):
                slow.result()

        def close():
            time.sleep(0.05)
            client.close()

        self.run_threads(wait, wait, close)

    def test_progress_is_reported_to_the_thread_that_loads(self):
        admin = inferd.Client(daemon.admin)
        self.addCleanup(admin.close)
        threads = set()

        def load():
            admin.load(
                'again',
                path=daemon.folder.name + '/models/add/1/model.json',
                progress=lambda stage, percent: (threads.add(threading.get_ident()), admin.ready()),
            )
            self.assertEqual(threads, {threading.get_ident()})
            admin.unload('again')

        self.run_threads(load, *[lambda: [admin.status() for _ in range(50)]] * 3)


class Server(Case):
    def test_tells_of_itself_and_its_models(self):
        self.assertTrue(self.client.ready())
        self.assertIn('inferd.memfd', self.client.features)
        self.assertEqual([device['name'] for device in self.client.devices()], ['ref'])
        self.assertIn('inferd_ready 1\n', self.client.metrics())
        self.assertTrue(self.client.metrics('openmetrics').endswith('# EOF\n'))
        self.assertIsInstance(json.loads(self.client.metrics('json')), list)
        metadata = self.client.metadata('add')
        self.assertEqual(
            [(t['name'], t['datatype'], t['shape']) for t in metadata['inputs']],
            [('a', 'FP32', [-1, 4]), ('b', 'FP32', [-1, 4])],
        )
        self.fails('NOT_FOUND', 'MODEL_NOT_FOUND', self.client.metadata, 'absent')
        said = {'name': 'add', 'version': '1', 'platform': 'inferd_tfjs_graph_model'}
        self.assertEqual(self.client.describe('add'), said)
        self.assertEqual(self.client.describe('add', '1'), said)
        self.fails('NOT_FOUND', 'VERSION_NOT_FOUND', self.client.describe, 'add', '7')
        self.fails('NOT_FOUND', 'MODEL_NOT_FOUND', self.client.describe, 'absent')
        self.fails('INVALID_ARGUMENT', 'BAD_PARAMETER', self.client.describe, '')

    def test_the_context_of_a_trace_is_sent(self):
        trace, parent = '0af7651916cd43dd8448eb211c80319c', 'b7ad6b7169203331'
        rows = numpy.ones((1, 4), numpy.float32)
        self.client.infer(
            'add',
            {'a': rows, 'b': rows},
            traceparent=f'00-{trace}-{parent}-01',
            tracestate='congo=t61rcWkgMzE',
        )
        path, end = Path(daemon.folder.name + '/spans'), time.monotonic() + 60
        while trace not in path.read_text():
            self.assertLess(time.monotonic(), end, path.read_text())
            time.sleep(0.01)
        spans = json.loads(path.read_text().splitlines()[-1])['resourceSpans'][0]['scopeSpans'][0]
        self.assertEqual(spans['spans'][0]['parentSpanId'], parent)
        self.assertEqual(spans['spans'][0]['traceState'], 'congo=t61rcWkgMzE')
        self.fails(
            'INVALID_ARGUMENT',
            'BAD_PARAMETER',
            self.client.infer,
            'add',
            {'a': rows, 'b': rows},
            traceparent='0' * 129,
        )
        with self.assertRaises(TypeError):
            self.client.infer('add', {'a': rows}, traceparent=1)

    def read_span(self, trace):
        """The daemon's span of the request with this trace id."""
        path, end = Path(daemon.folder.name + '/spans'), time.monotonic() + 60
        while trace not in path.read_text():
            self.assertLess(time.monotonic(), end, path.read_text())
            time.sleep(0.01)
        line = next(line for line in path.read_text().splitlines() if trace in line)
        return json.loads(line)['resourceSpans'][0]['scopeSpans'][0]['spans'][0]

    def test_the_client_has_spans(self):
        trace, parent = '1af7651916cd43dd8448eb211c80319d', 'b7ad6b7169203332'
        rows = {name: numpy.ones((1, 4), numpy.float32) for name in 'ab'}
        spans = []
        with inferd.Client(daemon.socket) as client:
            client.on_span = spans.append
            before = time.time_ns()
            client.infer('add', rows, traceparent=f'00-{trace}-{parent}-01')
            after = time.time_ns()
            (span,) = spans
            self.assertEqual((span['traceId'], span['parentSpanId']), (trace, parent))
            self.assertEqual((span['name'], span['kind']), ('infer add', 3))
            self.assertEqual(span['status'], {'code': 1})
            below = self.read_span(trace)
            self.assertEqual(below['parentSpanId'], span['spanId'])
            self.assertNotIn(span['spanId'], (parent, below['spanId']))
            begin, end = (int(span[f'{edge}TimeUnixNano']) for edge in ('start', 'end'))
            self.assertTrue(before <= begin < end)
            self.assertLess(end - begin, after - before + 1_000_000)
            # Without a trace, or with one that is malformed, the client begins one.
            for text in ('', 'x', f'00-{"0" * 32}-{parent}-01', f'ff-{trace}-{parent}-01'):
                client.infer('add', rows, traceparent=text)
                self.assertNotIn('parentSpanId', spans[-1])
                self.assertEqual(
                    self.read_span(spans[-1]['traceId'])['parentSpanId'], spans[-1]['spanId']
                )
            self.assertEqual(len({span['traceId'] for span in spans}), 5)
            # One that the caller does not sample has no span.
            client.infer('add', rows, traceparent=f'00-{trace}-{parent}-00')
            self.assertEqual(len(spans), 5)
            pending = [client.submit('add', rows) for _ in range(3)]
            for one in pending:
                one.result()
                one.result()
            self.assertEqual(len(spans), 8)
            for model, inputs in (('absent', rows), ('add', {'a': rows['a']})):
                with self.assertRaises(inferd.Error) as failure:
                    client.infer(model, inputs)
                want = {'code': 2, 'message': str(failure.exception)}
                self.assertEqual(spans[-1]['status'], want)
            self.assertEqual(len(spans), 10)

    def test_spans_are_written_to_a_file(self):
        path = daemon.folder.name + '/client-spans'
        with inferd.Client(daemon.socket) as client:
            client.on_span = inferd.SpanFile(path, service='test')
            for _ in range(2):
                client.infer('add', {name: numpy.ones((1, 4), numpy.float32) for name in 'ab'})
            client.on_span.close()
            client.infer('add', {name: numpy.ones((1, 4), numpy.float32) for name in 'ab'})
        lines = [json.loads(line) for line in Path(path).read_text().splitlines()]
        self.assertEqual(len(lines), 2)
        for line in lines:
            (resource,) = line['resourceSpans']
            name = resource['resource']['attributes'][0]
            self.assertEqual(name, {'key': 'service.name', 'value': {'stringValue': 'test'}})
            self.assertEqual(resource['scopeSpans'][0]['spans'][0]['name'], 'infer add')

    def test_models_are_loaded_by_admins_only(self):
        self.fails('PERMISSION_DENIED', 'ROLE', self.client.load, 'add')
        stages = []
        with inferd.Client(daemon.admin) as admin:
            admin.load(
                'again',
                path=daemon.folder.name + '/models/add/1/model.json',
                progress=lambda stage, percent: stages.append(stage),
            )
            self.assertIn('again', [model['name'] for model in admin.models()])
            admin.unload('again')
        self.assertIn('read', stages)

    def test_slow_requests_and_events_are_told(self):
        self.add(2)
        rows = [row for row in self.client.slow() if row['model'] == 'add']
        self.assertGreater(len(rows), 0)
        self.assertGreaterEqual(rows[0]['duration_ns'], rows[0]['compute_ns'])
        last = self.client.events()['last']
        with inferd.Client(daemon.admin) as admin:
            admin.load('fresh', path=daemon.folder.name + '/models/add/1/model.json')
            told = self.client.events(last, wait=True)
            self.assertEqual(told['lost'], 0)
            self.assertEqual({event['model'] for event in told['events']}, {'fresh'})
            self.assertEqual(told['events'][-1]['kind'], 'model_ready')
            admin.unload('fresh')

    def test_a_model_that_is_loading_is_waited_for(self):
        with inferd.Client(daemon.admin) as admin:
            admin.unload('add')
            loads = [threading.Thread(target=admin.load, args=('slow',)) for _ in range(3)]
            loads.append(threading.Thread(target=admin.load, args=('add',)))
            for load in loads:
                load.start()
                time.sleep(0.002)  # the last one is behind the others
            while 'add' not in [model['name'] for model in self.client.models()]:
                time.sleep(0.001)
            self.fails('UNAVAILABLE', 'LOADING', self.add, 1, timeout=0.001)
            # Three loads under a sanitizer may take longer than a question waits by itself.
            self.client.retry = 150.0
            self.addCleanup(setattr, self.client, 'retry', 0.0)
            self.assertEqual(self.client.metadata('add')['name'], 'add')
            self.add(1)
            for load in loads:
                load.join()

    def test_the_end_of_the_daemon_fails_what_is_in_flight(self):
        other = Daemon()
        client = inferd.Client(other.socket)
        epoch = client.epoch
        pending = client.submit('slow', {'x': numpy.zeros((256, 256), numpy.float32)})
        client.status()  # it is in
        other.process.kill()
        with self.assertRaises(inferd.Disconnected):
            pending.result()
        with self.assertRaises(inferd.Disconnected):
            client.status()
        other.stop()
        self.assertNotEqual(epoch, self.client.epoch)
        with self.assertRaises(inferd.Disconnected):
            inferd.Client(other.socket)


class Again(Case):
    """A daemon that comes and goes."""

    def setUp(self):
        self.other = Daemon()
        self.addCleanup(self.other.stop)
        self.client = inferd.Client(self.other.socket, retry=100)
        self.addCleanup(self.client.close)

    def test_what_was_not_begun_is_sent_again_and_nothing_else(self):
        a = self.client.empty((50000, 4))
        a[...] = 1
        epoch = self.client.epoch
        self.other.end()
        start = threading.Timer(0.1, self.other.start)
        start.start()
        result = self.client.infer('add', {'a': a, 'b': a})
        self.assertEqual(result['y'].sum(), 400000)  # registered with the new daemon
        self.assertNotEqual(self.client.epoch, epoch)

        start.join()  # it looks whether every model is ready
        pending = self.client.submit('slow', {'x': numpy.zeros((256, 256), numpy.float32)})
        self.client.status()  # it is in
        self.other.process.kill()
        with self.assertRaises(inferd.Disconnected):
            pending.result()
        self.other.process.wait(30)

        self.client.retry = 0
        with self.assertRaises(inferd.Error) as caught:
            self.add(1)
        self.assertEqual(caught.exception.code, 'UNAVAILABLE')
        with self.assertRaises(inferd.Disconnected):
            self.client.reconnect(0.05)
        self.other.start()
        self.client.reconnect(100)
        self.add(1)

    def test_threads_and_questions_share_a_new_connection(self):
        self.other.end()
        threading.Timer(0.1, self.other.launch).start()
        answers = []

        def infer():
            answers.append(
                self.client.infer(
                    'add',
                    {'a': numpy.ones((1, 4), numpy.float32)}
                    | {'b': numpy.ones((1, 4), numpy.float32)},
                )['y'].sum()
            )

        def ask():
            answers.append(8 if self.client.metadata('add')['name'] == 'add' else 0)

        threads = [
            threading.Thread(target=target, daemon=True) for target in (infer, ask, infer, ask)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        self.assertEqual(answers, [8] * 4)
        self.assertEqual(self.client.statistics['reconnects'], 1)


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
                    kind.strip('*'), r'\w+'
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


daemon = Daemon()
try:
    program = unittest.main(argv=['test_python', *sys.argv[3:]], exit=False)
finally:
    daemon.stop()
sys.exit(0 if program.result.wasSuccessful() else 1)
