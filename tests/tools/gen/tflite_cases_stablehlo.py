# SPDX-License-Identifier: Apache-2.0
"""Cases of the operators of StableHLO, and of DILATE."""
import itertools
import math

from tflite_case import Body, Case, Tensor, at, const, count, longs, noise, places, single
from tflite_writer import I32, I64, U32

EXTREME = [0.0, -0.0, 1.0, -1.0, 1.2e-38, -1.2e-38, 3.5, -2.5, 80.0, -80.0, math.inf, -math.inf]
EXACT = {'rtol': 0, 'atol': 0, 'lsb': 0}
CONCATENATE, BROADCAST, SLICE, REDUCE, COMPARE, DYNAMIC, PAD, IOTA, DOT, WINDOW = (
    *(1, 2, 3, 6, 8, 9, 10, 11, 12, 13),
)
GATHER, TRANSPOSE, OLD_WINDOW = 16, 17, 20


def guard(function, otherwise=math.nan):
    """The function, with NaN where Python raises an error."""

    def safe(*numbers):
        try:
            return function(*numbers)
        except (ValueError, ZeroDivisionError):
            return otherwise
        except OverflowError:
            return math.inf

    return safe


def logarithm(x):
    return -math.inf if x == 0 else math.log(x)


def inverse_root(x):
    return math.copysign(math.inf, x) if x == 0 else 1 / math.sqrt(x)


UNARY = {
    'LOGISTIC': lambda x: 1 / (1 + math.exp(-x)) if x > -700 else 0.0,
    'ABS': abs,
    'EXPONENTIAL': math.exp,
    'FLOOR': lambda x: x if math.isinf(x) else math.floor(x),
    'LOG': logarithm,
    'NEGATE': lambda x: -x,
    'RSQRT': inverse_root,
    'TANH': math.tanh,
    'COSINE': math.cos,
    'CBRT': lambda x: math.copysign(abs(x) ** (1 / 3), x),
}


def unary():
    for name, function in UNARY.items():
        x = Tensor('f32', (3, 4), [single(v) for v in EXTREME])
        y = x.stored([guard(function)(v) for v in x.data])
        yield Case(f'hlo-{name.lower()}', f'STABLEHLO_{name}', [x], [y])


def remainder(a, b):
    if b == 0 or math.isinf(a):
        return math.nan
    return math.fmod(a, b)


def divide(a, b):
    if b == 0:
        return math.nan if a == 0 or math.isnan(a) else math.copysign(math.inf, a) * (
            math.copysign(1, b)
        )
    return a / b


BINARY = {
    'ADD': lambda a, b: a + b,
    'SUBTRACT': lambda a, b: a - b,
    'MULTIPLY': lambda a, b: a * b,
    'DIVIDE': divide,
    'MAXIMUM': max,
    'MINIMUM': min,
    'REMAINDER': remainder,
}


def binary():
    pairs = list(itertools.product(EXTREME[:1] + EXTREME[2:], repeat=2))
    for name, function in BINARY.items():
        a, b = (Tensor('f32', (11, 11), [single(p[i]) for p in pairs]) for i in (0, 1))
        y = a.stored([guard(function)(p, q) for p, q in zip(a.data, b.data)])
        yield Case(f'hlo-{name.lower()}', f'STABLEHLO_{name}', [a, b], [y])
    a = Tensor('f32', (7,), [2.0, 9.0, 0.0, 1.5, 10.0, 0.25, 3.0])
    b = Tensor('f32', (7,), [-3.0, 0.5, 2.0, 0.0, 10.0, -0.5, 1.0])
    y = a.stored([p**q for p, q in zip(a.data, b.data)])
    yield Case('hlo-power', 'STABLEHLO_POWER', [a, b], [y])
    a = Tensor('i32', (3, 3), [7, -7, 7, -7, 2**31 - 1, -(2**31), 0, 1, -1])
    b = Tensor('i32', (3, 3), [3, 3, -3, -3, 2, 3, 5, 1, 1])
    y = a.stored([math.trunc(p / q) for p, q in zip(a.data, b.data)])
    yield Case('hlo-divide-i32', 'STABLEHLO_DIVIDE', [a, b], [y])
    y = a.stored([int(math.fmod(p, q)) for p, q in zip(a.data, b.data)])
    yield Case('hlo-remainder-i32', 'STABLEHLO_REMAINDER', [a, b], [y])
    for name, function in (('AND', lambda p, q: p & q), ('OR', lambda p, q: p | q)):
        y = a.stored([function(p, q) for p, q in zip(a.data, b.data)])
        yield Case(f'hlo-{name.lower()}-i32', f'STABLEHLO_{name}', [a, b], [y])
        p, q = Tensor('bool', (2, 2), [0, 0, 1, 1]), Tensor('bool', (2, 2), [0, 1, 0, 1])
        y = p.stored([function(u, v) for u, v in zip(p.data, q.data)])
        yield Case(f'hlo-{name.lower()}-bool', f'STABLEHLO_{name}', [p, q], [y])


