# SPDX-License-Identifier: Apache-2.0
"""What a test asks about the program that it tests: whether it accepts connections, and whether it
was built with a sanitizer."""
import socket
import time
from pathlib import Path

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
    expected to do so, ends before. The file of a socket exists before the process listens, so a
    client that waits for the file may be refused."""
    end = time.monotonic() + SECONDS_MAX
    while not accepts(path):
        assert process.poll() is None, f'the process ended with {process.returncode}'
        assert time.monotonic() < end, f'no process listens on {path} after {SECONDS_MAX} s'
        time.sleep(0.02)


def is_sanitized(program):
    """Returns true if the program has a sanitizer, which keeps memory that was freed, and has a
    shadow of the rest."""
    code = Path(program).read_bytes()
    return b'__asan_init' in code or b'__tsan_init' in code
