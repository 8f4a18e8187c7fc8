#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""test_gateway_rest.py DAEMON GATEWAY [TEST...] - the Open Inference Protocol over HTTP/1.1."""
import gzip
import http.client
import json
import os
import struct
import zlib
from pathlib import Path

import gateway_case
from gateway_case import ADD, Answer, Case, binary_body, wait_until


def split_answer(answer):
    size = int(answer.headers['Inference-Header-Content-Length'])
    return json.loads(answer.body[:size]), answer.body[size:]


class Lookups(Case):
    def test_health(self):
        self.assertEqual(self.ask('GET', '/v2/health/live').json(), {'live': True})
        self.assertEqual(self.ask('GET', '/v2/health/ready').json(), {'ready': True})

    def test_head_has_no_body(self):
        answer = self.ask('HEAD', '/v2/health/live')
        self.assertEqual((answer.status, answer.body), (200, b''))
        self.assertEqual(answer.headers['Content-Length'], '13')

    def test_server_metadata(self):
        metadata = self.ask('GET', '/v2').json()
        self.assertEqual(metadata['name'], 'inferd')
        self.assertIn('binary_tensor_data', metadata['extensions'])

    def test_model_metadata(self):
        expected = {
            'name': 'add',
            'versions': ['1'],
            'inputs': [
                {'name': 'a', 'datatype': 'FP32', 'shape': [-1, 4]},
                {'name': 'b', 'datatype': 'FP32', 'shape': [-1, 4]},
            ],
            'outputs': [{'name': 'y', 'datatype': 'FP32', 'shape': [-1, 4]}],
        }
        for path in ('/v2/models/add', '/v2/models/add/versions/1', '/v2/models/add?x=1'):
            metadata = self.ask('GET', path).json()
            self.assertTrue(metadata.pop('platform'))
            self.assertEqual(metadata, expected)

    def test_model_ready(self):
        for path in ('/v2/models/add/ready', '/v2/models/add/versions/1/ready'):
            self.assertEqual(self.ask('GET', path).json(), {'name': 'add', 'ready': True})

    def test_missing_models_are_404(self):
        for path in ('/v2/models/none', '/v2/models/add/versions/7', '/v2/models/' + 'm' * 300):
            answer = self.ask('GET', path)
            self.assertEqual(answer.status, 404, path)
            self.assertIn('error', answer.json())
        self.assertEqual(self.infer('none', ADD).status, 404)

    def test_paths_that_do_not_exist_are_404(self):
        for path in ('/', '/v1', '/v2/', '/v2/models', '/v2/models//ready', '/v2/modelsx/add'):
            self.assertEqual(self.ask('GET', path).status, 404, path)

    def test_wrong_methods_are_405(self):
        answer = self.ask('GET', '/v2/models/add/infer')
        self.assertEqual((answer.status, answer.headers['Allow']), (405, 'POST'))
        answer = self.ask('POST', '/v2')
        self.assertEqual((answer.status, answer.headers['Allow']), (405, 'GET, HEAD'))
        self.assertEqual(answer.json(), {'error': 'this path takes the methods GET, HEAD'})
        self.assertEqual(self.ask('DELETE', '/v2/models/add').status, 405)

    def test_metrics_are_of_the_daemon_and_the_gateway(self):
        before = self.metric('inferences_succeeded_total')
        self.assertEqual(self.infer('add', ADD).status, 200)
        self.assertEqual(self.metric('inferences_succeeded_total'), before + 1)
        text = self.ask('GET', '/metrics').body.decode()
        names = {line.split()[2] for line in text.splitlines() if line.startswith('# TYPE')}
        self.assertTrue([name for name in names if not name.startswith('inferd_gateway_')])
        self.assertIn('inferd_gateway_responses_total', names)
        for line in text.splitlines():
            self.assertTrue(line.startswith('#') or len(line.rsplit(' ', 1)) == 2, line)

    def test_metrics_can_be_compressed(self):
        answer = self.ask('GET', '/metrics', headers={'Accept-Encoding': 'gzip'})
        self.assertEqual(answer.headers['Content-Encoding'], 'gzip')
        self.assertIn(b'inferd_gateway_connections', gzip.decompress(answer.body))
        answer = self.ask('GET', '/v2', headers={'Accept-Encoding': 'gzip'})
        self.assertNotIn('Content-Encoding', answer.headers)  # too small to gain anything
        self.assertEqual(answer.json()['name'], 'inferd')