def choices():
    functions = [
        lambda a, b: a == b,
        lambda a, b: a != b,
        lambda a, b: a >= b,
        lambda a, b: a > b,
        lambda a, b: a <= b,
        lambda a, b: a < b,
    ]
    numbers = [-math.inf, -1.0, 0.0, 2.0, math.inf, math.nan]
    pairs = list(itertools.product(numbers, repeat=2))
    a, b = (Tensor('f32', (4, 9), [p[i] for p in pairs]) for i in (0, 1))
    for i, function in enumerate(functions):
        y = Tensor('bool', (4, 9), [function(p, q) for p, q in pairs])
        options = (COMPARE, {0: U32(i)})
        yield Case(f'hlo-compare-{i}', 'STABLEHLO_COMPARE', [a, b], [y], options_2=options)
    x = Tensor('f32', (5,), [-math.inf, -3.25, 0.5, 7.0, math.inf])
    low, high = Tensor('f32', (), [-2.0]), Tensor('f32', (), [5.5])
    y = x.stored([min(max(v, -2.0), 5.5) for v in x.data])
    yield Case('hlo-clamp', 'STABLEHLO_CLAMP', [low, x, high], [y], tolerance=EXACT)
    for flag in (0, 1):
        pick = Tensor('bool', (), [flag])
        other = Tensor('f32', (5,), noise(5))
        y = x if flag else other
        name = f'hlo-select-{flag}'
        yield Case(name, 'STABLEHLO_SELECT', [pick, x, other], [y], tolerance=EXACT)
    x = Tensor('f32', (7,), [0.0, 0.9, -0.9, 1.5, -2.5, 100.0, -7.0])
    y = Tensor('i32', (7,), [math.trunc(v) for v in x.data])
    yield Case('hlo-convert', 'STABLEHLO_CONVERT', [x], [y])


def moves():
    shape = (2, 3, 5)
    x = Tensor('f32', shape, noise(30))

    def case(name, inputs, y_shape, source, options=None):
        y = Tensor('f32', y_shape, [x.data[source(p)] for p in places(y_shape)])
        full = f'STABLEHLO_{name.upper().split("-")[0]}'
        return Case(f'hlo-{name}', full, inputs, [y], options_2=options, tolerance=EXACT)

    yield case('reshape', [x], (5, 1, 6), lambda p: at((5, 1, 6), p))
    perm = (2, 0, 1)
    yield case(
        'transpose',
        [x],
        (5, 2, 3),
        lambda p: at(shape, [p[perm.index(i)] for i in range(3)]),
        (TRANSPOSE, {0: longs(*perm)}),
    )
    yield case(
        'slice',
        [x],
        (1, 2, 2),
        lambda p: at(shape, (1 + p[0], p[1], 1 + 3 * p[2])),
        (SLICE, {0: longs(1, 0, 1), 1: longs(2, 2, 5), 2: longs(1, 1, 3)}),
    )
    # A start beyond the room is moved back; a negative one forward.
    starts = [Tensor('i32', (), [v]) for v in (-4, 1, 9)]
    yield case(
        'dynamic_slice',
        [x, *starts],
        (2, 2, 2),
        lambda p: at(shape, (p[0], 1 + p[1], 3 + p[2])),
        (DYNAMIC, {0: longs(2, 2, 2)}),
    )
    # Axes 0 and 1 of the operand become axes 2 and 0 of the result.
    small = Tensor('f32', (5, 3), x.data[:15])
    yield case(
        'broadcast_in_dim',
        [small],
        (3, 2, 5),
        lambda p: at((5, 3), (p[2], p[0])),
        (BROADCAST, {0: longs(2, 0)}),
    )
    update = Tensor('f32', (1, 2, 2), noise(4, 7))
    starts = [Tensor('i64', (), [v]) for v in (1, 5, -1)]
    y = list(x.data)
    for p in places(update.shape):
        y[at(shape, (1, 1 + p[1], p[2]))] = update.data[at(update.shape, p)]
    yield Case(
        'hlo-dynamic_update_slice',
        'STABLEHLO_DYNAMIC_UPDATE_SLICE',
        [x, update, *starts],
        [x.stored(y)],
        tolerance=EXACT,
    )
    other = Tensor('f32', (2, 1, 5), noise(10, 3))
    y = Tensor(
        'f32',
        (2, 4, 5),
        [
            x.data[at(shape, p)] if p[1] < 3 else other.data[at(other.shape, (p[0], 0, p[2]))]
            for p in places((2, 4, 5))
        ],
    )
    options = (CONCATENATE, {0: I64(1)})
    yield Case('hlo-concatenate', 'STABLEHLO_CONCATENATE', [x, other], [y], options_2=options)
    y = Tensor('i32', (2, 3, 2), [p[1] for p in places((2, 3, 2))])
    yield Case('hlo-iota', 'STABLEHLO_IOTA', [], [y], options_2=(IOTA, {0: I64(1)}))


