# SPDX-License-Identifier: Apache-2.0
"""Neural network inference by the inferd daemon on this machine.

    import inferd
    with inferd.Client() as client:
        result = client.infer('mobilenet', {'input': pixels})

Needs numpy and nothing else. Small tensors travel through the socket, large ones through shared
memory; arrays made by Client.empty() are not copied at all. BF16 outputs come as uint16, as numpy
has no such type.
"""
from ._call import Pending
from ._client import Client
from ._errors import Disconnected, Error
from ._inference import Result
from ._session import Session

# Where people find them is what tracebacks and help() name.
for _class in (Client, Disconnected, Error, Pending, Result, Session):
    _class.__module__ = __name__
del _class

__all__ = ['Client', 'Disconnected', 'Error', 'Pending', 'Result', 'Session']
