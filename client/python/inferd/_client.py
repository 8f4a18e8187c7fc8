# SPDX-License-Identifier: Apache-2.0
"""Requests and their answers."""
import math
import os
import time

import numpy

from . import _connection as wire
from ._errors import Disconnected, Error
from ._memory import Memory
from ._proto import decode, encode

_VERSION = '0.1.0'
_DTYPES = {
    'BOOL': numpy.bool_, 'UINT8': numpy.uint8, 'UINT16': numpy.uint16, 'UINT32': numpy.uint32,
    'UINT64': numpy.uint64, 'INT8': numpy.int8, 'INT16': numpy.int16, 'INT32': numpy.int32, 'INT64': numpy.int64,
    'FP16': numpy.float16, 'BF16': numpy.uint16, 'FP32': numpy.float32, 'FP64': numpy.float64}
_NAMES = {numpy.dtype(dtype): name for name, dtype in _DTYPES.items() if name != 'BF16'}
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

_INLINE_BYTES = 16 << 10  # larger tensors go through shared memory, as in libinferd


def _aligned(size):
    return -size % wire.ALIGNMENT + size


class Result(dict):
    """The outputs of one inference, by name, as arrays; and how it went. Large ones lie in memory
    shared with the daemon, which is used anew once the arrays are gone."""

    def __init__(self, outputs, reply):
        super().__init__(outputs)
        self.model, self.version, self.id = reply['model_name'], reply['model_version'], reply['id']
        self.device, self.precision = reply['device'], reply['precision']
        self.batch_size = reply['batch_size']
        self.timing = reply['timing'] or {}  # queue_ns, input_ns, compute_ns, output_ns


class _Call:
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


class Client:
    """A connection to the daemon. For one thread at a time; a context manager.

        with inferd.Client() as client:
            result = client.infer('mobilenet', {'input': pixels})
            print(result['output'].argmax(), result.device)
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
        call = _Call(method, finish, progress)
        try:
            self._connection.send(wire.REQUEST, self._last_stream, meta, parts, data_bytes, number)
        except Disconnected:
            self._draining = True  # answers may still be there to be read
            raise
        self._calls[self._last_stream] = call
        call.data_bytes = data_bytes
        self._bytes_in_flight += data_bytes
        return call, self._last_stream

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
        call = self._calls[self._last_stream] = _Call('register', finish)
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
        return self._ask('metadata', {'name': model, 'version': version})

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
        let it go, nor write to an input."""
        shape = (shape,) if isinstance(shape, int) else tuple(shape)
        dtype = numpy.dtype(dtype)
        region = self._memory.take(max(math.prod(shape) * dtype.itemsize, 1))
        return self._memory.array(region, shape, dtype)

    def infer(self, model, inputs, outputs=None, *, out=None, version='', device='', timeout=None, priority='normal',
              id='', order_key=0, precision='', mode=''):
        """Runs a model and waits for the Result.

        inputs    {name: array}; what is no array is made one. Arrays of empty() are not copied
        outputs   the names wanted; None: all
        out       {name: array of empty()}: written there, and not copied
        timeout   seconds that it may take, in the queue and on the device
        priority  'high', 'normal' or 'low', among the requests of this user
        order_key not 0: answers of equal keys come in the order of the requests
        precision 'fp32', 'fp16', 'bf16' or 'int8', where the device offers it; the result tells what was done
        mode      'normal', 'prod' (not checked again) or 'debug' (each node goes to the log; admins)
        """
        return self.submit(model, inputs, outputs, out=out, version=version, device=device, timeout=timeout,
                           priority=priority, id=id, order_key=order_key, precision=precision, mode=mode).result()

    def submit(self, model, inputs, outputs=None, *, out=None, version='', device='', timeout=None, priority='normal',
               id='', order_key=0, precision='', mode=''):
        """As infer(), without waiting: returns a Pending. Where the daemon's credit is used up, waits
        for an answer first."""
        return self._submit(model, inputs, outputs, out=out, version=version, device=device, timeout=timeout,
                            priority=priority, id=id, order_key=order_key, precision=precision, mode=mode)

    def session(self, states=None, shapes=None, model='', version=''):
        """Opens a Session: tensors that the daemon keeps between requests.

        states    {output: input}: what a model gives as `output` its next request takes as `input`
        shapes    {input: shape} of the zeros that the first request takes, where the model does not
                  say it and the request does not send the input itself
        model     instead of both: the states are those of this model, which its settings (session_pairs)
                  or the names of its tensors tell
        """
        return Session(self, states or {}, shapes or {}, model, version)

    def _submit(self, model, inputs, outputs, *, out=None, version='', device='', timeout=None, priority='normal',
                id='', order_key=0, precision='', mode='', session_id=0, take=None, keep=None):
        if priority not in _PRIORITIES:
            raise ValueError(f"priority '{priority}', wanted one of {', '.join(_PRIORITIES)}")
        request = _Inference(self, {
            'model_name': model, 'model_version': version, 'id': id, 'device': device,
            'timeout_ns': 0 if timeout is None else max(int(timeout * 1e9), 1),
            'priority': _PRIORITIES[priority], 'session_id': session_id, 'order_key': order_key,
            'precision': precision, 'mode': mode}, inputs, outputs,
            out or {}, take or {}, keep or {})
        return request.send()


