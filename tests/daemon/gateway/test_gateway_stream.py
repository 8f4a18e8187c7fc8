#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""test_gateway_stream.py DAEMON GATEWAY [TEST...] - streams, statistics and the repository."""
import gzip
import queue
import signal
import struct
import time

import gateway_case
from grpc_case import (
    DATA,
    HEADERS,
    OIP,
    PING,
    PREFACE,
    RST,
    GrpcCase,
    add_request,
    call_fields,
    field,
    frame,
    grpc,
    message,
    tensor,
)

CALL = call_fields(b'ModelStreamInfer')


def add_number(i):
    return add_request(
        id=str(i), raw_input_contents=[struct.pack('<4f', i, 0, 0, 0), bytes(16)]
    )


def large_request(count, **fields):
    return OIP.ModelInferRequest(
        model_name='large',
        inputs=[tensor('x', 'FP32', [count])],
        raw_input_contents=[struct.pack('<f', 2) * count],
        **fields,
    )


class StreamCase(GrpcCase):
    def stream(self, requests, timeout=60, **options):
        method = self.channel.stream_stream(
            '/inference.GRPCInferenceService/ModelStreamInfer',
            request_serializer=lambda m: m if isinstance(m, bytes) else m.SerializeToString(),
            response_deserializer=OIP.ModelStreamInferResponse.FromString,
        )
        return method(iter(requests), timeout=timeout, **options)

    def read_to_failure(self, call):
        """The responses before the call fails, and its status."""
        answers = []
        with self.assertRaises(grpc.RpcError) as failure:
            for answer in call:
                answers.append(answer)
        return answers, failure.exception.code()

    def ids(self, answers):
        self.assertEqual([answer.error_message for answer in answers], [''] * len(answers))
        return [answer.infer_response.id for answer in answers]

    def read_messages(self, client, count):
        """The next messages, of which a frame may have several."""
        data, messages = b'', []
        while len(messages) < count:
            data += self.read_until(client, DATA)
            while len(data) >= 5 and len(data) >= 5 + int.from_bytes(data[1:5], 'big'):
                size = 5 + int.from_bytes(data[1:5], 'big')
                messages.append(OIP.ModelStreamInferResponse.FromString(data[5:size]))
                data = data[size:]
        self.assertEqual((len(messages), data), (count, b''))
        return messages


