#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""test_gateway_grpc.py DAEMON GATEWAY [TEST...] - unary calls of the Open Inference Protocol."""
import gzip
import struct
import tempfile
import time
import zlib

import gateway_case
from grpc_case import (
    DATA,
    HEADERS,
    OIP,
    PREFACE,
    RST,
    GrpcCase,
    add_request,
    call_fields,
    field,
    frame,
    grpc,
    tensor,
)

CALL = call_fields(b'ModelInfer')


class Methods(GrpcCase):
    def test_server(self):
        self.assertTrue(self.call('ServerLive').live)
        self.assertTrue(self.call('ServerReady').ready)
        self.assertEqual(self.call('ServerMetadata').name, 'inferd')

    def test_model(self):
        self.assertTrue(self.call('ModelReady', name='add').ready)
        self.assertTrue(self.call('ModelReady', name='add', version='1').ready)
        metadata = self.call('ModelMetadata', name='add')
        self.assertEqual((metadata.name, list(metadata.versions)), ('add', ['1']))
        self.assertEqual(
            [(i.name, i.datatype, list(i.shape)) for i in metadata.inputs],
            [('a', 'FP32', [-1, 4]), ('b', 'FP32', [-1, 4])],
        )
        self.assertEqual([o.name for o in metadata.outputs], ['y'])

    def test_model_that_does_not_exist(self):
        with self.assertRaises(grpc.RpcError) as failure:
            self.call('ModelMetadata', name='none')
        self.assertEqual(failure.exception.code(), grpc.StatusCode.NOT_FOUND)
        self.assertIn("'none'", failure.exception.details())
        self.assert_fails(grpc.StatusCode.NOT_FOUND, add_request(model_name='none'))

    def test_methods_that_do_not_exist(self):
        inference = 'inference.GRPCInferenceService'
        for service, name in ((inference, 'ServerLives'), ('x', 'ServerLive')):
            method = self.method(name, service, 'ServerLive')
            with self.assertRaises(grpc.RpcError) as failure:
                method(OIP.ServerLiveRequest(), timeout=60)
            self.assertEqual(failure.exception.code(), grpc.StatusCode.UNIMPLEMENTED)

    def test_methods_that_inferd_lacks_are_named(self):
        for name, text in (
            ('ModelConfig', 'configurations'),
            ('SystemSharedMemoryRegister', 'system shared memory'),
            ('CudaSharedMemoryStatus', 'CUDA'),
            ('TraceSetting', 'traces'),
            ('LogSettings', 'log'),
        ):
            with self.assertRaises(grpc.RpcError) as failure:
                self.method(name, messages='ServerLive')(OIP.ServerLiveRequest(), timeout=60)
            self.assertEqual(failure.exception.code(), grpc.StatusCode.UNIMPLEMENTED)
            self.assertIn(text, failure.exception.details())

    def test_ids_come_back(self):
        trace = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01'
        for name in ('ServerLive', 'ModelInfer'):
            request = add_request() if name == 'ModelInfer' else OIP.ServerLiveRequest()
            _, call = self.method(name).with_call(
                request, timeout=60, metadata=(('x-request-id', 'row-7'), ('traceparent', trace))
            )
            fields = dict(call.initial_metadata())
            self.assertEqual((fields['x-request-id'], fields['traceparent']), ('row-7', trace))
        _, call = self.method('ServerLive').with_call(
            OIP.ServerLiveRequest(),
            timeout=60,
            metadata=(('x-request-id', 'a b'), ('traceparent', trace[:-1])),
        )
        fields = dict(call.initial_metadata())
        self.assertFalse({'x-request-id', 'traceparent'} & set(fields))

    def test_both_protocols_share_a_listener(self):
        self.assertTrue(self.call('ServerLive').live)
        self.assertEqual(self.ask('GET', '/v2/health/live').status, 200)


