# SPDX-License-Identifier: Apache-2.0
"""Waits until a daemon accepts connections. The file of its socket exists before it listens, so a
client that waits for the file may be refused."""
import socket
import time

SECONDS_MAX = 60


def accepts(path):
    """Returns true if a process listens on this socket."""
    with socket.socket(socket.AF_UNIX) as probe:
        try:
            probe.connect(str(path))
        except OSError:
            return False
    return True


def wait_until_accepts(path, process):
    """Returns when a process listens on the socket. Fails if `process`, a subprocess.Popen that is
    expected to do so, ends before."""
    end = time.monotonic() + SECONDS_MAX
    while not accepts(path):
        assert process.poll() is None, f'the process ended with {process.returncode}'
        assert time.monotonic() < end, f'no process listens on {path} after {SECONDS_MAX} s'
        time.sleep(0.02)
