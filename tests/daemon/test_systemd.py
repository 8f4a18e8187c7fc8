#!/usr/bin/env python3
"""test_systemd.py DAEMON - what systemd sees of the daemon: sockets taken, notifications, exit
codes."""
import ctypes
import fcntl
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

DAEMON = sys.argv[1]
F_SETPIPE_SZ = 1031
PR_SET_MDWE, PR_MDWE_REFUSE_EXEC_GAIN = 65, 1


def refuse_writable_code():
    """What MemoryDenyWriteExecute=yes of the unit does; kernels before 6.3 cannot."""
    ctypes.CDLL(None).prctl(PR_SET_MDWE, PR_MDWE_REFUSE_EXEC_GAIN, 0, 0, 0)


class Manager:
    """The notification socket of a service manager."""

    def __init__(self, folder):
        self.path = folder + '/notify'
        self.sink = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.sink.bind(self.path)
        self.seen = []

    def wait_for(self, assignment, count=1, seconds=20):
        """Reads notifications until `assignment` came `count` times, and forgets what came before.
        """
        end = time.monotonic() + seconds
        while sum(line == assignment for line in self.seen) < count:
            self.sink.settimeout(max(0.001, end - time.monotonic()))
            try:
                self.seen += self.sink.recv(4096).decode().split('\n')
            except TimeoutError:
                sys.exit(f'{assignment} did not come {count} times; came: {self.seen}')
        seen, self.seen = self.seen, []
        return seen


def connect(path):
    """Waits until a process listens on the socket, and returns a connection to it."""
    end = time.monotonic() + 20
    while True:
        client = socket.socket(socket.AF_UNIX)
        client.settimeout(20)
        try:
            client.connect(path)
            return client
        except OSError:
            client.close()
            if time.monotonic() > end:
                raise
            time.sleep(0.01)


def check_activation(folder, tool):
    manager = Manager(folder)
    config, data, admin = folder + '/inferd.conf', folder + '/data', folder + '/admin'
    with open(config, 'w') as file:
        file.write('repository =\nbackends = ref\n')
    daemon = subprocess.Popen(
        [
            tool,
            '-l',
            data,
            '-l',
            admin,
            '--fdname=inferd:inferd-admin',
            '-E',
            'NOTIFY_SOCKET=' + manager.path,
            '-E',
            'WATCHDOG_USEC=200000',
            DAEMON,
            '--config=' + config,
        ],
        stderr=subprocess.DEVNULL,
        preexec_fn=refuse_writable_code,
    )
    try:
        clients = [connect(data), connect(admin)]  # the first one starts the daemon
        seen = manager.wait_for('READY=1')
        assert any(line.startswith('STATUS=serving') for line in seen), seen
        manager.wait_for('WATCHDOG=1', count=3)
        for client in clients:  # both are served: what is no frame ends a connection
            client.sendall(b'\xff' * 64)
            while client.recv(4096):
                pass
        daemon.send_signal(signal.SIGHUP)
        seen = manager.wait_for('RELOADING=1')
        assert any(line.startswith('MONOTONIC_USEC=') for line in seen), seen
        manager.wait_for('READY=1')
        daemon.send_signal(signal.SIGTERM)
        manager.wait_for('STOPPING=1')
        assert daemon.wait(20) == 0, daemon.returncode
    finally:
        daemon.kill()
        daemon.wait()
    assert os.path.exists(data), 'a socket that systemd made was removed'


def run(*arguments):
    return subprocess.run([DAEMON, *arguments], capture_output=True, text=True, timeout=60)


def check_exit_codes(folder):
    wrong = run('--colour=red')
    assert wrong.returncode == 2 and wrong.stderr.startswith('inferd: --colour'), wrong
    assert run('--runtime-dir=' + folder, '--backends=abacus').returncode == 2
    assert run('--runtime-dir=' + folder, '--backends=ref', '--device=abacus').returncode == 2
    failed = run('--runtime-dir=' + folder + '/absent', '--backends=ref')
    assert failed.returncode == 3 and 'error not started: ' in failed.stderr, failed
    sound = run('--runtime-dir=' + folder, '--check')
    assert sound.returncode == 0 and 'sound' in sound.stdout, sound
    version = run('--version')
    assert version.returncode == 0 and version.stdout.startswith('inferd 0.'), version


def check_second_instance(folder):
    manager = Manager(folder)
    first = subprocess.Popen(
        [DAEMON, '--runtime-dir=' + folder, '--backends=ref'],
        stderr=subprocess.DEVNULL,
        env={**os.environ, 'NOTIFY_SOCKET': manager.path},
    )
    try:
        manager.wait_for('READY=1')
        for _ in range(3):
            assert run('--runtime-dir=' + folder, '--backends=ref').returncode == 4
        connect(folder + '/inferd.sock').close()  # the first one's socket is as it was
        assert os.stat(folder + '/inferd.sock').st_mode & 0o777 == 0o660
        assert os.stat(folder + '/admin.sock').st_mode & 0o777 == 0o600
        first.send_signal(signal.SIGINT)
        assert first.wait(20) == 0, first.returncode
    finally:
        first.kill()
        first.wait()
    # What a daemon that was killed leaves behind does not hinder the next one.
    for end in (signal.SIGKILL, signal.SIGTERM):
        again = subprocess.Popen(
            [DAEMON, '--runtime-dir=' + folder, '--backends=ref'],
            stderr=subprocess.DEVNULL,
            env={**os.environ, 'NOTIFY_SOCKET': manager.path},
        )
        manager.wait_for('READY=1')
        again.send_signal(end)
        assert again.wait(20) == (-9 if end == signal.SIGKILL else 0), again.returncode


def check_hanging_stderr(folder):
    """A stderr that is not read blocks nothing."""
    manager = Manager(folder)
    reader, writer = os.pipe()
    fcntl.fcntl(writer, F_SETPIPE_SZ, 4096)
    daemon = subprocess.Popen(
        [DAEMON, '--runtime-dir=' + folder, '--backends=ref', '--log-level=debug'],
        stderr=writer,
        env={**os.environ, 'NOTIFY_SOCKET': manager.path},
    )
    os.close(writer)
    manager.wait_for('READY=1')
    for _ in range(2000):  # each is a line of the log
        daemon.send_signal(signal.SIGHUP)
        time.sleep(0.0005)
    time.sleep(0.2)
    manager.wait_for('READY=1')
    daemon.send_signal(signal.SIGTERM)
    for _ in range(20):  # nor do signals at the end
        time.sleep(0.01)
        daemon.send_signal(signal.SIGTERM)
    assert daemon.wait(20) == 0, daemon.returncode
    written = os.read(reader, 65536)
    # The first line of the log, and not the last one.
    assert (
        b'memory limit' in written and b'stopping' not in written
    ), f'the pipe was never full: {written}'
    os.close(reader)


def main():
    tool = shutil.which('systemd-socket-activate')
    for check in (check_exit_codes, check_second_instance, check_hanging_stderr):
        with tempfile.TemporaryDirectory() as folder:
            check(folder)
    if tool is None:
        print('SKIPPED: systemd-socket-activate is not installed; socket activation was not tried')
        return 77
    with tempfile.TemporaryDirectory() as folder:
        check_activation(folder, tool)
    return 0


if __name__ == '__main__':
    sys.exit(main())
