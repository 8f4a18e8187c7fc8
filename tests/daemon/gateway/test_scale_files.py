#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""test_scale_files.py FOLDER - the files for Envoy and KServe are YAML, and name what exists.

Neither program is at hand, so this is all that is tested.
"""
import os
import re
import sys
from pathlib import Path

try:
    import yaml
except ImportError:
    # The first python3 in PATH may be another one than Debian's.
    if os.path.exists('/usr/bin/python3') and 'INF_YAML_TRIED' not in os.environ:
        os.environ['INF_YAML_TRIED'] = 'yes'
        os.execv('/usr/bin/python3', ['/usr/bin/python3', '-B', *sys.argv])
    print('SKIP: python3-yaml is not installed')
    sys.exit(77)


def check_envoy(envoy):
    resources = envoy['static_resources']
    clusters = {cluster['name']: cluster for cluster in resources['clusters']}
    chain = resources['listeners'][0]['filter_chains'][0]
    manager = chain['filters'][0]['typed_config']
    routes = manager['route_config']['virtual_hosts'][0]['routes']
    assert routes[0]['match']['prefix'] == '/v2/repository'
    assert routes[0]['direct_response']['status'] == 403
    used = {route['route']['cluster'] for route in routes[1:]}
    assert used == set(clusters), (used, set(clusters))
    assert routes[-1]['match'] == {'prefix': '/'}
    # A request that may have been started is sent again only if the client allows it.
    for route in routes[1:]:
        fields = {field['name'] for field in route['match'].get('headers', [])}
        retries = set(route['route']['retry_policy']['retry_on'].split(','))
        if 'idempotency-key' not in fields:
            assert retries == {'connect-failure', 'refused-stream'}, retries
    for name, cluster in clusters.items():
        assert cluster['lb_policy'] == 'LEAST_REQUEST', name
        ports = [
            point['endpoint']['address']['socket_address']['port_value']
            for point in cluster['load_assignment']['endpoints'][0]['lb_endpoints']
        ]
        assert ports == [8001, 8002], (name, ports)
    check = clusters['inferd_rest']['health_checks'][0]['http_health_check']
    assert check['path'] == '/v2/health/ready'
    assert 'grpc_health_check' in clusters['inferd_grpc']['health_checks'][0]
    options = clusters['inferd_grpc']['typed_extension_protocol_options']
    assert 'http2_protocol_options' in next(iter(options.values()))['explicit_http_config']


def check_kserve(runtime, service, root):
    assert (runtime['kind'], service['kind']) == ('ServingRuntime', 'InferenceService')
    assert service['spec']['predictor']['model']['runtime'] == runtime['metadata']['name']
    volumes = {volume['name'] for volume in runtime['spec']['volumes']}
    options = {
        program: (root / f'docs/man/{program}.8').read_text()
        for program in ('inferd-gateway', 'inferd')
    }
    for container in runtime['spec']['containers']:
        program, *arguments = container['command']
        for argument in arguments:
            name = re.match('--([a-z_-]+)=', argument).group(1)
            assert re.search(rf'\b{name}\b', options[program]), (program, argument)
        assert {mount['name'] for mount in container['volumeMounts']} <= volumes
        assert container['securityContext']['runAsNonRoot'] is True
    gateway = runtime['spec']['containers'][0]
    port = gateway['ports'][0]['containerPort']
    wanted = {
        'startupProbe': '/v2/health/ready',
        'livenessProbe': '/v2/health/live',
        'readinessProbe': f'/v2/models/{service["metadata"]["name"]}/ready',
    }
    for probe, path in wanted.items():
        assert gateway[probe]['httpGet'] == {'path': path, 'port': port}, probe


def main(folder):
    folder = Path(folder).resolve()
    check_envoy(yaml.safe_load((folder / 'envoy.yaml').read_text()))
    runtime, service = yaml.safe_load_all((folder / 'kserve.yaml').read_text())
    check_kserve(runtime, service, folder.parents[2])
    for page in ('envoy.md', 'kserve.md'):
        assert 'not run here' in (folder / page).read_text(), page
    return 0


if __name__ == '__main__':
    sys.exit(main(*sys.argv[1:]))
