# SPDX-License-Identifier: Apache-2.0
"""TFLite files of one operator with inputs and expected outputs, in the layout of run_models.

A case is an operator, its tensors and what it must compute. The expected values are computed here,
from the definition of the operator in TFLite's and StableHLO's documents, in double precision.
"""
import json
import math
import re
import struct
from pathlib import Path

from tflite_writer import I8, I32, I64, U8, U32, Vector, flatbuffer, floats, ints

# Element types: number in the schema, NumPy's name, format of struct.
TYPES = {
    'f32': (0, '<f4', 'f'),
    'i32': (2, '<i4', 'i'),
    'u8': (3, '|u1', 'B'),
    'i64': (4, '<i8', 'q'),
    'bool': (6, '|b1', '?'),
    'i16': (7, '<i2', 'h'),
    'i8': (9, '|i1', 'b'),
    'i4': (17, None, None),
}
# The smallest and largest integer of each type.
LIMITS = {'i8': (-128, 127), 'u8': (0, 255), 'i16': (-32768, 32767)}


def builtins():
    """The numbers of the builtin operators by name."""
    root = Path(__file__).resolve().parents[3]
    text = (root / 'backends/import/tflite/builtins.def').read_text()
    rows = re.findall(r'INF_TFLITE_BUILTIN\((\w+), (\d+)\)', text)
    return {name: int(number) for name, number in rows}


BUILTINS = builtins()
CUSTOM = 32


def count(shape):
    return math.prod(shape)


def single(x):
    """Rounds to the nearest float of 32 bits."""
    try:
        return struct.unpack('<f', struct.pack('<f', x))[0]
    except OverflowError:
        return math.copysign(math.inf, x)


