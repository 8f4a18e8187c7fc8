#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""test_gateway_service.py DAEMON GATEWAY [TEST...] - what operators use of the gateway.

The repository, metrics, ids of requests, and the parts of the protocol that inferd does not have.
"""
import json
import os
import re
import signal
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
        gateway = gateway_case.Gateway(self.daemon.folder)
        gateway_case.wait_until(lambda: os.path.exists(gateway.admin_path), 'no socket')
        connection = Connection(gateway, admin=True)
        gateway_case.wait_until(lambda: self.unload_fails(connection), 'no answer')
        self.daemon.process.send_signal(signal.SIGSTOP)
        try:
            connection.request('POST', '/v2/repository/models/ints/load')
            time.sleep(0.3)  # the thread of the gateway waits for the daemon
            connection.close()
            begin = time.monotonic()
            self.assertEqual(gateway.end(), 0)
            self.assertLess(time.monotonic() - begin, 8)
        finally:
            self.daemon.process.send_signal(signal.SIGCONT)

    def unload_fails(self, connection):
        """Asks on the thread for administrators, which then is connected to the daemon."""
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


if __name__ == '__main__':
    gateway_case.main()
