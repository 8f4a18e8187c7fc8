# SPDX-License-Identifier: Apache-2.0
"""One inference: where its tensors are stored, and how its answer is handled."""
import math
import time

import numpy

from . import _connection as wire
from ._call import Pending
from ._check import check, same_name
from ._errors import Error
from ._proto import decode, encode

_DTYPES = {
    'BOOL': numpy.bool_,
    'UINT8': numpy.uint8,
    'UINT16': numpy.uint16,
    'UINT32': numpy.uint32,
    'UINT64': numpy.uint64,
    'INT8': numpy.int8,
    'INT16': numpy.int16,
    'INT32': numpy.int32,
    'INT64': numpy.int64,
    'FP16': numpy.float16,
    'BF16': numpy.uint16,
    'FP32': numpy.float32,
    'FP64': numpy.float64,
    'BYTES': numpy.object_,
}
_NAMES = {numpy.dtype(dtype): name for name, dtype in _DTYPES.items() if name != 'BF16'}

_FLAGS = {1: 'padded', 2: 'split', 4: 'again', 8: 'moved'}
_FRESH_S = 1.0  # maximum age of a description that may refuse a request
_INLINE_BYTES = 16 << 10  # larger tensors go through shared memory, as in libinferd


def _as_array(name, value):
    """Returns an input as an array. Strings, as str or bytes in arrays or lists, become an object
    array of bytes.
    """
    array = numpy.asarray(value)
    if array.dtype.kind not in 'OSU':
        return array
    if not isinstance(value, numpy.ndarray):  # NumPy drops NULs from the ends of strings
        array = numpy.asarray(value, dtype=object)
    strings = numpy.empty(array.shape, dtype=object)
    for at, text in numpy.ndenumerate(array):
        if not isinstance(text, (str, bytes)):
            raise TypeError(f"input '{name}': wanted str or bytes, got {type(text).__name__}")
        strings[at] = text.encode() if isinstance(text, str) else bytes(text)
    return strings


def _pack(strings):
    """Returns the bytes of a tensor of strings: before each its length in 4 bytes."""
    parts = []
    for text in strings.flat:
        parts += len(text).to_bytes(4, 'little'), text
    return b''.join(parts)


def _unpack(data, shape):
    """Returns the strings of a tensor, as an object array of bytes."""
    strings = numpy.empty(math.prod(shape), dtype=object)
    data, at = bytes(data), 0
    for i in range(len(strings)):
        end = at + 4 + int.from_bytes(data[at : at + 4], 'little')
        if at + 4 > len(data) or end > len(data):
            raise Error('INTERNAL', 'BUG', 'the strings of the reply are cut off')
        strings[i] = data[at + 4 : end]
        at = end
    return strings.reshape(shape)


def _aligned(size):
    return -size % wire.ALIGNMENT + size


class Result(dict):
    """The outputs of one inference, as arrays by name, and how the daemon computed them. An output
    'x:0' is found as 'x' too, and the reverse. Large outputs are in memory shared with the daemon,
    which is reused after the arrays are freed.

    flags        how the outputs were computed: 'padded' with padding rows, 'split' in several runs,
                 'again' in fp32 because the first result was not finite, 'moved' from a device that
                 failed
    batch_size   rows that were computed together, including rows of other requests
    padded_size  rows that were computed together, including padding
    timing       nanoseconds as 'queue_ns', 'input_ns', 'compute_ns', 'output_ns' and 'core_ns' (the
                 time of all processor cores that the run had); and 'threads', the most threads that
                 computed at once
    """

    def __init__(self, outputs, reply):
        super().__init__(outputs)
        self.model, self.version, self.id = reply['model_name'], reply['model_version'], reply['id']
        self.device, self.precision = reply['device'], reply['precision']
        self.batch_size = reply['batch_size']
        self.padded_size = max(reply['padded_to'], reply['batch_size'])
        self.flags = frozenset(name for bit, name in _FLAGS.items() if reply['flags'] & bit)
        self.timing = reply['timing'] or {}

    def __missing__(self, name):
        found = same_name(name, self) if isinstance(name, str) else None
        if found is None:
            raise KeyError(name)
        return self[found]


