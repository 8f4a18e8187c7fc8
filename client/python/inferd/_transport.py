# SPDX-License-Identifier: Apache-2.0
"""The transport of a client: its connection, its requests in flight, retries and reconnects."""
import math
import os
import threading
import time

import numpy

from . import _connection as wire
from ._call import Call, Pending
from ._errors import Disconnected, Error
from ._memory import Memory
from ._proto import decode, encode

_VERSION = '0.1.0'
_QUESTION_S = 10.0  # how long a question waits for a model that is loading

# The methods: {number: (request, reply)}.
_METHODS = {
    'live': (1, 'Empty', 'ServerLiveResponse'),
    'ready': (2, 'Empty', 'ServerReadyResponse'),
    'model_ready': (3, 'ModelReadyRequest', 'ModelReadyResponse'),
    'server': (4, 'Empty', 'ServerMetadataResponse'),
    'metadata': (5, 'ModelMetadataRequest', 'ModelMetadataResponse'),
    'infer': (6, 'ModelInferRequest', 'ModelInferResponse'),
    'models': (16, 'Empty', 'RepositoryIndexResponse'),
    'load': (17, 'RepositoryModelLoadRequest', 'Empty'),
    'unload': (18, 'RepositoryModelUnloadRequest', 'Empty'),
    'reload': (19, 'Empty', 'RepositoryReloadResponse'),
    'devices': (64, 'Empty', 'DeviceListResponse'),
    'status': (65, 'Empty', 'ServerStatusResponse'),
    'metrics': (67, 'MetricsRequest', 'MetricsResponse'),
    'requests': (70, 'Empty', 'RequestListResponse'),
    'clients': (71, 'Empty', 'ClientListResponse'),
    'cancel_request': (72, 'ClientTarget', 'Empty'),
    'disconnect_client': (73, 'ClientTarget', 'Empty'),
    'report': (74, 'ReportRequest', 'MetricsResponse'),
    'open_session': (80, 'SessionOpenRequest', 'Empty'),
    'limits': (82, 'ServerLimitsRequest', 'ServerLimitsResponse'),
    'close_session': (81, 'SessionCloseRequest', 'Empty'),
    'rewind_session': (83, 'SessionRewindRequest', 'Empty'),
}


