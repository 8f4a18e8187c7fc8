# SPDX-License-Identifier: Apache-2.0
"""A request in flight, and what the caller holds of it."""
import math
import threading
import time

from . import _connection as wire


class Call:
    def __init__(self, method, finish, progress=None):
        self.method, self.finish, self.progress = method, finish, progress
        self.data_bytes = 0
        self.pieces, self.got = None, 0  # data of the answer that came ahead of it
        self.reports = []  # progress that the waiting thread has not passed on yet
        self.done, self.value, self.error = False, None, None


class Pending:
    """An inference in flight: result() waits for its answer."""

    def __init__(self, client, call, stream, again=None):
        """`again(error, end)`: sends the request again, before the time `end`, and returns (call,
        stream). Returns None if that is not
        allowed."""
        self._client, self._call, self._stream, self._again = client, call, stream, again
        self._cancelled = False
        self._lock = threading.Lock()  # of sending again: once for each answer

    def _send_again(self, call, end):
        """Returns whether a request was sent again because of the failure of `call`."""
        with self._lock:
            if self._call is not call:
                return True  # another thread did it
            again = None if self._again is None or self._cancelled else self._again(call.error, end)
            if again is None:
                return False
            self._call, self._stream = again
            return True

    @property
    def done(self):
        """Whether the answer has been read. Reads what has arrived, without waiting."""
        self._client._pump(self._call, 0)
        return self._call.done

    def result(self, timeout=None):
        """Returns the Result, or raises what went wrong. Raises TimeoutError after `timeout`
        seconds without an answer; the caller may wait
        again."""
        end = math.inf if timeout is None else time.monotonic() + timeout
        while True:
            call = self._call
            left = None if timeout is None else max(end - time.monotonic(), 0)
            if not self._client._pump(call, left):
                raise TimeoutError(f'no answer within {timeout} s')
            if call.error is None:
                return call.value
            if not self._send_again(call, end):
                raise call.error

    def cancel(self):
        """Asks the daemon to drop the request. result() then raises Error CANCELLED, unless the
        answer was sent
        before."""
        self._cancelled = True
        if not self._call.done:
            self._client._send(wire.CANCEL, self._stream)
