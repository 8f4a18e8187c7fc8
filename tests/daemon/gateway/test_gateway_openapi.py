#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""test_gateway_openapi.py DAEMON GATEWAY [TEST...] - the OpenAPI document and the server agree."""
import json
import re
from pathlib import Path

import gateway_case
from gateway_case import Case

ROUTES = Path(__file__).resolve().parents[3] / 'client/gateway/rest/routes.c'
BODY = {
    'inputs': [
        {'name': name, 'shape': [1, 4], 'datatype': 'FP32', 'data': [1, 2, 3, 4]} for name in 'ab'
    ]
}
KINDS = {'object': dict, 'array': list, 'string': str, 'boolean': bool, 'integer': int}


class OpenApi(Case):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.answer = cls.ask('GET', '/openapi.json')
        cls.document = cls.answer.json()

    def resolve(self, node):
        while '$ref' in node:
            target = self.document
            for part in node['$ref'].removeprefix('#/').split('/'):
                target = target[part]
            node = target
        return node

    def check(self, value, schema, where):
        """`value` has the form of `schema`, with no member that the schema does not name."""
        schema = self.resolve(schema)
        if 'type' not in schema:
            return
        self.assertIsInstance(value, KINDS[schema['type']], where)
        if 'enum' in schema:
            self.assertIn(value, schema['enum'], where)
        if schema['type'] == 'array':
            self.assertLessEqual(len(value), schema.get('maxItems', len(value)), where)
            for i, element in enumerate(value):
                self.check(element, schema['items'], f'{where}[{i}]')
        if schema['type'] == 'object' and 'properties' in schema:
            self.assertLessEqual(set(schema.get('required', ())), set(value), where)
            for name, member in value.items():
                self.assertIn(name, schema['properties'], where)
                self.check(member, schema['properties'][name], f'{where}.{name}')

    def operations(self):
        for path, methods in self.document['paths'].items():
            for method, operation in methods.items():
                yield path, method, operation

    def call(self, path, method, operation, model, admin, body=None):
        """Calls a path and compares the answer with the document."""
        for name in operation.get('parameters', ()):
            self.assertIn('{%s}' % self.resolve(name)['name'], path)
        url = path.replace('{model}', model).replace('{version}', '1')
        if body is None:
            body = json.dumps(BODY) if path.endswith('/infer') else '{}'
        answer = self.ask(method.upper(), url, body if method == 'post' else None, admin=admin)
        where = f'{method} {url}: {answer.status}'
        self.assertIn(str(answer.status), operation['responses'], where)
        response = self.resolve(operation['responses'][str(answer.status)])
        kind = answer.headers['Content-Type'].split(';')[0]
        self.assertIn(kind, response['content'], where)
        if kind == 'application/json':
            self.check(answer.json(), response['content'][kind]['schema'], where)
        return answer

    def test_the_document(self):
        self.assertTrue(self.document['openapi'].startswith('3.0.'))
        self.assertEqual(self.answer.headers['Content-Type'], 'application/json')
        source = ROUTES.parent / 'openapi.json'
        self.assertEqual(self.answer.body, source.read_bytes())

    def test_each_path_of_the_server_is_in_the_document(self):
        text = ROUTES.read_text()
        table = text[text.index('} routes[] = {') : text.index('};', text.index('} routes[] = {'))]
        served = set()
        for pattern, method in re.findall(r'\{"(/[^"]+)", INF_HTTP_(GET|POST)', table):
            path = pattern.replace(':', '{model}', 1).replace(':', '{version}', 1)
            served.add((path, method.lower()))
        self.assertGreater(len(served), 15)
        self.assertEqual(served, {(path, method) for path, method, _ in self.operations()})

    def test_each_path_answers_as_the_document_says(self):
        self.infer('add', BODY)
        for path, method, operation in self.operations():
            if 'administration' in operation.get('tags', ()):
                self.assertEqual(self.call(path, method, operation, 'ints', False).status, 403)
            else:
                self.assertEqual(self.call(path, method, operation, 'add', False).status, 200)
                if '{model}' in path:
                    missing = self.call(path, method, operation, 'none', False)
                    self.assertEqual(missing.status, 404)
            if method == 'post':
                self.assertEqual(self.call(path, method, operation, 'add', True, '[').status, 400)

    def test_each_path_of_administrators(self):
        done = []
        for path, method, operation in self.operations():
            if 'administration' in operation.get('tags', ()):
                done.append(self.call(path, method, operation, 'ints', True).status)
                load = '/v2/repository/models/ints/load'
                self.assertEqual(self.ask('POST', load, admin=True).status, 200)
        self.assertEqual(done, [200] * 4)


if __name__ == '__main__':
    gateway_case.main()