class Rights(Case):
    # The watch of the repository notices changes soon.
    daemon_options = ('--watch-settle-ms=50',)

    def test_clients_have_the_rights_of_the_gateways_user(self):
        ask = {'inputs': [{'name': 'x', 'shape': [1], 'datatype': 'FP32', 'data': [2]}]}
        config = Path(self.daemon.folder) / 'models/inverse/model.conf'
        self.assertEqual(self.infer('inverse', ask).status, 200)
        config.write_text('allow_users = daemon\n')
        wait_until(lambda: self.infer('inverse', ask).status == 403, 'the list is not used')
        for path in ('', '/ready', '/versions/1', '/versions/1/ready'):
            answer = self.ask('GET', '/v2/models/inverse' + path)
            self.assertEqual(answer.status, 403, path)
            self.assertIn('may not use it', answer.json()['error'])
        self.assertEqual(self.infer('add', ADD).status, 200)
        config.write_text(f'allow_users = {os.geteuid()}\n')
        wait_until(lambda: self.infer('inverse', ask).status == 200, 'the list is not used')


class Memory(Case):
    options = ('--bodies-max-bytes=300000',)

    def test_what_bodies_become_is_charged(self):
        head = '{"inputs":[{"name":"x","shape":[%d],"datatype":"FP32","data":[%s]}]}'

        def send(count, spaces=0, pack=True):
            text = (' ' * spaces + head % (count, ','.join('1' * count))).encode()
            headers = {'Content-Encoding': 'gzip'} if pack else {}
            body = gzip.compress(text) if pack else text
            return self.ask('POST', '/v2/models/large/infer', body, headers)

        for wrong in (
            {'count': 1, 'spaces': 1 << 20},  # the decompressed body
            {'count': 1, 'spaces': 200_000},  # a buffer of 262,144 bytes, and zlib's memory
            {'count': 100_000, 'pack': False},  # the input of 400,000 bytes
            {'count': 50_000},  # both together
        ):
            answer = send(**wrong)
            self.assertEqual(answer.status, 429, wrong)
            self.assertIn('need all memory', answer.json()['error'])
        for _ in range(10):
            self.assertEqual(send(10_000).status, 200)
            self.assertEqual(send(20_000, pack=False).status, 200)
        gateway_case.wait_until(lambda: self.metric('body_bytes') == 0, 'bodies are kept')

    def test_texts_of_outputs_are_charged(self):
        def send(count, coding='identity'):
            tensor = {'name': 'x', 'shape': [count], 'datatype': 'FP32'}
            tensor['parameters'] = {'binary_data_size': 4 * count}
            data = struct.pack('<f', 1.2345678) * count  # 10 bytes or more in JSON
            head = json.dumps({'inputs': [tensor]}).encode()
            headers = {
                'Inference-Header-Content-Length': str(len(head)),
                'Accept-Encoding': coding,
            }
            return self.ask('POST', '/v2/models/large/infer', head + data, headers)

        answer = send(25_000)  # 100,000 bytes of input, and more than 200,000 of text
        self.assertEqual(answer.status, 429)
        self.assertIn('need all memory', answer.json()['error'])
        for coding in ('identity', 'gzip') * 5:
            answer = send(3_000, coding)
            self.assertEqual(answer.status, 200)
            # The memory that compressing needs beside the text exceeds the limit.
            self.assertNotIn('Content-Encoding', answer.headers)
            self.assertEqual(len(answer.json()['outputs'][0]['data']), 3_000)
        gateway_case.wait_until(lambda: self.metric('body_bytes') == 0, 'texts are kept')

    def test_texts_are_compressed_while_there_is_memory(self):
        headers = {'Accept-Encoding': 'gzip'}
        packed = self.ask('GET', '/openapi.json', headers=headers)
        self.assertEqual(packed.headers['Content-Encoding'], 'gzip')
        with self.gateway.connect() as client:
            client.sendall(
                b'POST /v2/models/large/infer HTTP/1.1\r\nHost: x\r\nContent-Length: 40000\r\n\r\n{'
            )
            gateway_case.wait_until(lambda: self.metric('body_bytes') == 40_000, 'no body')
            plain = self.ask('GET', '/openapi.json', headers=headers)
        self.assertNotIn('Content-Encoding', plain.headers)
        self.assertEqual(gzip.decompress(packed.body), plain.body)
        gateway_case.wait_until(lambda: self.metric('body_bytes') == 0, 'memory is kept')

    def test_a_client_that_does_not_wait_for_its_text(self):
        for _ in range(20):
            with self.gateway.connect() as client:
                client.sendall(
                    b'GET /openapi.json HTTP/1.1\r\nHost: x\r\nAccept-Encoding: gzip\r\n\r\n'
                )
        gateway_case.wait_until(lambda: self.metric('body_bytes') == 0, 'memory is kept')


