# SPDX-License-Identifier: Apache-2.0
"""Neural network inference by the inferd daemon on this machine.

    import inferd
    with inferd.Client() as client:
        result = client.infer('mobilenet', {'input': pixels})

The package needs only numpy. Small tensors are sent through the socket, large ones through shared
memory. Arrays made by Client.empty() are not copied at all. BF16 outputs are returned as uint16,
because numpy has no such type.
"""
from ._call import Pending
from ._client import Client
from ._errors import Disconnected, Error
from ._inference import Result
from ._session import Session
from ._span import SpanFile

# Tracebacks and help() name the public module of a class instead of the private one.
for _class in (Client, Disconnected, Error, Pending, Result, Session, SpanFile):
    _class.__module__ = __name__
del _class

__all__ = ['Client', 'Disconnected', 'Error', 'Pending', 'Result', 'Session', 'SpanFile']
