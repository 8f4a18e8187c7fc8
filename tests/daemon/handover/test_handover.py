#!/usr/bin/env python3
"""test_handover.py DAEMON SOURCE_ROOT [TEST...] - what a restart and kill -9 leave to the
next process: connections, regions, and exactly one answer to each request."""
import fcntl
import mmap
import os
import signal
import struct
import sys
import time

sys.dont_write_bytecode = True
from handover_case import (
    ABORTED,
    NOT_BEGUN,
    ONES,
    OUTCOME_UNKNOWN,
    SESSION_LOST,
    HandoverCase,
    ask,
    main,
)

from _proto import encode
from models import write_chain, write_check, write_state_model
from raw_client import (
    ERROR_FLAG,
    F_ADD_SEALS,
    FINAL,
    INFER,
    SEALS,
    SESSION_OPEN,
    TYPES,
    Closed,
    pack,
)

F_SEAL_WRITE = 8
EXHAUSTED, HOST_OOM = 8, 25


class Handover(HandoverCase):
    # --- connections ---

    def test_idle_connections_survive(self):
        self.start()
        client = self.kept()
        admin = self.kept(2, path=self.manager.admin)
        self.assertEqual(admin.greeting['role'], 'admin')
        for number in (signal.SIGTERM, signal.SIGKILL, signal.SIGKILL, signal.SIGTERM):
            self.manager.restart(number)
            self.check_infer(client)
            frame = admin.call('RepositoryModelLoadRequest', {'model_name': 'm'}, method=17)
            self.assertEqual(frame.flags & ERROR_FLAG, 0)
            # The role comes from the socket, not from the handover.
            frame = client.call('RepositoryModelLoadRequest', {'model_name': 'm'}, method=17)
            self.check_failure(frame, 19, 7)
            self.check_books()
        self.manager.wait_for_log('connections taken over kept=2 lost=0')

    def test_closed_connections_leave_the_store(self):
        self.start()
        client, other = self.kept(1), self.kept(2)
        client.close()
        self.manager.wait_for_names('inferd-c-', 1)
        self.manager.restart()
        other.close()
        self.manager.wait_for_names('inferd-c-', 0)
        self.assertEqual(self.manager.names(), ['inferd-handover'])

    def test_a_client_that_leaves_meanwhile_is_noticed(self):
        self.start()
        client, other = self.kept(1), self.kept(2)
        self.manager.end(signal.SIGKILL)
        client.close()
        self.manager.start()
        self.manager.wait_for_names('inferd-c-', 1)
        self.check_infer(other)

    def test_requests_sent_meanwhile_are_answered(self):
        self.start()
        client = self.kept()
        for number in (signal.SIGTERM, signal.SIGKILL):
            self.manager.end(number)
            for _ in range(5):
                client.request('ModelInferRequest', ask(), ONES)
            client.send(TYPES['PING'], 7)
            self.manager.start()
            frames = [client.next() for _ in range(6)]
            self.assertEqual([f.flags for f in frames if f.type == TYPES['RESPONSE']], [FINAL] * 5)
            self.assertEqual([f.stream for f in frames if f.type == TYPES['PONG']], [7])
            self.assertEqual(client.open, {})

    def test_without_room_all_is_as_without_a_store(self):
        self.start(room=0)
        client = self.connect()
        self.check_infer(client)
        self.assertEqual(self.manager.names(), [])
        self.manager.restart()
        self.assertEqual(client.next().type, TYPES['GOAWAY'])
        with self.assertRaises(Closed):
            client.next()

    def test_connections_beyond_the_room_end(self):
        self.start(room=3)
        kept = [self.kept(1), self.kept(2)]
        other = self.connect()
        self.check_infer(other)
        self.assertEqual(len(self.manager.names()), 3)
        self.manager.restart()
        self.assertEqual(other.next().type, TYPES['GOAWAY'])
        with self.assertRaises(Closed):
            other.next()
        for client in kept:
            self.check_infer(client)

    # --- regions ---

    def test_regions_survive(self):
        self.start()
        client = self.kept()
        memory = client.register(5, 8192)
        memory[:16] = ONES
        other = client.register(6, 4096, writable=False)
        self.manager.wait_for_names('inferd-r-', 2)
        inputs = [{'name': 'a_input', 'datatype': 'FP32', 'shape': [1, 4],
                   'location': {'region_id': 5, 'length': 16}}]
        outputs = [{'name': 'a', 'location': {'region_id': 5, 'offset': 4096, 'length': 12}}]
        message = {'model_name': 'm', 'inputs': inputs, 'outputs': outputs}
        for number in (signal.SIGTERM, signal.SIGKILL):
            self.manager.restart(number)
            memory[4096:4108] = bytes(12)
            frame = client.call('ModelInferRequest', message)
            self.assertEqual(frame.flags, FINAL, frame.flags & ERROR_FLAG and frame.status())
            self.assertEqual(struct.unpack('<3f', memory[4096:4108]), (12.0,) * 3)
            self.assertEqual(self.server_status()['regions'], 2)
        client.send(TYPES['MEM_UNREGISTER'], 99, encode('MemUnregister', {'region_id': 5}))
        frame = client.next()
        self.assertEqual((frame.type, frame.stream), (TYPES['MEM_RELEASED'], 99))
        self.manager.wait_for_names('inferd-r-', 1)
        other.close()

    def test_regions_of_the_daemons_own_survive(self):
        self.start()
        client = self.kept()
        client.send(TYPES['MEM_ALLOC'], 50, encode('MemAlloc', {'region_id': 9, 'size': 8192}))
        frame = client.next()
        memory = mmap.mmap(frame.fds[0], 8192)
        os.close(frame.fds[0])
        self.manager.wait_for_names('inferd-r-', 1)
        outputs = [{'name': 'a', 'location': {'region_id': 9, 'offset': 4096, 'length': 12}}]
        for number in (signal.SIGKILL, signal.SIGTERM):
            self.manager.restart(number)
            memory[4096:4108] = bytes(12)
            frame = client.call('ModelInferRequest', ask(outputs=outputs), ONES)
            self.assertEqual(frame.flags, FINAL, frame.flags & ERROR_FLAG and frame.status())
            self.assertEqual(struct.unpack('<3f', memory[4096:4108]), (12.0,) * 3)

    def test_a_region_beyond_the_memory_of_the_daemon_is_refused(self):
        self.start('--memory-max=1073741824')
        client = self.kept()
        size = 1 << 30
        client.send(TYPES['MEM_ALLOC'], 50, encode('MemAlloc', {'region_id': 9, 'size': size}))
        frame = client.next()
        self.check_failure(frame, HOST_OOM, EXHAUSTED)
        self.assertRegex(frame.status()['message'], r'the region wants 1024.0 MiB, \d+\.\d MiB of ')
        client.send(TYPES['MEM_ALLOC'], 51, encode('MemAlloc', {'region_id': 9, 'size': 8192}))
        frame = client.next()
        self.assertEqual((frame.type, len(frame.fds)), (TYPES['MEM_REGISTERED'], 1))
        os.close(frame.fds[0])

    def test_a_region_without_a_record(self):
        """A process that is killed between storing a region and recording it leaves the descriptor.
        It is not taken for the region that is made next."""
        self.start()
        client = self.kept()
        foreign = os.memfd_create('foreign', os.MFD_ALLOW_SEALING)
        os.ftruncate(foreign, 4096)
        fcntl.fcntl(foreign, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK)
        self.replace(lambda store: store.append(('inferd-r-0-1-0', foreign)))
        self.check_infer(client)
        self.manager.wait_for_names('inferd-r-', 0)
        memory = client.register(5, 4096)
        memory[:16] = ONES
        self.manager.wait_for_names('inferd-r-', 1)
        self.manager.restart(signal.SIGKILL)
        inputs = [{'name': 'a_input', 'datatype': 'FP32', 'shape': [1, 4],
                   'location': {'region_id': 5, 'length': 16}}]
        frame = client.call('ModelInferRequest', {'model_name': 'm', 'inputs': inputs})
        self.assertEqual(frame.flags, FINAL, frame.flags & ERROR_FLAG and frame.status())
        self.assertEqual(frame.data, struct.pack('<3f', 12, 12, 12))

    def test_a_model_that_loads_slowly_holds_requests_for_5_s(self):
        self.start()
        client = self.kept()
        # Its check has enough rows that the load takes longer than connections wait.
        write_chain(self.models / 'slow')
        write_check(self.models / 'slow', rows=8192)
        self.manager.end()
        begin = time.monotonic()
        self.manager.start(wait=False)
        self.check_infer(client)
        waited = time.monotonic() - begin
        self.assertIn('loading: 1', self.manager.status)
        self.assertGreater(waited, 4.9)
        self.assertLess(waited, 10)
        print(f'answered {waited:.1f} s after the restart')

    # --- sessions ---

    def open_session(self, client, session=3):
        pair = {'output': 'a', 'input': 'a_input', 'shape': [1, 4], 'shaped': True}
        frame = client.call('SessionOpenRequest', {'session_id': session, 'states': [pair]},
                            method=SESSION_OPEN)
        self.assertEqual(frame.flags, FINAL, frame.flags & ERROR_FLAG and frame.status())

    def step(self, client, data=b'', session=3):
        """Runs one step of a session; the state comes from the session unless it is sent."""
        message = {'model_name': 's', 'session_id': session, 'outputs': [{'name': 'a'}]}
        if data:
            message['inputs'] = ask()['inputs']
        return client.call('ModelInferRequest', message, data)

    def test_sessions_survive_a_restart(self):
        write_state_model(self.models / 's')
        self.start()
        client = self.kept()
        self.open_session(client)
        self.open_session(client, 4)  # has no value yet
        self.assertEqual(struct.unpack('<4f', self.step(client, ONES).data), (2.0,) * 4)
        for value in (4.0, 8.0, 16.0):
            self.manager.restart()
            frame = self.step(client)
            self.assertEqual(frame.flags, FINAL, frame.flags & ERROR_FLAG and frame.status())
            self.assertEqual(struct.unpack('<4f', frame.data), (value,) * 4)
            self.assertEqual(self.manager.names('inferd-s-'), [])
        self.assertEqual(struct.unpack('<4f', self.step(client, session=4).data), (0.0,) * 4)
        self.manager.restart(signal.SIGKILL)
        self.check_failure(self.step(client), SESSION_LOST, ABORTED)
        self.check_failure(self.step(client, session=4), SESSION_LOST, ABORTED)
        self.check_books()

    def test_sessions_beyond_the_room_are_lost_the_least_used_first(self):
        write_state_model(self.models / 's')
        self.start()
        rows = (15 << 20) // 16  # a state of 15 MiB: 8 of 12 fit into 128 MiB
        clients = [self.connect() for _ in range(3)]
        self.manager.wait_for_names('inferd-c-', 3)
        pair = {'output': 'a', 'input': 'a_input', 'shape': [rows, 4], 'shaped': True}
        keys = [(client, session) for session in (1, 2, 3, 4) for client in clients]
        for client, session in keys:
            message = {'session_id': session, 'states': [pair]}
            self.assertEqual(
                client.call('SessionOpenRequest', message, method=SESSION_OPEN).flags, FINAL)
            self.step_silently(client, session)
        old = [keys.pop(5), keys.pop(3)]
        for client, session in keys[:3] + old:
            self.step_silently(client, session)
        survivors = keys[:3] + old + keys[-3:]
        self.manager.restart()
        self.manager.wait_for_log('sessions end with the process kept=8 lost=4')
        for client, session in keys + old:
            frame = self.step_silently(client, session, False)
            if (client, session) in survivors:
                self.assertEqual(frame.flags, FINAL, frame.flags & ERROR_FLAG and frame.status())
            else:
                self.check_failure(frame, SESSION_LOST, ABORTED)
                self.assertIn('a restart of the daemon lost it', frame.status()['message'])
        self.check_books()

    def step_silently(self, client, session, check=True):
        """Runs a step of a session whose output is not sent."""
        frame = client.call('ModelInferRequest', {'model_name': 's', 'session_id': session})
        if check:
            self.assertEqual(frame.flags, FINAL, frame.flags & ERROR_FLAG and frame.status())
        return frame

    def test_damaged_sessions_are_lost_and_nothing_else(self):
        write_state_model(self.models / 's')
        self.start()
        client = self.kept()
        for at in range(0, 400, 8):
            self.open_session(client)
            self.step(client, ONES)
            self.assertEqual(os.waitstatus_to_exitcode(self.manager.end()), 0)
            with self.manager.lock:
                index = next(i for i, (name, _) in enumerate(self.manager.store)
                             if name.startswith('inferd-s-'))
                name, fd = self.manager.store[index]
                image = bytearray(os.pread(fd, 1 << 20, 0))
                if at + 8 > len(image):
                    break
                image[at : at + 8] = bytes([255] * 8)
                copy = os.memfd_create('sessions', os.MFD_ALLOW_SEALING)
                os.write(copy, image)
                fcntl.fcntl(copy, F_ADD_SEALS, SEALS | F_SEAL_WRITE)
                os.close(fd)
                self.manager.store[index] = (name, copy)
            self.manager.start()
            self.check_infer(client)
            frame = self.step(client, ONES)  # lost, or the damage did not matter
            if not frame.flags & ERROR_FLAG:
                frame = client.call('SessionCloseRequest', {'session_id': 3}, method=81)
                self.assertEqual(frame.flags, FINAL)
            else:
                self.check_failure(frame, SESSION_LOST, ABORTED)
        if self.manager.pid is None:
            self.manager.start()
        self.assertGreater(at, 150)
        self.manager.wait_for_log('the image of sessions is damaged')

    # --- requests under way ---

    def test_a_restart_answers_what_has_begun(self):
        write_chain(self.models / 'slow')
        self.start('--drain-timeout-ms=60000')
        client = self.kept()
        rows = ask(256, 'slow')
        client.request('ModelInferRequest', rows, ONES * 256)
        self.wait_for_run()
        self.manager.restart()
        frame = client.next()
        self.assertEqual(frame.flags, FINAL, frame.flags & ERROR_FLAG and frame.status())
        self.check_infer(client)
        self.check_books()

    def test_kill_answers_each_request_once(self):
        write_chain(self.models / 'slow')
        self.start('--cpu-slots=1')
        for pipelined in (1, 3):
            client = self.kept(1 if pipelined == 1 else 2)
            for _ in range(pipelined):
                client.request('ModelInferRequest', ask(256, 'slow'), ONES * 256)
            self.wait_for_run(waiting=pipelined - 1)
            self.manager.restart(signal.SIGKILL)
            self.check_failure(client.next(), OUTCOME_UNKNOWN)
            for _ in range(pipelined - 1):
                self.check_failure(client.next(), NOT_BEGUN)
            self.assertEqual(client.open, {})
            self.check_infer(client)
            self.check_books()

    def test_a_frame_in_part(self):
        self.start()
        client = self.kept()
        for cut, reason in ((10, None), (23, None), (24, NOT_BEGUN), (40, NOT_BEGUN)):
            client.stream += 1
            client.open[client.stream] = None
            frame = pack(TYPES['REQUEST'], client.stream, encode('ModelInferRequest', ask()), ONES,
                         INFER)
            client.socket.sendall(frame[:cut])
            self.wait_for_reading()
            self.manager.restart(signal.SIGKILL)
            client.socket.sendall(frame[cut:])
            answer = client.next()
            if reason is None:
                self.assertEqual(answer.flags, FINAL, cut)
            else:
                self.check_failure(answer, reason)
            self.check_infer(client)

    def test_a_frame_in_part_at_a_restart(self):
        self.start()
        client = self.kept()
        client.stream += 1
        client.open[client.stream] = None
        frame = pack(TYPES['REQUEST'], client.stream, encode('ModelInferRequest', ask()), ONES,
                     INFER)
        client.socket.sendall(frame[:40])
        self.wait_for_reading()
        os.kill(self.manager.pid, signal.SIGTERM)
        self.manager.wait_for_log('draining requests=')
        # The rest of the frame is read, what follows is not.
        client.socket.sendall(frame[40:])
        client.request('ModelInferRequest', ask(), ONES)
        os.waitpid(self.manager.pid, 0)
        self.assertEqual(client.next().flags, FINAL)
        self.assertEqual(len(client.open), 1)
        self.manager.start()
        self.assertEqual(client.next().flags, FINAL)

    def test_data_in_part(self):
        self.start()
        client = self.kept()
        data = ONES * 4096
        meta = encode('Data', {'total_bytes': len(data)})
        client.stream += 1
        client.open[client.stream] = None
        client.send(TYPES['DATA'], client.stream, meta, data[:1024])
        self.wait_for_reading()
        self.manager.restart(signal.SIGKILL)
        client.send(TYPES['DATA'], client.stream, meta, data[1024:2048])
        client.send(TYPES['REQUEST'], client.stream, encode('ModelInferRequest', ask(4096)),
                    data[2048:], INFER)
        self.check_failure(client.next(), NOT_BEGUN)
        self.check_infer(client)
        # A large piece that is cut within its data.
        client.stream += 1
        client.open[client.stream] = None
        frame = pack(TYPES['DATA'], client.stream, meta, data[:32768])
        client.socket.sendall(frame[:20000])
        self.wait_for_reading()
        self.manager.restart(signal.SIGKILL)
        client.socket.sendall(frame[20000:])
        client.send(TYPES['REQUEST'], client.stream, encode('ModelInferRequest', ask(4096)),
                    data[32768:], INFER)
        self.check_failure(client.next(), NOT_BEGUN)
        self.check_infer(client)

    def test_data_with_its_request(self):
        """A process that is killed while it takes a REQUEST leaves the entry of its data too."""
        self.start()
        client = self.kept()
        meta = encode('Data', {'total_bytes': 1024})
        for _ in range(3):
            client.stream += 1
            client.open[client.stream] = None
            client.send(TYPES['DATA'], client.stream, meta, (ONES * 64)[:512])
        self.wait_for_reading()
        begin, size = 4096 + (128 << 10), 128 << 10  # slot 0
        entry = struct.Struct('<QQQIHBB')  # struct inf_pending
        found = {}

        def add_request(store):
            slot = os.pread(self.handover_fd(), size, begin)
            for at in range(0, size - entry.size, 8):
                stream, _, _, _, _, kind, state = entry.unpack_from(slot, at)
                if 0 < stream <= client.stream and (kind, state) == (TYPES['DATA'], 1):
                    found[stream] = begin + at
            # Behind the entries of all data, for the stream in the middle.
            request = entry.pack(client.stream - 1, 0, 0, 0, INFER, TYPES['REQUEST'], 1)
            os.pwrite(self.handover_fd(), request, max(found.values()) + entry.size)

        def is_taken(stream):
            return os.pread(self.handover_fd(), entry.size, found[stream])[-1] != 0

        self.replace(add_request)
        self.assertEqual(len(found), 3)
        answer = client.next()
        self.check_failure(answer, NOT_BEGUN)
        self.assertEqual(answer.stream, client.stream - 1)
        self.assertEqual([is_taken(stream) for stream in sorted(found)], [True, False, True])
        for stream in (client.stream - 2, client.stream):
            client.send(TYPES['REQUEST'], stream, encode('ModelInferRequest', ask(64)),
                        (ONES * 64)[512:], INFER)
            self.check_failure(client.next(), NOT_BEGUN)
        self.check_infer(client)
        self.check_books()

    def test_data_in_part_at_a_restart(self):
        """The daemon does not wait for the rest of the data; the request gets an answer."""
        self.start()
        client = self.kept()
        data = ONES * 256
        meta = encode('Data', {'total_bytes': len(data)})
        client.stream += 1
        client.open[client.stream] = None
        client.send(TYPES['DATA'], client.stream, meta, data[:1024])
        self.wait_for_reading()
        self.assertEqual(os.waitstatus_to_exitcode(self.manager.restart()), 0)
        client.send(TYPES['DATA'], client.stream, meta, data[1024:2048])
        client.send(TYPES['REQUEST'], client.stream, encode('ModelInferRequest', ask(256)),
                    data[2048:], INFER)
        self.check_failure(client.next(), NOT_BEGUN)
        self.check_infer(client)
        self.check_books()

    def test_a_reply_in_part(self):
        """The client does not read a reply of 768 KiB until the daemon is killed."""
        self.start()
        client = self.kept()
        rows = 1 << 16
        memory = client.register(1, rows * 16)
        memory[:] = ONES * rows
        self.manager.wait_for_names('inferd-r-', 1)
        inputs = [{'name': 'a_input', 'datatype': 'FP32', 'shape': [rows, 4],
                   'location': {'region_id': 1, 'length': rows * 16}}]
        client.request('ModelInferRequest', {'model_name': 'm', 'inputs': inputs})
        self.wait_until_full(client)
        self.manager.restart(signal.SIGKILL)
        pieces = 0
        while (frame := client.next()).type == TYPES['DATA']:
            pieces += 1
        self.assertGreater(pieces, 0)
        self.check_failure(frame, OUTCOME_UNKNOWN)
        self.check_infer(client)
        self.check_books()

    def test_streams_of_region_frames_may_be_used_again(self):
        """A region is not taken for the one that a later frame of the same stream asks for."""
        self.start()
        client = self.kept()
        rows = 1 << 16
        memory = client.register(1, rows * 16)
        memory[:] = ONES * rows
        stream = client.stream
        self.manager.wait_for_names('inferd-r-', 1)
        inputs = [{'name': 'a_input', 'datatype': 'FP32', 'shape': [rows, 4],
                   'location': {'region_id': 1, 'length': rows * 16}}]
        client.request('ModelInferRequest', {'model_name': 'm', 'inputs': inputs})
        self.wait_until_full(client)
        client.send(TYPES['MEM_ALLOC'], stream, encode('MemAlloc', {'region_id': 9, 'size': 8192}))
        self.manager.wait_for_names('inferd-r-', 2)
        self.manager.restart(signal.SIGKILL)
        frames = {}
        while len(frames) < 2:
            frame = client.next()
            if frame.type != TYPES['DATA']:
                frames[frame.type] = frame
        self.check_failure(frames[TYPES['RESPONSE']], OUTCOME_UNKNOWN)
        self.check_failure(frames[TYPES['MEM_REGISTERED']], NOT_BEGUN)
        self.assertEqual(frames[TYPES['MEM_REGISTERED']].stream, stream)
        self.manager.wait_for_names('inferd-r-', 1)
        inputs[0].update(shape=[1, 4], location={'region_id': 1, 'length': 16})
        frame = client.call('ModelInferRequest', {'model_name': 'm', 'inputs': inputs})
        self.assertEqual(frame.flags, FINAL, frame.flags & ERROR_FLAG and frame.status())


if __name__ == '__main__':
    main()
