# SPDX-License-Identifier: Apache-2.0
"""What the tests of the gateway over gRPC share.

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

try:
    import grpc
except ImportError:
    # The first python3 in PATH may be another one than Debian's.
    if os.path.exists('/usr/bin/python3') and 'INF_GRPC_TRIED' not in os.environ:
        os.environ['INF_GRPC_TRIED'] = 'yes'
        os.execv('/usr/bin/python3', ['/usr/bin/python3', '-B', *sys.argv])
    print('SKIP: python3-grpcio is not installed')
    sys.exit(77)
if not shutil.which('protoc'):
    print('SKIP: protoc is not installed')
    sys.exit(77)

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
message ModelStreamInferResponse {
  string error_message = 1;
  ModelInferResponse infer_response = 2;
}
message StatisticDuration { uint64 count = 1; uint64 ns = 2; }
message InferStatistics {
  StatisticDuration success = 1;
  StatisticDuration fail = 2;
  StatisticDuration queue = 3;
  StatisticDuration compute_input = 4;
  StatisticDuration compute_infer = 5;
  StatisticDuration compute_output = 6;
}
message ModelStatistics {
  string name = 1;
  string version = 2;
  uint64 last_inference = 3;
  uint64 inference_count = 4;
  uint64 execution_count = 5;
  InferStatistics inference_stats = 6;
}
message ModelStatisticsRequest { string name = 1; string version = 2; }
message ModelStatisticsResponse { repeated ModelStatistics model_stats = 1; }
message ModelRepositoryParameter {
  oneof parameter_choice {
    bool bool_param = 1;
    int64 int64_param = 2;
    string string_param = 3;
    bytes bytes_param = 4;
  }
}
message RepositoryIndexRequest { string repository_name = 1; bool ready = 2; }
message RepositoryIndexResponse {
  message ModelIndex { string name = 1; string version = 2; string state = 3; string reason = 4; }
  repeated ModelIndex models = 1;
}
message RepositoryModelLoadRequest {
  string repository_name = 1;
  string model_name = 2;
  map<string, ModelRepositoryParameter> parameters = 3;
}
message RepositoryModelLoadResponse {}
message RepositoryModelUnloadRequest {
  string repository_name = 1;
  string model_name = 2;
  map<string, ModelRepositoryParameter> parameters = 3;
}
message RepositoryModelUnloadResponse {}
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


def frame(kind, flags, stream, payload=b''):
    return struct.pack('>I', len(payload))[1:] + bytes([kind, flags]) + struct.pack(
        '>I', stream
    ) + payload


def field(name, value):
    """A header field without compression and without an entry in the table."""
    return b'\0' + bytes([len(name)]) + name + bytes([len(value)]) + value


PREFACE = b'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n' + frame(4, 0, 0)
DATA, HEADERS, RST, SETTINGS, PING, CONTINUATION = 0, 1, 3, 4, 6, 9


def call_fields(method, *more):
    return b''.join(
        field(*pair)
        for pair in (
            (b':method', b'POST'),
            (b':scheme', b'http'),
            (b':authority', b'localhost'),
            (b':path', b'/inference.GRPCInferenceService/' + method),
            (b'content-type', b'application/grpc'),
            (b'te', b'trailers'),
            *more,
        )
    )


def message(request):
    """A request as a gRPC message."""
    text = request.SerializeToString()
    return struct.pack('>BI', 0, len(text)) + text


class GrpcCase(Case):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        options = [('grpc.max_receive_message_length', -1), ('grpc.max_send_message_length', -1)]
        cls.channel = grpc.insecure_channel('unix:' + cls.gateway.path, options)
        cls.admin_channel = grpc.insecure_channel('unix:' + cls.gateway.admin_path)

    @classmethod
    def tearDownClass(cls):
        cls.channel.close()
        cls.admin_channel.close()
        super().tearDownClass()

    @classmethod
    def method(cls, name, service='inference.GRPCInferenceService', messages=None, admin=False):
        messages = messages or name
        return (cls.admin_channel if admin else cls.channel).unary_unary(
            f'/{service}/{name}',
            request_serializer=lambda m: m if isinstance(m, bytes) else m.SerializeToString(),
            response_deserializer=getattr(OIP, messages + 'Response').FromString,
        )

    def call(self, method, admin=False, **fields):
        request = getattr(OIP, method + 'Request')(**fields)
        return self.method(method, admin=admin)(request, timeout=60)

    def assert_call_fails(self, code, method, **fields):
        with self.assertRaises(grpc.RpcError) as failure:
            self.call(method, **fields)
        self.assertEqual(failure.exception.code(), code, failure.exception.details())
        return failure.exception.details()

    def infer(self, request, timeout=60):
        return self.method('ModelInfer')(request, timeout=timeout)

    def assert_fails(self, code, request, timeout=60):
        with self.assertRaises(grpc.RpcError) as failure:
            self.infer(request, timeout)
        self.assertEqual(failure.exception.code(), code, failure.exception.details())
        return failure.exception.details()

    def slow_request(self, **fields):
        return OIP.ModelInferRequest(
            model_name='slow',
            inputs=[tensor('x', 'FP32', [256, 256])],
            raw_input_contents=[bytes(4 * 65536)],
            **fields,
        )

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