class Session:
    """What the daemon keeps between requests of one connection; a context manager. Requests run one
    after the other, in the order they were sent; one that fails keeps nothing.

        with client.session({'stateN': 'state'}, {'state': (2, 1, 128)}) as session:
            for chunk in audio:
                print(session.infer('silero_vad', {'input': chunk, 'sr': 16000})['output'])
    """

    def __init__(self, client, states, shapes, model, version):
        self._client = client
        client._last_session += 1
        self._id = client._last_session
        pairs = [{'output': output, 'input': name, 'shape': shapes.get(name, ()), 'shaped': name in shapes}
                 for output, name in states.items()]
        client._ask('open_session', {'session_id': self._id, 'states': pairs, 'model_name': model, 'model_version': version})

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        """Lets the daemon forget it; what was sent before still finishes."""
        if self._id and not self._client.closed:
            self._client._ask('close_session', {'session_id': self._id})
        self._id = 0

    def infer(self, model, inputs, outputs=None, **options):
        """As Client.infer(). Inputs of pairs may be left out; sent, they begin the sequence anew. Outputs
        of pairs come back only where `outputs` names them. Further options:

        take      {input: name}: the input is what the session keeps under this name
        keep      {output: name}: the output is kept under it and does not come back
        """
        return self.submit(model, inputs, outputs, **options).result()

    def submit(self, model, inputs, outputs=None, **options):
        """As infer(), without waiting: returns a Pending."""
        if not self._id:
            raise ValueError('the session is closed')
        return self._client._submit(model, inputs, outputs, session_id=self._id, **options)


