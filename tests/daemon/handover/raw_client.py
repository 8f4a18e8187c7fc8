"""A client that sends and receives single frames, and keeps account of its requests: each must get
exactly one final reply."""
import array
import fcntl
import mmap
import os
import socket
import struct

from _proto import decode, encode

FRAMES = (
    'HELLO HELLO_ACK REQUEST RESPONSE CANCEL MEM_REGISTER MEM_REGISTERED MEM_UNREGISTER '
    'MEM_RELEASED PING PONG GOAWAY ERROR MEM_ALLOC CREDIT DATA'
).split()
TYPES = {name: number for number, name in enumerate(FRAMES, 1)}
FINAL, ERROR_FLAG = 1, 2
INFER, DEVICE_LIST, STATUS, SESSION_OPEN = 6, 64, 65, 80
F_ADD_SEALS, SEALS = 1033, 1 | 2 | 4  # SEAL, SHRINK, GROW


class Closed(Exception):
    """The daemon has closed the connection."""


class Frame:
    def __init__(self, header, meta, data, fds):
        _, _, self.stream, self.type, _, self.flags, self.method, _ = header
        self.meta, self.data, self.fds = meta, data, fds

    def status(self):
        return decode('Status', self.meta)


def pack(kind, stream, meta=b'', data=b'', method=0, fds=0, flags=0):
    """Returns the bytes of a frame."""
    return struct.pack('<IIQBBHHH', len(meta), len(data), stream, kind, fds, flags, method, 0) + (
        meta + data
    )


class Raw:
    def __init__(self, path, timeout=30.0, features=('inferd.data',), connect=True):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(timeout)
        self.socket.connect(path)
        self.buffer, self.fds = bytearray(), []
        self.stream = 0
        self.open = {}  # requests without a final reply: {stream: what the caller wants}
        if connect:
            hello = {'major': 1, 'client_name': 'raw "client"', 'features': list(features)}
            self.send(TYPES['HELLO'], 0, encode('Hello', hello))
            frame = self.next()
            assert frame.type == TYPES['HELLO_ACK'], frame.type
            self.greeting = decode('HelloAck', frame.meta)

    def send(self, kind, stream, meta=b'', data=b'', method=0, fds=()):
        message = pack(kind, stream, meta, data, method, len(fds))
        if fds:
            rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array('i', fds))]
            sent = self.socket.sendmsg([message], rights)
            message = message[sent:]
        if message:
            self.socket.sendall(message)

    def _fill(self, size):
        while len(self.buffer) < size:
            try:
                data, control, _, _ = self.socket.recvmsg(1 << 20, socket.CMSG_SPACE(64))
            except ConnectionResetError:
                raise Closed() from None
            if not data:
                raise Closed()
            self.buffer += data
            for _, _, rights in control:
                fds = array.array('i')
                fds.frombytes(rights[: len(rights) // 4 * 4])
                self.fds += fds

    def next(self):
        """Returns the next frame."""
        self._fill(24)
        header = struct.unpack_from('<IIQBBHHH', self.buffer)
        end = 24 + header[0] + header[1]
        self._fill(end)
        meta = bytes(self.buffer[24 : 24 + header[0]])
        data = bytes(self.buffer[24 + header[0] : end])
        del self.buffer[:end]
        fds = [self.fds.pop(0) for _ in range(header[4])]
        frame = Frame(header, meta, data, fds)
        if frame.type == TYPES['RESPONSE']:
            assert frame.stream in self.open, f'a second reply for stream {frame.stream}'
            if frame.flags & FINAL:
                frame.wanted = self.open.pop(frame.stream)
        return frame

    def request(self, name, message, data=b'', method=INFER, wanted=None):
        """Sends a request, and returns its stream."""
        self.stream += 1
        self.open[self.stream] = wanted
        self.send(TYPES['REQUEST'], self.stream, encode(name, message), data, method)
        return self.stream

    def call(self, name, message, data=b'', method=INFER):
        """Sends a request and returns its final reply."""
        stream = self.request(name, message, data, method)
        while True:
            frame = self.next()
            if frame.type == TYPES['RESPONSE'] and frame.stream == stream:
                if frame.flags & FINAL:
                    return frame

    def register(self, region, size, writable=True):
        """Makes shared memory, registers it, and returns a mapping of it."""
        fd = os.memfd_create('region', os.MFD_ALLOW_SEALING)
        os.posix_fallocate(fd, 0, size)
        fcntl.fcntl(fd, F_ADD_SEALS, SEALS)
        memory = mmap.mmap(fd, size)
        self.stream += 1
        self.send(
            TYPES['MEM_REGISTER'],
            self.stream,
            encode('MemRegister', {'region_id': region, 'size': size, 'writable': writable}),
            fds=[fd],
        )
        os.close(fd)
        frame = self.next()
        assert frame.type == TYPES['MEM_REGISTERED'] and not frame.flags & ERROR_FLAG, (
            frame.status()
        )
        return memory

    def close(self):
        self.socket.close()