class Inference(GrpcCase):
    def test_raw_contents(self):
        answer = self.infer(add_request(id='seven'))
        names = (answer.model_name, answer.model_version, answer.id)
        self.assertEqual(names, ('add', '1', 'seven'))
        output = answer.outputs[0]
        self.assertEqual((output.name, output.datatype, list(output.shape)), ('y', 'FP32', [1, 4]))
        self.assertEqual(list(answer.raw_output_contents), [struct.pack('<4f', 6, 7, 8, 9)])

    def test_typed_contents(self):
        request = add_request(
            inputs=[
                tensor('a', 'FP32', [2, 4], fp32_contents=range(8)),
                tensor('b', 'FP32', [2, 4], fp32_contents=[0.5] * 8),
            ],
            raw_input_contents=[],
            outputs=[OIP.ModelInferRequest.InferRequestedOutputTensor(name='y')],
        )
        answer = self.infer(request)
        self.assertEqual(
            answer.raw_output_contents[0], struct.pack('<8f', *(i + 0.5 for i in range(8)))
        )
        values = [0, -1, 2**31 - 1, -(2**31) + 1]
        request = OIP.ModelInferRequest(
            model_name='ints', inputs=[tensor('a', 'INT32', [4], int_contents=values)]
        )
        self.assertEqual(
            self.infer(request).raw_output_contents[0], struct.pack('<4i', *(-v for v in values))
        )

    def test_large_tensors(self):
        count = 2_000_000
        data = struct.pack('<f', 2.5) * count
        request = OIP.ModelInferRequest(
            model_name='large', inputs=[tensor('x', 'FP32', [count])], raw_input_contents=[data]
        )
        for _ in range(3):
            answer = self.infer(request)
            self.assertTrue(answer.raw_output_contents[0] == struct.pack('<f', -2.5) * count)
        gateway_case.wait_until(lambda: self.metric('body_bytes') == 0, 'bodies are kept')

    def test_many_calls_at_once(self):
        method = self.method('ModelInfer')
        futures = [
            method.future(
                add_request(raw_input_contents=[struct.pack('<4f', i, 0, 0, 0), bytes(16)]),
                timeout=60,
            )
            for i in range(2000)
        ]
        for i, future in enumerate(futures):
            output = future.result().raw_output_contents[0]
            self.assertEqual(output, struct.pack('<4f', i, 0, 0, 0))

    def test_deadlines(self):
        begin = time.monotonic()
        self.assert_fails(grpc.StatusCode.DEADLINE_EXCEEDED, self.slow_request(), timeout=0.01)
        self.assertLess(time.monotonic() - begin, 10)
        request = self.slow_request()
        request.parameters['timeout'].int64_param = 5000
        self.assert_fails(grpc.StatusCode.DEADLINE_EXCEEDED, request)

    def test_cancellation(self):
        before = self.metric('inferences_cancelled_total')
        started = self.metric('inferences_started_total')
        future = self.method('ModelInfer').future(self.slow_request(), timeout=60)
        gateway_case.wait_until(
            lambda: self.metric('inferences_started_total') > started, 'not started'
        )
        future.cancel()
        gateway_case.wait_until(
            lambda: self.metric('inferences_cancelled_total') == before + 1, 'not cancelled'
        )

    def test_wrong_requests(self):
        invalid = grpc.StatusCode.INVALID_ARGUMENT
        good = [struct.pack('<4f', 1, 2, 3, 4)] * 2
        for changes in (
            {'inputs': []},
            {'raw_input_contents': good[:1]},
            {'raw_input_contents': good * 2},
            {'raw_input_contents': []},
            {'raw_input_contents': [good[0], good[1][:15]]},
            {'raw_input_contents': [good[0], good[1] + b'x']},
            {'inputs': [tensor('a', 'FP32', [1, 4]), tensor('b', 'FP32', [-1, 4])]},
            {'inputs': [tensor('a', 'FP32', [1, 4]), tensor('b', 'FP32', [2**62, 4])]},
            {'inputs': [tensor('a', 'FP32', [1, 4]), tensor('b', 'FP32', [1] * 9)]},
            {'inputs': [tensor('a', 'FP32', [1, 4]), tensor('b', 'FP33', [1, 4])]},
            {'inputs': [tensor('a', 'FP32', [1, 4]), tensor('', '', [1, 4])]},
            {'inputs': [tensor('a', 'FP32', [1, 4]), tensor('b' * 300, 'FP32', [1, 4])]},
            {'inputs': [tensor('a', 'FP32', [1, 4]), tensor('b', 'FP32', [1], fp32_contents=[1])]},
            {'inputs': [tensor('a', 'FP32', [1, 4])] * 65, 'raw_input_contents': good * 32},
            {'model_name': 'm' * 100},
            {'id': 'i' * 300},
        ):
            self.assert_fails(invalid, add_request(**changes))
        self.assert_fails(
            invalid, add_request(inputs=[tensor('a', 'BYTES', [1]), tensor('b', 'FP32', [1, 4])])
        )
        unimplemented = grpc.StatusCode.UNIMPLEMENTED
        request = add_request()
        request.inputs[0].parameters['shared_memory_region'].string_param = 'a'
        self.assert_fails(unimplemented, request)
        for name, field, value in (
            ('sequence_id', 'bool_param', True),
            ('sequence_id', 'int64_param', -1),
            ('sequence_id', 'string_param', 'x' * 129),
            ('sequence_start', 'int64_param', 1),
            ('sequence_end', 'string_param', 'yes'),
            ('timeout', 'string_param', '1'),
            ('priority', 'int64_param', -1),
        ):
            request = add_request()
            setattr(request.parameters[name], field, value)
            self.assert_fails(invalid, request)
        self.infer(add_request())

    def test_typed_contents_out_of_range(self):
        for datatype, field, good, bad in (
            ('INT8', 'int_contents', -128, 128),
            ('INT16', 'int_contents', 32767, -32769),
            ('UINT8', 'uint_contents', 255, 256),
            ('UINT16', 'uint_contents', 65535, 65536),
        ):
            for value, says in ((good, False), (bad, True)):
                request = OIP.ModelInferRequest(
                    model_name='ints', inputs=[tensor('a', datatype, [1], **{field: [value]})]
                )
                text = self.assert_fails(grpc.StatusCode.INVALID_ARGUMENT, request)
                self.assertEqual('contents are not' in text, says, text)
        for contents in (
            {'fp32_contents': [1, 2]},
            {'fp32_contents': [1] * 5},
            {'int_contents': [1]},
        ):
            request = OIP.ModelInferRequest(
                model_name='large', inputs=[tensor('x', 'FP32', [4], **contents)]
            )
            self.assert_fails(grpc.StatusCode.INVALID_ARGUMENT, request)

    def test_single_elements_have_the_wire_type_of_their_field(self):
        # Field 5 of the input holds its contents: one element that is not in a packed list.
        def request(datatype, element):
            start = b'\x0a\x01x\x12' + bytes([len(datatype)]) + datatype + b'\x18\x01'
            tensor_ = start + b'\x2a' + bytes([len(element)]) + element
            return b'\x0a\x05large' + b'\x2a' + bytes([len(tensor_)]) + tensor_

        one, varint = struct.pack('<f', 1), b'\x80\x80\x80\xfc\x03'
        answer = self.infer(request(b'FP32', b'\x35' + one))
        self.assertEqual(answer.raw_output_contents[0], struct.pack('<f', -1))
        for datatype, element in (
            (b'FP32', b'\x30' + varint),  # the bits of 1.0 as a varint
            (b'FP32', b'\x31' + one + bytes(4)),
            (b'FP64', b'\x3d' + one),
            (b'FP64', b'\x38\x01'),
            (b'INT32', b'\x15' + one),
            (b'INT32', b'\x11' + one + one),
        ):
            text = self.assert_fails(
                grpc.StatusCode.INVALID_ARGUMENT, request(datatype, element)
            )
            self.assertIn('contents are not', text)

    def test_a_shape_that_is_no_list_of_integers(self):
        for shape, wanted in (
            (b'\x1a\x01\x80', 'list of integers'),
            (b'\x1d\1\0\0\0', 'list of integers'),
            (b'\x1a\x09' + b'\1' * 9, '8 dimensions'),
        ):
            tensor_ = b'\x0a\x01x\x12\x04FP32' + shape
            text = self.assert_fails(
                grpc.StatusCode.INVALID_ARGUMENT, b'\x2a' + bytes([len(tensor_)]) + tensor_
            )
            self.assertIn(wanted, text)

    def test_bytes_that_are_no_message(self):
        good = add_request().SerializeToString()
        for size in range(1, len(good)):
            try:
                self.infer(good[:size])
            except grpc.RpcError as failure:
                self.assertIn(
                    failure.code(),
                    (grpc.StatusCode.INVALID_ARGUMENT, grpc.StatusCode.NOT_FOUND),
                )
        for i in range(len(good)):
            try:
                self.infer(good[:i] + bytes([good[i] ^ 0x55]) + good[i + 1 :])
            except grpc.RpcError as failure:
                self.assertNotEqual(failure.code(), grpc.StatusCode.INTERNAL)
                self.assertNotEqual(failure.code(), grpc.StatusCode.UNAVAILABLE)
        self.assert_fails(grpc.StatusCode.INVALID_ARGUMENT, b'\x2a\xff\xff\xff\xff\x0f')
        self.assert_fails(grpc.StatusCode.INVALID_ARGUMENT, b'\x0b' * 100000)
        self.infer(add_request())