class Json(Case):
    def test_add(self):
        answer = self.infer('add', ADD)
        self.assertEqual(answer.status, 200)
        self.assertEqual(
            answer.json(),
            {
                'model_name': 'add',
                'model_version': '1',
                'outputs': [
                    {'name': 'y', 'datatype': 'FP32', 'shape': [1, 4], 'data': [11, 22, 33, 44]}
                ],
            },
        )

    def test_version_id_and_requested_outputs(self):
        request = dict(ADD, id='row "7"', outputs=[{'name': 'y'}])
        answer = self.ask('POST', '/v2/models/add/versions/1/infer', json.dumps(request))
        self.assertEqual(answer.json()['id'], 'row "7"')
        self.assertEqual(len(answer.json()['outputs']), 1)

    def test_nested_data(self):
        request = {
            'inputs': [
                {'name': name, 'shape': [2, 4], 'datatype': 'FP32', 'data': [[0, 1, 2, 3]] * 2}
                for name in 'ab'
            ]
        }
        answer = self.infer('add', request).json()
        self.assertEqual(answer['outputs'][0]['data'], [0, 2, 4, 6] * 2)

    def test_floats_read_back_exactly(self):
        values = [struct.unpack('<f', bits)[0] for bits in (b'\xcd\xcc\xcc=', b'\1\0\0\0',
                                                            b'\xff\xff\x7f\x7f', b'\0\0\0\x80')]
        request = {
            'inputs': [
                {'name': 'x', 'shape': [4], 'datatype': 'FP32', 'data': values},
            ]
        }
        data = self.infer('large', request).json()['outputs'][0]['data']
        self.assertEqual([struct.pack('<f', v) for v in data],
                         [struct.pack('<f', -v) for v in values])

    def test_integers(self):
        values = [0, 7, 2**31 - 1, -(2**31) + 1]
        request = {'inputs': [{'name': 'a', 'shape': [4], 'datatype': 'INT32', 'data': values}]}
        answer = self.infer('ints', request).json()['outputs'][0]
        self.assertEqual((answer['datatype'], answer['data']), ('INT32', [-v for v in values]))

    def test_infinity_and_nan_are_words_as_in_triton(self):
        # Python's json reads and writes the words of Triton.
        nan, inf = float('nan'), float('inf')
        request = {
            'inputs': [
                {'name': 'x', 'shape': [5], 'datatype': 'FP32', 'data': [0, -0.0, inf, -inf, nan]}
            ]
        }
        answer = self.infer('inverse', request)
        self.assertIn(b'"data":[Infinity,-Infinity,0.0,-0.0,NaN]', answer.body)
        request['inputs'][0].update(shape=[1], data=[0])
        request['parameters'] = {'binary_data_output': True}
        head, data = split_answer(self.infer('inverse', request))
        self.assertEqual(data, struct.pack('<f', float('inf')))

    def test_timeout_is_in_microseconds(self):
        ones = [0.0] * (256 * 256)
        request = {
            'parameters': {'timeout': 5000},
            'inputs': [{'name': 'x', 'shape': [256, 256], 'datatype': 'FP32', 'data': ones}],
        }
        self.assertEqual(self.infer('slow', request).status, 504)

    def test_parameters_that_inferd_lacks_are_501(self):
        for name in ('classification', 'shared_memory_region'):
            request = dict(ADD, parameters={name: 1})
            self.assertEqual(self.infer('add', request).status, 501, name)

    def test_compressed_requests_and_responses(self):
        count = 1000
        request = {
            'inputs': [{'name': 'x', 'shape': [count], 'datatype': 'FP32', 'data': [1] * count}]
        }
        text = json.dumps(request).encode()
        for coding, pack, unpack in (
            ('gzip', gzip.compress, gzip.decompress),
            ('deflate', zlib.compress, zlib.decompress),
        ):
            headers = {'Content-Encoding': coding, 'Accept-Encoding': coding}
            answer = self.ask('POST', '/v2/models/large/infer', pack(text), headers)
            self.assertEqual(answer.headers['Content-Encoding'], coding)
            data = json.loads(unpack(answer.body))['outputs'][0]['data']
            self.assertEqual(data, [-1] * count)

    def test_request_id_comes_back(self):
        answer = self.infer('add', ADD, {'X-Request-Id': 'abc-123'})
        self.assertEqual(answer.headers['X-Request-Id'], 'abc-123')
        answer = self.infer('none', ADD, {'X-Request-Id': 'abc-124'})
        self.assertEqual(answer.headers['X-Request-Id'], 'abc-124')


