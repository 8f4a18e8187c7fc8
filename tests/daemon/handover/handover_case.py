"""The common part of the tests of restarts: a daemon with a service manager, clients that it keeps,
and checks of their answers. Every test has the arguments DAEMON SOURCE_ROOT [TEST...]."""
import fcntl
import os
import signal
import struct
import sys
import tempfile
import termios
import time
import unittest
from pathlib import Path

DAEMON = os.path.abspath(sys.argv[1])
# The codec alone: the package needs numpy.
sys.path.insert(0, str(Path(sys.argv[2]) / 'client/python/inferd'))
sys.dont_write_bytecode = True
from _proto import decode
from manager import Manager
from models import write_sum
from raw_client import DEVICE_LIST, ERROR_FLAG, FINAL, STATUS, Raw

UNAVAILABLE, ABORTED = 14, 10
NOT_BEGUN, OUTCOME_UNKNOWN, SESSION_LOST = 49, 50, 31
SOCKET_BYTES = 64 << 10  # less than what a socket takes
ONES = struct.pack('<4f', 1, 1, 1, 1)


def ask(rows=1, model='m', name='a_input', **fields):
    tensor = {'name': name, 'datatype': 'FP32', 'shape': [rows, 4]}
    return {'model_name': model, 'inputs': [tensor], **fields}


class HandoverCase(unittest.TestCase):
    def setUp(self):
        self.holder = tempfile.TemporaryDirectory(prefix='inferd-handover-')
        self.addCleanup(self.holder.cleanup)
        self.folder = Path(self.holder.name)
        self.models = self.folder / 'models'
        self.models.mkdir()
        write_sum(self.models / 'm')  # each output is 12 for ones

    def start(self, *arguments, room=4096, wait=True):
        command = [DAEMON, f'--repository={self.models}', '--backends=ref', '--watch=never',
                   f'--cache-dir={self.folder}', *arguments]
        self.manager = Manager(self.folder, command, room)
        self.addCleanup(self.manager.close)
        self.manager.start(wait)
        if wait:
            self.manager.wait_for_models()
        return self.manager

    def connect(self, path=None, **options):
        client = Raw(path or self.manager.data, **options)
        self.addCleanup(client.close)
        return client

    def kept(self, count=1, **options):
        """Returns a client whose connection is kept; `count` connections are, with it."""
        client = self.connect(**options)
        self.manager.wait_for_names('inferd-c-', count)
        return client

    def check_infer(self, client, value=12.0):
        frame = client.call('ModelInferRequest', ask(), ONES)
        self.assertEqual(frame.flags, FINAL, frame.flags & ERROR_FLAG and frame.status())
        self.assertEqual(struct.unpack('<3f', frame.data), (value,) * 3)

    def check_failure(self, frame, reason, code=UNAVAILABLE):
        self.assertTrue(frame.flags & ERROR_FLAG, frame.flags)
        status = frame.status()
        self.assertEqual((status['code'], status['reason']), (code, reason), status)

    def server_status(self):
        client = self.connect(self.manager.admin)
        frame = client.call('Empty', {}, method=STATUS)
        client.close()
        return decode('ServerStatusResponse', frame.meta)

    def wait_for_reading(self):
        """Returns when the daemon has read what clients have sent: its loop handles connections in
        the order in which they have something to read."""
        self.server_status()

    def wait_until_full(self, client):
        """Returns when the socket of a client that does not read takes no more."""
        seen, size, end = -1, 0, time.monotonic() + 20
        while seen != size or size < SOCKET_BYTES:
            assert time.monotonic() < end, size
            time.sleep(0.2)
            room = fcntl.ioctl(client.socket, termios.FIONREAD, bytes(4))
            seen, size = size, struct.unpack('i', room)[0]

    def wait_for_run(self, waiting=0):
        """Returns when the device runs a request, and `waiting` others are in its queue."""
        end = time.monotonic() + 20
        client = self.connect(self.manager.admin)
        self.wait_for_reading()
        while True:
            frame = client.call('Empty', {}, method=DEVICE_LIST)
            devices = decode('DeviceListResponse', frame.meta)
            if [row['queue_depth'] for row in devices['devices']] == [waiting]:
                break
            assert time.monotonic() < end, devices
            time.sleep(0.005)
        client.close()

    def check_books(self):
        """Every accepted request is answered; the one that asks is not yet."""
        status = self.server_status()
        self.assertEqual(status['requests_in_flight'], 1)
        self.assertEqual(
            status['requests_accepted'], status['requests_ok'] + status['requests_failed'] + 1
        )

    def replace(self, change):
        """Changes the stored descriptors while no process runs."""
        self.manager.end(signal.SIGKILL)
        with self.manager.lock:
            change(self.manager.store)
        self.manager.start()

    def handover_fd(self):
        return next(fd for name, fd in self.manager.store if name == 'inferd-handover')


def main():
    unittest.main(argv=sys.argv[:1] + sys.argv[3:])