class Streams(StreamCase):
    def test_responses_have_the_order_of_the_requests(self):
        requests = [self.slow_request(id='slow')] + [add_number(i) for i in range(300)]
        answers = list(self.stream(requests))
        self.assertEqual(self.ids(answers), ['slow'] + [str(i) for i in range(300)])
        for i, answer in enumerate(answers[1:]):
            response = answer.infer_response
            self.assertEqual(response.raw_output_contents[0], struct.pack('<4f', i, 0, 0, 0))
            self.assertEqual((response.model_name, response.model_version), ('add', '1'))
            self.assertTrue(response.parameters['triton_final_response'].bool_param)

    def test_requests_are_answered_while_the_stream_is_open(self):
        requests = queue.Queue()
        call = self.stream(iter(requests.get, None))
        for i in range(5):
            requests.put(add_number(i))
            self.assertEqual(next(call).infer_response.id, str(i))
        requests.put(None)
        self.assertEqual(list(call), [])
        self.assertEqual(call.code(), grpc.StatusCode.OK)

    def test_no_requests(self):
        self.assertEqual(list(self.stream([])), [])

    def test_a_failed_request_does_not_end_the_stream(self):
        wrong = [
            add_request(id='a', model_name='none'),
            b'\x0b' * 100,
            add_request(id='b', raw_input_contents=[]),
            add_request(id='c', inputs=[tensor('a', 'BYTES', [1])]),
            b'',
        ]
        requests = [r for i, bad in enumerate(wrong) for r in (bad, add_number(i))]
        answers = list(self.stream(requests))
        self.assertEqual(len(answers), 10)
        self.assertEqual(self.ids(answers[1::2]), [str(i) for i in range(5)])
        for answer in answers[::2]:
            self.assertTrue(answer.error_message)
        self.assertIn("'none'", answers[0].error_message)
        self.assertEqual([a.infer_response.id for a in answers[::4]], ['a', 'b', ''])
        self.assertEqual(answers[0].infer_response.model_name, 'none')

    def test_large_responses(self):
        count = 1_000_000
        answers = list(self.stream([large_request(count, id=str(i)) for i in range(6)]))
        self.assertEqual(self.ids(answers), [str(i) for i in range(6)])
        wanted = struct.pack('<f', -2) * count
        for answer in answers:
            self.assertTrue(answer.infer_response.raw_output_contents[0] == wanted)
        gateway_case.wait_until(lambda: self.metric('body_bytes') == 0, 'bodies are kept')

    def test_cancellation_cancels_all_requests(self):
        before = self.metric('inferences_cancelled_total')
        started = self.metric('inferences_started_total')
        call = self.stream([self.slow_request() for _ in range(4)])
        gateway_case.wait_until(
            lambda: self.metric('inferences_started_total') >= started + 4, 'not started'
        )
        call.cancel()
        gateway_case.wait_until(
            lambda: self.metric('inferences_cancelled_total') >= before + 2, 'not cancelled'
        )
        gateway_case.wait_until(lambda: self.metric('body_bytes') == 0, 'bodies are kept')

    def test_outstanding_requests_are_bounded(self):
        before = self.metric('inferences_started_total')
        self.assertEqual(len(list(self.stream([large_request(30_000)] * 3))), 3)
        started = self.metric('inferences_started_total')
        self.assertEqual(started, before + 3)
        self.daemon.process.send_signal(signal.SIGSTOP)
        try:
            call = self.stream([large_request(30_000, id=str(i)) for i in range(200)])
            gateway_case.wait_until(
                lambda: self.metric('inferences_started_total') >= started + 16, 'not started'
            )
            time.sleep(0.5)
            self.assertEqual(self.metric('inferences_started_total'), started + 16)
            # 16 messages, and what the flow control window of the call allows.
            self.assertLess(self.metric('body_bytes'), 16 * 2 * 120_000 + 2 * (1 << 20) + 120_000)
        finally:
            self.daemon.process.send_signal(signal.SIGCONT)
        self.assertEqual(self.ids(list(call)), [str(i) for i in range(200)])
        gateway_case.wait_until(lambda: self.metric('body_bytes') == 0, 'bodies are kept')

    def test_sequences(self):
        def request(name, i, value):
            made = OIP.ModelInferRequest(
                model_name='sum',
                inputs=[tensor('x', 'FP32', [2], fp32_contents=[value, 0])],
                outputs=[OIP.ModelInferRequest.InferRequestedOutputTensor(name='z')],
            )
            field = 'string_param' if isinstance(name, str) else name[1]
            id_ = name if isinstance(name, str) else name[0]
            setattr(made.parameters['sequence_id'], field, id_)
            made.parameters['sequence_start'].bool_param = i == 0
            made.parameters['sequence_end'].bool_param = i == 9
            return made

        names = ['text', (5, 'int64_param'), (2**64 - 1, 'uint64_param')]
        requests = [
            request(name, i, 10**k) for i in range(10) for k, name in enumerate(names)
        ]
        answers = list(self.stream(requests))
        self.assertEqual(self.ids(answers), [''] * 30)
        sums = [
            -struct.unpack('<2f', answer.infer_response.raw_output_contents[0])[0]
            for answer in answers
        ]
        self.assertEqual(sums, [(i + 1) * 10**k for i in range(10) for k in range(3)])
        answer = next(self.stream([request('text', 1, 1)]))
        self.assertIn('sequence_start', answer.error_message)
        gateway_case.wait_until(lambda: self.metric('sequences') == 0, 'sequences are kept')

    def test_messages_may_be_compressed(self):
        for coding in (grpc.Compression.Gzip, grpc.Compression.Deflate):
            # Messages that are decompressed at once, and messages that need several turns.
            requests = [
                add_request(id='a' * 200),
                large_request(100_000, id='l'),
                add_request(id='b' * 99),
            ]
            answers = list(self.stream(requests * 8, compression=coding))
            self.assertEqual(self.ids(answers), [request.id for request in requests] * 8)
            self.assertEqual([answer.error_message for answer in answers], [''] * 24)

    def test_a_damaged_message_does_not_end_the_call(self):
        client = self.open_coded(b'gzip')
        good = gzip.compress(add_request(id='g').SerializeToString())
        zeros = gzip.compress(bytes(1 << 20))
        bodies = [good, good[:-1], zeros, zeros[:-1], good]
        text = b''.join(struct.pack('>BI', 1, len(body)) + body for body in bodies)
        client.sendall(frame(DATA, 1, 1, text))
        answers = self.read_messages(client, len(bodies))
        self.assertEqual([bool(a.error_message) for a in answers], [False, True, True, True, False])
        self.assertIn('damaged', answers[1].error_message)
        self.assertIn('damaged', answers[3].error_message)
        client.close()

    def test_a_damaged_message_alone_is_answered(self):
        # Nothing else makes the call go on when the message has been decompressed.
        client = self.open_coded(b'gzip')
        body = gzip.compress(bytes(4 << 20))[:-1]
        client.sendall(frame(DATA, 0, 1, struct.pack('>BI', 1, len(body)) + body))
        client.settimeout(20)
        (answer,) = self.read_messages(client, 1)
        self.assertIn('damaged', answer.error_message)
        client.close()

    def test_an_unknown_coding_ends_the_call(self):
        for coding, status in ((b'snappy', b'12'), (b'identity', b'13')):
            client = self.open_coded(coding)
            self.read_until(client, HEADERS)
            client.sendall(frame(DATA, 1, 1, struct.pack('>BI', 1, 3) + b'abc'))
            self.assertIn(status, self.read_until(client, HEADERS))
            client.close()

    def open_coded(self, coding):
        client = self.gateway.connect()
        client.sendall(PREFACE + frame(HEADERS, 4, 1, CALL + field(b'grpc-encoding', coding)))
        return client

    def test_the_deadline_bounds_each_request(self):
        answers, code = self.read_to_failure(self.stream([self.slow_request()] * 9, timeout=0.05))
        self.assertEqual(code, grpc.StatusCode.DEADLINE_EXCEEDED)
        self.assertLess(len([a for a in answers if not a.error_message]), 9)


