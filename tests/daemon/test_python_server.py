#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""test_python_server.py DAEMON SOURCE_ROOT [TEST...] - the Python client against the daemon:
requests in flight, threads, and what the daemon says of itself and its models."""
import json
import os
import select
import sys
import threading
import time
from pathlib import Path

sys.dont_write_bytecode = True
import python_case
import numpy
import inferd
from python_case import Case, Daemon


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
        # On a busy machine the run may begin late.
        for timeout in (0.05, 0.2, 0.8):
            begin = time.monotonic()
            with self.assertRaises(inferd.Error) as caught:
                self.client.infer('slow', {'x': self.x}, timeout=timeout)
            self.assertEqual(caught.exception.code, 'DEADLINE_EXCEEDED', caught.exception)
            self.assertLess(time.monotonic() - begin, 5)
            if caught.exception.reason == 'IN_EXEC':
                break
        self.assertEqual(caught.exception.reason, 'IN_EXEC', caught.exception)

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
        with inferd.Client(python_case.daemon.socket) as other:
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
        waited = threading.Barrier(3)

        def wait_briefly():
            with self.assertRaises(TimeoutError):
                slow.result(timeout=0.05)
            waited.wait(60)

        def wait_and_cancel():
            waited.wait(60)
            slow.cancel()

        def wait_for_all():
            # The request still runs when both timeouts have passed.
            self.fails('CANCELLED', 'BY_CLIENT', slow.result)

        self.run_threads(wait_for_all, wait_briefly, wait_briefly, wait_and_cancel)
        self.add(2)

    def test_close_wakes_the_threads_that_wait(self):
        client = inferd.Client(python_case.daemon.socket)
        slow = client.submit('slow', {'x': numpy.zeros((256, 256), numpy.float32)})

        def wait():
            with self.assertRaises(inferd.Disconnected):
                slow.result()

        def close():
            time.sleep(0.05)
            client.close()

        self.run_threads(wait, wait, close)

    def test_progress_is_reported_to_the_thread_that_loads(self):
        admin = inferd.Client(python_case.daemon.admin)
        self.addCleanup(admin.close)
        threads = set()

        def load():
            admin.load(
                'again',
                path=python_case.daemon.folder.name + '/models/add/1/model.json',
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
        path, end = Path(python_case.daemon.folder.name + '/spans'), time.monotonic() + 60
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
        path, end = Path(python_case.daemon.folder.name + '/spans'), time.monotonic() + 60
        while trace not in path.read_text():
            self.assertLess(time.monotonic(), end, path.read_text())
            time.sleep(0.01)
        line = next(line for line in path.read_text().splitlines() if trace in line)
        return json.loads(line)['resourceSpans'][0]['scopeSpans'][0]['spans'][0]

    def test_the_client_has_spans(self):
        trace, parent = '1af7651916cd43dd8448eb211c80319d', 'b7ad6b7169203332'
        rows = {name: numpy.ones((1, 4), numpy.float32) for name in 'ab'}
        spans = []
        with inferd.Client(python_case.daemon.socket) as client:
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
        path = python_case.daemon.folder.name + '/client-spans'
        with inferd.Client(python_case.daemon.socket) as client:
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
        with inferd.Client(python_case.daemon.admin) as admin:
            admin.load(
                'again',
                path=python_case.daemon.folder.name + '/models/add/1/model.json',
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
        with inferd.Client(python_case.daemon.admin) as admin:
            admin.load('fresh', path=python_case.daemon.folder.name + '/models/add/1/model.json')
            told = self.client.events(last, wait=True)
            self.assertEqual(told['lost'], 0)
            self.assertEqual({event['model'] for event in told['events']}, {'fresh'})
            self.assertEqual(told['events'][-1]['kind'], 'model_ready')
            admin.unload('fresh')

    def wait_for_model(self, name):
        """Waits until the daemon lists the model, which is loading or loaded then."""
        end = time.monotonic() + 60
        while name not in [model['name'] for model in self.client.models()]:
            self.assertLess(time.monotonic(), end)
            time.sleep(0.001)

    def test_a_model_that_is_loading_is_waited_for(self):
        with inferd.Client(python_case.daemon.admin) as admin:
            admin.unload('add')
            admin.unload('slow')
            loads = [threading.Thread(target=admin.load, args=('slow',)) for _ in range(3)]
            loads.append(threading.Thread(target=admin.load, args=('add',)))
            for load in loads[:3]:
                load.start()
            self.wait_for_model('slow')
            loads[3].start()  # it is behind the others
            self.wait_for_model('add')
            try:  # a model that a request waits for is loaded first: it may be there in time
                self.add(1, timeout=0.01)
            except inferd.Error as error:
                self.assertEqual((error.code, error.reason), ('DEADLINE_EXCEEDED', 'LOADING'))
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


python_case.main()
