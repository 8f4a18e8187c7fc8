#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""check_tritonclient.py CLIENT COMMON DAEMON GATEWAY [TEST...]

Runs Triton's client library, unchanged, against the gateway. CLIENT and COMMON are checkouts of
github.com/triton-inference-server/client and .../common, or their git directories. The library runs
on Debian's python3-geventhttpclient, python3-aiohttp, python3-rapidjson, python3-packaging,
python3-grpcio and python3-numpy; protobuf-compiler and protobuf-compiler-grpc make the messages, as
upstream's build does.
"""
import asyncio
import queue
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

if len(sys.argv) < 5:
    print(__doc__)
    sys.exit(2)
CLIENT, COMMON, *PROGRAMS = sys.argv[1:5]
sys.argv[1:5] = PROGRAMS
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / 'daemon/gateway'))

import gateway_case  # noqa: E402
from gateway_case import Case  # noqa: E402

FOLDER = tempfile.TemporaryDirectory(prefix='inferd-triton.')


def export(source, path):
    """Copies a folder of a checkout or of a git directory into FOLDER."""
    if (Path(source) / path).is_dir():
        shutil.copytree(Path(source) / path, Path(FOLDER.name) / path)
        return
    archive = subprocess.run(
        ['git', '-C', source, 'archive', 'HEAD', path], check=True, stdout=subprocess.PIPE
    )
    subprocess.run(['tar', '-x', '-C', FOLDER.name], check=True, input=archive.stdout)


def build_library():
    export(CLIENT, 'src/python/library')
    export(COMMON, 'protobuf')
    library = Path(FOLDER.name) / 'src/python/library'
    protos = Path(FOLDER.name) / 'protobuf'
    # Upstream's build renames the service in the same way.
    shutil.copy(protos / 'grpc_service.proto', protos / 'service.proto')
    plugin = shutil.which('grpc_python_plugin')
    subprocess.run(
        [
            'protoc',
            f'--plugin=protoc-gen-grpc={plugin}',
            f'--proto_path={protos}',
            f'--python_out={library}/tritonclient/grpc',
            f'--grpc_out={library}/tritonclient/grpc',
            'service.proto',
            'model_config.proto',
        ],
        check=True,
    )
    for name in ('service_pb2.py', 'service_pb2_grpc.py'):
        path = library / 'tritonclient/grpc' / name
        text = path.read_text()
        for module in ('model_config_pb2', 'service_pb2'):
            text = text.replace(f'\nimport {module}', f'\nfrom tritonclient.grpc import {module}')
        path.write_text(text)
    sys.path.insert(0, str(library))


build_library()

import gevent  # noqa: E402
import numpy  # noqa: E402
import tritonclient.grpc as triton_grpc  # noqa: E402
import tritonclient.grpc.aio as triton_grpc_aio  # noqa: E402
import tritonclient.http as triton_http  # noqa: E402
import tritonclient.http.aio as triton_http_aio  # noqa: E402
from tritonclient.utils import InferenceServerException  # noqa: E402


def free_port():
    with socket.socket() as probe:
        probe.bind(('127.0.0.1', 0))
        return probe.getsockname()[1]


class TritonCase(Case):
    @classmethod
    def setUpClass(cls):
        cls.address = f'127.0.0.1:{free_port()}'
        cls.admin_address = f'127.0.0.1:{free_port()}'
        cls.options = (f'--listen={cls.address}', f'--listen-admin={cls.admin_address}')
        super().setUpClass()

    def inputs(self, module, a=None, b=None, **binary):
        """The inputs of the model `add`: two rows of four numbers, or the given arrays."""
        tensors = []
        for name, array in (('a', a), ('b', b)):
            array = numpy.arange(8, dtype=numpy.float32).reshape(2, 4) if array is None else array
            tensor = module.InferInput(name, list(array.shape), 'FP32')
            tensor.set_data_from_numpy(array, **binary)
            tensors.append(tensor)
        return tensors

    def slow(self, module):
        array = numpy.ones((256, 256), numpy.float32)
        tensor = module.InferInput('x', [256, 256], 'FP32')
        tensor.set_data_from_numpy(array)
        return [tensor]

    def assert_sum(self, result):
        wanted = 2 * numpy.arange(8, dtype=numpy.float32).reshape(2, 4)
        numpy.testing.assert_array_equal(result.as_numpy('y'), wanted)

    def assert_fails(self, text, function, *arguments, **named):
        with self.assertRaises(InferenceServerException) as failure:
            function(*arguments, **named)
        self.assertIn(text, str(failure.exception))

    def check_lookups(self, client, http):
        self.assertTrue(client.is_server_live())
        self.assertTrue(client.is_server_ready())
        self.assertTrue(client.is_model_ready('add'))
        self.assertTrue(client.is_model_ready('add', '1'))
        server, model = client.get_server_metadata(), client.get_model_metadata('add')
        statistics = client.get_inference_statistics('add')
        if http:
            self.assertEqual(server['name'], 'inferd')
            self.assertIn('statistics', server['extensions'])
            self.assertEqual([i['name'] for i in model['inputs']], ['a', 'b'])
            self.assertLessEqual(len(statistics['model_stats']), 1)
        else:
            self.assertIn('statistics', server.extensions)
            self.assertEqual([i.name for i in model.inputs], ['a', 'b'])
            self.assertLessEqual(len(statistics.model_stats), 1)
        self.assert_fails("'none'", client.get_model_metadata, 'none')

    def check_repository(self, client, http):
        def ready():
            rows = client.get_model_repository_index()
            rows = rows if http else [{'name': r.name, 'state': r.state} for r in rows.models]
            return {row['name'] for row in rows if row['state'] == 'READY'}

        self.assertEqual(ready(), set(gateway_case.MODELS))
        client.unload_model('ints')
        self.assertEqual(ready(), set(gateway_case.MODELS) - {'ints'})
        client.load_model('ints')
        self.assertEqual(ready(), set(gateway_case.MODELS))
        self.assert_fails('not supported', client.load_model, 'ints', config='{}')
        files = {'file:1/model.onnx': b'x'}
        self.assert_fails('not supported', client.load_model, 'ints', config='{}', files=files)


class Http(TritonCase):
    def setUp(self):
        self.client = triton_http.InferenceServerClient(self.address, concurrency=4)
        self.addCleanup(self.client.close)

    def test_lookups(self):
        self.check_lookups(self.client, http=True)

    def test_repository(self):
        with triton_http.InferenceServerClient(self.admin_address) as client:
            self.check_repository(client, http=True)
        self.assert_fails('administrators', self.client.get_model_repository_index)

    def test_infer_binary_and_json(self):
        for binary_in in (True, False):
            for binary_out in (True, False):
                inputs = self.inputs(triton_http, binary_data=binary_in)
                outputs = [triton_http.InferRequestedOutput('y', binary_data=binary_out)]
                result = self.client.infer('add', inputs, outputs=outputs, request_id='seven')
                self.assert_sum(result)
                self.assertEqual(result.get_response()['id'], 'seven')
        self.assert_sum(self.client.infer('add', self.inputs(triton_http), model_version='1'))

    def test_compression(self):
        for algorithm in ('gzip', 'deflate'):
            for binary in (True, False):
                result = self.client.infer(
                    'add',
                    self.inputs(triton_http, binary_data=binary),
                    outputs=[triton_http.InferRequestedOutput('y', binary_data=binary)],
                    request_compression_algorithm=algorithm,
                    response_compression_algorithm=algorithm,
                )
                self.assert_sum(result)

    def test_async(self):
        requests = [self.client.async_infer('add', self.inputs(triton_http)) for _ in range(20)]
        for request in requests:
            self.assert_sum(request.get_result())

    def test_errors(self):
        self.assert_fails("'none'", self.client.infer, 'none', self.inputs(triton_http))
        self.assert_fails('b', self.client.infer, 'add', self.inputs(triton_http)[:1])
        wrong = numpy.ones((2, 5), numpy.float32)
        self.assert_fails('', self.client.infer, 'add', self.inputs(triton_http, b=wrong))
        text = triton_http.InferInput('a', [1], 'BYTES')
        text.set_data_from_numpy(numpy.array([b'x'], dtype=object))
        self.assert_fails('BYTES', self.client.infer, 'add', [text])

    def test_sequences(self):
        for i in range(5):
            tensor = triton_http.InferInput('x', [2], 'FP32')
            tensor.set_data_from_numpy(numpy.array([1, 2], numpy.float32))
            result = self.client.infer(
                'sum',
                [tensor],
                outputs=[triton_http.InferRequestedOutput('z')],
                sequence_id='audio',
                sequence_start=i == 0,
                sequence_end=i == 4,
            )
            self.assertEqual(list(result.as_numpy('z')), [-i - 1, -2 * i - 2])

    def test_timeout(self):
        self.assert_fails('', self.client.infer, 'slow', self.slow(triton_http), timeout=2000)

    def test_headers_and_query(self):
        result = self.client.infer(
            'add',
            self.inputs(triton_http),
            headers={'X-Request-Id': 'row-7'},
            query_params={'a': 1},
        )
        self.assert_sum(result)
        self.assertEqual(result._result.get('id'), None)

    def test_gevent(self):
        jobs = [
            gevent.spawn(self.client.infer, 'add', self.inputs(triton_http)) for _ in range(8)
        ]
        gevent.joinall(jobs, raise_error=True)
        for job in jobs:
            self.assert_sum(job.value)

    def test_hostile(self):
        """Requests like those of upstream's http_test.py and its tests of bad sizes."""
        tensor = triton_http.InferInput('a', [-1, 4], 'FP32')
        tensor._raw_data = bytes(16)
        tensor._parameters['binary_data_size'] = 16
        self.assert_fails('dimension', self.client.infer, 'add', [tensor])
        for size in (0, 15, 17, 2**62):
            inputs = self.inputs(triton_http)
            inputs[1]._parameters['binary_data_size'] = size
            self.assert_fails('binary_data_size', self.client.infer, 'add', inputs)
        body, length = triton_http.InferenceServerClient.generate_request_body(
            self.inputs(triton_http)
        )
        for wrong in (length + 10**6, 2**40):
            response = self.client._post(
                'v2/models/add/infer', body, {'Inference-Header-Content-Length': str(wrong)}, None
            )
            self.assertEqual(response.status_code, 400)
        deep = '[' * 20000 + ']' * 20000
        response = self.client._post('v2/models/add/infer', deep, {}, None)
        self.assertEqual(response.status_code, 400)
        self.assert_sum(self.client.infer('add', self.inputs(triton_http)))