# Names and values of response fields in the Huffman code of HPACK.
STATUS = b'\x88\x9a\xca\xc8\xb2\x124\xda\x8f'  # grpc-status
CODINGS = b'\x904\x85\xa9&O\xaf\xa9\x0b-\x03I~\xa6\xf6j\xff'  # identity,deflate,gzip


class Compression(GrpcCase):
    options = ('--bodies-max-bytes=100000000',)

    def large(self, count):
        values = struct.pack(f'<{count}f', *range(count))
        request = OIP.ModelInferRequest(
            model_name='large',
            inputs=[tensor('x', 'FP32', [count])],
            raw_input_contents=[values],
        )
        return request, struct.pack(f'<{count}f', *(-float(i) for i in range(count)))

    def test_messages_may_be_compressed(self):
        # grpcio compresses a message only if that makes it smaller.
        for coding in (grpc.Compression.Gzip, grpc.Compression.Deflate):
            for count in (100, 150_000):
                request, want = self.large(count)
                answer = self.method('ModelInfer')(request, timeout=60, compression=coding)
                self.assertEqual(answer.raw_output_contents[0], want)
            text = add_request(id='a' * 200)
            self.assertEqual(self.method('ModelInfer')(text, compression=coding).id, text.id)

    def call_raw(self, body, *fields, flag=1):
        """The header fields, as bytes, of the response to a compressed message."""
        with self.gateway.connect() as client:
            text = struct.pack('>BI', flag, len(body)) + body
            frames = [text[i : i + 16384] for i in range(0, len(text), 16384)]
            client.sendall(PREFACE + frame(HEADERS, 4, 1, CALL + b''.join(fields)))
            for i, part in enumerate(frames):
                client.sendall(frame(DATA, int(i == len(frames) - 1), 1, part))
            return self.read_until(client, HEADERS)

    def test_codings(self):
        text = add_request().SerializeToString()
        gzipped = field(b'grpc-encoding', b'gzip')
        deflated = field(b'grpc-encoding', b'deflate')
        identity = field(b'grpc-encoding', b'identity')
        unknown = field(b'grpc-encoding', b'snappy')
        for body, fields, flag, status in (
            (gzip.compress(text), [gzipped], 1, None),
            (zlib.compress(text), [deflated], 1, None),
            (text, [gzipped], 0, None),
            (text, [unknown], 0, None),
            (text, [identity], 0, None),
            (gzip.compress(text), [unknown], 1, b'12'),
            (gzip.compress(text), [identity], 1, b'13'),
            (gzip.compress(text), [], 1, b'13'),
            (zlib.compress(text), [gzipped], 1, b'3'),
            (gzip.compress(text), [deflated], 1, b'3'),
            (gzip.compress(text)[:-1], [gzipped], 1, b'3'),
            (gzip.compress(text) + b'x', [gzipped], 1, b'3'),
            (b'', [gzipped], 1, b'3'),
            (gzip.compress(text[:-3]), [gzipped], 1, b'3'),
        ):
            head = self.call_raw(body, *fields, flag=flag)
            self.assertIn(CODINGS, head)
            if status is None:
                self.assertNotIn(STATUS, head)
            else:
                self.assertIn(STATUS + bytes([len(status)]) + status, head)

    def test_bombs_are_bounded(self):
        bomb = gzip.compress(bytes(64 << 20), 9)
        gzipped = field(b'grpc-encoding', b'gzip')
        for _ in range(3):
            head = self.call_raw(bomb, gzipped)
            self.assertIn(STATUS + b'\x013', head)
        # All calls that are being decompressed share the memory of bodies.
        with self.gateway.connect() as client:
            text = struct.pack('>BI', 1, len(bomb)) + bomb
            parts = [text[i : i + 16384] for i in range(0, len(text), 16384)]
            client.sendall(PREFACE)
            for stream in range(1, 41, 2):
                client.sendall(frame(HEADERS, 4, stream, CALL + gzipped))
                for i, part in enumerate(parts):
                    client.sendall(frame(DATA, int(i == len(parts) - 1), stream, part))
            codes = [self.read_until(client, HEADERS) for stream in range(20)]
        self.assertTrue(any(b'\x018' in head for head in codes))  # RESOURCE_EXHAUSTED
        gateway_case.wait_until(lambda: self.metric('body_bytes') == 0, 'bodies are kept')

    def test_a_call_that_ends_while_its_message_is_decompressed(self):
        bomb = gzip.compress(bytes(15 << 20), 9)
        text = struct.pack('>BI', 1, len(bomb)) + bomb
        for i in range(20):
            with self.gateway.connect() as client:
                client.sendall(
                    PREFACE
                    + frame(HEADERS, 4, 1, CALL + field(b'grpc-encoding', b'gzip'))
                    + b''.join(
                        frame(DATA, int(k + 16384 >= len(text)), 1, text[k : k + 16384])
                        for k in range(0, len(text), 16384)
                    )
                )
                if i % 2:
                    client.sendall(frame(RST, 0, 1, struct.pack('>I', 8)))
        gateway_case.wait_until(lambda: self.metric('body_bytes') == 0, 'bodies are kept')
        self.infer(add_request())


