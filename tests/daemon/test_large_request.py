#!/usr/bin/env python3
"""test_large_request.py DAEMON INFERCTL SOURCE_ROOT - a client asks for a picture of 3000 x 6000,
[1,3,3000,6000], on the reference device: many minutes of work. The run ends at run_limit_ms with
DEADLINE_EXCEEDED, other clients are served meanwhile, and the daemon lives and gives the memory
back. Asks the same under request_memory_max, which refuses the request before it runs."""
import sys
import threading
import time
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / 'life'))
sys.path.insert(0, str(Path(sys.argv[3]) / 'tests/tools/gen'))
sys.dont_write_bytecode = True
from onnx_writer import Graph
from life_case import Server, write_model  # it reads the same arguments
import inferd
import numpy

LIMIT_MS = 2000
LAYERS = 40  # the run of all takes 16 minutes or so
SHAPE = (1, 3, 3000, 6000)
MIB = 1 << 20


def write_convolutions(folder):
    """Writes a model of convolutions whose pictures may have any size."""
    folder.mkdir()
    graph = Graph()
    value, channels = 'x', 3
    for _ in range(LAYERS):
        weight = graph.noise(4, channels, 3, 3)
        value = graph.node('Conv', [value, weight], kernel_shape=[3, 3], pads=[1, 1, 1, 1])
        channels = 4
    graph.write(folder / 'model.onnx', 'c', [1, 3, 'h', 'w'], value, [1, 4, 'h', 'w'])


class LargeRequest(unittest.TestCase):
    def test_a_run_of_many_minutes_ends_at_the_limit(self):
        server = Server(
            backends='ref', run_limit_ms=LIMIT_MS, cpu_slots=2, race='never',
            arena_bytes_per_uid_max=4 << 30,
        )
        write_model(server.models / 'm', 1)
        write_convolutions(server.models / 'c')
        server.start()
        self.addCleanup(server.stop)
        small = numpy.zeros((1, 3, 8, 8), numpy.float32)
        end, waits, failures = threading.Event(), [], []

        def ask_others():
            row = numpy.ones((1, 4), numpy.float32)
            try:
                with inferd.Client(server.socket) as client:
                    while not end.is_set():
                        begin = time.monotonic()
                        answer = client.infer('m', {'d_input': row}, timeout=10)
                        assert set(next(iter(answer.values())).ravel().tolist()) == {4.0}
                        waits.append(time.monotonic() - begin)
                        time.sleep(0.002)
            except BaseException as error:
                failures.append(error)

        with inferd.Client(server.socket) as client:
            client.infer('c', {'x': small})
        before = self.resident(server)
        others = [threading.Thread(target=ask_others) for _ in range(2)]
        for thread in others:
            thread.start()
        with inferd.Client(server.socket) as client:
            picture = client.empty(SHAPE)
            picture[...] = 0
            begin = time.monotonic()
            with self.assertRaises(inferd.Error) as failed:
                client.infer('c', {'x': picture}, timeout=600)
            took = time.monotonic() - begin
            peak = self.resident(server, 'VmHWM')
            self.assertEqual(failed.exception.code, 'DEADLINE_EXCEEDED', failed.exception)
            self.assertIn('run_limit_ms', str(failed.exception))
            # The limit, and the time to notice it within a node and to compile for the shape.
            self.assertGreaterEqual(took, LIMIT_MS / 1000)
            self.assertLess(took, 5 * LIMIT_MS / 1000)
            served = len(waits)
            del picture
        end.set()
        for thread in others:
            thread.join()
        self.assertEqual(failures, [])
        self.assertGreater(served, 50)
        with inferd.Client(server.socket) as client:
            client.infer('c', {'x': small})
        self.assertEqual(server.ask('m'), 4)
        server.wait_until(lambda: self.resident(server) < before + 16 * MIB)
        print(
            f'the run ended after {took:.1f} s (limit {LIMIT_MS / 1000:.1f} s); others: {served} '
            f'answers, the longest wait {max(waits) * 1000:.0f} ms; resident memory '
            f'{before / MIB:.0f} MiB before, {peak / MIB:.0f} at most, '
            f'{self.resident(server) / MIB:.0f} after'
        )
        self.assertIn('model=c', server.log())
        # With a limit of the memory of one request, it does not even begin.
        self.assertEqual(
            server.ctl('flags', 'set', 'request_memory_max', str(64 * MIB)).returncode, 0
        )
        with inferd.Client(server.socket) as client:
            picture = client.empty(SHAPE)
            begin = time.monotonic()
            with self.assertRaisesRegex(
                inferd.Error, r'take \d+ bytes, request_memory_max is 67108864'
            ):
                client.infer('c', {'x': picture}, timeout=600)
            self.assertLess(time.monotonic() - begin, LIMIT_MS / 1000)

    def test_what_memory_max_leaves_no_room_for_is_refused(self):
        server = Server(backends='ref', race='never', memory_max=200 * MIB)
        write_convolutions(server.models / 'c')
        server.start()
        self.addCleanup(server.stop)
        small = numpy.zeros((1, 3, 8, 8), numpy.float32)
        with inferd.Client(server.socket) as client:
            client.infer('c', {'x': small})
            picture = client.empty(SHAPE)
            with self.assertRaisesRegex(
                inferd.Error, r'take \d+ bytes, memory_max leaves \d+; inferctl status'
            ) as failed:
                client.infer('c', {'x': picture}, timeout=60)
            self.assertEqual(failed.exception.code, 'RESOURCE_EXHAUSTED')
            self.assertEqual(failed.exception.reason, 'HOST_OOM')
            # What was compiled before goes on.
            client.infer('c', {'x': small})

        full = Server(backends='ref', memory_max=1 * MIB)
        full.start()
        self.addCleanup(full.stop)
        with inferd.Client(full.socket) as client:
            with self.assertRaisesRegex(
                inferd.Error, r'the session wants .* 0.0 MiB of memory_max = 1.0 MiB are free: '
            ) as failed:
                client.session({'y': 'x'})
            self.assertEqual(failed.exception.reason, 'HOST_OOM')

    def resident(self, server, name='VmRSS'):
        status = Path(f'/proc/{server.process.pid}/status').read_text()
        return int(status.split(f'{name}:')[1].split()[0]) << 10


if __name__ == '__main__':
    unittest.main(argv=[sys.argv[0], *sys.argv[4:]], verbosity=2)
