# SPDX-License-Identifier: Apache-2.0
"""What is under way."""
import time

from . import _connection as wire


class Call:
    def __init__(self, method, finish, progress=None):
        self.method, self.finish, self.progress = method, finish, progress
        self.data_bytes = 0
        self.pieces, self.got = None, 0  # data of the answer that came ahead of it
        self.done, self.value, self.error = False, None, None


class Pending:
    """An inference under way: result() waits for its answer."""

    def __init__(self, client, call, stream, again=None):
        self._client, self._call, self._stream, self._again = client, call, stream, again
        self._cancelled = False

    @property
    def done(self):
        """Whether the answer has been read; looks at what has come, without waiting."""
        self._client._pump(self._call, 0)
        return self._call.done

    def result(self, timeout=None):
        """The Result; raises what went wrong, and TimeoutError after `timeout` seconds without an
        answer (which may still be waited for)."""
        end = None if timeout is None else time.monotonic() + timeout
        while True:
            left = None if end is None else max(end - time.monotonic(), 0)
            if not self._client._pump(self._call, left):
                raise TimeoutError(f'no answer within {timeout} s')
            error = self._call.error
            if error is None:
                return self._call.value
            if self._again is None or self._cancelled or not error.unbegun:
                raise error
            self._call, self._stream = self._again(error)

    def cancel(self):
        """Asks for the request to be dropped. result() then raises Error CANCELLED, unless the answer
        was quicker."""
        self._cancelled = True
        if not self._call.done:
            self._client._connection.send(wire.CANCEL, self._stream)
