# SPDX-License-Identifier: Apache-2.0
"""The connection to the daemon: what goes, what comes, and what can be asked."""
import collections.abc
import math
import numbers
import os
import time

import numpy

from . import _connection as wire
from ._call import Call, Pending
from ._errors import Disconnected, Error
from ._inference import Inference
from ._memory import Memory
from ._proto import decode, encode
from ._session import Session

_VERSION = '0.1.0'
_PRIORITIES = {'normal': 0, 'high': 1, 'low': 2}

# number: (request, reply)
_METHODS = {
    'live': (1, 'Empty', 'ServerLiveResponse'), 'ready': (2, 'Empty', 'ServerReadyResponse'),
    'model_ready': (3, 'ModelReadyRequest', 'ModelReadyResponse'),
    'server': (4, 'Empty', 'ServerMetadataResponse'),
    'metadata': (5, 'ModelMetadataRequest', 'ModelMetadataResponse'),
    'infer': (6, 'ModelInferRequest', 'ModelInferResponse'),
    'models': (16, 'Empty', 'RepositoryIndexResponse'), 'load': (17, 'RepositoryModelLoadRequest', 'Empty'),
    'unload': (18, 'RepositoryModelUnloadRequest', 'Empty'), 'devices': (64, 'Empty', 'DeviceListResponse'),
    'status': (65, 'Empty', 'ServerStatusResponse'), 'open_session': (80, 'SessionOpenRequest', 'Empty'),
    'limits': (82, 'ServerLimitsRequest', 'ServerLimitsResponse'), 'close_session': (81, 'SessionCloseRequest', 'Empty')}

def _nanoseconds(name, seconds):
    if seconds is None:
        return 0
    if not isinstance(seconds, numbers.Real) or not 0 < seconds < math.inf:
        raise ValueError(f'{name} {seconds!r}, wanted seconds above 0, or None')
    return min(max(int(seconds * 1e9), 1), (1 << 63) - 1)


def _tensors(name, tensors):
    if not isinstance(tensors, collections.abc.Mapping):
        raise TypeError(f'{name}: a {type(tensors).__name__}, wanted {{name: array}}')
    return tensors


