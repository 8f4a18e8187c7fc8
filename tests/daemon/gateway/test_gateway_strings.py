#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""test_gateway_strings.py DAEMON GATEWAY [TEST...] - tensors of strings over HTTP and gRPC."""
import json
import struct

import gateway_case
from grpc_case import GrpcCase, OIP, grpc, tensor

STRING = {'type': 'DT_STRING'}
gateway_case.MODELS.clear()
gateway_case.MODELS['echo'] = [
    gateway_case.placeholder('x', 'DT_STRING', -1),
    gateway_case.node('y', 'Identity', 'x', T=STRING),
]
gateway_case.MODELS['pair'] = [
    gateway_case.placeholder('x', 'DT_STRING', 2, 2),
    gateway_case.node('y', 'Identity', 'x', T=STRING),
]


def packed(*strings):
    return b''.join(struct.pack('<I', len(text)) + text for text in strings)


def request(shape, **more):
    return {'inputs': [{'name': 'x', 'shape': shape, 'datatype': 'BYTES', **more}]}


class Rest(gateway_case.Case):
    def strings(self, answer):
        self.assertEqual(answer.status, 200, answer.body)
        output = answer.json()['outputs'][0]
        self.assertEqual(output['datatype'], 'BYTES')
        return output['data']

    def test_json(self):
        texts = ['a', '', 'ü€𝄞', 'quote " and \\ and \n', ' ']
        self.assertEqual(self.strings(self.infer('echo', request([5], data=texts))), texts)
        self.assertEqual(self.strings(self.infer('echo', request([0], data=[]))), [])

    def test_json_of_several_dimensions(self):
        flat = self.strings(self.infer('pair', request([2, 2], data=['a', 'b', 'c', 'd'])))
        nested = self.strings(self.infer('pair', request([2, 2], data=[['a', 'b'], ['c', 'd']])))
        self.assertEqual(flat, nested)

    def test_json_that_is_no_tensor_of_strings(self):
        for shape, data in (
            ([2], ['a']),
            ([1], ['a', 'b']),
            ([1], [1]),
            ([1], [None]),
            ([1], 'a'),
            ([2, 2], [['a', 'b', 'c'], ['d']]),
            ([2, 2], [['a', 'b', 'c', 'd']]),
            ([2, 2], [['a', 'b'], 'c']),
            ([1 << 25], []),
        ):
            answer = self.infer('pair', request(shape, data=data))
            self.assertEqual(answer.status, 400, (shape, data, answer.body))
        self.assertEqual(self.strings(self.infer('echo', request([1], data=['fine']))), ['fine'])

    def binary(self, model, shape, data, size=None):
        head = request(shape, parameters={'binary_data_size': len(data) if size is None else size})
        head['outputs'] = [{'name': 'y', 'parameters': {'binary_data': True}}]
        text = json.dumps(head).encode()
        return self.ask(
            'POST',
            f'/v2/models/{model}/infer',
            text + data,
            {'Inference-Header-Content-Length': str(len(text))},
        )

    def test_json_escapes(self):
        texts = ['a NUL \0 too', '\b\f\n\r\t"\\/', '\x1f\x7f', 'é€\U0001f600']
        for escaped in (True, False):
            head = json.dumps(request([4], data=texts), ensure_ascii=escaped).encode()
            answer = self.ask('POST', '/v2/models/echo/infer', head)
            self.assertEqual(answer.status, 200, answer.body[:200])
            self.assertEqual(self.strings(answer), texts)
        for bad in (
            (b'\\ud800', b'\\ud800x', b'\\udc00', b'\\u12g4', b'\\u12', b'\\x', b'\n')
            + (b'\xff', b'\xed\xa0\x80', b'\\ud800\\u0041')
        ):
            head = json.dumps(request([1], data=['?'])).encode().replace(b'"?"', b'"' + bad + b'"')
            answer = self.ask('POST', '/v2/models/echo/infer', head)
            self.assertEqual(answer.status, 400, bad)

    def test_json_strings_longer_than_a_step(self):
        texts = ['\n' * 300000, '€' * 100000, ''] * 3 + [str(i) for i in range(50000)]
        answer = self.infer('echo', request([len(texts)], data=texts))
        self.assertEqual(self.strings(answer), texts)

    def test_binary(self):
        data = packed(b'\xff\0\xfe', b'', b'x' * 70000)
        answer = self.binary('echo', [3], data)
        self.assertEqual(answer.status, 200, answer.body[:200])
        size = int(answer.headers['Inference-Header-Content-Length'])
        output = json.loads(answer.body[:size])['outputs'][0]
        self.assertEqual(output['parameters']['binary_data_size'], len(data))
        self.assertEqual(answer.body[size:], data)

    def test_binary_that_is_no_tensor_of_strings(self):
        for shape, data in (
            ([1], b''),
            ([1], b'\1\0\0'),
            ([1], b'\5\0\0\0four'),
            ([1], b'\xff\xff\xff\xfffour'),
            ([1], packed(b'a') + b'\0'),
            ([2], packed(b'abcd')),
        ):
            self.assertEqual(self.binary('echo', shape, data).status, 400, (shape, data))
        self.assertEqual(self.binary('echo', [1], packed(b'a'), 99).status, 400)

    def test_bytes_that_json_cannot_express(self):
        head = request([1], parameters={'binary_data_size': 5})
        text = json.dumps(head).encode()
        answer = self.ask(
            'POST',
            '/v2/models/echo/infer',
            text + packed(b'\xff'),
            {'Inference-Header-Content-Length': str(len(text))},
        )
        self.assertEqual(answer.status, 400)
        self.assertIn('ask for binary data', answer.json()['error'])

    def test_metadata(self):
        told = self.ask('GET', '/v2/models/echo').json()
        self.assertEqual(told['inputs'], [{'name': 'x', 'datatype': 'BYTES', 'shape': [-1]}])


class Grpc(GrpcCase):
    def ask_strings(self, shape, raw=None, strings=None):
        contents = {} if strings is None else {'bytes_contents': strings}
        message = OIP.ModelInferRequest(
            model_name='echo',
            inputs=[tensor('x', 'BYTES', shape, **contents)],
            raw_input_contents=[] if raw is None else [raw],
        )
        return self.method('ModelInfer', 'inference.GRPCInferenceService', 'ModelInfer')(
            message, timeout=60
        )

    def test_typed_and_raw_contents(self):
        strings = [b'a', b'', b'\xff\0', b'x' * 70000]
        for answer in (
            self.ask_strings([4], strings=strings),
            self.ask_strings([4], raw=packed(*strings)),
        ):
            self.assertEqual(answer.outputs[0].datatype, 'BYTES')
            self.assertEqual(answer.raw_output_contents[0], packed(*strings))

    def test_contents_that_are_no_tensor_of_strings(self):
        for shape, more in (
            ([2], {'strings': [b'a']}),
            ([1], {'strings': [b'a', b'b']}),
            ([1], {}),
            ([1], {'raw': b''}),
            ([1], {'raw': b'\5\0\0\0four'}),
            ([1], {'raw': packed(b'a', b'b')}),
        ):
            with self.assertRaises(grpc.RpcError) as failure:
                self.ask_strings(shape, **more)
            self.assertEqual(failure.exception.code(), grpc.StatusCode.INVALID_ARGUMENT, more)


if __name__ == '__main__':
    gateway_case.main()
