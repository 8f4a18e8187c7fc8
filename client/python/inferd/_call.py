# SPDX-License-Identifier: Apache-2.0
"""Requests in flight: the internal object, and the one that the caller gets."""
import math
import threading
import time

from . import _connection as wire


class Call:
    def __init__(self, method, finish, progress=None):
        self.method, self.finish, self.progress = method, finish, progress
        self.data_bytes = 0
        self.pieces, self.got = None, 0  # data of the answer, from DATA frames before it
        self.reports = []  # progress that the waiting thread has not passed on yet
        self.done, self.value, self.error = False, None, None


class Pending:
    """An inference in flight. result() waits for the answer."""

    def __init__(self, client, call, stream, again=None, failed=None):
        """`again(error, end)` sends the request again, before the time `end`, and returns (call,
        stream). It returns None if the request must not be sent again. `failed(error)` is called
        before a failure is raised.
        """
        self._client, self._call, self._stream, self._again = client, call, stream, again
        self._failed = failed
        self._cancelled = False
        self._lock = threading.Lock()  # so that each answer causes at most one retry

    def _send_again(self, call, end):
        """Sends the request again if the failure of `call` allows that. Returns whether it was sent
        again.
        """
        with self._lock:
            if self._call is not call:
                return True  # another thread has sent it again
            again = None if self._again is None or self._cancelled else self._again(call.error, end)
            if again is None:
                return False
            self._call, self._stream = again
            return True

    @property
    def done(self):
        """Returns whether the answer has arrived. Reads the bytes that are available, without
        waiting.
        """
        self._client._pump(self._call, 0)
        return self._call.done

    def result(self, timeout=None):
        """Returns the Result, or raises the failure. Raises TimeoutError after `timeout` seconds
        without an answer; the caller may wait again.
        """
        end = math.inf if timeout is None else time.monotonic() + timeout
        while True:
            call = self._call
            left = None if timeout is None else max(end - time.monotonic(), 0)
            if not self._client._pump(call, left):
                raise TimeoutError(f'no answer within {timeout} s')
            if call.error is None:
                return call.value
            if not self._send_again(call, end):
                if self._failed is not None:
                    self._failed(call.error)
                raise call.error

    def cancel(self):
        """Asks the daemon to cancel the request. result() then raises Error CANCELLED, unless the
        daemon has sent the answer before.
        """
        self._cancelled = True
        if not self._call.done:
            self._client._send(wire.CANCEL, self._stream)