class Transport:
    """Exchanges frames with the daemon for several threads. Client adds the methods of users."""

    def __init__(self, path=None, connect_timeout=10.0, retry=0.0):
        """`path` is the socket. None stands for $INFERD_SOCKET or /run/inferd/inferd.sock.

        `retry` is the number of seconds for which requests and questions are sent again if they
        were certainly not started, because the daemon was shutting down or had no room, or because
        the request was not sent. The client reconnects if necessary. Requests that may have been
        started, and inferences with a session or an order key, are never sent again. Even without
        `retry`, calls wait for a model that is still loading: an inference until its `timeout`, a
        question for 10 s or `retry`.
        """
        self._path = path or os.environ.get('INFERD_SOCKET') or '/run/inferd/inferd.sock'
        self._connect_timeout, self.retry = connect_timeout, retry
        # The lock protects the fields below. A thread releases it while it waits for a frame. One
        # thread at a time receives, with `_receiving` set, and handles the frames of all threads.
        # The other threads wait for `_changed`.
        self._lock = threading.RLock()
        self._changed = threading.Condition(self._lock)
        self._receiving = False
        self._reconnecting = threading.RLock()  # held while a thread makes a new connection
        self._connection = None
        self._calls = {}
        self._last_stream = 0
        self._last_session = 0
        self.closed = False
        self._outputs = {}  # (model, version): known sizes of large outputs
        self.statistics = {'requests': 0, 'resent': 0, 'reconnects': 0, 'without_shared_memory': 0}
        self._memory = Memory(self._register, self._unregister)
        self._connect(connect_timeout)

    def _connect(self, timeout):
        """Connects, and stores the connection in the client after the daemon has answered the
        greeting.
        """
        connection = wire.Connection(self._path, timeout)
        try:
            hello = {
                'major': 1,
                'client_name': 'inferd-python',
                'client_version': _VERSION,
                'features': ['inferd.data'],
            }
            connection.send(wire.HELLO, 0, encode('Hello', hello))
            greeting = self._greet(connection, timeout)
        except BaseException:
            connection.close()
            raise
        with self._lock:
            self._connection, self._greeting = connection, greeting
            self._draining = self._broken = False
            self._bytes_in_flight = 0
            self._known = {}  # (model, version): description by metadata(), and its time

    def _break(self, error, connection=None):
        """Ends the connection and all requests in flight. If `connection` is given, does nothing
        unless it is still the current one.
        """
        # The failing request was not started, but other requests in flight may have been.
        if error.unbegun:
            error = Disconnected(error.message)
        with self._lock:
            if connection is not None and connection is not self._connection:
                return
            self._broken = True
            self._connection.shut_down()
            if not self._receiving:
                self._connection.close()  # otherwise the receiving thread closes it
            self._fail_all(error)
            self._changed.notify_all()

    def _oldest_call(self):
        with self._lock:
            return next(iter(self._calls.values()), None)

    def reconnect(self, timeout=10.0):
        """Connects to the same path again. Waits until a daemon answers, at most `timeout` seconds.
        If the old connection works, the call first waits for the requests in flight. Arrays of
        empty() keep their contents; sessions are lost.
        """
        self._reconnect(time.monotonic() + timeout, True)

    def _reconnect(self, end, always):
        """Connects again. If `always` is false, does nothing if another thread has reconnected
        meanwhile.
        """
        if not self._reconnecting.acquire(timeout=max(end - time.monotonic(), 0)):
            raise Disconnected('another thread is still connecting')
        try:
            if always or self._broken or self._draining:
                self._replace_connection(end)
        finally:
            self._reconnecting.release()

    def _replace_connection(self, end):
        call = self._oldest_call()
        while call is not None and not self._broken and time.monotonic() < end:
            self._pump(call, end - time.monotonic())
            call = self._oldest_call()
        self._break(Disconnected('the connection was given up'))
        while True:
            try:
                self._connect(max(end - time.monotonic(), 0.01))
                self._memory.register_all()
                self._count('reconnects')
                return
            except (Disconnected, Error):
                if time.monotonic() >= end or self.closed:
                    raise
            time.sleep(0.01)

    # --- retries ---

    def _retry_end(self, error, began, until):
        """Returns the time at which retries end after `error`, for a request that began at `began`
        and has the deadline `until`. Returns None if the request must not be sent again.
        """
        if not error.unbegun or self.closed:
            return None
        if error.reason == 'LOADING':
            return until
        return min(began + self.retry, until) if self.retry > 0 else None

    def _prepare_retry(self, error, began, until, limit=math.inf):
        """Waits until a request can be sent again. Raises `error` if the wait would end after the
        end of the retries, and TimeoutError if it would end after `limit`.
        """
        end = self._retry_end(error, began, until)
        ready = time.monotonic() + max(error.retry_after_ms, 1) / 1e3
        if end is None or ready >= end:
            raise error
        if ready >= limit:
            time.sleep(max(limit - time.monotonic(), 0))
            raise TimeoutError(f'not sent again in time: {error}')
        if self.retry > 0 and (self._broken or self._draining):
            self._reconnect(min(end, limit), False)
        else:
            time.sleep(max(ready - time.monotonic(), 0))

    @staticmethod
    def _greet(connection, timeout):
        try:
            frame = connection.receive(timeout)
        except TimeoutError:
            raise Disconnected('the daemon did not answer the greeting') from None
        if frame.type == wire.ERROR:
            raise Error.of_status(decode('Status', frame.meta))
        if frame.type != wire.HELLO_ACK:
            raise Disconnected(f'a frame of type {frame.type} instead of the greeting')
        return decode('HelloAck', frame.meta)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        """Closes the connection. Requests in flight are cancelled. Arrays of results stay valid."""
        self.closed = True
        self._break(Disconnected('the client was closed'))

    def fileno(self):
        """Returns the socket for an event loop: if the socket is readable, call process(). Only for
        clients that one thread uses.
        """
        return self._connection.fileno()

    @property
    def epoch(self):
        """A number that the daemon chooses at each start, so that a restart can be detected."""
        return self._greeting['epoch_high'] << 64 | self._greeting['epoch_low']

    @property
    def features(self):
        return tuple(self._greeting['features'])

    # --- receiving ---

    def _fail_all(self, error):
        calls, self._calls = self._calls, {}
        for call in calls.values():
            self._end(call, error)

    def _take(self, frame):
        if frame.type == wire.ERROR:
            raise Error.of_status(decode('Status', frame.meta))
        if frame.type == wire.PING:
            self._connection.send(wire.PONG, frame.stream)
        if frame.type == wire.CREDIT:
            credit = decode('Credit', frame.meta)
            self._greeting['credit_requests'] = credit['requests']
            self._greeting['credit_bytes'] = credit['bytes'] or self._greeting['credit_bytes']
        if frame.type == wire.GOAWAY:
            self._drain(decode('Goaway', frame.meta)['last_stream'])
        call = self._calls.get(frame.stream)
        if call is not None and frame.type == wire.DATA:
            self._take_piece(call, frame)
        if call is None or frame.type not in (wire.RESPONSE, wire.MEM_REGISTERED):
            return
        if frame.type == wire.RESPONSE and not frame.flags & wire.FINAL:
            if call.progress is not None:
                call.reports.append(decode('LoadProgress', frame.meta))
            return
        del self._calls[frame.stream]
        self._bytes_in_flight -= call.data_bytes
        if call.pieces is not None and not frame.flags & wire.FAILED:
            self._take_piece(call, frame)
            frame.data = call.pieces
        failure = (
            Error.of_status(decode('Status', frame.meta)) if frame.flags & wire.FAILED else None
        )
        try:
            call.value = call.finish(frame, failure)
        except Error as error:
            call.error = error
        call.done = True

    def _take_piece(self, call, frame):
        """Appends a part of an answer's data."""
        if call.pieces is None:
            call.pieces = numpy.empty(decode('Data', frame.meta)['total_bytes'], numpy.uint8)
        end = call.got + len(frame.data)
        if end > len(call.pieces) or (frame.type == wire.RESPONSE and end < len(call.pieces)):
            raise Disconnected(f'{end} bytes of data came for an answer of {len(call.pieces)}')
        call.pieces[call.got : end] = frame.data
        call.got = end

    def _drain(self, last_stream):
        """Ends the requests after `last_stream`, because the daemon does not start them."""
        self._draining = True
        for stream in [stream for stream in self._calls if stream > last_stream]:
            call = self._calls.pop(stream)
            self._bytes_in_flight -= call.data_bytes
            self._end(
                call,
                Error(
                    'UNAVAILABLE', 'DRAINING', 'the daemon shuts down; the request was not begun'
                ),
            )

    def _end(self, call, error):
        try:
            call.value = call.finish(None, error)
        except Error as raised:
            call.error = raised
        call.done = True

    def _receive(self, timeout):
        """Receives and handles one frame. Returns False if no frame begins within `timeout`. The
        caller must have taken the lock exactly once; the lock is released during the wait.
        """
        connection, self._receiving = self._connection, True
        frame = None
        try:
            self._lock.release()
            try:
                frame = connection.receive(timeout)
            finally:
                self._lock.acquire()
                self._receiving = False
                if self._broken or connection is not self._connection:
                    connection.close()
            if not self._broken and connection is self._connection:
                self._take(frame)
        except TimeoutError:
            return False
        except (Disconnected, Error) as error:
            self._break(error, connection)
        finally:
            self._changed.notify_all()
        return True

    def _pass_on_reports(self, call):
        """Calls the caller's progress function, without the lock, on the thread that waits for
        `call`.
        """
        while call is not None and call.reports:
            report = call.reports.pop(0)
            self._lock.release()
            try:
                call.progress(report['stage'], report['percent'])
            finally:
                self._lock.acquire()

    def _pump(self, call, timeout):
        """Reads until `call` is answered. If `call` is None, only reads the frames that have
        arrived. Returns False if the time has run out. If another thread is receiving, waits until
        that thread has handled the answer or stops receiving.
        """
        end = None if timeout is None else time.monotonic() + timeout
        with self._lock:
            while True:
                self._pass_on_reports(call)
                if call is not None and call.done:
                    return True
                if call is None and self._broken:
                    raise Disconnected('the connection is closed')
                left = None if end is None else max(end - time.monotonic(), 0)
                if not self._receiving:
                    if not self._receive(left):
                        return call is not None and call.done
                elif left == 0 or call is None:
                    return False
                else:
                    self._changed.wait(left)

    def process(self):
        """Reads the answers that have arrived, without waiting."""
        self._pump(None, 0)

    # --- sending ---

    def _has_credit(self, data_bytes):
        bytes_most = self._greeting['credit_bytes'] or math.inf
        return len(self._calls) < self._greeting['credit_requests'] and (
            not self._bytes_in_flight or self._bytes_in_flight + data_bytes <= bytes_most
        )

    def _begin(self, method, meta, finish, parts=(), data_bytes=0, progress=None, fd=None):
        while True:
            with self._lock:
                call = None if self._has_credit(data_bytes) else self._oldest_call()
                if call is None:
                    return self._send_request(
                        method, meta, Call(method, finish, progress), parts, data_bytes, fd
                    )
            self._pump(call, None)

    def _send_request(self, method, meta, call, parts, data_bytes, fd=None):
        """Sends a request. The caller holds the lock, so that requests are sent in the order of
        their stream numbers.
        """
        if self._broken:
            raise Disconnected('the connection is closed', 'UNSENT')
        if self._draining and method == 'infer':
            raise Error(
                'UNAVAILABLE', 'DRAINING', 'the daemon shuts down and takes no more requests'
            )
        number = _METHODS[method][0]
        self._last_stream += 1
        try:
            if data_bytes > self._greeting['limits']['data_bytes']:
                parts, data_bytes_last = self._send_pieces(parts, data_bytes)
            else:
                data_bytes_last = data_bytes
            self._connection.send(
                wire.REQUEST, self._last_stream, meta, parts, data_bytes_last, number, fd
            )
        except Disconnected:
            self._draining = True  # answers may still be readable
            raise
        self._calls[self._last_stream] = call
        call.data_bytes = data_bytes
        self._bytes_in_flight += data_bytes
        return call, self._last_stream

    def _send(self, type, stream):
        """Sends a frame without metadata."""
        with self._lock:
            self._connection.send(type, stream)

    def _send_pieces(self, parts, data_bytes):
        """Sends all parts of a request's data except the last one. Returns the last part as a list,
        and its size.
        """
        limits = self._greeting['limits']
        if 'inferd.data' not in self.features or data_bytes > limits['stream_bytes']:
            raise Error(
                'RESOURCE_EXHAUSTED',
                'FRAME_TOO_LARGE',
                f'{data_bytes} bytes of inputs are too many for the socket, '
                'and shared memory was refused',
            )
        whole, most = memoryview(b''.join(parts)), limits['data_bytes']
        meta = encode('Data', {'total_bytes': data_bytes})
        while len(whole) > most:
            self._connection.send(wire.DATA, self._last_stream, meta, [whole[:most]], most)
            whole = whole[most:]
        return [whole], len(whole)

    def _wait(self, call, timeout=None):
        return Pending(self, call, 0).result(timeout)

    def _ask(self, method, request=None, progress=None, fd=None):
        """Sends a question or an order and returns the answer. Sends it again in the same cases as
        an inference. `fd` is a descriptor that is sent with it; None: no descriptor.
        """
        _, request_kind, reply_kind = _METHODS[method]

        def finish(frame, failure):
            if failure is not None:
                raise failure
            answer = decode(reply_kind, frame.meta)
            if reply_kind == 'MetricsResponse':
                answer['text'] = bytes(frame.data).decode()
            return answer

        began = time.monotonic()
        meta = encode(request_kind, request or {})
        while True:
            try:
                call, _ = self._begin(method, meta, finish, progress=progress, fd=fd)
                return self._wait(call)
            except Error as error:
                self._prepare_retry(error, began, began + max(self.retry, _QUESTION_S))

    def _count(self, what, number=1):
        with self._lock:
            self.statistics[what] += number

    def _new_session(self):
        with self._lock:
            self._last_session += 1
            return self._last_session

    def _register(self, region):
        def finish(_, failure):
            if failure is not None:
                raise failure

        meta = encode(
            'MemRegister', {'region_id': region.id, 'size': region.size, 'writable': True}
        )
        with self._lock:
            if self._broken:
                raise Disconnected('the connection is closed', 'UNSENT')
            self._last_stream += 1
            self._connection.send(wire.MEM_REGISTER, self._last_stream, meta, fd=region.fd)
            call = self._calls[self._last_stream] = Call('register', finish)
        self._wait(call)

    def _unregister(self, region):
        meta = encode('MemUnregister', {'region_id': region.id})
        with self._lock:
            self._last_stream += 1
            if not self._broken:
                self._connection.send(wire.MEM_UNREGISTER, self._last_stream, meta)