class CompressedMemory(GrpcCase):
    options = ('--bodies-max-bytes=300000',)

    def test_the_memory_of_zlib_is_charged(self):
        infer = self.method('ModelInfer')
        for count in (50_000, 20_000):  # a buffer of 262,144 bytes, and one of 131,072
            values = bytes(4 * count)
            request = OIP.ModelInferRequest(
                model_name='large',
                inputs=[tensor('x', 'FP32', [count])],
                raw_input_contents=[values],
            )
            if count == 20_000:
                answer = infer(request, timeout=60, compression=grpc.Compression.Gzip)
                self.assertEqual(len(answer.raw_output_contents[0]), len(values))
                continue
            with self.assertRaises(grpc.RpcError) as raised:
                infer(request, timeout=60, compression=grpc.Compression.Gzip)
            self.assertEqual(raised.exception.code(), grpc.StatusCode.RESOURCE_EXHAUSTED)
            self.assertIn('need all memory', raised.exception.details())


class Tokens(GrpcCase):
    token = 'secret-of-the-tests'

    @classmethod
    def setUpClass(cls):
        cls.file = tempfile.NamedTemporaryFile('w', prefix='inferd-tokens.')
        cls.file.write(cls.token)
        cls.file.flush()
        cls.options = (f'--tokens={cls.file.name}',)
        super().setUpClass()

    @classmethod
    def ask(cls, method, path, body=None, headers=None, admin=False):
        given = {'Authorization': 'Bearer ' + cls.token, **(headers or {})}
        return super().ask(method, path, body, given, admin)

    def code(self, name, request, authorization, service='inference.GRPCInferenceService'):
        method = self.channel.stream_stream(
            f'/{service}/{name}', request_serializer=lambda m: m.SerializeToString()
        )
        metadata = [('authorization', authorization)] if authorization else []
        call = method(iter([request]), timeout=60, metadata=metadata)
        try:
            list(call)
        except grpc.RpcError:
            pass
        return call.code()

    def test_calls_need_a_token_except_those_about_health(self):
        empty, refused = OIP.ServerLiveRequest(), grpc.StatusCode.UNAUTHENTICATED
        for name in ('ServerLive', 'ServerReady'):
            self.assertEqual(self.code(name, empty, None), grpc.StatusCode.OK)
        health = 'grpc.health.v1.Health'
        self.assertEqual(self.code('Check', empty, None, health), grpc.StatusCode.OK)
        watch = self.channel.unary_stream(
            f'/{health}/Watch', request_serializer=lambda m: m.SerializeToString()
        )(OIP.HealthCheckRequest(), timeout=60)
        self.assertEqual(next(watch), b'\x08\x01')
        watch.cancel()
        for name, request in (
            ('ServerMetadata', empty),
            ('ModelInfer', add_request()),
            ('ModelStreamInfer', add_request()),
            ('NoSuchMethod', empty),
        ):
            for authorization in (None, self.token, 'Bearer ' + self.token[:-1], 'Bearer'):
                self.assertEqual(self.code(name, request, authorization), refused, name)
            if name != 'NoSuchMethod':
                good = 'Bearer ' + self.token
                self.assertEqual(self.code(name, request, good), grpc.StatusCode.OK, name)


class Limits(GrpcCase):
    options = ('--body-max-bytes=100000', '--body-timeout-ms=1000')

    def test_messages_larger_than_the_limit(self):
        request = OIP.ModelInferRequest(
            model_name='large',
            inputs=[tensor('x', 'FP32', [1 << 20])],
            raw_input_contents=[bytes(4 << 20)],
        )
        self.assert_fails(grpc.StatusCode.RESOURCE_EXHAUSTED, request)
        self.infer(add_request())


if __name__ == '__main__':
    gateway_case.main()
