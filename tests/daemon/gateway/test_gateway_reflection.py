#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""test_gateway_reflection.py DAEMON GATEWAY [TEST...] - a client that knows only what server
reflection reports, as grpcurl does."""
import importlib
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

import gateway_case
from grpc_case import (
    DATA,
    HEADERS,
    OIP,
    PREFACE,
    RST,
    GrpcCase,
    call_fields,
    field,
    frame,
    grpc,
)

# After grpc_case, which looks for a Python that has these modules.
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

SERVICES = Path(__file__).parents[3] / 'client/gateway/grpc/services'
SERVICE = 'inference.GRPCInferenceService'
VERSIONS = ('v1', 'v1alpha')


def load_reflection(version):
    with tempfile.TemporaryDirectory(prefix='inferd-proto.') as folder:
        source = f'grpc/reflection/{version}/reflection.proto'
        # The folder "grpc" would hide the module of this name.
        text = (SERVICES / source).read_text()
        Path(folder, f'reflection_{version}.proto').write_text(text)
        command = ['protoc', f'--proto_path={folder}', f'--python_out={folder}']
        subprocess.run([*command, f'reflection_{version}.proto'], check=True)
        sys.path.insert(0, folder)
        try:
            return importlib.import_module(f'reflection_{version}_pb2')
        finally:
            sys.path.remove(folder)


REFLECTION = {version: load_reflection(version) for version in VERSIONS}


class Reflection(GrpcCase):
    def reflect(self, requests, version='v1', timeout=60):
        messages = REFLECTION[version]
        method = self.channel.stream_stream(
            f'/grpc.reflection.{version}.ServerReflection/ServerReflectionInfo',
            request_serializer=lambda m: m.SerializeToString(),
            response_deserializer=messages.ServerReflectionResponse.FromString,
        )
        questions = [messages.ServerReflectionRequest(**request) for request in requests]
        return method(iter(questions), timeout=timeout)

    def file_of(self, symbol):
        (answer,) = self.reflect([{'file_containing_symbol': symbol}])
        (text,) = answer.file_descriptor_response.file_descriptor_proto
        return descriptor_pb2.FileDescriptorProto.FromString(text)


    def test_services(self):
        for version in VERSIONS:
            (answer,) = self.reflect([{'list_services': '', 'host': 'h'}], version)
            self.assertEqual(
                sorted(service.name for service in answer.list_services_response.service),
                [
                    'grpc.health.v1.Health',
                    'grpc.reflection.v1.ServerReflection',
                    'grpc.reflection.v1alpha.ServerReflection',
                    SERVICE,
                ],
            )
            self.assertEqual(answer.valid_host, 'h')
            self.assertEqual(answer.original_request.host, 'h')

    def test_symbols_and_files(self):
        for symbol in (
            SERVICE,
            SERVICE + '.ModelInfer',
            'inference.ModelInferRequest',
            'inference.ModelInferRequest.InferInputTensor',
        ):
            self.assertEqual(self.file_of(symbol).name, 'grpc_service.proto', symbol)
        health = self.file_of('grpc.health.v1.HealthCheckResponse.ServingStatus')
        self.assertEqual(health.package, 'grpc.health.v1')
        for version in VERSIONS:
            package = f'grpc.reflection.{version}'
            self.assertEqual(self.file_of(package + '.ErrorResponse').package, package)
        (answer,) = self.reflect([{'file_by_filename': health.name}])
        self.assertEqual(
            answer.file_descriptor_response.file_descriptor_proto, [health.SerializeToString()]
        )

    def test_what_does_not_exist(self):
        extension = REFLECTION['v1'].ExtensionRequest(containing_type='a', extension_number=1)
        questions = [
            {'file_containing_symbol': symbol}
            for symbol in (
                '',
                '.',
                'inference',
                'inference.',
                'inference.Model',
                'inference.ModelInferRequestX',
                'inference.ModelInferRequest.',
                'inference.ModelInferRequest.id',
                'inference.ModelInferRequest.InferInputTensor.x',
                'GRPCInferenceService',
                SERVICE + '.None',
                SERVICE + '.ModelInfer.x',
                'grpc.health.v1.HealthCheckResponse.ServingStatus.x',
                'x' * 3000,
            )
        ]
        questions += [{'file_by_filename': name} for name in ('', 'none.proto', 'grpc_service')]
        questions += [{'file_containing_extension': extension}]
        questions += [{'all_extension_numbers_of_type': 'inference.ModelInferRequest'}]
        answers = list(self.reflect(questions))
        self.assertEqual(len(answers), len(questions))
        for question, answer in zip(questions, answers):
            self.assertEqual(answer.error_response.error_code, 5, question)
        (answer,) = self.reflect([{}])
        self.assertEqual(answer.error_response.error_code, 3)

    def test_a_client_without_definitions(self):
        pool = descriptor_pool.DescriptorPool()
        pool.Add(self.file_of(SERVICE))
        service = pool.FindServiceByName(SERVICE)
        factory = message_factory.MessageFactory(pool)

        def call(method_name, **fields):
            method = service.FindMethodByName(method_name)
            request = factory.GetPrototype(method.input_type)(**fields)
            response = factory.GetPrototype(method.output_type)
            return self.channel.unary_unary(
                f'/{SERVICE}/{method_name}',
                request_serializer=lambda m: m.SerializeToString(),
                response_deserializer=response.FromString,
            )(request, timeout=60)

        self.assertTrue(call('ServerLive').live)
        self.assertEqual(call('ServerMetadata').name, 'inferd')
        self.assertEqual(call('ModelMetadata', name='add').outputs[0].name, 'y')
        values = struct.pack('<4f', 1, 2, 3, 4)
        answer = call(
            'ModelInfer',
            model_name='add',
            inputs=[{'name': name, 'datatype': 'FP32', 'shape': [1, 4]} for name in 'ab'],
            raw_input_contents=[values, values],
        )
        self.assertEqual(answer.raw_output_contents[0], struct.pack('<4f', 2, 4, 6, 8))

    def test_the_definitions_are_those_of_the_protocol(self):
        reflected = {message.name: message for message in self.file_of(SERVICE).message_type}
        for name, descriptor in OIP.DESCRIPTOR.message_types_by_name.items():
            if name.startswith('HealthCheck'):
                continue
            want = descriptor_pb2.DescriptorProto()
            descriptor.CopyToProto(want)
            self.assertEqual(
                [(f.name, f.number, f.type, f.label) for f in reflected[name].field],
                [(f.name, f.number, f.type, f.label) for f in want.field],
                name,
            )

    def test_every_method_is_described(self):
        (described,) = self.file_of(SERVICE).service
        for method in described.method:
            calls = self.channel.stream_stream(f'/{SERVICE}/{method.name}')(
                iter([b'']), timeout=60
            )
            try:
                list(calls)
            except grpc.RpcError:
                pass
            self.assertNotEqual(calls.code(), grpc.StatusCode.UNIMPLEMENTED, method.name)

    def test_many_questions_on_one_call(self):
        answers = list(self.reflect([{'file_containing_symbol': SERVICE}] * 2000))
        self.assertEqual(len({answer.SerializeToString() for answer in answers}), 1)
        self.assertEqual(len(answers), 2000)

    def test_broken_calls(self):
        path = b'/grpc.reflection.v1.ServerReflection/ServerReflectionInfo'
        head = call_fields(b'x').replace(
            field(b':path', b'/inference.GRPCInferenceService/x'), field(b':path', path)
        )
        for body, status in (
            (struct.pack('>BI', 0, 5000), b'8'),
            (struct.pack('>BI', 1, 3) + b'abc', b'12'),
            (struct.pack('>BI', 0, 10) + b'abc', b'3'),
            (b'\0\0', b'3'),
        ):
            with self.gateway.connect() as client:
                client.sendall(PREFACE + frame(HEADERS, 4, 1, head) + frame(DATA, 1, 1, body))
                self.read_until(client, HEADERS)
                self.assertIn(status, self.read_until(client, HEADERS))
        with self.gateway.connect() as client:
            bad = struct.pack('>BI', 0, 3) + b'\x0b\xff\xff'
            client.sendall(PREFACE + frame(HEADERS, 4, 1, head) + frame(DATA, 0, 1, bad))
            self.assertIn(b'no valid question', self.read_until(client, DATA))
            client.sendall(frame(RST, 0, 1, struct.pack('>I', 8)))
        self.assertEqual(self.ask('GET', '/v2/health/live').status, 200)


if __name__ == '__main__':
    gateway_case.main()