class Tensor:
    """A tensor of a file. `scale` and `zero` quantise it; `data` are its elements, row by row.
    A list of scales has one for each index of the first axis."""

    variable = False  # True: keeps its value between runs

    def __init__(self, kind, shape, data=None, scale=None, zero=0):
        self.kind, self.shape, self.scale, self.zero = kind, tuple(shape), scale, zero
        self.data = None if data is None else list(data)
        if self.data is not None and len(self.data) != count(self.shape):
            raise ValueError(f'{len(self.data)} elements for {self.shape}')

    def bytes(self):
        if self.kind == 'i4':
            pairs = zip(self.data[::2], self.data[1::2] + [0] * (len(self.data) % 2))
            return bytes((a & 15) | (b & 15) << 4 for a, b in pairs)
        return struct.pack(f'<{len(self.data)}{TYPES[self.kind][2]}', *self.data)

    def real(self):
        """The numbers that the elements stand for."""
        if self.scale is None:
            return list(self.data)
        scales = [single(x) for x in self.scales()]
        each = len(self.data) // len(scales)
        return [single((x - self.zero) * scales[i // each]) for i, x in enumerate(self.data)]

    def scales(self):
        return self.scale if isinstance(self.scale, list) else [self.scale]

    def stored(self, reals):
        """The tensor with these numbers, quantised if it is quantised."""
        if self.scale is not None:
            low, high = LIMITS[self.kind]
            scale = single(self.scale)
            reals = [
                min(max(round(x / scale) + self.zero, low), high)
                if math.isfinite(x)
                else (high if x > 0 else low)
                for x in reals
            ]
        elif self.kind == 'f32':
            reals = [single(x) for x in reals]
        return Tensor(self.kind, self.shape, reals, self.scale, self.zero)

    def npy(self):
        shape = '(' + ''.join(f'{x}, ' for x in self.shape) + ')'
        head = f"{{'descr': '{TYPES[self.kind][1]}', 'fortran_order': False, 'shape': {shape}, }}"
        head = head.ljust(117) + '\n'
        return b'\x93NUMPY\x01\x00' + struct.pack('<H', len(head)) + head.encode() + self.bytes()


def const(kind, shape, data, scale=None, zero=0):
    """A tensor whose elements are in the file."""
    tensor = Tensor(kind, shape, data, scale, zero)
    tensor.constant = True
    return tensor


def variable(kind, shape, scale=None, zero=0):
    """A tensor that begins as zeros and keeps its value between runs."""
    tensor = Tensor(kind, shape, None, scale, zero)
    tensor.variable = True
    return tensor


def is_const(tensor):
    return getattr(tensor, 'constant', False)


def is_given(tensor):
    """True if a request has the elements of an input."""
    return tensor is not None and not is_const(tensor) and not tensor.variable


class Body:
    """A subgraph of one operator on two scalars, for reductions."""

    def __init__(self, name, kind):
        self.name, self.kind = name, kind


class Case:
    """One file. `name` is a builtin operator, or a custom one with bytes as options."""

    def __init__(self, id, name, inputs, outputs, **more):
        self.id, self.name, self.inputs, self.outputs = id, name, inputs, outputs
        self.options = more.get('options')  # (number of the union, table)
        self.options_2 = more.get('options_2')
        self.custom = more.get('custom')  # bytes
        self.version = more.get('version', 1)
        self.body = more.get('body')
        self.intermediates = more.get('intermediates', [])
        self.tolerance = more.get('tolerance', {'rtol': 1e-5, 'atol': 1e-6, 'lsb': 0})
        # Name of a file beside the model that has the constants, and changes of its ranges.
        self.weights_file = more.get('weights_file')
        self.weights_rows = more.get('weights_rows', {})

    def codes(self):
        names = [self.name] + ([self.body.name] if self.body else [])
        rows = []
        for name in names:
            number = BUILTINS.get(name, CUSTOM)
            row = {0: I8(min(number, 127)), 2: I32(self.version), 3: I32(number)}
            if number == CUSTOM:
                row[1] = name
            rows.append(row)
        return rows

    def model(self):
        buffers, tensors, ranges = [{}], [], []
        self.weights = b'pad'

        def add(name, tensor):
            row = {0: ints(*tensor.shape), 1: I8(TYPES[tensor.kind][0]), 2: U32(0), 3: name}
            if tensor.scale is not None:
                scales = tensor.scales()
                row[4] = {2: floats(*scales), 3: Vector('q', [tensor.zero] * len(scales))}
            if tensor.variable:
                row[5] = I8(1)
            if is_const(tensor) and self.weights_file:
                number = 2**31 + len(ranges)
                row[10] = U32(number)
                place = {0: U32(number), 1: U32(0), 2: I64(len(self.weights))}
                place |= {3: I64(len(tensor.bytes())), 4: 'unpacked'}
                ranges.append(place | self.weights_rows)
                self.weights += tensor.bytes()
            elif is_const(tensor):
                row[2] = U32(len(buffers))
                buffers.append({0: tensor.bytes()})
            tensors.append(row)
            return len(tensors) - 1

        inputs = [-1 if x is None else add(f'x{i}', x) for i, x in enumerate(self.inputs)]
        outputs = [add(f'y{i}', y) for i, y in enumerate(self.outputs)]
        run = {0: U32(0), 1: ints(*inputs), 2: ints(*outputs)}
        if self.options:
            run[3], run[4] = U8(self.options[0]), self.options[1]
        if self.options_2:
            run[11], run[12] = U8(self.options_2[0]), self.options_2[1]
        if self.custom is not None:
            run[5] = self.custom
        if self.intermediates:
            run[8] = ints(*[add(f'z{i}', z) for i, z in enumerate(self.intermediates)])
        free = [i for i, x in zip(inputs, self.inputs) if is_given(x)]
        graphs = [{0: tensors, 1: ints(*free), 2: ints(*outputs), 3: [run], 4: 'main'}]
        if self.body:
            scalars = [
                {0: ints(), 1: I8(TYPES[self.body.kind][0]), 2: U32(0), 3: name} for name in 'abc'
            ]
            step = {0: U32(1), 1: ints(0, 1), 2: ints(2)}
            graphs.append({0: scalars, 1: ints(0, 1), 2: ints(2), 3: [step], 4: 'body'})
        root = {0: U32(3), 1: self.codes(), 2: graphs, 3: self.id, 4: buffers}
        if ranges:
            root |= {8: [{0: self.weights_file}], 9: ranges}
        return flatbuffer(root, b'TFL3')

    def write(self, folder):
        """Writes the files of the case. Returns its entry of the manifest."""
        (folder / f'{self.id}.tflite').write_bytes(self.model())
        if self.weights_file:
            (folder / self.weights_file).write_bytes(self.weights)
        lists = {'inputs': [], 'outputs': []}
        for side, letter in (('inputs', 'x'), ('outputs', 'y')):
            for i, tensor in enumerate(getattr(self, side)):
                if side == 'inputs' and not is_given(tensor):
                    continue
                file = f'{self.id}.{letter}{i}.npy'
                (folder / file).write_bytes(tensor.npy())
                row = {'name': f'{letter}{i}', 'file': file}
                if side == 'outputs':
                    row['tolerance'] = self.tolerance
                lists[side].append(row)
        first = [x for x in self.inputs if is_given(x)] + self.outputs
        return {
            'id': self.id,
            'operator': self.name,
            'type': first[0].kind,
            'model': f'{self.id}.tflite',
            'cases': [{'case': 'values', **lists}],
        }


def write_all(cases, folder):
    folder.mkdir(parents=True, exist_ok=True)
    entries = [case.write(folder) for case in cases]
    if len({entry['id'] for entry in entries}) != len(entries):
        raise ValueError('two cases have one name')
    (folder / 'manifest.json').write_text(json.dumps({'models': entries}, indent=1))


# --- indices ---


def places(shape):
    """All positions of a shape, in the order of its elements."""
    place = [0] * len(shape)
    for _ in range(count(shape)):
        yield tuple(place)
        for axis in reversed(range(len(shape))):
            place[axis] += 1
            if place[axis] < shape[axis]:
                break
            place[axis] = 0


def at(shape, place):
    """The number of the element at a position."""
    index = 0
    for size, i in zip(shape, place):
        index = index * size + i
    return index


def noise(size, seed=1):
    """Numbers from -1 to 1, the same every time."""
    numbers = []
    for _ in range(size):
        seed = (seed * 1664525 + 1013904223) % 2**32
        numbers.append(single(seed / 2**31 - 1))
    return numbers


def longs(*values):
    return Vector('q', values)


def flexbuffer(options):
    """The bytes of a FlexBuffer that is a map of names to numbers or lists of integers."""
    keys, data, rows = sorted(options), bytearray(), []
    key_places = {}
    for key in keys:
        key_places[key] = len(data)
        data += key.encode() + b'\0'
    data += bytes(-len(data) % 8)
    lists = {}
    for key in keys:
        if isinstance(options[key], list):
            data += struct.pack('<q', len(options[key]))
            lists[key] = len(data)
            data += struct.pack(f'<{len(options[key])}q', *options[key])
    data += struct.pack('<q', len(keys))
    key_vector = len(data)
    for key in keys:
        data += struct.pack('<q', len(data) - key_places[key])
    data += struct.pack('<qqq', len(data) - key_vector, 8, len(keys))
    values = len(data)
    for key in keys:
        value = options[key]
        if isinstance(value, list):
            data += struct.pack('<q', len(data) - lists[key])
            rows.append(11 << 2 | 3)
        elif isinstance(value, float):
            data += struct.pack('<d', value)
            rows.append(3 << 2 | 3)
        else:
            data += struct.pack('<q', value)
            rows.append(1 << 2 | 3)
    data += bytes(rows)
    return bytes(data + struct.pack('<B', len(data) - values) + bytes([9 << 2 | 3, 1]))