class StreamLimits(StreamCase):
    options = ('--body-max-bytes=100000', '--body-timeout-ms=1000', '--write-timeout-ms=1000')

    def test_messages_larger_than_the_limit(self):
        requests = [add_number(0), add_number(1), large_request(30_000), add_number(2)]
        answers, code = self.read_to_failure(self.stream(requests))
        self.assertEqual(code, grpc.StatusCode.RESOURCE_EXHAUSTED)
        self.assertEqual(self.ids(answers), ['0', '1'])
        self.assertEqual(len(list(self.stream([large_request(24_000)] * 20))), 20)

    def open_stream(self, *fields):
        client = self.gateway.connect()
        client.settimeout(10)
        client.sendall(PREFACE + frame(HEADERS, 4, 1, CALL + b''.join(fields)))
        return client

    def assert_status(self, client, status):
        """The call ends with this status, whose value is a literal of one byte."""
        self.read_until(client, HEADERS)
        self.assertIn(b'\x01%d' % status, self.read_until(client, HEADERS))

    def test_messages_in_small_pieces(self):
        with self.open_stream() as client:
            data = message(add_number(7)) + message(add_number(8))
            for i in range(len(data)):
                client.sendall(frame(DATA, 0, 1, data[i : i + 1]))
            self.assertEqual(self.ids(self.read_messages(client, 2)), ['7', '8'])
            client.sendall(frame(DATA, 1, 1))
            self.assertIn(b'\x010', self.read_until(client, HEADERS))

    def test_many_messages_in_one_frame(self):
        count = 16000 // len(message(add_number(100)))
        with self.open_stream() as client:
            data = b''.join(message(add_number(100 + i)) for i in range(count))
            client.sendall(frame(DATA, 1, 1, data))
            ids = [str(100 + i) for i in range(count)]
            self.assertEqual(self.ids(self.read_messages(client, count)), ids)

    def test_a_call_that_ends_within_a_message(self):
        for size in (1, 4, 5, 60):
            with self.open_stream() as client:
                client.sendall(frame(DATA, 1, 1, message(add_number(7))[:size]))
                self.assert_status(client, 3)

    def test_half_a_message_is_reset_and_an_idle_stream_is_not(self):
        before = self.metric('timeouts_total')
        with self.open_stream() as idle, self.open_stream() as client:
            client.sendall(frame(DATA, 0, 1, message(add_number(7))[:20]))
            self.assertEqual(self.read_until(client, RST), struct.pack('>I', 8))
            self.assertEqual(self.metric('timeouts_total'), before + 1)
            time.sleep(1.5)
            idle.sendall(frame(DATA, 1, 1, message(add_number(3))))
            self.assertEqual(self.ids(self.read_messages(idle, 1)), ['3'])

    def test_a_client_that_does_not_read_is_reset(self):
        before = self.metric('timeouts_total')
        with self.gateway.connect() as client:
            client.settimeout(10)
            # SETTINGS with an initial window of 0: no byte of a response may be sent.
            settings = frame(4, 0, 0, struct.pack('>HI', 4, 0))
            client.sendall(PREFACE[:-9] + settings + frame(HEADERS, 4, 1, CALL))
            client.sendall(frame(DATA, 0, 1, message(add_number(3))))
            self.assertEqual(self.read_until(client, RST), struct.pack('>I', 8))
        self.assertEqual(self.metric('timeouts_total'), before + 1)

    def test_a_deadline_of_a_stream_without_messages(self):
        with self.open_stream(field(b'grpc-timeout', b'500m')) as client:
            begin = time.monotonic()
            self.assert_status(client, 4)
            self.assertGreater(time.monotonic() - begin, 0.4)

    def test_a_wrong_timeout_is_refused(self):
        with self.open_stream(field(b'grpc-timeout', b'5x')) as client:
            client.sendall(frame(DATA, 1, 1, message(add_number(3))))
            self.assertIn(b'\x013', self.read_until(client, HEADERS))


