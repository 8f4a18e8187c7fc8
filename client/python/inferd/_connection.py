# SPDX-License-Identifier: Apache-2.0
"""Frames over a socket: header, metadata, data, descriptors. Knows nothing of what they mean."""
import array
import socket
import struct

import numpy

from ._errors import Disconnected

HELLO, HELLO_ACK, REQUEST, RESPONSE, CANCEL, MEM_REGISTER, MEM_REGISTERED = range(1, 8)
MEM_UNREGISTER, MEM_RELEASED, PING, PONG, GOAWAY, ERROR, MEM_ALLOC, CREDIT, DATA = range(8, 17)
FINAL, FAILED, CRITICAL = 1, 2, 4

_HEADER = struct.Struct('<IIQBBHHH')
ALIGNMENT = 64  # of tensors in the data of a frame, and in regions


class Frame:
    __slots__ = ('type', 'flags', 'method', 'stream', 'meta', 'data')

    def __init__(self, type, flags, method, stream, meta, data):
        self.type, self.flags, self.method, self.stream = type, flags, method, stream
        self.meta, self.data = meta, data


class Connection:
    """One socket. Blocking, and for one thread at a time."""

    def __init__(self, path, timeout):
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            self._socket.settimeout(timeout)
            self._socket.connect(path)
        except OSError as problem:
            self._socket.close()
            raise Disconnected(f'{path}: {problem.strerror or problem}') from None

    def fileno(self):
        return self._socket.fileno()

    def settimeout(self, seconds):
        """How long receive() waits for a frame to begin; None: for ever."""
        try:
            self._socket.settimeout(seconds)
        except OSError:
            raise Disconnected('the connection is closed') from None

    def close(self):
        self._socket.close()

    def send(self, type, stream, meta=b'', parts=(), data_bytes=0, method=0, fd=None):
        """Sends a frame whose data are the buffers in `parts`. A timeout does not cut a frame: it is
        for waiting for answers."""
        header = _HEADER.pack(len(meta), data_bytes, stream, type, 0 if fd is None else 1, 0, method, 0)
        ancillary = [] if fd is None else [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array('i', [fd]))]
        wait = self._socket.gettimeout()
        try:
            self._socket.settimeout(None)
            buffers = [memoryview(header), memoryview(meta), *map(memoryview, parts)]
            sent = self._socket.sendmsg(buffers, ancillary)
            for buffer in buffers:
                rest = buffer[min(sent, len(buffer)):]
                sent -= len(buffer) - len(rest)
                if rest:
                    self._socket.sendall(rest)
            self._socket.settimeout(wait)
        except OSError as problem:
            # The daemon handles whole frames only.
            raise Disconnected(f'sending: {problem.strerror or problem}', 'UNSENT') from None

    def _fill(self, buffer, may_time_out):
        view = memoryview(buffer)
        while view:
            try:
                size = self._socket.recv_into(view)
            except TimeoutError:
                if may_time_out and len(view) == len(buffer):
                    raise
                continue  # a frame that has begun is read to its end
            except OSError as problem:
                raise Disconnected(f'receiving: {problem.strerror or problem}') from None
            if size == 0:
                raise Disconnected('the daemon has closed the connection')
            view = view[size:]

    def receive(self):
        """The next frame; TimeoutError where none begins in the time set."""
        header = bytearray(_HEADER.size)
        self._fill(header, True)
        meta_bytes, data_bytes, stream, type, _, flags, method, _ = _HEADER.unpack(header)
        meta = bytearray(meta_bytes)
        data = numpy.empty(data_bytes, numpy.uint8)
        self._fill(meta, False)
        self._fill(data.data, False)
        return Frame(type, flags, method, stream, memoryview(meta), data)
