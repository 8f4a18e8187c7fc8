# SPDX-License-Identifier: Apache-2.0
"""The client: questions to the daemon, and inferences."""
import collections.abc
import json
import math
import numbers
import os
import time

import numpy

from ._inference import Inference
from ._session import Session
from ._span import Span
from ._transport import Transport

_PRIORITIES = {'normal': 0, 'high': 1, 'low': 2}


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


class Client(Transport):
    """A connection to the daemon. Several threads may use it at once. It is a context manager.

        with inferd.Client() as client:
            result = client.infer('mobilenet', {'input': pixels})
            print(result['output'].argmax(), result.device)

    `statistics` counts inferences: 'requests' (all), 'resent' (sent again, with more room for
    outputs or because the daemon had not started them), and 'without_shared_memory' (large tensors
    went through the socket, because the daemon had no shared memory). It also counts 'reconnects'.

    If `on_span` is set, each inference whose trace is sampled has a span of the client, the parent
    of the daemon's spans. on_span(span) gets it as a dict of OTLP/JSON when the inference has
    ended; SpanFile writes it to a file. The thread that receives the answer calls it, so it must
    not wait for the client. An inference without a traceparent begins a trace that is sampled.
    """

    on_span = None

    # --- the server ---

    def ready(self):
        """Returns whether the daemon accepts requests."""
        return self._ask('ready')['ready']

    def status(self):
        """Returns the state and the counters of the daemon as a dict."""
        return self._ask('status')

    def metrics(self, format='prometheus'):
        """Returns the metrics of the daemon as a str. `format` is 'prometheus', 'openmetrics' or
        'json'. The admin socket has the metrics of all models and users; the data socket has those
        of the models that this user has used.
        """
        return self._ask('metrics', {'format': format})['text']

    def requests(self):
        """Returns the requests in flight as a list of dicts, oldest first. The admin socket has
        those of all users; the data socket has those of this user.
        """
        return self._ask('requests')['requests']

    def clients(self):
        """Returns the connections to the daemon as a list of dicts, like requests()."""
        return self._ask('clients')['clients']

    def cancel_request(self, client_id, stream_id):
        """Cancels a request that requests() lists."""
        self._ask('cancel_request', {'client_id': client_id, 'stream_id': stream_id})

    def disconnect_client(self, client_id):
        """Closes a connection that clients() lists, and cancels its requests."""
        self._ask('disconnect_client', {'client_id': client_id})

    def slow(self):
        """Returns slow inferences, with their times in nanoseconds, as a list of dicts."""
        return json.loads(self._ask('report', {'topic': 'slow'})['text'])

    def events(self, after=0, wait=False):
        """Returns a dict with the list 'events' of what happened after the event number `after`,
        'last', the `after` of the next call, and 'lost', the number of events in between that the
        daemon does not remember. If there is no such event and `wait` is true, waits for one.
        """
        request = {'topic': 'events', 'after': after, 'wait': wait}
        return json.loads(self._ask('report', request)['text'])

    def devices(self):
        """Returns the devices as a list of dicts."""
        return self._ask('devices')['devices']

    def models(self):
        """Returns the models as a list of dicts."""
        return self._ask('models')['models']

    def metadata(self, model, version=''):
        """Returns the description of a model: 'inputs' and 'outputs' have name, datatype and shape
        (-1: any size)."""
        told = self._ask('metadata', {'name': model, 'version': version})
        self._known[model, version] = told, time.monotonic()
        return told

    def describe(self, model, version=''):
        """Returns what a model says about itself as a dict: 'title', 'description', 'signatures',
        'files', and of 'inputs' and 'outputs' the mean and deviation of their normalisation and
        their labels. Keys that the model file does not have are missing.
        """
        topic = 'model ' + model + ('@' + version if version else '')
        return json.loads(self._ask('report', {'topic': topic})['text'])

    def check(self, model, inputs, outputs=None, *, version=''):
        """Raises an Error if a request does not fit its model. At the first call, after another
        version has answered, and after a restart of the daemon, asks the daemon for the description
        of the model. Once the client has a description (also from metadata()), requests that do not
        fit the model fail before they are sent.
        """
        if (model, version) not in self._known:
            self.metadata(model, version)
        Inference(
            self,
            {'model_name': model, 'model_version': version, 'session_id': 0, 'timeout_ns': 0},
            inputs,
            outputs,
            {},
            {},
            {},
        ).check()

    def load(self, model, path='', device='', progress=None, save=False):
        """Loads a model and waits until it is ready. Calls `progress(stage, percent)`. Needs the
        admin socket. `path` is a model file or a directory; '' stands for the repository. The
        daemon receives a descriptor of the directory, so that directories that are hidden from it,
        such as those below /home, can be used. Its user must be able to read the files. With
        `save`, the files are copied into the repository, as the model's next version, and loaded
        from there.
        """
        request = {'model_name': model, 'device': device, 'save': save}
        if not path:
            self._ask('load', request, progress)
            return
        directory, request['file'] = (path, '') if os.path.isdir(path) else os.path.split(path)
        fd = os.open(directory or '.', os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            self._ask('load', request, progress, fd)
        finally:
            os.close(fd)

    def unload(self, model, version='', delete=False):
        """Unloads a model after its requests in flight have ended. Needs the admin socket. With
        `delete`, also removes the files that a load with save has put into the repository; if the
        repository has several versions of the model, `version` names one.
        """
        self._ask('unload', {'model_name': model, 'version': version, 'delete_files': delete})

    def reload(self):
        """Has the daemon read its configuration and its repository again, as SIGHUP does. Returns a
        dict with the list 'models', each with 'name', 'state' ('refused', 'loading', 'removed' or
        'unchanged') and 'reason'; 'left_out', the number of models for which there was no room;
        'changed_settings' and 'restart_settings', names with commas between; and 'config_error',
        why the configuration was not applied. Returns before models are loaded. Needs the admin
        socket.
        """
        return self._ask('reload')

    def limits(self, **changed):
        """Changes the named limits, as in limits(queue_requests_max=100). Returns all limits that
        can be changed while the daemon runs, as a list of dicts. Needs the admin socket.
        """
        return self._ask(
            'limits',
            {'limits': [{'name': name, 'value': value} for name, value in changed.items()]},
        )['limits']

    # --- inference ---

    def empty(self, shape, dtype=numpy.float32):
        """Returns an array in memory shared with the daemon. It is not copied if it is an input or
        is passed in `out`. Keep a reference, and do not write to the array, until the answer has
        arrived. The memory is reused after the array is freed. If the daemon refuses shared memory,
        the array is an ordinary one, which is copied.
        """
        shape = (shape,) if isinstance(shape, int) else tuple(shape)
        if any(size < 0 for size in shape):
            raise ValueError(f'shape {shape}, wanted sizes from 0')
        dtype = numpy.dtype(dtype)
        region = self._memory.take(max(math.prod(shape) * dtype.itemsize, 1))
        return (
            numpy.empty(shape, dtype)
            if region is None
            else self._memory.array(region, shape, dtype)
        )

    def infer(
        self,
        model,
        inputs,
        outputs=None,
        *,
        out=None,
        version='',
        device='',
        timeout=None,
        queue_timeout=None,
        priority='normal',
        id='',
        order_key=0,
        precision='',
        mode='',
        traceparent='',
        tracestate='',
    ):
        """Runs a model and waits for the Result. `model` is NAME, or NAME:SIGNATURE for a further
        signature of the model file.

        inputs         {name: array}. Other objects are converted to arrays. Arrays of empty() are
                       not copied
        outputs        names of the outputs to return; None: all outputs
        out            {name: array} for the outputs. The daemon writes directly to arrays of
                       empty()
        timeout        seconds for the queue and the run together
        queue_timeout  seconds in the queue, until the run starts
        priority       'high', 'normal' or 'low', among the requests of this user
        order_key      requests with the same key are answered in the order in which they were sent;
                       0: none
        precision      'fp32', 'fp16', 'bf16' or 'int8', if the device supports it; see
                       Result.precision
        mode           'normal', 'prod' (answers are not checked) or 'debug' (the daemon logs each
                       node; admins only)
        traceparent    W3C Trace Context of the span that makes the request, and
        tracestate     what vendors add to it, for the traces that the daemon writes
        """
        return self.submit(
            model,
            inputs,
            outputs,
            out=out,
            version=version,
            device=device,
            timeout=timeout,
            queue_timeout=queue_timeout,
            priority=priority,
            id=id,
            order_key=order_key,
            precision=precision,
            mode=mode,
            traceparent=traceparent,
            tracestate=tracestate,
        ).result()

    def submit(
        self,
        model,
        inputs,
        outputs=None,
        *,
        out=None,
        version='',
        device='',
        timeout=None,
        queue_timeout=None,
        priority='normal',
        id='',
        order_key=0,
        precision='',
        mode='',
        traceparent='',
        tracestate='',
    ):
        """Does the same as infer(), but returns a Pending at once. If the daemon's credit is used
        up, first waits for an answer.
        """
        return self._submit(
            model,
            inputs,
            outputs,
            out=out,
            version=version,
            device=device,
            timeout=timeout,
            queue_timeout=queue_timeout,
            priority=priority,
            id=id,
            order_key=order_key,
            precision=precision,
            mode=mode,
            traceparent=traceparent,
            tracestate=tracestate,
        )

    def session(self, states=None, shapes=None, model='', version='', max_length=0):
        """Opens a Session, which keeps tensors in the daemon between requests.

        states    {output: input}: the output of one request becomes the input of the next one
        shapes    {input: shape} of the zeros that the first request gets. Needed if the model does
                  not define the shape and the first request does not send the input
        model     used instead of `states` and `shapes`: the pairs of this model, from its settings
                  (session_pairs) or from the names of its tensors
        max_length  most rows of a history, such as the keys and values of a decoder. The daemon
                  makes room for them at the first request. 0: no limit but that of the model
        """
        return Session(
            self, states or {}, shapes or {}, model, version, max_length=max_length
        )

    def _submit(
        self,
        model,
        inputs,
        outputs,
        *,
        out=None,
        version='',
        device='',
        timeout=None,
        queue_timeout=None,
        priority='normal',
        id='',
        order_key=0,
        precision='',
        mode='',
        traceparent='',
        tracestate='',
        session_id=0,
        take=None,
        keep=None,
    ):
        if priority not in _PRIORITIES:
            raise ValueError(f"priority '{priority}', wanted one of {', '.join(_PRIORITIES)}")
        if not isinstance(order_key, int) or not 0 <= order_key < 1 << 64:
            raise ValueError(f'order_key {order_key!r}, wanted a whole number from 0 to 2**64 - 1')
        for name, text in (
            ('model', model),
            ('version', version),
            ('id', id),
            ('device', device),
            ('precision', precision),
            ('mode', mode),
            ('traceparent', traceparent),
            ('tracestate', tracestate),
        ):
            if not isinstance(text, str):
                raise TypeError(f'{name} {text!r}, wanted a str')
        span = Span(model, traceparent, self.on_span) if self.on_span is not None else None
        request = Inference(
            self,
            {
                'model_name': model,
                'model_version': version,
                'id': id,
                'device': device,
                'timeout_ns': _nanoseconds('timeout', timeout),
                'queue_timeout_ns': _nanoseconds('queue_timeout', queue_timeout),
                'priority': _PRIORITIES[priority],
                'session_id': session_id,
                'order_key': order_key,
                'precision': precision,
                'mode': mode,
                'traceparent': span.traceparent if span is not None else traceparent,
                'tracestate': tracestate,
            },
            _tensors('inputs', inputs),
            outputs,
            _tensors('out', out or {}),
            take or {},
            keep or {},
            span,
        )
        return request.send()