class Silence(StreamCase):
    options = ('--idle-timeout-ms=2000',)

    def test_a_client_that_is_gone_is_noticed_and_an_idle_one_is_kept(self):
        requests = queue.Queue()
        call = self.stream(iter(requests.get, None))
        requests.put(add_number(1))
        self.assertEqual(next(call).infer_response.id, '1')
        before = self.metric('timeouts_total')
        with self.gateway.connect() as client:
            client.settimeout(10)
            client.sendall(PREFACE + frame(HEADERS, 4, 1, CALL))
            kinds = []
            while head := client.recv(9):
                kinds.append(head[3])
                client.recv(int.from_bytes(head[:3], 'big'))
        self.assertEqual(kinds.count(PING), 1)
        self.assertEqual(self.metric('timeouts_total'), before + 1)
        time.sleep(3)
        requests.put(add_number(2))
        self.assertEqual(next(call).infer_response.id, '2')
        requests.put(None)
        self.assertEqual(list(call), [])


class Repository(StreamCase):
    def test_only_administrators_may_use_it(self):
        for method in ('RepositoryIndex', 'RepositoryModelLoad', 'RepositoryModelUnload'):
            self.assert_call_fails(grpc.StatusCode.PERMISSION_DENIED, method)

    def test_index(self):
        for ready in (False, True):
            answer = self.call('RepositoryIndex', admin=True, ready=ready)
            self.assertEqual({row.name for row in answer.models}, set(gateway_case.MODELS))
            self.assertEqual({(row.version, row.state) for row in answer.models}, {('1', 'READY')})

    def test_models_are_unloaded_and_loaded(self):
        unload = OIP.RepositoryModelUnloadRequest(model_name='ints')
        unload.parameters['unload_dependents'].bool_param = True
        self.method('RepositoryModelUnload', admin=True)(unload, timeout=60)
        rows = self.call('RepositoryIndex', admin=True, ready=True).models
        self.assertNotIn('ints', {row.name for row in rows})
        self.call('RepositoryModelLoad', admin=True, model_name='ints')
        self.assertTrue(self.call('ModelReady', name='ints').ready)

    def test_parameters_are_checked(self):
        for method, name, code in (
            ('RepositoryModelLoad', 'config', grpc.StatusCode.UNIMPLEMENTED),
            ('RepositoryModelLoad', 'file:1/model.onnx', grpc.StatusCode.UNIMPLEMENTED),
            ('RepositoryModelLoad', 'unload_dependents', grpc.StatusCode.INVALID_ARGUMENT),
            ('RepositoryModelUnload', 'config', grpc.StatusCode.INVALID_ARGUMENT),
        ):
            parameters = {name: OIP.ModelRepositoryParameter(string_param='x')}
            fields = {'model_name': 'ints', 'parameters': parameters}
            self.assert_call_fails(code, method, admin=True, **fields)
        self.assertTrue(self.call('ModelReady', name='ints').ready)


