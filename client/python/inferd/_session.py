# SPDX-License-Identifier: Apache-2.0
"""Tensors that the daemon keeps between requests."""


class Session:
    """Tensors that the daemon keeps between the requests of one connection. A session is a context
    manager. Requests run one after the other, in the order in which they were sent. A request that
    fails does not change the session.

        with client.session({'stateN': 'state'}, {'state': (2, 1, 128)}) as session:
            for chunk in audio:
                print(session.infer('silero_vad', {'input': chunk, 'sr': 16000})['output'])
    """

    def __init__(self, client, states, shapes, model, version, fork_of=0, max_length=0):
        self._client = client
        self._id = client._new_session()
        pairs = [
            {
                'output': output,
                'input': name,
                'shape': shapes.get(name, ()),
                'shaped': name in shapes,
            }
            for output, name in states.items()
        ]
        client._ask(
            'open_session',
            {
                'session_id': self._id,
                'states': pairs,
                'model_name': model,
                'model_version': version,
                'fork_of': fork_of,
                'max_length': max_length,
            },
        )

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        """Closes the session in the daemon. Requests that were sent before still finish."""
        if self._id and not self._client.closed:
            self._client._ask('close_session', {'session_id': self._id})
        self._id = 0

    def fork(self):
        """Returns a Session that begins with the tensors of this one, for example to continue a
        text in two ways. Both share memory until one of them changes. All requests of this session
        must have been answered."""
        return Session(self._client, {}, {}, '', '', fork_of=self._id)

    def rewind(self, length, release=False):
        """Forgets all rows of the history but the first `length`, as if the requests that made them
        had not been sent. A history is a state pair to which each request appends rows: the keys
        and values of a decoder. With `release`, the memory of the forgotten rows is given back: at
        once if `length` is 0, else with the next request."""
        self._client._ask(
            'rewind_session', {'session_id': self._id, 'length': length, 'release': release}
        )

    def infer(self, model, inputs, outputs=None, **options):
        """Does the same as Client.infer(). Inputs of pairs may be omitted; if they are sent, they
        replace the kept values. Outputs of pairs are returned only if `outputs` names them. Further
        options:

        take      {input: name}: the input is the tensor that the session keeps under this name
        keep      {output: name}: the session keeps the output under this name and does not return
                  it
        """
        return self.submit(model, inputs, outputs, **options).result()

    def submit(self, model, inputs, outputs=None, **options):
        """Does the same as infer(), but returns a Pending without waiting."""
        if not self._id:
            raise ValueError('the session is closed')
        return self._client._submit(model, inputs, outputs, session_id=self._id, **options)
