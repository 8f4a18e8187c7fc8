# SPDX-License-Identifier: Apache-2.0
"""Checks whether a request fits its model. The module never asks the daemon."""
from ._errors import Error


def _shown(shape):
    return '[' + ','.join('?' if size < 0 else str(size) for size in shape) + ']'


def same_name(name, names):
    """Returns the element of `names` that means the tensor `name`, or None. TensorFlow calls the
    first output of node 'x' both 'x' and 'x:0', so the two names match unless `names` has both.
    """
    if name in names:
        return name
    other = name[:-2] if name.endswith(':0') else name + ':0'
    return other if other in names else None


def _find(what, name, tensors):
    found = same_name(name, [tensor['name'] for tensor in tensors])
    for tensor in tensors:
        if tensor['name'] == found:
            return tensor
    names = ', '.join(f"'{tensor['name']}'" for tensor in tensors)
    raise Error(
        'INVALID_ARGUMENT',
        'TENSOR_UNKNOWN',
        f"{what} '{name}': the model has no such {what}; it has {names}",
        tensor=name,
    )


def _check_input(name, datatype, shape, wanted):
    if datatype != wanted['datatype']:
        raise Error(
            'INVALID_ARGUMENT',
            'DTYPE_MISMATCH',
            f"input '{name}': datatype is {datatype}, wanted {wanted['datatype']}",
            tensor=name,
            expected=wanted['datatype'],
            actual=datatype,
        )
    sizes = wanted['shape']
    fits = wanted['unranked'] or (
        len(shape) == len(sizes) and all(size in (-1, actual) for size, actual in zip(sizes, shape))
    )
    if not fits:
        raise Error(
            'INVALID_ARGUMENT',
            'SHAPE_MISMATCH',
            f"input '{name}': shape is {_shown(shape)}, wanted {_shown(sizes)}",
            tensor=name,
            expected=_shown(sizes),
            actual=_shown(shape),
        )


def check(known, inputs, outputs, given):
    """Raises the same Error as the daemon if a request does not fit its model.

    known     the description that metadata() returned for the model
    inputs    {name: (datatype, shape)}
    outputs   names
    given     names of inputs that the session provides; None: it may provide any input
    """
    for name, (datatype, shape) in inputs.items():
        _check_input(name, datatype, shape, _find('input', name, known['inputs']))
    for tensor in known['inputs']:
        sent = same_name(tensor['name'], inputs) or same_name(tensor['name'], given or ())
        if given is not None and sent is None:
            wanted = f"{tensor['datatype']} {_shown(tensor['shape'])}"
            raise Error(
                'INVALID_ARGUMENT',
                'TENSOR_MISSING',
                f"input '{tensor['name']}' is missing: wanted {wanted}",
                tensor=tensor['name'],
                expected=wanted,
            )
    for name in outputs:
        _find('output', name, known['outputs'])