class Statistics(StreamCase):
    def read(self, **fields):
        rows = self.call('ModelStatistics', **fields).model_stats
        return {row.name: row for row in rows}

    def read_last(self, name, **fields):
        """Reads the statistics until they stay the same: the daemon's loop may count an answer
        after the worker has sent it."""
        rows, equal = self.read(name=name, **fields)[name], 0
        end = time.monotonic() + 60
        while equal < 5:
            self.assertLess(time.monotonic(), end)
            time.sleep(0.05)
            last, rows = rows, self.read(name=name, **fields)[name]
            equal = equal + 1 if rows == last else 0
        return rows

    def test_requests_are_counted(self):
        self.infer(add_request())
        before = self.read_last('add')
        self.infer(add_request())
        rows = OIP.ModelInferRequest(
            model_name='add',
            inputs=[tensor(n, 'FP32', [3, 4], fp32_contents=[1] * 12) for n in 'ab'],
        )
        self.infer(rows)
        self.assert_fails(grpc.StatusCode.INVALID_ARGUMENT, add_request(inputs=[tensor(
            'a', 'FP32', [1, 4])], raw_input_contents=[bytes(16)]))
        after = self.read_last('add', version='1')
        self.assertEqual(after.inference_count - before.inference_count, 4)
        old, new = before.inference_stats, after.inference_stats
        self.assertEqual(new.success.count - old.success.count, 2)
        self.assertEqual(new.queue.count - old.queue.count, 2)
        self.assertEqual(new.compute_infer.count - old.compute_infer.count, 2)
        self.assertEqual(new.fail.count - old.fail.count, 1)
        self.assertGreater(new.compute_infer.ns, old.compute_infer.ns)
        self.assertGreaterEqual(new.success.ns, new.queue.ns + new.compute_infer.ns)
        answer = self.ask('GET', '/v2/models/add/versions/1/stats').json()['model_stats']
        self.assertEqual(len(answer), 1)
        times = answer[0]['inference_stats']
        self.assertEqual(answer[0]['inference_count'], after.inference_count)
        self.assertEqual(times['success'], {'count': new.success.count, 'ns': new.success.ns})
        self.assertEqual(times['fail']['count'], new.fail.count)
        self.assertEqual(times['compute_infer']['ns'], new.compute_infer.ns)

    def test_all_models_and_missing_ones(self):
        self.infer(add_request())
        self.infer(large_request(4))
        self.assertLessEqual({'add', 'large'}, set(self.read()))
        self.assertEqual(set(self.read(name='large')), {'large'})
        rows = self.ask('GET', '/v2/models/stats').json()['model_stats']
        self.assertLessEqual({'add', 'large'}, {row['name'] for row in rows})
        self.assert_call_fails(grpc.StatusCode.NOT_FOUND, 'ModelStatistics', name='none')
        self.assertEqual(self.ask('GET', '/v2/models/none/stats').status, 404)
        self.assertEqual(self.ask('GET', '/v2/models/add/versions/9/stats').status, 404)


if __name__ == '__main__':
    gateway_case.main()
