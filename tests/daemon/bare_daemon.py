# SPDX-License-Identifier: Apache-2.0
"""A daemon without a repository, for tests that load models by path. The test puts client/python on
sys.path before it imports this module."""
import re
import subprocess
import tempfile
import time

import inferd
from tested_program import SECONDS_MAX, wait_until_accepts


class BareDaemon:
    """A running daemon with the devices ref and cpu, and a folder for its sockets, its cache and
    the test's own files."""

    def __init__(self, program, *options):
        self._temporary = tempfile.TemporaryDirectory()
        self.folder = self._temporary.name
        self.socket, self.admin = self.folder + '/inferd.sock', self.folder + '/admin.sock'
        self._process = subprocess.Popen(
            [
                program,
                '--runtime-dir=' + self.folder,
                '--cache-dir=' + self.folder,
                '--backends=ref,cpu',
                '--drain-timeout-ms=200',
                *options,
            ],
            stderr=subprocess.DEVNULL,
        )
        try:
            wait_until_accepts(self.admin, self._process)
        except AssertionError:
            self.end()
            raise

    @property
    def pid(self):
        return self._process.pid

    def processor_ns(self):
        """The processor time of the daemon and its threads so far."""
        return time.clock_gettime_ns(~self.pid << 3 | 2)  # as clock_getcpuclockid() computes it

    def count_batch_rows(self):
        """The rows of the runs of all inferences so far, added up, and the number of inferences."""
        with inferd.Client(self.socket) as client:
            text = client.metrics()
        pattern = r'^inferd_inference_batch_rows_%s\S* (\S+)$'
        return [
            sum(map(float, re.findall(pattern % kind, text, re.M))) for kind in ('sum', 'count')
        ]

    def load(self, name, path):
        with inferd.Client(self.admin) as admin:
            admin.load(name, str(path))

    def load_graph(self, name, graph, inputs, outputs):
        """Writes an onnx_writer.Graph with these ports, and loads it."""
        path = f'{self.folder}/{name}.onnx'
        graph.write_ports(path, name, inputs, outputs, {'': 17})
        self.load(name, path)

    def end(self):
        """Stops the daemon, and fails if it does not exit with 0."""
        self._process.terminate()
        code = self._process.wait(SECONDS_MAX)
        self._temporary.cleanup()
        if code != 0:
            raise ChildProcessError(f'the daemon ended with {code}')