def gathers():
    x = Tensor('f32', (3, 4, 2), noise(24))
    # Rows 4 and -1 are moved into the operand.
    starts = Tensor('i32', (3, 1, 2), [1, 4, -1, 0, 2, 1])
    y_shape = (3, 1, 2, 2)

    def clamp(value, most):
        return min(max(value, 0), most)

    def element(p):
        row, column = starts.data[2 * p[0]], starts.data[2 * p[0] + 1]
        return x.data[at(x.shape, (clamp(row, 2), clamp(column, 2) + p[2], p[3]))]

    y = Tensor('f32', y_shape, [element(p) for p in places(y_shape)])
    table = {0: longs(2, 3), 1: longs(0), 2: longs(0, 1), 3: I64(2), 4: longs(1, 2, 2)}
    yield Case('hlo-gather', 'STABLEHLO_GATHER', [x, starts], [y], options_2=(GATHER, table))
    # The indices have no axis of their own, and the slices come first in the result.
    starts = Tensor('i64', (3,), [3, 0, 2])
    y_shape = (3, 2, 3)
    rows = [x.data[at(x.shape, (p[0], starts.data[p[2]], p[1]))] for p in places(y_shape)]
    y = Tensor('f32', y_shape, rows)
    table = {0: longs(0, 1), 1: longs(1), 2: longs(1), 3: I64(1), 4: longs(3, 1, 2)}
    yield Case('hlo-gather-rows', 'STABLEHLO_GATHER', [x, starts], [y], options_2=(GATHER, table))


def products():
    a, b = Tensor('f32', (3, 2, 5), noise(30)), Tensor('f32', (7, 3, 5), noise(105, 9))
    y_shape = (3, 2, 7)
    y = Tensor('f32', y_shape, [0] * count(y_shape))
    y = y.stored(
        sum(a.data[at(a.shape, (i, j, t))] * b.data[at(b.shape, (k, i, t))] for t in range(5))
        for i, j, k in places(y_shape)
    )
    table = {0: longs(0), 1: longs(1), 2: longs(2), 3: longs(2)}
    yield Case('hlo-dot_general', 'STABLEHLO_DOT_GENERAL', [a, b], [y], options_2=(DOT, table))
    # Two contracted axes, in different orders.
    a, b = Tensor('f32', (2, 3, 4), noise(24)), Tensor('f32', (4, 5, 2), noise(40, 9))
    y = Tensor('f32', (3, 5), [0] * 15)
    y = y.stored(
        sum(
            a.data[at(a.shape, (u, j, v))] * b.data[at(b.shape, (v, k, u))]
            for u in range(2)
            for v in range(4)
        )
        for j, k in places((3, 5))
    )
    table = {2: longs(0, 2), 3: longs(2, 0)}
    yield Case('hlo-dot_general-two', 'STABLEHLO_DOT_GENERAL', [a, b], [y], options_2=(DOT, table))