class _Inference:
    """A request and what it holds until the answer."""

    def __init__(self, client, message, inputs, outputs, out, take, keep):
        self._client, self._message = client, message
        self._inputs = {name: numpy.asarray(value) for name, value in inputs.items()}
        self._wanted = list(outputs) if outputs is not None else list(out) or None
        self._out, self._take, self._keep = out, take, keep
        self._key = message['model_name'], message['model_version']
        self._held = []  # regions with copies of inputs
        self._rooms = {}  # regions for outputs
        self._began = time.monotonic()
        self._until = self._began + message['timeout_ns'] / 1e9

    def send(self):
        again = self._client.retry > 0 and not self._message['session_id'] and not self._message['order_key']
        try:
            call, stream = self._begin()
        except Error as error:
            if not again or not error.unbegun:
                raise
            call, stream = self._retry(error)
        return Pending(self._client, call, stream, self._retry if again else None)

    def _begin(self):
        try:
            entries, parts, size = self._place_inputs()
            outputs = self._place_outputs()
            meta = encode('ModelInferRequest', {**self._message, 'inputs': entries, 'outputs': outputs})
            return self._client._begin('infer', meta, self._finish, parts, size)
        except Error:
            self._release(True)
            raise

    def _retry(self, error):
        """Sends what was certainly not begun once more, as long as the time allows it."""
        end = min(self._began + self._client.retry, self._until if self._message['timeout_ns'] else math.inf)
        while True:
            wait = max(error.retry_after_ms, 1) / 1e3
            if time.monotonic() + wait >= end or self._client.closed:
                raise error
            try:
                if self._client._broken or self._client._draining:
                    self._client.reconnect(end - time.monotonic())
                else:
                    time.sleep(wait)
                if self._message['timeout_ns']:
                    self._message['timeout_ns'] = max(int((self._until - time.monotonic()) * 1e9), 1)
                return self._begin()
            except Error as again:
                if not again.unbegun:
                    raise
                error = again

    def _place_inputs(self):
        entries, parts, size = [], [], 0
        for name, kept in self._take.items():
            entries.append({'name': name, 'session_tensor': kept})
        for name, array in self._inputs.items():
            if array.dtype.newbyteorder('=') not in _NAMES:
                raise TypeError(f"input '{name}': no tensor has elements of {array.dtype}")
            array = array.astype(array.dtype.newbyteorder('<'), copy=False)
            entry = {'name': name, 'datatype': _NAMES[array.dtype.newbyteorder('=')], 'shape': array.shape}
            entries.append(entry)
            region, offset = self._client._memory.find(array)
            if region is None and array.nbytes >= _INLINE_BYTES:
                region, offset = self._copy(array), 0
            if region is not None and offset % wire.ALIGNMENT == 0:
                entry['location'] = {'offset': offset, 'length': array.nbytes, 'region_id': region.id}
                continue
            parts.append(bytes(_aligned(size) - size))
            size = _aligned(size) + array.nbytes
            parts.append(array.tobytes())
        return entries, parts, size

    def _copy(self, array):
        region = self._client._memory.take(array.nbytes)
        self._held.append(region)
        region.bytes()[:array.nbytes].view(array.dtype).reshape(array.shape)[...] = array
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
            if name in self._out:
                region, offset = self._client._memory.find(self._out[name])
                if region is None:
                    raise ValueError(f"out '{name}': the array is not one of empty(), or not contiguous")
                room = self._out[name].nbytes
            elif name in learnt:
                region, offset, room = self._client._memory.take(learnt[name]), 0, learnt[name]
                self._rooms[name] = region
            else:
                continue
            entry['location'] = {'offset': offset, 'length': room, 'region_id': region.id}
        return entries

    def _release(self, settled):
        """Lets go of what was held; not settled: the daemon may still be at it."""
        memory = self._client._memory
        for region in self._held + list(self._rooms.values()):
            (memory.give_back if settled else memory.drop)(region)
        self._held, self._rooms = [], {}

    def _finish(self, frame, failure):
        if failure is not None:
            self._release(failure.unbegun or failure.code not in ('CANCELLED', 'DEADLINE_EXCEEDED', 'UNAVAILABLE'))
            if not self._learn(failure):
                raise failure
            return self._again()
        reply = decode('ModelInferResponse', frame.meta)
        outputs, at = {}, 0
        for output in reply['outputs']:
            array, at = self._output(output, frame.data, at)
            outputs[output['name']] = array
        self._release(True)
        return Result(outputs, reply)

    def _output(self, output, data, at):
        name, shape = output['name'], tuple(output['shape'])
        dtype = numpy.dtype(_DTYPES[output['datatype']])
        size = math.prod(shape) * dtype.itemsize
        location = output['location'] or {'region_id': 0, 'offset': _aligned(at)}
        if location['region_id'] == 0:
            offset = location['offset']
            if len(data) > self._client._greeting['limits']['data_bytes'] and size >= _INLINE_BYTES and not (
                    self._message['session_id'] or self._message['order_key']):
                self._client._outputs.setdefault(self._key, {})[name] = size  # next time it has a room
            return data[offset:offset + size].view(dtype).reshape(shape), offset + size
        if name in self._rooms:
            return self._client._memory.array(self._rooms.pop(name), shape, dtype), at
        whole = self._out[name].reshape(-1).view(numpy.uint8)
        return whole[:size].view(dtype).reshape(shape), at

    def _learn(self, failure):
        """Notes how much room an output needs, where the failure tells of one that is too large. Requests of
        a session, or with an order key, are sent once only: those behind them would have overtaken them."""
        if self._message['session_id'] or self._message['order_key']:
            return False
        learnt = self._client._outputs.setdefault(self._key, {})
        if failure.reason == 'OUTPUT_TOO_SMALL' and failure.tensor not in self._out:
            learnt[failure.tensor] = int(failure.expected)
            return True
        if failure.reason == 'FRAME_TOO_LARGE' and not learnt:
            # Which one was it? All get a room that is surely too small, and are told apart by that.
            names = self._wanted or [output['name'] for output in self._client.metadata(*self._key)['outputs']]
            learnt.update((name, 1) for name in names if name not in self._out)
            return bool(learnt)
        return False

    def _again(self):
        """Sends the request once more, with rooms as learnt, and waits. Nothing ran the first time."""
        if self._message['timeout_ns']:
            self._message['timeout_ns'] = max(int((self._until - time.monotonic()) * 1e9), 1)
        return self.send().result()
