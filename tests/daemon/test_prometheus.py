#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""test_prometheus.py INFERD INFERCTL ROOT - what Debian's Prometheus makes of the metrics: promtool
checks the exposition and the alert rules, and a server that scrapes the daemon finds the latency
that the load generator measured. The queries of the dashboard name metrics that exist."""
import json
import math
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import urllib.parse
import urllib.request
from pathlib import Path

INFERD, INFERCTL, ROOT = sys.argv[1:]
INFERD, INFERCTL = os.path.abspath(INFERD), os.path.abspath(INFERCTL)
MONITORING = Path(ROOT, 'docs/monitoring')
SECONDS_MAX = 60
HAS_PROMETHEUS = shutil.which('prometheus') and shutil.which('promtool')
NEEDS_PROMETHEUS = unittest.skipUnless(
    HAS_PROMETHEUS, "Debian's package prometheus is not installed"
)
RUNS = 500  # so many that the few unmeasured runs before them do not move the 99th percentile


def matmul(name, left):
    no = {'b': False}
    attributes = {'T': {'type': 'DT_FLOAT'}, 'transpose_a': no, 'transpose_b': no}
    return {'name': name, 'op': 'MatMul', 'input': [left, 'x'], 'attr': attributes}


def write_model(folder):
    """Products of a 256 x 256 matrix, so many that the way to the daemon hardly counts."""
    dims = {'shape': {'dim': [{'size': '256'}, {'size': '256'}]}}
    attributes = {'dtype': {'type': 'DT_FLOAT'}, 'shape': dims}
    nodes = [{'name': 'x', 'op': 'Placeholder', 'attr': attributes}]
    nodes += [matmul(f's{i + 1}', f's{i}' if i else 'x') for i in range(100)]
    model = {'format': 'graph-model', 'modelTopology': {'node': nodes}, 'weightsManifest': []}
    folder.mkdir(parents=True)
    (folder / 'model.json').write_text(json.dumps(model))


def read_names(families=False):
    """The names of all samples; with `families`, those of histograms without a suffix as well."""
    table = Path(ROOT, 'daemon/observe/metrics.def').read_text()
    names = set()
    for name, kind in re.findall(r'INF_METRIC\(\w+,\s*"(\w+)",\s*(\w+)', table):
        suffixes = ('_bucket', '_sum', '_count') if kind == 'HISTOGRAM' else ('',)
        names |= {name + suffix for suffix in suffixes} | ({name} if families else set())
    assert len(names) > 50, names
    return names


def wait_for(condition):
    end = time.monotonic() + SECONDS_MAX
    while True:
        try:
            if result := condition():
                return result
        except OSError:
            pass
        assert time.monotonic() < end, f'not within {SECONDS_MAX} s'
        time.sleep(0.1)


class Inetd:
    """Starts `inferctl metrics --http` for each TCP connection, as systemd does with Accept=yes."""

    def __init__(self, admin_socket):
        self.admin_socket = admin_socket
        self.listener = socket.create_server(('127.0.0.1', 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.run, daemon=True).start()

    def run(self):
        while True:
            client, _ = self.listener.accept()
            program = [INFERCTL, 'metrics', '--all', '--http', '--socket', self.admin_socket]
            with client:
                subprocess.run(program, stdin=client, stderr=subprocess.DEVNULL)


class Server:
    """A Prometheus that scrapes the daemon every second."""

    def __init__(self, folder, target, *options):
        with socket.create_server(('127.0.0.1', 0)) as free:
            port = free.getsockname()[1]
        self.url = f'http://127.0.0.1:{port}'
        config = Path(folder, 'prometheus.yml')
        config.write_text(
            'global: {scrape_interval: 1s}\n'
            f'rule_files: [{MONITORING}/alerts.yml]\n'
            'scrape_configs:\n'
            '  - job_name: inferd\n'
            f'    static_configs: [{{targets: ["127.0.0.1:{target}"]}}]\n'
        )
        self.log = open(Path(folder, 'log'), 'w+')
        self.process = subprocess.Popen(
            [
                'prometheus',
                f'--config.file={config}',
                f'--storage.tsdb.path={folder}/data',
                f'--web.listen-address=127.0.0.1:{port}',
                *options,
            ],
            stderr=self.log,
        )

    def end(self):
        self.process.terminate()
        self.process.wait(SECONDS_MAX)
        self.log.close()

    def ask(self, query):
        """The samples of an instant query: pairs of labels and a value."""
        address = f'{self.url}/api/v1/query?{urllib.parse.urlencode({"query": query})}'
        with urllib.request.urlopen(address, timeout=SECONDS_MAX) as answer:
            result = json.load(answer)['data']['result']
        return [(row['metric'], float(row['value'][1])) for row in result]

    def ask_one(self, query):
        rows = self.ask(query)
        return rows[0][1] if rows else None


class Names(unittest.TestCase):
    def test_dashboard_and_rules_name_metrics_that_exist(self):
        for file in ('grafana.json', 'alerts.yml', 'alerts-test.yml', '../howto/monitor.md'):
            used = set(re.findall(r'\binferd_\w+\b(?!\()', (MONITORING / file).read_text()))
            self.assertGreater(len(used), 5, file)
            self.assertEqual(used - read_names(families=file.endswith('.md')), set(), file)


@NEEDS_PROMETHEUS
class Prometheus(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp()
        write_model(Path(cls.folder, 'models', 'work', '1'))
        cls.daemon = subprocess.Popen(
            [INFERD, f'--runtime-dir={cls.folder}', f'--repository={cls.folder}/models']
            + [f'--cache-dir={cls.folder}', '--race=never'],
            stderr=subprocess.DEVNULL,
        )
        wait_for(lambda: cls.ctl('wait', 'work').returncode == 0)
        cls.bench = json.loads(cls.ctl('bench', '-n', str(RUNS), '--json', 'work').stdout)
        cls.inetd = Inetd(f'{cls.folder}/admin.sock')

    @classmethod
    def tearDownClass(cls):
        cls.daemon.terminate()
        assert cls.daemon.wait(SECONDS_MAX) == 0
        shutil.rmtree(cls.folder)

    @classmethod
    def ctl(cls, *arguments, admin=False):
        path = f'{cls.folder}/{"admin" if admin else "inferd"}.sock'
        return subprocess.run(
            [INFERCTL, arguments[0], '--socket', path, *arguments[1:]],
            capture_output=True,
            text=True,
            timeout=SECONDS_MAX,
        )

    def start(self, *options):
        folder = tempfile.mkdtemp(dir=self.folder)
        server = Server(folder, self.inetd.port, *options)
        self.addCleanup(server.end)
        wait_for(lambda: server.ask_one('up{job="inferd"}') == 1)
        return server

    def test_promtool_accepts_the_exposition(self):
        text = self.ctl('metrics', '--all', admin=True).stdout
        self.assertIn('\ninferd_inference_duration_seconds_bucket{model="work"', text)
        result = subprocess.run(
            ['promtool', 'check', 'metrics'], input=text, capture_output=True, text=True
        )
        self.assertEqual((result.returncode, result.stdout + result.stderr), (0, ''))
        # The check finds an error in a broken exposition.
        result = subprocess.run(
            ['promtool', 'check', 'metrics'], input=text + 'a{', capture_output=True, text=True
        )
        self.assertNotEqual(result.returncode, 0)

    def test_promtool_accepts_the_rules_and_their_test(self):
        for command in (['check', 'rules', 'alerts.yml'], ['test', 'rules', 'alerts-test.yml']):
            result = subprocess.run(
                ['promtool', *command], cwd=MONITORING, capture_output=True, text=True
            )
            self.assertEqual(result.returncode, 0, result.stdout + result.stderr)

    def histogram(self):
        """The daemon's own histogram of the latency."""
        metrics = json.loads(self.ctl('metrics', '-o', 'json').stdout)
        samples = {m['name']: m['samples'] for m in metrics}['inferd_inference_duration_seconds']
        return samples[0]

    def percentiles(self):
        """What the load generator measured, in seconds, by quantile."""
        return {0.5: self.bench['median_ms'] / 1e3, 0.99: self.bench['p99_ms'] / 1e3}

    def test_classic_histograms_agree_with_the_load_generator(self):
        server = self.start()
        count = 'inferd_inference_duration_seconds_count{model="work"}'
        wait_for(lambda: server.ask_one(count) is not None)
        # The count includes the warm-up of the generator, which it does not measure.
        self.assertEqual(server.ask_one(count), self.histogram()['count'])
        self.assertIn(server.ask_one(count) - RUNS, range(1, 5))
        self.assertEqual(
            server.ask_one('inferd_inferences_total{outcome="ok"}'), self.histogram()['count']
        )
        self.assertEqual(server.ask_one('inferd_ready'), 1)
        buckets = 'inferd_inference_duration_seconds_bucket{model="work"}'
        for quantile, measured in self.percentiles().items():
            found = server.ask_one(f'histogram_quantile({quantile}, sum by (le) ({buckets}))')
            distance = math.ceil(math.log2(found)) - math.ceil(math.log2(measured))
            self.assertLessEqual(abs(distance), 1, (quantile, found, measured))
        # Every query of the dashboard is one that Prometheus understands, and most have an answer.
        answered = 0
        panels = json.loads((MONITORING / 'grafana.json').read_text())['panels']
        targets = [target for panel in panels for target in panel['targets']]
        wait_for(lambda: server.ask_one('rate(inferd_inferences_total[4s])') is not None)
        for target in targets:
            answered += bool(server.ask(target['expr'].replace('$__rate_interval', '10s')))
        self.assertGreater(answered, len(targets) // 2)

    def test_native_histograms_agree_with_the_load_generator(self):
        server = self.start('--enable-feature=native-histograms')
        name = 'inferd_inference_duration_seconds{model="work"}'
        wait_for(lambda: server.ask_one(f'histogram_count({name})') is not None)
        self.assertEqual(server.ask('inferd_inference_duration_seconds_bucket'), [])
        daemon = self.histogram()
        self.assertEqual(server.ask_one(f'histogram_count({name})'), daemon['count'])
        total = server.ask_one(f'histogram_sum({name})')
        self.assertAlmostEqual(total, daemon['sum'], delta=1e-6)
        for quantile, measured in self.percentiles().items():
            found = server.ask_one(f'histogram_quantile({quantile}, {name})')
            # Buckets grow by the factor 2^(1/4), so two of them are allowed above the measured
            # time. That time includes the way to the daemon and back, so the histogram may have
            # less.
            self.assertLess(found, measured * 2**0.5)
            self.assertGreater(found, measured / 2)


if __name__ == '__main__':
    unittest.main(argv=sys.argv[:1], verbosity=2)