def spread(x, low, high, between, value):
    """StableHLO's padding: the shape of the result, and its elements."""
    shape = [
        before + behind + max(n - 1, 0) * (b + 1) + (n > 0)
        for before, behind, b, n in zip(low, high, between, x.shape)
    ]
    data = []
    for place in places(shape):
        source = [p - l for p, l in zip(place, low)]
        inside = all(
            s >= 0 and s % (b + 1) == 0 and s // (b + 1) < n
            for s, b, n in zip(source, between, x.shape)
        )
        index = [s // (b + 1) for s, b in zip(source, between)]
        data.append(x.data[at(x.shape, index)] if inside else value)
    return Tensor('f32', shape, data)


def padding():
    x, value = Tensor('f32', (3, 1, 4), noise(12)), Tensor('f32', (), [-1.5])
    for name, low, high, between in (
        ('edges', (1, 0, 2), (0, 3, 1), (0, 0, 0)),
        ('between', (0, 1, 0), (2, 0, 0), (1, 2, 3)),
        ('cut', (-1, 2, -2), (1, 0, -3), (0, 0, 2)),
    ):
        table = {0: longs(*low), 1: longs(*high), 2: longs(*between)}
        y = spread(x, low, high, between, -1.5)
        options = (PAD, table)
        id = f'hlo-pad-{name}'
        yield Case(id, 'STABLEHLO_PAD', [x, value], [y], options_2=options, tolerance=EXACT)
    steps = const('i32', (3,), [2, 1, 3])
    zeros = (0, 0, 0)
    y = spread(x, zeros, zeros, (1, 0, 2), -1.5)
    yield Case('dilate', 'DILATE', [x, steps, value], [y], tolerance=EXACT)


FUNCTIONS = {
    'ADD': (lambda a, b: a + b, 0.5),
    'MULTIPLY': (lambda a, b: a * b, 2.0),
    'MAXIMUM': (max, -0.25),
    'MINIMUM': (min, 0.25),
}


def reductions():
    x = Tensor('f32', (2, 3, 5), noise(30))
    for name, (function, first) in FUNCTIONS.items():
        y = [first] * 3
        for p in places(x.shape):
            y[p[1]] = function(y[p[1]], x.data[at(x.shape, p)])
        yield Case(
            f'hlo-reduce-{name.lower()}',
            'STABLEHLO_REDUCE',
            [x, Tensor('f32', (), [first])],
            [Tensor('f32', (3,), [0] * 3).stored(y)],
            options_2=(REDUCE, {0: longs(2, 0), 1: I32(1)}),
            body=Body(f'STABLEHLO_{name}', 'f32'),
        )
    for name, function in (('AND', all), ('OR', any)):
        flags = Tensor('bool', (2, 3), [1, 1, 1, 0, 0, 1])
        y = Tensor('bool', (2,), [function(flags.data[:3]), function(flags.data[3:])])
        first = Tensor('bool', (), [name == 'AND'])
        yield Case(
            f'hlo-reduce-{name.lower()}',
            'STABLEHLO_REDUCE',
            [flags, first],
            [y],
            options_2=(REDUCE, {0: longs(1), 1: I32(1)}),
            body=Body(f'STABLEHLO_{name}', 'bool'),
        )


def windows():
    x = Tensor('f32', (2, 7, 5), noise(70))
    sizes, strides, steps, between = (1, 3, 2), (1, 2, 1), (1, 2, 3), (0, 0, 1)
    low, high = (0, 1, 0), (0, 2, 1)
    for name, (function, first) in FUNCTIONS.items():
        padded = spread(x, low, high, between, first)

        def reduce(padded):
            shape = [
                (n - (k - 1) * d - 1) // s + 1
                for n, k, s, d in zip(padded.shape, sizes, strides, steps)
            ]
            data = []
            for p in places(shape):
                result = first
                for tap in places(sizes):
                    index = [i * s + t * d for i, s, t, d in zip(p, strides, tap, steps)]
                    result = function(result, padded.data[at(padded.shape, index)])
                data.append(result)
            return Tensor('f32', shape, [0] * len(data)).stored(data)

        edges = [v for pair in zip(low, high) for v in pair]
        table = {0: longs(*sizes), 1: longs(*strides), 2: longs(*(b + 1 for b in between))}
        table |= {3: longs(*steps), 4: longs(*edges), 5: I32(1)}
        yield Case(
            f'hlo-reduce_window-{name.lower()}',
            'STABLEHLO_REDUCE_WINDOW',
            [x, Tensor('f32', (), [first])],
            [reduce(padded)],
            options_2=(WINDOW, table),
            body=Body(f'STABLEHLO_{name}', 'f32'),
        )
        number = {'ADD': 1, 'MULTIPLY': 2, 'MINIMUM': 3, 'MAXIMUM': 4}[name]
        lists = [const('i64', (3,), values) for values in (sizes, strides, steps)]
        yield Case(
            f'reduce_window-{name.lower()}',
            'REDUCE_WINDOW',
            [x, const('f32', (), [first]), *lists],
            [reduce(x)],
            options_2=(OLD_WINDOW, {0: I32(number)}),
        )


def cases():
    for family in (unary, binary, choices, moves, gathers, products, padding, reductions, windows):
        yield from family()
