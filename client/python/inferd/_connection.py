# SPDX-License-Identifier: Apache-2.0
"""Sends and receives frames: header, metadata, data and descriptors. The module does not interpret
them.
"""
import array
import math
import select
import socket
import struct

import numpy

from ._errors import Disconnected

HELLO, HELLO_ACK, REQUEST, RESPONSE, CANCEL, MEM_REGISTER, MEM_REGISTERED = range(1, 8)
MEM_UNREGISTER, MEM_RELEASED, PING, PONG, GOAWAY, ERROR, MEM_ALLOC, CREDIT, DATA = range(8, 17)
FINAL, FAILED, CRITICAL = 1, 2, 4

_HEADER = struct.Struct('<IIQBBHHH')
ALIGNMENT = 64  # bytes; for tensors in the data of a frame and in regions


class Frame:
    __slots__ = ('type', 'flags', 'method', 'stream', 'meta', 'data')

    def __init__(self, type, flags, method, stream, meta, data):
        self.type, self.flags, self.method, self.stream = type, flags, method, stream
        self.meta, self.data = meta, data


class Connection:
    """A connected socket. One thread may receive while another one sends."""

    def __init__(self, path, timeout):
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            self._socket.settimeout(timeout)
            self._socket.connect(path)
            self._socket.settimeout(None)
        except OSError as problem:
            self._socket.close()
            raise Disconnected(f'{path}: {problem.strerror or problem}') from None

    def fileno(self):
        return self._socket.fileno()

    def shut_down(self):
        """Shuts down both directions of the socket, which wakes a thread in receive(). The
        descriptor stays open until close().
        """
        try:
            self._socket.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass  # the daemon has closed its end, or close() was called

    def close(self):
        """Closes the descriptor. No thread may be in receive(), because the system may reuse the
        number of the descriptor.
        """
        self._socket.close()

    def send(self, type, stream, meta=b'', parts=(), data_bytes=0, method=0, fd=None):
        """Sends a frame whose data are the buffers in `parts`. There is no time limit, because the
        daemon handles only complete frames.
        """
        header = _HEADER.pack(
            len(meta), data_bytes, stream, type, 0 if fd is None else 1, 0, method, 0
        )
        ancillary = (
            [] if fd is None else [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array('i', [fd]))]
        )
        try:
            buffers = [memoryview(header), memoryview(meta), *map(memoryview, parts)]
            sent = self._socket.sendmsg(buffers, ancillary)
            for buffer in buffers:
                rest = buffer[min(sent, len(buffer)) :]
                sent -= len(buffer) - len(rest)
                if rest:
                    self._socket.sendall(rest)
        except OSError as problem:
            raise Disconnected(f'sending: {problem.strerror or problem}', 'UNSENT') from None

    def _fill(self, buffer):
        view = memoryview(buffer)
        while view:
            try:
                size = self._socket.recv_into(view)
            except OSError as problem:
                raise Disconnected(f'receiving: {problem.strerror or problem}') from None
            if size == 0:
                raise Disconnected('the daemon has closed the connection')
            view = view[size:]

    def _wait_readable(self, timeout):
        poll = select.poll()
        try:
            poll.register(self._socket, select.POLLIN)
        except ValueError:
            raise Disconnected('the connection is closed') from None
        # Round up, because a timeout below a millisecond must not become a busy loop.
        if not poll.poll(math.ceil(timeout * 1e3)):
            raise TimeoutError

    def receive(self, timeout=None):
        """Returns the next frame. Raises TimeoutError if no frame begins within `timeout` seconds
        (None: no limit). A frame that has begun is read to its end.
        """
        if timeout is not None:
            self._wait_readable(timeout)
        header = bytearray(_HEADER.size)
        self._fill(header)
        meta_bytes, data_bytes, stream, type, _, flags, method, _ = _HEADER.unpack(header)
        meta = bytearray(meta_bytes)
        data = numpy.empty(data_bytes, numpy.uint8)
        self._fill(meta)
        self._fill(data.data)
        return Frame(type, flags, method, stream, memoryview(meta), data)