class Inference:
    """A request, and the memory that it needs until the answer arrives."""

    def __init__(self, client, message, inputs, outputs, out, take, keep, span=None):
        self._client, self._message, self._span = client, message, span
        self._inputs = {name: _as_array(name, value) for name, value in inputs.items()}
        self._wanted = list(outputs) if outputs is not None else list(out) or None
        self._out, self._take, self._keep = out, take, keep
        for name, array in out.items():
            if not (
                isinstance(array, numpy.ndarray)
                and array.flags.c_contiguous
                and array.flags.writeable
            ):
                raise ValueError(f"out '{name}': wanted a contiguous array that can be written to")
        self._key = message['model_name'], message['model_version']
        self._held = []  # regions with copies of inputs
        self._rooms = {}  # regions for outputs
        self._plain = False  # large tensors go through the socket
        self._began = time.monotonic()
        self._until = (
            self._began + message['timeout_ns'] / 1e9 if message['timeout_ns'] else math.inf
        )

    def send(self):
        self._client._count('requests')
        try:
            try:
                call, stream = self._begin()
            except Error as error:
                again = self.send_again(error)
                if again is None:
                    raise
                call, stream = again
        except Exception as error:
            self._end_span(error)
            raise
        return Pending(self._client, call, stream, self.send_again, self._end_span)

    def _end_span(self, error=None):
        if self._span is not None:
            self._span.end(error)

    def send_again(self, error, end=math.inf):
        """Sends the request again after a failure that shows that it was not started: with room for
        its outputs, when its model is loaded, or if `retry` allows it. Returns (call, stream), or
        None if it must not be sent again. Raises TimeoutError if it could not be sent before `end`.
        Requests of a session, or with an order key, are sent only once, because later requests
        would overtake them.
        """
        if self._message['session_id'] or self._message['order_key']:
            return None
        try:
            if self._learn(error):
                return self._resend(None, end)
            return self._resend(error, end) if self._may_wait(error) else None
        except Error as final:
            self._end_span(final)
            raise

    def _may_wait(self, error):
        return self._client._retry_end(error, self._began, self._until) is not None

    def _resend(self, error, end):
        """Sends the request again, and repeats that while the daemon refuses it with an error that
        waiting can resolve. `error` is the last refusal, or None.
        """
        while True:
            try:
                if error is not None:
                    self._client._prepare_retry(error, self._began, self._until, end)
                if self._message['timeout_ns']:
                    self._message['timeout_ns'] = max(
                        int((self._until - time.monotonic()) * 1e9), 1
                    )
                self._client._count('resent')
                return self._begin()
            except Error as again:
                if again is error or not self._may_wait(again):
                    raise
                error = again

    def check(self):
        """Raises an Error if the request does not fit the known description of its model. A
        description that is too old is ignored, because the model may have been reloaded.
        """
        told, when = self._client._known.get(self._key, (None, 0))
        names = {
            name: _NAMES.get(array.dtype.newbyteorder('=')) for name, array in self._inputs.items()
        }
        if told is None or None in names.values():
            return
        try:
            check(
                told,
                {name: (names[name], array.shape) for name, array in self._inputs.items()},
                [*(self._wanted or ()), *self._keep],
                None if self._message['session_id'] else self._take,
            )
        except Error:
            if time.monotonic() - when < _FRESH_S:
                raise
            self._client._known.pop(self._key, None)

    def _begin(self):
        self.check()
        try:
            entries, parts, size = self._place_inputs()
            outputs = self._place_outputs()
            meta = encode(
                'ModelInferRequest', {**self._message, 'inputs': entries, 'outputs': outputs}
            )
            self._client._count('without_shared_memory', self._plain)
            self._plain = False
            return self._client._begin('infer', meta, self._finish, parts, size)
        except Error:
            self._release(True)
            raise

    def _place_inputs(self):
        entries, parts, size = [], [], 0
        for name, kept in self._take.items():
            entries.append({'name': name, 'session_tensor': kept})
        for name, array in self._inputs.items():
            if array.dtype.newbyteorder('=') not in _NAMES:
                raise TypeError(f"input '{name}': no tensor has elements of {array.dtype}")
            entry = {
                'name': name,
                'datatype': _NAMES[array.dtype.newbyteorder('=')],
                'shape': array.shape,
            }
            if array.dtype == object:
                array = numpy.frombuffer(_pack(array), numpy.uint8)
            array = array.astype(array.dtype.newbyteorder('<'), copy=False)
            entries.append(entry)
            region, offset = self._client._memory.find(array)
            if region is None and array.nbytes >= _INLINE_BYTES:
                region, offset = self._copy(array), 0
                self._plain |= region is None
            if region is not None and offset % wire.ALIGNMENT == 0:
                entry['location'] = {
                    'offset': offset,
                    'length': array.nbytes,
                    'region_id': region.id,
                }
                continue
            parts.append(bytes(_aligned(size) - size))
            if entry['datatype'] == 'BYTES':
                entry['location'] = {'offset': _aligned(size), 'length': array.nbytes}
            size = _aligned(size) + array.nbytes
            parts.append(array.tobytes())
        return entries, parts, size

    def _copy(self, array):
        region = self._client._memory.take(array.nbytes)
        if region is not None:
            self._held.append(region)
            region.bytes()[: array.nbytes].view(array.dtype).reshape(array.shape)[...] = array
        return region

    def _place_outputs(self):
        learnt = self._client._outputs.get(self._key, {})
        wanted = self._wanted
        if wanted is None and learnt and not self._message['session_id']:
            wanted = [output['name'] for output in self._client.metadata(*self._key)['outputs']]
        entries = [{'name': name, 'session_tensor': kept} for name, kept in self._keep.items()]
        for name in wanted or ():
            entry = {'name': name}
            entries.append(entry)
            region, known = None, same_name(name, learnt)
            if name in self._out:
                region, offset = self._client._memory.find(self._out[name])
                room = self._out[name].nbytes
            elif known is not None:
                region, offset, room = self._client._memory.take(learnt[known]), 0, learnt[known]
                self._plain |= region is None
                if region is not None:
                    self._rooms[name] = region
            if region is None:
                continue
            entry['location'] = {'offset': offset, 'length': room, 'region_id': region.id}
        return entries

    def _release(self, settled):
        """Releases the memory of the request. If `settled` is false, the memory is not reused,
        because the daemon may still use it.
        """
        memory = self._client._memory
        for region in self._held + list(self._rooms.values()):
            (memory.give_back if settled else memory.drop)(region)
        self._held, self._rooms = [], {}

    def _finish(self, frame, failure):
        if failure is not None:
            self._release(
                failure.unbegun
                or failure.code not in ('CANCELLED', 'DEADLINE_EXCEEDED', 'UNAVAILABLE')
            )
            raise failure
        reply = decode('ModelInferResponse', frame.meta)
        told, _ = self._client._known.get(self._key, (None, 0))
        if told is not None and reply['model_version'] not in told['versions']:
            self._client._known.pop(self._key, None)
        outputs, at = {}, 0
        for output in reply['outputs']:
            array, at = self._output(output, frame.data, at)
            outputs[output['name']] = array
        self._release(True)
        self._end_span()
        return Result(outputs, reply)

    def _output(self, output, data, at):
        # The caller's name of the output, which may differ from the model's by ':0'.
        name = same_name(output['name'], [*self._out, *self._rooms]) or output['name']
        shape = tuple(output['shape'])
        dtype = numpy.dtype(_DTYPES[output['datatype']])
        size = math.prod(shape) * dtype.itemsize
        location = output['location'] or {'region_id': 0, 'offset': _aligned(at)}
        if dtype == object:
            return self._strings(name, location, shape, data)
        if location['region_id'] == 0:
            offset = location['offset']
            if name in self._out:
                return (
                    self._keep_out(name, data[offset : offset + size], shape, dtype),
                    offset + size,
                )
            if (
                len(data) > self._client._greeting['limits']['data_bytes']
                and size >= _INLINE_BYTES
                and not (self._message['session_id'] or self._message['order_key'])
            ):
                self._client._outputs.setdefault(self._key, {})[
                    name
                ] = size  # the next request reserves a region
            return data[offset : offset + size].view(dtype).reshape(shape), offset + size
        if name in self._rooms:
            return self._client._memory.array(self._rooms.pop(name), shape, dtype), at
        whole = self._out[name].reshape(-1).view(numpy.uint8)
        return whole[:size].view(dtype).reshape(shape), at

    def _strings(self, name, location, shape, data):
        """Returns the strings of an output, and the end of their bytes in the data of the reply."""
        if name in self._out:
            raise ValueError(f"out '{name}': strings cannot be written to an array")
        offset, size = location['offset'], location['length']
        if location['region_id'] == 0:
            return _unpack(data[offset : offset + size], shape), offset + size
        whole = self._client._memory.array(self._rooms.pop(name), (size,), numpy.dtype(numpy.uint8))
        return _unpack(whole, shape), len(data)

    def _keep_out(self, name, data, shape, dtype):
        """Copies an output to the array that the caller passed in `out`."""
        whole = self._out[name].reshape(-1).view(numpy.uint8)
        if len(data) > len(whole):
            raise Error(
                'OUT_OF_RANGE',
                'OUTPUT_TOO_SMALL',
                f"output '{name}': {len(data)} bytes, but the room given is {len(whole)}",
                tensor=name,
                expected=str(len(data)),
                actual=str(len(whole)),
            )
        whole[: len(data)] = data
        return whole[: len(data)].view(dtype).reshape(shape)

    def _learn(self, failure):
        """Records how much room an output needs, if the failure says that an output is too large.
        Returns whether it recorded anything.
        """
        if failure.reason not in ('OUTPUT_TOO_SMALL', 'FRAME_TOO_LARGE'):
            return False
        learnt = self._client._outputs.setdefault(self._key, {})
        if failure.reason == 'OUTPUT_TOO_SMALL' and same_name(failure.tensor, self._out) is None:
            learnt[same_name(failure.tensor, learnt) or failure.tensor] = int(failure.expected)
            return True
        if failure.reason == 'FRAME_TOO_LARGE' and not learnt:
            # The failure does not name the output. Record a size of 1 for each output, so that the
            # next failure names an output that is too small.
            names = self._wanted or [
                output['name'] for output in self._client.metadata(*self._key)['outputs']
            ]
            learnt.update((name, 1) for name in names if name not in self._out)
            return bool(learnt)
        return False