class Binary(Case):
    def large(self, count, **parameters):
        """An inference of the model `large` with binary input, whose output is its negation."""
        values = [float(i % 1000) for i in range(count)]
        size = {'binary_data_size': 4 * count}
        request = {
            'inputs': [
                {'name': 'x', 'shape': [count], 'datatype': 'FP32', 'parameters': size}
            ],
            'parameters': parameters,
        }
        body, headers = binary_body(request, struct.pack(f'<{count}f', *values))
        answer = self.ask('POST', '/v2/models/large/infer', body, headers)
        return answer, struct.pack(f'<{count}f', *(-v for v in values))

    def test_small_and_large_tensors(self):
        # 4000 and more floats are received into shared memory.
        for count in (1, 1000, 5000, 300000):
            answer, expected = self.large(count, binary_data_output=True)
            self.assertEqual(answer.status, 200, answer.body[:200])
            head, data = split_answer(answer)
            self.assertTrue(data == expected, count)
            self.assertEqual(
                head['outputs'],
                [
                    {
                        'name': 'y',
                        'datatype': 'FP32',
                        'shape': [count],
                        'parameters': {'binary_data_size': 4 * count},
                    }
                ],
            )

    def test_many_requests_reuse_their_memory(self):
        for _ in range(50):
            answer, expected = self.large(20000, binary_data_output=True)
            self.assertTrue(split_answer(answer)[1] == expected)
        self.assertEqual(self.metric('body_bytes'), 0)

    def test_binary_input_and_json_output(self):
        answer, _ = self.large(3)
        self.assertEqual(answer.json()['outputs'][0]['data'], [0, -1, -2])

    def test_two_tensors_of_which_the_second_is_not_aligned(self):
        rows = 1501  # 24016 bytes: no multiple of 64
        size = {'binary_data_size': 16 * rows}
        request = {
            'inputs': [
                {'name': name, 'shape': [rows, 4], 'datatype': 'FP32', 'parameters': size}
                for name in 'ab'
            ],
            'outputs': [{'name': 'y', 'parameters': {'binary_data': True}}],
        }
        a = struct.pack(f'<{4 * rows}f', *range(4 * rows))
        body, headers = binary_body(request, a, a)
        answer = self.ask('POST', '/v2/models/add/infer', body, headers)
        _, data = split_answer(answer)
        self.assertTrue(data == struct.pack(f'<{4 * rows}f', *range(0, 8 * rows, 2)))

    def test_one_input_is_binary_and_the_other_is_not(self):
        request = json.loads(json.dumps(ADD))
        del request['inputs'][0]['data']
        request['inputs'][0]['parameters'] = {'binary_data_size': 16}
        body, headers = binary_body(request, struct.pack('<4f', 5, 6, 7, 8))
        answer = self.ask('POST', '/v2/models/add/infer', body, headers)
        self.assertEqual(answer.json()['outputs'][0]['data'], [15, 26, 37, 48])

    def test_compressed_binary(self):
        body, headers = binary_body(
            {
                'inputs': [
                    {
                        'name': 'x',
                        'shape': [2],
                        'datatype': 'FP32',
                        'parameters': {'binary_data_size': 8},
                    }
                ]
            },
            struct.pack('<2f', 1, 2),
        )
        headers['Content-Encoding'] = 'gzip'
        answer = self.ask('POST', '/v2/models/large/infer', gzip.compress(body), headers)
        self.assertEqual(answer.json()['outputs'][0]['data'], [-1, -2])

    def test_a_request_as_tritonclient_sends_it(self):
        # The header fields, their order and the JSON text of tritonclient.http.
        text = (
            b'{"id":"1","inputs":[{"name":"a","shape":[1,4],"datatype":"FP32","parameters":'
            b'{"binary_data_size":16}},{"name":"b","shape":[1,4],"datatype":"FP32","parameters":'
            b'{"binary_data_size":16}}],"outputs":[{"name":"y","parameters":{"binary_data":true}}]}'
        )
        a, b = struct.pack('<4f', 1, 2, 3, 4), struct.pack('<4f', 1, 1, 1, 1)
        head = (
            b'POST /v2/models/add/infer HTTP/1.1\r\n'
            b'User-Agent: Python Geventhttpclient 2.0.8\r\n'
            b'Connection: keep-alive\r\nHost: localhost\r\n'
            b'Inference-Header-Content-Length: %d\r\n'
            b'Content-Length: %d\r\n\r\n' % (len(text), len(text) + 32)
        )
        with self.gateway.connect() as client:
            for _ in range(2):
                client.sendall(head + text + a + b)
                response = http.client.HTTPResponse(client)
                response.begin()
                answer = Answer(response)
                self.assertEqual(answer.status, 200)
                fields, data = split_answer(answer)
                self.assertEqual(fields['id'], '1')
                self.assertEqual(data, struct.pack('<4f', 2, 3, 4, 5))


if __name__ == '__main__':
    gateway_case.main()
