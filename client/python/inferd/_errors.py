# SPDX-License-Identifier: Apache-2.0
"""The exceptions of the package."""

CODES = {
    1: 'CANCELLED',
    3: 'INVALID_ARGUMENT',
    4: 'DEADLINE_EXCEEDED',
    5: 'NOT_FOUND',
    6: 'ALREADY_EXISTS',
    7: 'PERMISSION_DENIED',
    8: 'RESOURCE_EXHAUSTED',
    9: 'FAILED_PRECONDITION',
    10: 'ABORTED',
    11: 'OUT_OF_RANGE',
    12: 'UNIMPLEMENTED',
    13: 'INTERNAL',
    14: 'UNAVAILABLE',
}

REASONS = (
    '',
    'TENSOR_MISSING',
    'TENSOR_UNKNOWN',
    'DTYPE_MISMATCH',
    'SHAPE_MISMATCH',
    'SIZE_MISMATCH',
    'BAD_PARAMETER',
    'BAD_FRAME',
    'BAD_JSON',
    'IN_QUEUE',
    'IN_EXEC',
    'PREDICTED',
    'LOADING',
    'MODEL_NOT_FOUND',
    'VERSION_NOT_FOUND',
    'LABEL_NOT_FOUND',
    'REGION_NOT_FOUND',
    'REGION_EXISTS',
    'SESSION_EXISTS',
    'ROLE',
    'MODEL_ACL',
    'QUEUE_FULL',
    'QUOTA_REQUESTS',
    'QUOTA_BYTES',
    'DEVICE_OOM',
    'HOST_OOM',
    'FRAME_TOO_LARGE',
    'MODEL_UNLOADED',
    'MODEL_FAILED',
    'SEALS_MISSING',
    'MODEL_SWAPPED',
    'SESSION_LOST',
    'OUTPUT_TOO_SMALL',
    'REGION_BOUNDS',
    'METHOD',
    'FEATURE',
    'OPERATOR',
    'BUG',
    'BACKEND',
    'DRAINING',
    'DEVICE_LOST',
    'DEVICE_HUNG',
    'NO_DEVICE',
    'BY_CLIENT',
    'DISCONNECT',
    'BY_ADMIN',
    'SHUTDOWN',
    'REGION_SPARSE',
    'QUOTA_TIME',
    'NOT_BEGUN',
    'OUTCOME_UNKNOWN',
)


_UNBEGUN = (
    'DRAINING',
    'QUEUE_FULL',
    'QUOTA_REQUESTS',
    'QUOTA_TIME',
    'LOADING',
    'NOT_BEGUN',
    'UNSENT',
)


class Error(Exception):
    """The daemon refused a request, or the request failed. `code` and `reason` are names of
    docs/reference/protocol.md ('INVALID_ARGUMENT', 'SHAPE_MISMATCH'). `retry_after_ms` is 0 if the
    daemon gives no time.
    """

    def __init__(
        self, code, reason, message, retry_after_ms=0, tensor='', expected='', actual='', phase=''
    ):
        super().__init__(f'{code}/{reason}: {message}' if reason else f'{code}: {message}')
        self.code, self.reason, self.message = code, reason, message
        self.retry_after_ms, self.tensor, self.expected, self.actual = (
            retry_after_ms,
            tensor,
            expected,
            actual,
        )
        self.phase = phase

    @property
    def unbegun(self):
        """Whether the daemon has certainly not started the request, which may be sent again."""
        return self.code in ('UNAVAILABLE', 'RESOURCE_EXHAUSTED') and self.reason in _UNBEGUN

    @classmethod
    def of_status(cls, status):
        number = status['reason']
        reason = REASONS[number] if number < len(REASONS) else f'REASON_{number}'
        return cls(
            CODES.get(status['code'], f"CODE_{status['code']}"),
            reason,
            status['message'],
            status['retry_after_ms'],
            status['tensor'],
            status['expected'],
            status['actual'],
            status['phase'],
        )


class Disconnected(Error):
    """The connection has ended: the daemon has stopped, or it reported a fault of this client."""

    def __init__(self, message, reason=''):
        super().__init__('UNAVAILABLE', reason, message)
