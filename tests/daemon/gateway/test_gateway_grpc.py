#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""test_gateway_grpc.py DAEMON GATEWAY [TEST...] - the Open Inference Protocol over gRPC.

The client is grpcio of Debian; protoc makes the messages from the text below, whose names and
numbers are those of the protocol's grpc_service.proto.
"""
import os
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
import time

try:
    import grpc
except ImportError:
    # The first python3 of the path may be another one than Debian's.
    if os.path.exists('/usr/bin/python3') and 'INF_GRPC_TRIED' not in os.environ:
        os.environ['INF_GRPC_TRIED'] = 'yes'
        os.execv('/usr/bin/python3', ['/usr/bin/python3', '-B', *sys.argv])
    print('SKIP: python3-grpcio is not installed')
    sys.exit(77)
if not shutil.which('protoc'):
    print('SKIP: protoc is not installed')
    sys.exit(77)

import gateway_case
from gateway_case import Case

PROTO = '''
syntax = "proto3";
package inference;
message ServerLiveRequest {}
message ServerLiveResponse { bool live = 1; }
message ServerReadyRequest {}
message ServerReadyResponse { bool ready = 1; }
message ModelReadyRequest { string name = 1; string version = 2; }
message ModelReadyResponse { bool ready = 1; }
message ServerMetadataRequest {}
message ServerMetadataResponse {
  string name = 1;
  string version = 2;
  repeated string extensions = 3;
}
message ModelMetadataRequest { string name = 1; string version = 2; }
message ModelMetadataResponse {
  message TensorMetadata { string name = 1; string datatype = 2; repeated int64 shape = 3; }
  string name = 1;
  repeated string versions = 2;
  string platform = 3;
  repeated TensorMetadata inputs = 4;
  repeated TensorMetadata outputs = 5;
}
message InferParameter {
  oneof parameter_choice {
    bool bool_param = 1;
    int64 int64_param = 2;
    string string_param = 3;
    double double_param = 4;
    uint64 uint64_param = 5;
  }
}
message InferTensorContents {
  repeated bool bool_contents = 1;
  repeated int32 int_contents = 2;
  repeated int64 int64_contents = 3;
  repeated uint32 uint_contents = 4;
  repeated uint64 uint64_contents = 5;
  repeated float fp32_contents = 6;
  repeated double fp64_contents = 7;
  repeated bytes bytes_contents = 8;
}
message ModelInferRequest {
  message InferInputTensor {
    string name = 1;
    string datatype = 2;
    repeated int64 shape = 3;
    map<string, InferParameter> parameters = 4;
    InferTensorContents contents = 5;
  }
  message InferRequestedOutputTensor {
    string name = 1;
    map<string, InferParameter> parameters = 2;
  }
  string model_name = 1;
  string model_version = 2;
  string id = 3;
  map<string, InferParameter> parameters = 4;
  repeated InferInputTensor inputs = 5;
  repeated InferRequestedOutputTensor outputs = 6;
  repeated bytes raw_input_contents = 7;
}
message ModelInferResponse {
  message InferOutputTensor {
    string name = 1;
    string datatype = 2;
    repeated int64 shape = 3;
    map<string, InferParameter> parameters = 4;
    InferTensorContents contents = 5;
  }
  string model_name = 1;
  string model_version = 2;
  string id = 3;
  map<string, InferParameter> parameters = 4;
  repeated InferOutputTensor outputs = 5;
  repeated bytes raw_output_contents = 6;
}
message HealthCheckRequest { string service = 1; }
message HealthCheckResponse { int32 status = 1; }
'''


def make_messages():
    with tempfile.TemporaryDirectory(prefix='inferd-proto.') as folder:
        with open(folder + '/oip.proto', 'w') as out:
            out.write(PROTO)
        command = ['protoc', f'--proto_path={folder}', f'--python_out={folder}', 'oip.proto']
        subprocess.run(command, check=True)
        sys.path.insert(0, folder)
        try:
            import oip_pb2
        finally:
            sys.path.remove(folder)
        return oip_pb2


OIP = make_messages()


def tensor(name, datatype, shape, **contents):
    return OIP.ModelInferRequest.InferInputTensor(
        name=name,
        datatype=datatype,
        shape=shape,
        contents=OIP.InferTensorContents(**contents) if contents else None,
    )


def add_request(**changes):
    fields = {
        'model_name': 'add',
        'inputs': [tensor('a', 'FP32', [1, 4]), tensor('b', 'FP32', [1, 4])],
        'raw_input_contents': [struct.pack('<4f', 1, 2, 3, 4), struct.pack('<4f', 5, 5, 5, 5)],
    }
    fields.update(changes)
    return OIP.ModelInferRequest(**fields)


class GrpcCase(Case):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        options = [('grpc.max_receive_message_length', -1), ('grpc.max_send_message_length', -1)]
        cls.channel = grpc.insecure_channel('unix:' + cls.gateway.path, options)

    @classmethod
    def tearDownClass(cls):
        cls.channel.close()
        super().tearDownClass()

    @classmethod
    def method(cls, name, service='inference.GRPCInferenceService', messages=None):
        messages = messages or name
        return cls.channel.unary_unary(
            f'/{service}/{name}',
            request_serializer=lambda m: m if isinstance(m, bytes) else m.SerializeToString(),
            response_deserializer=getattr(OIP, messages + 'Response').FromString,
        )

    def call(self, method, **fields):
        request = getattr(OIP, method + 'Request')(**fields)
        return self.method(method)(request, timeout=60)

    def infer(self, request, timeout=60):
        return self.method('ModelInfer')(request, timeout=timeout)

    def assert_fails(self, code, request, timeout=60):
        with self.assertRaises(grpc.RpcError) as failure:
            self.infer(request, timeout)
        self.assertEqual(failure.exception.code(), code, failure.exception.details())
        return failure.exception.details()


class Methods(GrpcCase):
    def test_server(self):
        self.assertTrue(self.call('ServerLive').live)
        self.assertTrue(self.call('ServerReady').ready)
        self.assertEqual(self.call('ServerMetadata').name, 'inferd')

    def test_health_service(self):
        check = self.method('Check', 'grpc.health.v1.Health', 'HealthCheck')
        self.assertEqual(check(OIP.HealthCheckRequest(), timeout=60).status, 1)

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

    def slow_request(self):
        return OIP.ModelInferRequest(
            model_name='slow',
            inputs=[tensor('x', 'FP32', [256, 256])],
            raw_input_contents=[bytes(4 * 65536)],
        )

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
        unimplemented = grpc.StatusCode.UNIMPLEMENTED
        self.assert_fails(
            unimplemented,
            add_request(inputs=[tensor('a', 'BYTES', [1]), tensor('b', 'FP32', [1, 4])]),
        )
        request = add_request()
        request.parameters['sequence_id'].int64_param = 1
        self.assert_fails(unimplemented, request)
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
        # Field 5 of the input are its contents: one element that is not in a packed list.
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

    def test_compressed_messages_are_refused(self):
        with self.assertRaises(grpc.RpcError) as failure:
            self.method('ModelInfer')(
                add_request(id='a' * 200), timeout=60, compression=grpc.Compression.Gzip
            )
        self.assertEqual(failure.exception.code(), grpc.StatusCode.UNIMPLEMENTED)


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


def frame(kind, flags, stream, payload=b''):
    return struct.pack('>I', len(payload))[1:] + bytes([kind, flags]) + struct.pack(
        '>I', stream
    ) + payload


def field(name, value):
    """A header field without compression and without an entry in the table."""
    return b'\0' + bytes([len(name)]) + name + bytes([len(value)]) + value


PREFACE = b'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n' + frame(4, 0, 0)
DATA, HEADERS, RST, SETTINGS, PING, CONTINUATION = 0, 1, 3, 4, 6, 9
CALL = b''.join(
    field(*pair)
    for pair in (
        (b':method', b'POST'),
        (b':scheme', b'http'),
        (b':authority', b'localhost'),
        (b':path', b'/inference.GRPCInferenceService/ModelInfer'),
        (b'content-type', b'application/grpc'),
        (b'te', b'trailers'),
    )
)


class Frames(GrpcCase):
    options = ('--body-timeout-ms=1000',)

    def flood(self, count, make):
        """Sends frames until the gateway closes the connection; returns how many were sent."""
        with self.gateway.connect() as client:
            client.settimeout(5)
            sent = 0
            try:
                client.sendall(PREFACE)
                for i in range(count):
                    client.sendall(make(i))
                    sent += 1
            except OSError:
                pass
        self.assertEqual(self.ask('GET', '/v2/health/live').status, 200)
        return sent

    def test_preface_byte_by_byte(self):
        with self.gateway.connect() as client:
            for i in range(len(PREFACE)):
                client.sendall(PREFACE[i : i + 1])
            self.assertEqual(client.recv(9)[3], SETTINGS)

    def test_rapid_reset(self):
        def make(i):
            stream = 2 * i + 1
            return frame(HEADERS, 4, stream, CALL) + frame(RST, 0, stream, struct.pack('>I', 8))

        self.assertLess(self.flood(100000, make), 50000)

    def test_continuations_without_end(self):
        def make(i):
            return frame(CONTINUATION if i else HEADERS, 0, 1, field(b'x-%06d' % i, b'a' * 100))

        self.assertLess(self.flood(100000, make), 50000)

    def test_settings_and_pings_that_are_not_read(self):
        self.assertLess(self.flood(1000000, lambda i: frame(PING, 0, 0, bytes(8)) * 100), 900000)

    def test_a_size_that_is_a_lie(self):
        for size, body in ((2**32 - 1, b'x' * 100), (0, b'x'), (1000, b'x')):
            with self.gateway.connect() as client:
                client.sendall(
                    PREFACE
                    + frame(HEADERS, 4, 1, CALL)
                    + frame(DATA, 1, 1, struct.pack('>BI', 0, size) + body)
                )
                client.settimeout(10)
                # A literal field, or one with an index, whose value is the status 3.
                self.assertIn(b'3', self.read_until(client, HEADERS))

    def test_half_a_message_is_reset_after_its_timeout(self):
        before = self.metric('timeouts_total')
        with self.gateway.connect() as client:
            client.settimeout(10)
            client.sendall(PREFACE + frame(HEADERS, 4, 1, CALL) + frame(DATA, 0, 1, b'\0\0'))
            payload = self.read_until(client, RST)
            self.assertEqual(payload, struct.pack('>I', 8))
        self.assertEqual(self.metric('timeouts_total'), before + 1)

    def read_frame(self, client):
        """The type and the contents of the next frame."""
        head = client.recv(9, socket.MSG_WAITALL)
        self.assertEqual(len(head), 9)
        return head[3], client.recv(int.from_bytes(head[:3], 'big'), socket.MSG_WAITALL)

    def read_until(self, client, wanted):
        while True:
            kind, payload = self.read_frame(client)
            if kind == wanted:
                return payload


if __name__ == '__main__':
    gateway_case.main()
