# SPDX-License-Identifier: Apache-2.0
"""A daemon without a repository, for tests that load models by path. The test puts client/python on
sys.path before it imports this module."""
import socket
import subprocess
import tempfile
import time
from pathlib import Path

import inferd

SECONDS_MAX = 60


def is_sanitized(program):
    """Returns true if the program has a sanitizer, which keeps memory that was freed, and has a
    shadow of the rest."""
    code = Path(program).read_bytes()
    return b'__asan_init' in code or b'__tsan_init' in code


def accepts(path):
    """Returns true if a process listens on this socket."""
    with socket.socket(socket.AF_UNIX) as probe:
        try:
            probe.connect(path)
        except OSError:
            return False
    return True


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
        end = time.monotonic() + SECONDS_MAX
        while not accepts(self.admin):
            if self._process.poll() is not None or time.monotonic() > end:
                self.end()
                raise TimeoutError(f'no socket after {SECONDS_MAX} s')
            time.sleep(0.02)

    @property
    def pid(self):
        return self._process.pid

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
        code = self._process.wait(30)
        self._temporary.cleanup()
        if code != 0:
            raise ChildProcessError(f'the daemon ended with {code}')