class Client:
    """A connection to the daemon. For one thread at a time; a context manager.

        with inferd.Client() as client:
            result = client.infer('mobilenet', {'input': pixels})
            print(result['output'].argmax(), result.device)

    statistics counts the inferences: 'requests' asked for, 'resent' (for more room, or since they had not been
    begun), 'without_shared_memory' (their large tensors went through the socket, since the daemon had no shared memory
    for them); and 'reconnects'.
    """

    def __init__(self, path=None, connect_timeout=10.0, retry=0.0):
        """`path`: the socket; None: $INFERD_SOCKET, or /run/inferd/inferd.sock. `retry`: for so many
        seconds inferences that have certainly not been begun are sent again, over another connection
        where the first is gone: the daemon drains or had no room, the model is still loading, or the
        request never left this process. What may have run is never sent again, nor what has a session
        or an order key."""
        self._path = path or os.environ.get('INFERD_SOCKET') or '/run/inferd/inferd.sock'
        self._connect_timeout, self.retry = connect_timeout, retry
        self._calls = {}
        self._last_stream = 0
        self._last_session = 0
        self.closed = False
        self._outputs = {}  # (model, version): what is known of large outputs
        self.statistics = {'requests': 0, 'resent': 0, 'reconnects': 0, 'without_shared_memory': 0}
        self._memory = Memory(self._register, self._unregister)
        self._connect(connect_timeout)

    def _connect(self, timeout):
        self._connection = wire.Connection(self._path, timeout)
        self._draining = self._broken = False
        self._bytes_in_flight = 0
        try:
            hello = {'major': 1, 'client_name': 'inferd-python', 'client_version': _VERSION, 'features': ['inferd.data']}
            self._connection.send(wire.HELLO, 0, encode('Hello', hello))
            self._greeting = self._greet()
            self._known = {}  # (model, version): what metadata() told, and when
        except BaseException:
            self._break(Disconnected('the greeting failed'))
            raise

    def _break(self, error):
        # What is true of the frame at fault is not of all that were in flight.
        if error.unbegun:
            error = Disconnected(error.message)
        self._broken = True
        self._connection.close()
        self._fail_all(error)

    def reconnect(self, timeout=10.0):
        """Connects anew to the same path, trying for `timeout` seconds until a daemon answers. What is in
        flight is waited for, as long as the old connection stands. Arrays of empty() stay as they are;
        sessions are gone."""
        end = time.monotonic() + timeout
        while self._calls and not self._broken and time.monotonic() < end:
            self._pump(next(iter(self._calls.values())), end - time.monotonic())
        self._break(Disconnected('the connection was given up'))
        while True:
            try:
                self._connect(max(end - time.monotonic(), 0.01))
                self._memory.register_all()
                self.statistics['reconnects'] += 1
                return
            except (Disconnected, Error):
                if time.monotonic() >= end:
                    raise
            time.sleep(0.01)

    def _greet(self):
        try:
            frame = self._connection.receive()
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
        """Ends the connection: what is in flight is cancelled. Arrays that were got stay valid."""
        self.closed = True
        self._break(Disconnected('the client was closed'))

    def fileno(self):
        """The socket, for an event loop: readable when answers wait, which process() reads."""
        return self._connection.fileno()

    @property
    def epoch(self):
        """A number that is new at every start of the daemon."""
        return self._greeting['epoch_high'] << 64 | self._greeting['epoch_low']

    @property
    def features(self):
        return tuple(self._greeting['features'])

    # --- what comes ---

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
            self._greeting['credit_requests'] = decode('Credit', frame.meta)['requests']
            self._greeting['credit_bytes'] = decode('Credit', frame.meta)['bytes'] or self._greeting['credit_bytes']
        if frame.type == wire.GOAWAY:
            self._drain(decode('Goaway', frame.meta)['last_stream'])
        call = self._calls.get(frame.stream)
        if call is not None and frame.type == wire.DATA:
            self._take_piece(call, frame)
        if call is None or frame.type not in (wire.RESPONSE, wire.MEM_REGISTERED):
            return
        if frame.type == wire.RESPONSE and not frame.flags & wire.FINAL:
            if call.progress is not None:
                progress = decode('LoadProgress', frame.meta)
                call.progress(progress['stage'], progress['percent'])
            return
        del self._calls[frame.stream]
        self._bytes_in_flight -= call.data_bytes
        if call.pieces is not None and not frame.flags & wire.FAILED:
            self._take_piece(call, frame)
            frame.data = call.pieces
        failure = Error.of_status(decode('Status', frame.meta)) if frame.flags & wire.FAILED else None
        try:
            call.value = call.finish(frame, failure)
        except Error as error:
            call.error = error
        call.done = True

    def _take_piece(self, call, frame):
        """Puts data of an answer behind what came before."""
        if call.pieces is None:
            call.pieces = numpy.empty(decode('Data', frame.meta)['total_bytes'], numpy.uint8)
        end = call.got + len(frame.data)
        if end > len(call.pieces) or (frame.type == wire.RESPONSE and end < len(call.pieces)):
            raise Disconnected(f'{end} bytes of data came for an answer of {len(call.pieces)}')
        call.pieces[call.got:end] = frame.data
        call.got = end

    def _drain(self, last_stream):
        """The daemon begins nothing behind `last_stream`."""
        self._draining = True
        for stream in [stream for stream in self._calls if stream > last_stream]:
            call = self._calls.pop(stream)
            self._bytes_in_flight -= call.data_bytes
            self._end(call, Error('UNAVAILABLE', 'DRAINING', 'the daemon shuts down; the request was not begun'))

    def _end(self, call, error):
        try:
            call.value = call.finish(None, error)
        except Error as raised:
            call.error = raised
        call.done = True

    def _pump(self, call, timeout):
        """Reads until `call` (None: whatever has come) is done; False where time ran out before."""
        end = None if timeout is None else time.monotonic() + timeout
        while call is None or not call.done:
            try:
                self._connection.settimeout(None if end is None else max(end - time.monotonic(), 1e-6))
                self._take(self._connection.receive())
            except TimeoutError:
                return False
            except (Disconnected, Error) as error:
                self._break(error)
                if call is None:
                    raise
        return True

    def process(self):
        """Reads the answers that have come, without waiting."""
        self._pump(None, 0)

    # --- what goes ---

    def _has_credit(self, data_bytes):
        bytes_most = self._greeting['credit_bytes'] or math.inf
        return len(self._calls) < self._greeting['credit_requests'] and (
            not self._bytes_in_flight or self._bytes_in_flight + data_bytes <= bytes_most)

    def _begin(self, method, meta, finish, parts=(), data_bytes=0, progress=None):
        while self._calls and not self._has_credit(data_bytes):
            self._pump(next(iter(self._calls.values())), None)
        if self._broken:
            raise Disconnected('the connection is closed', 'UNSENT')
        if self._draining and method == 'infer':
            raise Error('UNAVAILABLE', 'DRAINING', 'the daemon shuts down and takes no more requests')
        number = _METHODS[method][0]
        self._last_stream += 1
        call = Call(method, finish, progress)
        try:
            if data_bytes > self._greeting['limits']['data_bytes']:
                parts, data_bytes_last = self._send_pieces(parts, data_bytes)
            else:
                data_bytes_last = data_bytes
            self._connection.send(wire.REQUEST, self._last_stream, meta, parts, data_bytes_last, number)
        except Disconnected:
            self._draining = True  # answers may still be there to be read
            raise
        self._calls[self._last_stream] = call
        call.data_bytes = data_bytes
        self._bytes_in_flight += data_bytes
        return call, self._last_stream

    def _send_pieces(self, parts, data_bytes):
        """Sends all but the last of a request's data ahead; the last piece as a list of parts, and its size."""
        limits = self._greeting['limits']
        if 'inferd.data' not in self.features or data_bytes > limits['stream_bytes']:
            raise Error('RESOURCE_EXHAUSTED', 'FRAME_TOO_LARGE',
                        f'{data_bytes} bytes of inputs are too many for the socket, and shared memory was refused')
        whole, most = memoryview(b''.join(parts)), limits['data_bytes']
        meta = encode('Data', {'total_bytes': data_bytes})
        while len(whole) > most:
            self._connection.send(wire.DATA, self._last_stream, meta, [whole[:most]], most)
            whole = whole[most:]
        return [whole], len(whole)

    def _wait(self, call, timeout=None):
        return Pending(self, call, 0).result(timeout)

    def _ask(self, method, request=None, progress=None):
        _, request_kind, reply_kind = _METHODS[method]

        def finish(frame, failure):
            if failure is not None:
                raise failure
            return decode(reply_kind, frame.meta)

        call, _ = self._begin(method, encode(request_kind, request or {}), finish, progress=progress)
        return self._wait(call)

    def _register(self, region):
        def finish(_, failure):
            if failure is not None:
                raise failure

        self._last_stream += 1
        call = self._calls[self._last_stream] = Call('register', finish)
        meta = encode('MemRegister', {'region_id': region.id, 'size': region.size, 'writable': True})
        self._connection.send(wire.MEM_REGISTER, self._last_stream, meta, fd=region.fd)
        self._wait(call)

    def _unregister(self, region):
        self._last_stream += 1
        meta = encode('MemUnregister', {'region_id': region.id})
        if not self._broken:
            self._connection.send(wire.MEM_UNREGISTER, self._last_stream, meta)

    # --- the server ---

    def ready(self):
        """Whether the daemon takes requests."""
        return self._ask('ready')['ready']

    def status(self):
        """What the daemon counts of itself, as a dict."""
        return self._ask('status')

    def devices(self):
        """The devices, as a list of dicts."""
        return self._ask('devices')['devices']

    def models(self):
        """What is in the repository and served, as a list of dicts."""
        return self._ask('models')['models']

    def metadata(self, model, version=''):
        """What a model takes and gives: 'inputs' and 'outputs' have name, datatype and shape (-1: any)."""
        told = self._ask('metadata', {'name': model, 'version': version})
        self._known[model, version] = told, time.monotonic()
        return told

    def check(self, model, inputs, outputs=None, *, version=''):
        """Raises the Error that a request would get which does not fit its model. Asks about a model once,
        and again after another version has answered, or a restart; from then on, as after metadata(),
        requests that do not fit are refused before anything is sent."""
        if (model, version) not in self._known:
            self.metadata(model, version)
        Inference(self, {'model_name': model, 'model_version': version, 'session_id': 0, 'timeout_ns': 0}, inputs, outputs,
                  {}, {}, {}).check()

    def load(self, model, path='', device='', progress=None):
        """Loads a model and waits for it. On the admin socket only. `progress(stage, percent)` is told."""
        path = os.path.abspath(path) if path else ''
        self._ask('load', {'model_name': model, 'path': path, 'device': device}, progress)

    def unload(self, model, version=''):
        """Takes a model away; what is in flight still finishes. On the admin socket only."""
        self._ask('unload', {'model_name': model, 'version': version})

    def limits(self, **changed):
        """The limits that can be changed while the daemon runs, as a list of dicts, after those named have
        been changed: limits(queue_requests_max=100). On the admin socket only."""
        return self._ask('limits', {'limits': [{'name': name, 'value': value} for name, value in changed.items()]})['limits']

    # --- inference ---

    def empty(self, shape, dtype=numpy.float32):
        """An array in memory shared with the daemon: as an input or in `out` it is not copied. The
        memory comes back for the next one when the array is gone; until the answer has come, do not
        let it go, nor write to an input. Where the daemon refuses to share memory it is an ordinary array,
        which works the same but for the copies."""
        shape = (shape,) if isinstance(shape, int) else tuple(shape)
        if any(size < 0 for size in shape):
            raise ValueError(f'shape {shape}, wanted sizes from 0')
        dtype = numpy.dtype(dtype)
        region = self._memory.take(max(math.prod(shape) * dtype.itemsize, 1))
        return numpy.empty(shape, dtype) if region is None else self._memory.array(region, shape, dtype)

    def infer(self, model, inputs, outputs=None, *, out=None, version='', device='', timeout=None,
              queue_timeout=None, priority='normal', id='', order_key=0, precision='', mode=''):
        """Runs a model and waits for the Result.

        inputs    {name: array}; what is no array is made one. Arrays of empty() are not copied
        outputs   the names wanted; None: all
        out       {name: array}: written there, and not copied where it is one of empty()
        timeout   seconds that it may take, in the queue and on the device
        queue_timeout  seconds that it may wait until it is begun
        priority  'high', 'normal' or 'low', among the requests of this user
        order_key not 0: answers of equal keys come in the order of the requests
        precision 'fp32', 'fp16', 'bf16' or 'int8', where the device offers it; the result tells what was done
        mode      'normal', 'prod' (not checked again) or 'debug' (each node goes to the log; admins)
        """
        return self.submit(model, inputs, outputs, out=out, version=version, device=device, timeout=timeout,
                           queue_timeout=queue_timeout, priority=priority, id=id, order_key=order_key, precision=precision, mode=mode).result()

    def submit(self, model, inputs, outputs=None, *, out=None, version='', device='', timeout=None,
               queue_timeout=None, priority='normal', id='', order_key=0, precision='', mode=''):
        """As infer(), without waiting: returns a Pending. Where the daemon's credit is used up, waits
        for an answer first."""
        return self._submit(model, inputs, outputs, out=out, version=version, device=device, timeout=timeout,
                            queue_timeout=queue_timeout, priority=priority, id=id, order_key=order_key, precision=precision, mode=mode)

    def session(self, states=None, shapes=None, model='', version=''):
        """Opens a Session: tensors that the daemon keeps between requests.

        states    {output: input}: what a model gives as `output` its next request takes as `input`
        shapes    {input: shape} of the zeros that the first request takes, where the model does not
                  say it and the request does not send the input itself
        model     instead of both: the states are those of this model, which its settings (session_pairs)
                  or the names of its tensors tell
        """
        return Session(self, states or {}, shapes or {}, model, version)

    def _submit(self, model, inputs, outputs, *, out=None, version='', device='', timeout=None,
                queue_timeout=None, priority='normal', id='', order_key=0, precision='', mode='', session_id=0, take=None, keep=None):
        if priority not in _PRIORITIES:
            raise ValueError(f"priority '{priority}', wanted one of {', '.join(_PRIORITIES)}")
        if not isinstance(order_key, int) or not 0 <= order_key < 1 << 64:
            raise ValueError(f'order_key {order_key!r}, wanted a whole number from 0 to 2**64 - 1')
        for name, text in (('model', model), ('version', version), ('id', id), ('device', device),
                           ('precision', precision), ('mode', mode)):
            if not isinstance(text, str):
                raise TypeError(f'{name} {text!r}, wanted a str')
        request = Inference(self, {
            'model_name': model, 'model_version': version, 'id': id, 'device': device,
            'timeout_ns': _nanoseconds('timeout', timeout),
            'queue_timeout_ns': _nanoseconds('queue_timeout', queue_timeout),
            'priority': _PRIORITIES[priority], 'session_id': session_id, 'order_key': order_key,
            'precision': precision, 'mode': mode}, _tensors('inputs', inputs), outputs,
            _tensors('out', out or {}), take or {}, keep or {})
        return request.send()