class HttpAio(TritonCase):
    def test_all(self):
        asyncio.run(self.run_all())

    async def run_all(self):
        async with triton_http_aio.InferenceServerClient(self.address) as client:
            self.assertTrue(await client.is_server_live())
            self.assertTrue(await client.is_model_ready('add'))
            self.assertEqual((await client.get_model_metadata('add'))['name'], 'add')
            await client.get_inference_statistics()
            jobs = [client.infer('add', self.inputs(triton_http)) for _ in range(20)]
            for result in await asyncio.gather(*jobs):
                self.assert_sum(result)
            with self.assertRaises(InferenceServerException):
                await client.infer('none', self.inputs(triton_http))
            cancelled = self.metric('inferences_cancelled_total')
            with self.assertRaises(asyncio.TimeoutError):
                await asyncio.wait_for(client.infer('slow', self.slow(triton_http)), 0.05)
            gateway_case.wait_until(
                lambda: self.metric('inferences_cancelled_total') > cancelled, 'not cancelled'
            )


class Grpc(TritonCase):
    def setUp(self):
        self.client = triton_grpc.InferenceServerClient(self.address)
        self.addCleanup(self.client.close)

    def test_lookups(self):
        self.check_lookups(self.client, http=False)

    def test_repository(self):
        with triton_grpc.InferenceServerClient(self.admin_address) as client:
            self.check_repository(client, http=False)
        self.assert_fails('administrators', self.client.get_model_repository_index)

    def test_infer(self):
        outputs = [triton_grpc.InferRequestedOutput('y')]
        result = self.client.infer(
            'add', self.inputs(triton_grpc), outputs=outputs, request_id='seven'
        )
        self.assert_sum(result)
        self.assertEqual(result.get_response().id, 'seven')

    def test_async(self):
        answers = queue.Queue()
        for _ in range(20):
            self.client.async_infer(
                'add',
                self.inputs(triton_grpc),
                callback=lambda result, error: answers.put((result, error)),
            )
        for _ in range(20):
            result, error = answers.get(timeout=60)
            self.assertIsNone(error)
            self.assert_sum(result)

    def test_errors_timeout_and_cancellation(self):
        self.assert_fails('NOT_FOUND', self.client.infer, 'none', self.inputs(triton_grpc))
        self.assert_fails(
            'Deadline Exceeded',
            self.client.infer,
            'slow',
            self.slow(triton_grpc),
            client_timeout=0.02,
        )
        answers = queue.Queue()
        call = self.client.async_infer(
            'slow', self.slow(triton_grpc), callback=lambda result, error: answers.put(error)
        )
        time.sleep(0.01)
        call.cancel()
        self.assertIn('CANCELLED', str(answers.get(timeout=60)))

    def start_stream(self, **options):
        answers = queue.Queue()
        self.client.start_stream(
            callback=lambda result, error: answers.put((result, error)), **options
        )
        return answers

    def test_stream(self):
        answers = self.start_stream()
        for i in range(50):
            self.client.async_stream_infer('add', self.inputs(triton_grpc), request_id=str(i))
        self.client.async_stream_infer('none', self.inputs(triton_grpc))
        self.client.async_stream_infer(
            'add', self.inputs(triton_grpc), enable_empty_final_response=True
        )
        for i in range(50):
            result, error = answers.get(timeout=60)
            self.assertIsNone(error)
            self.assertEqual(result.get_response().id, str(i))
            self.assert_sum(result)
        result, error = answers.get(timeout=60)
        self.assertIn("'none'", str(error))
        result, error = answers.get(timeout=60)
        final = result.get_response().parameters['triton_final_response']
        self.assertTrue(final.bool_param)
        self.client.stop_stream()

    def test_sequences(self):
        answers = self.start_stream()
        for i in range(10):
            tensor = triton_grpc.InferInput('x', [2], 'FP32')
            tensor.set_data_from_numpy(numpy.array([1, 2], numpy.float32))
            self.client.async_stream_infer(
                'sum',
                [tensor],
                outputs=[triton_grpc.InferRequestedOutput('z')],
                sequence_id=1007,
                sequence_start=i == 0,
                sequence_end=i == 9,
            )
        for i in range(10):
            result, error = answers.get(timeout=60)
            self.assertIsNone(error)
            self.assertEqual(list(result.as_numpy('z')), [-i - 1, -2 * i - 2])
        self.client.stop_stream()

    def test_stream_is_cancelled(self):
        answers = self.start_stream()
        for _ in range(5):
            self.client.async_stream_infer('slow', self.slow(triton_grpc))
        self.client.stop_stream(cancel_requests=True)
        error = None
        while 'CANCELLED' not in str(error):
            _, error = answers.get(timeout=60)

    def test_stream_times_out(self):
        answers = self.start_stream(stream_timeout=0.05)
        for _ in range(9):
            self.client.async_stream_infer('slow', self.slow(triton_grpc))
        error = None
        while error is None or 'Deadline Exceeded' not in str(error):
            _, error = answers.get(timeout=60)
        self.client.stop_stream()


class GrpcAio(TritonCase):
    def test_all(self):
        asyncio.run(self.run_all())

    async def run_all(self):
        async with triton_grpc_aio.InferenceServerClient(self.address) as client:
            self.assertTrue(await client.is_server_ready())
            self.assertTrue(await client.is_model_ready('add'))
            await client.get_inference_statistics('add')
            jobs = [client.infer('add', self.inputs(triton_grpc)) for _ in range(20)]
            for result in await asyncio.gather(*jobs):
                self.assert_sum(result)
            with self.assertRaises(InferenceServerException):
                await client.infer('none', self.inputs(triton_grpc))

            async def requests():
                for i in range(20):
                    yield {
                        'model_name': 'add',
                        'inputs': self.inputs(triton_grpc),
                        'request_id': str(i),
                    }

            ids = []
            async for result, error in client.stream_infer(requests()):
                self.assertIsNone(error)
                ids.append(result.get_response().id)
            self.assertEqual(ids, [str(i) for i in range(20)])


if __name__ == '__main__':
    try:
        gateway_case.main()
    finally:
        FOLDER.cleanup()
