#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""test_gateway_service.py DAEMON GATEWAY [TEST...] - what operators use of the gateway.

The repository, metrics, ids of requests, and the parts of the protocol that inferd does not have.
"""
import json
import re
import signal
import subprocess
import tempfile
import threading
import time

import gateway_case
from gateway_case import Answer, Case, Connection

ADD = {
    'inputs': [
        {'name': name, 'shape': [1, 4], 'datatype': 'FP32', 'data': [1, 2, 3, 4]} for name in 'ab'
    ]
}
TRACE = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01'


class Repository(Case):
    def test_only_administrators_may_use_it(self):
        for path in ('index', 'models/add/load', 'models/add/unload'):
            self.assertEqual(self.ask('POST', '/v2/repository/' + path).status, 403)

    def test_index(self):
        rows = self.ask('POST', '/v2/repository/index', '{"ready": true}', admin=True).json()
        self.assertEqual({row['name'] for row in rows}, set(gateway_case.MODELS))
        self.assertEqual({row['state'] for row in rows}, {'READY'})

    def test_models_are_unloaded_and_loaded(self):
        unload = self.ask('POST', '/v2/repository/models/ints/unload', '{}', admin=True)
        self.assertEqual((unload.status, unload.json()), (200, {}))
        self.assertNotEqual(self.ask('GET', '/v2/models/ints/ready').status, 200)
        load = self.ask('POST', '/v2/repository/models/ints/load', admin=True)
        self.assertEqual((load.status, load.json()), (200, {}))
        self.assertEqual(self.ask('GET', '/v2/models/ints/ready').status, 200)

    def test_parameters_of_a_load_are_refused(self):
        for verb, parameters, status in (
            ('load', {'config': '{}'}, 501),
            ('load', {'file:1/model.onnx': 'eHh4'}, 501),
            ('load', {'unload_dependents': True}, 400),
            ('load', ['config'], 400),
            ('unload', {'config': '{}'}, 400),
            ('unload', {'unload_dependents': False, 'x': 1}, 400),
        ):
            path = f'/v2/repository/models/ints/{verb}'
            body = json.dumps({'parameters': parameters})
            answer = self.ask('POST', path, body, admin=True)
            self.assertEqual(answer.status, status, (body, answer.body))
        self.assertEqual(self.ask('GET', '/v2/models/ints/ready').status, 200)

    def test_one_version_is_unloaded(self):
        path = '/v2/repository/models/ints/versions/7/unload'
        self.assertEqual(self.ask('POST', path, admin=True).status, 404)
        self.assertEqual(self.ask('GET', '/v2/models/ints/ready').status, 200)
        path = '/v2/repository/models/ints/versions/1/unload'
        body = '{"parameters": {"unload_dependents": true}}'
        self.assertEqual(self.ask('POST', path, body).status, 403)
        self.assertEqual(self.ask('POST', path, body, admin=True).status, 200)
        self.assertNotEqual(self.ask('GET', '/v2/models/ints/ready').status, 200)
        load = self.ask('POST', '/v2/repository/models/ints/load', admin=True)
        self.assertEqual(load.status, 200)


class Ending(Case):
    def test_a_load_without_an_answer_does_not_keep_the_gateway_alive(self):
        connection = Connection(self.gateway, admin=True)
        gateway_case.wait_until(lambda: self.unload_fails(connection), 'no answer')
        self.daemon.process.send_signal(signal.SIGSTOP)
        try:
            connection.request('POST', '/v2/repository/models/ints/load')
            time.sleep(0.3)  # the thread of the gateway waits for the daemon
            connection.close()
            begin = time.monotonic()
            self.assertEqual(self.gateway.end(), 0)
            self.assertLess(time.monotonic() - begin, 8)
        finally:
            self.daemon.process.send_signal(signal.SIGCONT)

    def unload_fails(self, connection):
        """Asks on the thread for administrators; true if that thread is connected to the daemon."""
        try:
            connection.request('POST', '/v2/repository/models/none/unload')
            return Answer(connection.getresponse()).status == 404
        except OSError:
            connection.close()
            return False


class Fields(Case):
    def test_the_format_of_metrics_follows_accept(self):
        for accept, openmetrics in (
            (None, False),
            ('*/*', False),
            ('text/plain', False),
            ('application/openmetrics-text', True),
            ('application/openmetrics-text;version=1.0.0,text/plain;q=0.5', True),
            ('text/plain;version=0.0.4;q=0.7, application/openmetrics-text; q=0.8', True),
            ('text/plain;q=0.7,application/openmetrics-text;version=1.0.0;q=0.5', False),
            ('application/openmetrics-text;q=0', False),
            ('application/openmetrics-text;q=0.0,text/plain;q=0', False),
        ):
            answer = self.ask('GET', '/metrics', headers={'Accept': accept} if accept else {})
            name = 'application/openmetrics-text' if openmetrics else 'text/plain'
            self.assertEqual(answer.headers['Content-Type'].split(';')[0], name, accept)
            text = answer.body.decode()
            self.assertEqual(text.count('# EOF\n'), openmetrics)
            self.assertEqual(text.endswith('# EOF\n'), openmetrics)
            self.assertIn('\ninferd_gateway_responses_total{class="2xx"} ', text)
            self.assertIn('\ninferd_ready 1\n', text)

    def test_openmetrics_names_counters_without_their_suffix(self):
        headers = {'Accept': 'application/openmetrics-text'}
        text = self.ask('GET', '/metrics', headers=headers).body.decode()
        counters = re.findall('^# TYPE (inferd_gateway_[a-z_]+) counter$', text, re.M)
        self.assertGreater(len(counters), 8)
        for name in counters:
            self.assertFalse(name.endswith('_total'))
            self.assertRegex(text, f'(?m)^{name}_total[ {{]')
        plain = self.ask('GET', '/metrics').body.decode()
        self.assertEqual(
            {f'{name}_total' for name in counters},
            set(re.findall('^# TYPE (inferd_gateway_[a-z_]+) counter$', plain, re.M)),
        )

    def test_traceparent_comes_back_if_it_is_valid(self):
        answer = self.ask('GET', '/v2/health/live', headers={'traceparent': TRACE})
        self.assertEqual(answer.headers['traceparent'], TRACE)
        for wrong in (
            TRACE[:-1],
            TRACE + '0',
            '01' + TRACE[2:],
            TRACE.upper(),
            TRACE.replace('-', '_', 1),
            '00-' + '0' * 32 + TRACE[35:],
            TRACE[:36] + '0' * 16 + TRACE[52:],
            TRACE.replace('b7', 'g7'),
        ):
            answer = self.ask('GET', '/v2/health/live', headers={'traceparent': wrong})
            self.assertEqual((answer.status, answer.headers['traceparent']), (200, None), wrong)
        fields = f'traceparent: {TRACE}\r\n' * 2
        head = f'GET /v2 HTTP/1.1\r\nHost: x\r\nConnection: close\r\n{fields}\r\n'
        self.assertNotIn(b'traceparent', self.exchange(head.encode()))

    def test_parts_of_the_protocol_that_inferd_lacks(self):
        for method, path, text in (
            ('GET', '/v2/trace/setting', 'traces'),
            ('POST', '/v2/models/add/trace/setting', 'traces'),
            ('GET', '/v2/logging', 'log'),
            ('POST', '/v2/logging', 'log'),
            ('GET', '/v2/models/add/config', 'configurations'),
            ('GET', '/v2/models/add/versions/1/config', 'configurations'),
            ('GET', '/v2/systemsharedmemory/status', 'system shared memory'),
            ('POST', '/v2/systemsharedmemory/region/a/register', 'system shared memory'),
            ('POST', '/v2/cudasharedmemory/region/a/unregister', 'CUDA shared memory'),
        ):
            answer = self.ask(method, path)
            self.assertEqual(answer.status, 501, path)
            self.assertIn(text, answer.json()['error'])


class Tokens(Case):
    tokens = ['0123456789abcdef', 'x' * 256, 'A-Z.a_z~0+9/==ABC']

    @classmethod
    def setUpClass(cls):
        cls.file = tempfile.NamedTemporaryFile('w', prefix='inferd-tokens.')
        cls.file.write('# clients\n\n' + '\r\n'.join(cls.tokens))
        cls.file.flush()
        cls.options = (f'--tokens={cls.file.name}',)
        super().setUpClass()

    @classmethod
    def ask(cls, method, path, body=None, headers=None, admin=False):
        given = {'Authorization': 'Bearer ' + cls.tokens[0], **(headers or {})}
        return super().ask(method, path, body, given, admin)

    def status(self, path, authorization, method='GET'):
        return self.ask(method, path, headers={'Authorization': authorization}).status

    def test_each_token_is_accepted(self):
        for token in self.tokens:
            for scheme in ('Bearer', 'bearer'):
                self.assertEqual(self.status('/v2', f'{scheme} {token}'), 200)

    def test_everything_else_is_refused(self):
        first = self.tokens[0]
        for authorization in (
            '',
            'Bearer',
            'Bearer ',
            first,
            f'Basic {first}',
            f'Bearer {first[:-1]}',
            f'Bearer {first}0',
            f'Bearer 1{first[1:]}',
            f'Bearer {first[:-1]}e',
            f'Bearer {first.upper()}',
            f'Bearer  {first}',
            'Bearer ' + 'x' * 255,
            'Bearer ' + 'x' * 257,
            'Bearer # clients',
        ):
            for method, path in (
                ('GET', '/v2'),
                ('GET', '/metrics'),
                ('POST', '/v2/models/add/infer'),
                ('GET', '/none'),
                ('GET', '/v2/health/liveX'),
            ):
                self.assertEqual(self.status(path, authorization, method), 401, authorization)
        answer = self.ask('GET', '/v2', headers={'Authorization': ''})
        self.assertEqual(answer.headers['WWW-Authenticate'], 'Bearer')
        self.assertIn('token', answer.json()['error'])
        for admin in (False, True):
            answer = self.ask('POST', '/v2/repository/index', '', {'Authorization': 'x'}, admin)
            self.assertEqual(answer.status, 401)

    def test_health_needs_no_token(self):
        for path in ('/v2/health/live', '/v2/health/ready?x=1'):
            self.assertEqual(self.status(path, ''), 200)

    def test_the_body_of_a_refused_request_is_not_read(self):
        head = b'POST /v2/models/add/infer HTTP/1.1\r\nHost: x\r\nContent-Length: 60000000\r\n\r\n'
        self.assertTrue(self.exchange(head).startswith(b'HTTP/1.1 401 Unauthorized'))
        field = f'Authorization: Bearer {self.tokens[0]}\r\n'.encode()
        head = b'GET /v2 HTTP/1.1\r\nHost: x\r\n' + field * 2 + b'\r\n'
        self.assertTrue(self.exchange(head).startswith(b'HTTP/1.1 400'))

    def test_files_without_valid_tokens(self):
        for text, says in (
            ('', 'no token'),
            ('# only a comment\n', 'no token'),
            ('short\n', 'line 1'),
            (self.tokens[0] + '\n' + 'a b' * 10 + '\n', 'line 2'),
            ('x' * 257 + '\n', 'line 1'),
            ('0123456789abcdef\n' * 65, 'more than 64'),
        ):
            with tempfile.NamedTemporaryFile('w') as file:
                file.write(text)
                file.flush()
                self.assertIn(says, self.start_fails(file.name), text[:20])
        self.assertIn('cannot be opened', self.start_fails('/nonexistent'))

    def start_fails(self, path):
        ended = subprocess.run(
            [gateway_case.GATEWAY, f'--tokens={path}', '--listen=127.0.0.1:1'],
            capture_output=True,
            text=True,
            timeout=gateway_case.SECONDS_MAX,
        )
        self.assertEqual(ended.returncode, 1)
        self.assertNotIn(self.tokens[0], ended.stderr)
        return ended.stderr


class Traces(Case):
    trace_file = tempfile.NamedTemporaryFile('r', prefix='inferd-traces.')
    daemon_options = (f'--trace-file={trace_file.name}',)

    def test_spans_of_an_inference_belong_to_the_trace_of_the_client(self):
        path, body = '/v2/models/add/infer', json.dumps(ADD)
        self.assertEqual(self.ask('POST', path, body, headers={'traceparent': TRACE}).status, 200)
        self.assertEqual(self.ask('POST', path, body).status, 200)  # no trace: not sampled
        other = TRACE.replace('0af7', 'ffff')
        self.assertEqual(self.ask('POST', path, body, headers={'traceparent': other}).status, 200)
        lines = []
        end = time.monotonic() + gateway_case.SECONDS_MAX
        while len(lines) < 2 and time.monotonic() < end:
            lines += self.trace_file.readlines()
            time.sleep(0.02)
        time.sleep(0.1)
        lines += self.trace_file.readlines()
        traces = [re.search('"traceId":"([^"]*)"', line)[1] for line in lines]
        self.assertEqual(traces, [TRACE[3:35], other[3:35]])


class Restart(Case):
    daemon_options = ('--log-level=info',)  # a daemon of its own

    def test_calls_wait_while_the_daemon_restarts(self):
        self.daemon.process.kill()
        self.daemon.process.wait(gateway_case.SECONDS_MAX)
        gateway_case.wait_until(
            lambda: self.ask('GET', '/v2/health/ready').status != 200, 'the end is not noticed'
        )
        begin = time.monotonic()
        answer = self.ask('POST', '/v2/models/add/infer', json.dumps(ADD))
        self.assertEqual(answer.status, 503)
        self.assertIn('the daemon does not answer', answer.body.decode())
        self.assertGreaterEqual(time.monotonic() - begin, 1.9)
        # A call whose own timeout is shorter does not wait longer.
        short = ADD | {'parameters': {'timeout': 200000}}
        begin = time.monotonic()
        self.assertEqual(self.ask('POST', '/v2/models/add/infer', json.dumps(short)).status, 504)
        self.assertLess(time.monotonic() - begin, 1.9)
        # On a busy machine a start may take longer than a call waits, so one good round is enough.
        for _ in range(10):
            start = threading.Timer(0.3, self.daemon.start)
            start.start()
            answer = self.ask('POST', '/v2/models/add/infer', json.dumps(ADD))
            start.join()
            if answer.status != 503:
                break
            self.daemon.process.kill()
            self.daemon.process.wait(gateway_case.SECONDS_MAX)
        self.assertEqual(answer.status, 200, answer.body)
        self.assertEqual(answer.json()['outputs'][0]['data'], [2, 4, 6, 8])


if __name__ == '__main__':
    gateway_case.main()
