# SPDX-License-Identifier: Apache-2.0
"""Spans of the client: how long an inference took as its caller sees it."""
import json
import re
import secrets
import threading
import time

_TRACEPARENT = re.compile(r'(?!ff)[0-9a-f]{2}-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?')
_KIND_CLIENT, _STATUS_OK, _STATUS_ERROR = 3, 1, 2  # of OTLP
_SAMPLED = 1  # flag of a traceparent


class Span:
    """The span of one inference, which begins when the object is made. `traceparent` names it as
    the parent of the daemon's spans.
    """

    def __init__(self, model, traceparent, hand_over):
        """`hand_over` gets the span, as a dict in the form of OTLP/JSON, when it has ended."""
        found = _TRACEPARENT.fullmatch(traceparent)
        if found and (set(found[1]) == {'0'} or set(found[2]) == {'0'}):
            found = None
        self._hand_over = hand_over
        self._lock = threading.Lock()
        trace = found[1] if found else secrets.token_hex(16)
        span = secrets.token_hex(8)
        self.sampled = not found or int(found[3], 16) & _SAMPLED != 0
        # Without a sampled trace the request carries what the caller gave.
        self.traceparent = f'00-{trace}-{span}-01' if self.sampled else traceparent
        self._fields = {
            'traceId': trace,
            'spanId': span,
            **({'parentSpanId': found[2]} if found else {}),
            'name': f'infer {model}',
            'kind': _KIND_CLIENT,
            'startTimeUnixNano': str(time.time_ns()),
        }
        self._begin = time.monotonic_ns()

    def end(self, error=None):
        """Ends the span, and hands it over. Only the first call has an effect."""
        with self._lock:
            hand_over, self._hand_over = self._hand_over, None
        if hand_over is None or not self.sampled:
            return
        duration = time.monotonic_ns() - self._begin
        self._fields['endTimeUnixNano'] = str(int(self._fields['startTimeUnixNano']) + duration)
        self._fields['status'] = {'code': _STATUS_OK}
        if error is not None:
            self._fields['status'] = {'code': _STATUS_ERROR, 'message': str(error)}
        hand_over(self._fields)


class SpanFile:
    """Appends spans to a file, one line of OTLP/JSON each, as the daemon's trace_file has them.

        client.on_span = inferd.SpanFile('spans.jsonl')

    Several clients and threads may share the object.
    """

    def __init__(self, path, service='inferd-client'):
        """`service` is the attribute service.name."""
        name = {'key': 'service.name', 'value': {'stringValue': service}}
        self._resource = {'attributes': [name]}
        self._lock = threading.Lock()
        self._file = open(path, 'a', encoding='utf-8', buffering=1)

    def __call__(self, span):
        spans = {'scope': {'name': 'inferd'}, 'spans': [span]}
        line = {'resourceSpans': [{'resource': self._resource, 'scopeSpans': [spans]}]}
        text = json.dumps(line, separators=(',', ':')) + '\n'
        with self._lock:
            if not self._file.closed:
                self._file.write(text)

    def close(self):
        """Closes the file. Later spans are left out."""
        with self._lock:
            self._file.close()
