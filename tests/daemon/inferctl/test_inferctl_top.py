#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""test_inferctl_top.py INFERD INFERCTL - inferctl top without and with a terminal."""
import fcntl
import os
import pty
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.dont_write_bytecode = True
from tested_program import wait_until_accepts

INFERD, INFERCTL = sys.argv[1:]
SECONDS_MAX = 60


def read_until(fd, wanted):
    """Reads from the terminal until a text comes."""
    seen = b''
    end = time.monotonic() + SECONDS_MAX
    while wanted not in seen:
        assert time.monotonic() < end, seen
        try:
            seen += os.read(fd, 65536)
        except OSError:
            break
    assert wanted in seen, seen
    return seen


def check_terminal(socket, key, number):
    """Shows top on a terminal of 80 x 24, ends it with a key or a signal, and checks that it leaves
    the terminal as it was."""
    control, terminal = pty.openpty()
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack('HHHH', 24, 80, 0, 0))
    before = termios.tcgetattr(terminal)
    program = subprocess.Popen(
        [INFERCTL, 'top', '--socket', socket, '-i', '100'], stdin=terminal, stdout=terminal
    )
    seen = read_until(control, b'REQUEST')
    assert seen.startswith(b'\x1b[?1049h\x1b[?25l'), seen
    assert termios.tcgetattr(terminal)[3] & (termios.ECHO | termios.ICANON) == 0
    os.write(control, b's')
    read_until(control, b'sorted by memory')
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack('HHHH', 24, 30, 0, 0))
    program.send_signal(signal.SIGWINCH)
    # The new width cuts the head of the devices.
    read_until(control, b'DEVICE           KIND        H\x1b')
    if key is not None:
        os.write(control, key)
    else:
        program.send_signal(number)
    read_until(control, b'\x1b[?25h\x1b[?1049l')
    assert program.wait(SECONDS_MAX) == 0
    assert termios.tcgetattr(terminal) == before
    os.close(control)
    os.close(terminal)


def main():
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / 'repository').mkdir()
        daemon = subprocess.Popen(
            [INFERD, f'--runtime_dir={folder}', f'--repository={folder}/repository'],
            stderr=subprocess.DEVNULL,
        )
        socket = f'{folder}/inferd.sock'
        try:
            wait_until_accepts(socket, daemon)
            once = subprocess.run(
                [INFERCTL, 'top', '--socket', socket, '--once', '-i', '50'],
                capture_output=True,
                text=True,
                timeout=SECONDS_MAX,
            )
            assert once.returncode == 0, once
            assert once.stdout.startswith('inferd '), once
            assert '\x1b' not in once.stdout and 'CLIENT' in once.stdout, once
            assert max(map(len, once.stdout.splitlines())) <= 80, once.stdout
            check_terminal(socket, b'q', None)
            check_terminal(socket, b'\x03', None)
            check_terminal(socket, None, signal.SIGTERM)
        finally:
            daemon.terminate()
            assert daemon.wait(SECONDS_MAX) == 0
    return 0


sys.exit(main())
