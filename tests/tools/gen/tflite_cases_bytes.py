# SPDX-License-Identifier: Apache-2.0
"""Cases of quantised operators: functions of one number over all bytes, arithmetic on odd shapes
with the extreme bytes of each type, and operators that move bytes.

The expected byte is the nearest one to the real result. The runtimes round in fixed point, so that
a result may differ by one step.
"""
import itertools
import math

from tflite_case import Case, Tensor, at, const, places, single
from tflite_writer import F32, I8, I32, U8

STEP = {'lsb': 1, 'rtol': 1e-5, 'atol': 1e-6}
EXACT = {'lsb': 0, 'rtol': 0, 'atol': 0}


def sigmoid(x):
    return 1 / (1 + math.exp(-x))


def hard_swish(x):
    return x * min(max(x + 3, 0), 6) / 6


def gelu(x):
    return x / 2 * (1 + math.erf(x / math.sqrt(2)))


def near(x):
    """To the nearest integer, ties to even."""
    return float(round(x))


# Function, scale and zero point of the input, of the output.
UNARY = {
    'ABS': (abs, (0.05, -3), (0.05, -10)),
    'NEG': (lambda x: -x, (0.05, -3), (0.06, 9)),
    'EXP': (math.exp, (0.05, -3), (5.0, -128)),
    'SQUARE': (lambda x: x * x, (0.05, -3), (0.3, -128)),
    'SIN': (math.sin, (0.05, -3), (1 / 128, 0)),
    'COS': (math.cos, (0.05, -3), (1 / 128, 0)),
    'TANH': (math.tanh, (0.04, 11), (1 / 128, 0)),
    'LOGISTIC': (sigmoid, (0.07, -11), (1 / 256, -128)),
    'HARD_SWISH': (hard_swish, (0.06, 5), (0.05, -100)),
    'ELU': (lambda x: x if x > 0 else math.expm1(x), (0.05, -3), (0.04, -50)),
    'RELU': (lambda x: max(x, 0), (0.05, -3), (0.03, -128)),
    'RELU6': (lambda x: min(max(x, 0), 6), (0.07, -3), (6 / 255, -128)),
    'RELU_N1_TO_1': (lambda x: min(max(x, -1), 1), (0.05, -3), (1 / 128, 0)),
    'RELU_0_TO_1': (lambda x: min(max(x, 0), 1), (0.05, -3), (1 / 256, -128)),
    'FLOOR': (math.floor, (0.3, -3), (0.5, 0)),
    'CEIL': (math.ceil, (0.3, -3), (0.5, 0)),
    'ROUND': (near, (0.3, -3), (0.5, 0)),
}
# Functions of numbers of 0 and more: the zero point of the input is its least byte.
POSITIVE = {
    'SQRT': (math.sqrt, (0.05, -128), (0.02, -128)),
    'RSQRT': (lambda x: 1 / math.sqrt(x) if x else math.inf, (0.05, -128), (0.04, -128)),
    'LOG': (lambda x: math.log(x) if x else -math.inf, (0.05, -128), (0.04, 0)),
}


def tables():
    for name, (function, source, target) in {**UNARY, **POSITIVE}.items():
        for kind in ('i8', 'u8'):
            shift = 128 if kind == 'u8' else 0
            data = [i - 128 + shift for i in range(256)] + [7 + shift]
            x = Tensor(kind, (1, 257, 1), data, source[0], source[1] + shift)
            y = Tensor(kind, (1, 257, 1), data, target[0], target[1] + shift)
            y = y.stored([function(v) for v in x.real()])
            yield Case(f'bytes-{name.lower()}-{kind}', name, [x], [y], tolerance=STEP)
    data = [i - 128 for i in range(256)]
    for name, options, function in (
        ('LEAKY_RELU', (75, {0: F32(0.125)}), lambda x: x if x > 0 else x / 8),
        ('GELU', (116, {}), gelu),
    ):
        x = Tensor('i8', (256,), data, 0.05, 13)
        y = Tensor('i8', (256,), data, 0.04, -60).stored([function(v) for v in x.real()])
        id = f'bytes-{name.lower()}'
        yield Case(id, name, [x], [y], options=options, tolerance=STEP)


def arithmetic():
    functions = {
        'ADD': (11, lambda a, b: a + b),
        'SUB': (28, lambda a, b: a - b),
        'MUL': (21, lambda a, b: a * b),
    }
    ends = [0, 1, 2, 5, 17, 64, 127, 128, 129, 200, 250, 254, 255]
    for kind, (name, (number, function)) in itertools.product(('i8', 'u8'), functions.items()):
        shift = 0 if kind == 'u8' else -128
        pairs = [(a + shift, b + shift) for a, b in itertools.product(ends, repeat=2)]
        x = Tensor(kind, (1, 13, 13), [a for a, _ in pairs], 0.021, 100 + shift)
        y = Tensor(kind, (1, 13, 13), [b for _, b in pairs], 0.013, 140 + shift)
        z = Tensor(kind, (1, 13, 13), [0] * 169, 0.017, 120 + shift)
        z = z.stored([function(a, b) for a, b in zip(x.real(), y.real())])
        options = (number, {})
        id = f'bytes-{name.lower()}-{kind}'
        yield Case(id, name, [x, y], [z], options=options, tolerance=STEP)
        # One operand is broadcast, and an activation cuts the result.
        row = Tensor(kind, (13,), [b + shift for b in ends], 0.013, 140 + shift)
        cut = [min(max(function(a, b), 0), 6) for a, b in zip(x.real(), row.real() * 13)]
        options = (number, {0: I8(3)})
        id = f'bytes-{name.lower()}-{kind}-relu6'
        yield Case(id, name, [x, row], [z.stored(cut)], options=options, tolerance=STEP)


def reductions():
    x = Tensor('i8', (2, 5, 3), [(i * 37) % 256 - 128 for i in range(30)], 0.05, -7)
    axes = const('i32', (2,), [2, -3])

    def group(row):
        return [v for p, v in zip(places(x.shape), x.real()) if p[1] == row]

    functions = {
        'MEAN': lambda v: sum(v) / len(v),
        'SUM': sum,
        'REDUCE_MAX': max,
        'REDUCE_MIN': min,
    }
    for name, function in functions.items():
        target = (0.3, 4) if name == 'SUM' else (0.05, -7)
        for keep, shape in ((0, (5,)), (1, (1, 5, 1))):
            y = Tensor('i8', shape, [0] * 5, *target).stored([function(group(i)) for i in range(5)])
            options = (27, {0: U8(keep)})
            id = f'bytes-{name.lower()}-{keep}'
            yield Case(id, name, [x, axes], [y], options=options, tolerance=STEP)

    # The result has another scale than the operand.
    y = Tensor('i8', (5,), [0] * 5, 0.03, 11)
    y = y.stored([sum(group(i)) / len(group(i)) for i in range(5)])
    yield Case('bytes-mean-scale', 'MEAN', [x, axes], [y], options=(27, {}), tolerance=STEP)


def products():
    """A product of an odd depth whose sums come from the extreme bytes."""
    depth, units = 19, 5
    x = Tensor('i8', (3, depth), [-128 if i % 3 else 127 for i in range(3 * depth)], 0.02, -1)
    w = const('i8', (units, depth), [127 if i % 2 else -127 for i in range(units * depth)], 0.01, 0)
    bias = const('i32', (units,), [1000, -1000, 0, 123456, -123456], 0.0002, 0)
    a, b, c = x.real(), w.real(), bias.real()
    y = Tensor('i8', (3, units), [0] * 15, 0.4, 3)
    y = y.stored(
        sum(a[i * depth + k] * b[j * depth + k] for k in range(depth)) + c[j]
        for i in range(3)
        for j in range(units)
    )
    yield Case('bytes-full', 'FULLY_CONNECTED', [x, w, bias], [y], options=(8, {}), tolerance=STEP)
    # The constants are in another file.
    yield Case(
        'bytes-full-external',
        'FULLY_CONNECTED',
        [x, w, bias],
        [y],
        options=(8, {}),
        tolerance=STEP,
        weights_file='bytes-full.bin',
    )


def weight_only():
    """Products of floats with integer weights, of a depth that is no multiple of 16."""
    depth, units = 41, 33
    size = depth * units
    kinds = {
        'i8': ('i8', [(i * 37) % 256 - 128 for i in range(size)], 0.01, 0),
        'i8-zero': ('i8', [(i * 37) % 256 - 128 for i in range(size)], 0.01, -7),
        # With inputs of floats, these bytes are signed numbers, and the zero point is ignored.
        'u8': ('u8', [(i * 37) % 256 for i in range(size)], 0.01, 131),
        'i8-channels': (
            'i8',
            [(i * 37) % 256 - 128 for i in range(size)],
            [0.001 * (i + 1) for i in range(units)],
            0,
        ),
        'i4': ('i4', [(i * 7) % 16 - 8 for i in range(size)], 0.1, 0),
        'i4-channels': (
            'i4',
            [(i * 7) % 16 - 8 for i in range(size)],
            [0.01 * (i + 1) for i in range(units)],
            0,
        ),
    }
    for name, (kind, data, scale, zero) in kinds.items():
        w = const(kind, (units, depth), data, scale, zero)
        weights = w.real()
        if kind == 'u8':
            weights = [single((i - 256 if i > 127 else i) * single(scale)) for i in data]
        bias = const('f32', (units,), [single(0.1 * i - 1) for i in range(units)])
        for rows, cut in ((1, False), (5, True)):
            data = [single(i % 11 / 7 - 0.5) for i in range(rows * depth)]
            x = Tensor('f32', (rows, depth), data)
            a, b, c = x.real(), weights, bias.real()
            sums = [
                sum(a[i * depth + k] * b[j * depth + k] for k in range(depth)) + c[j]
                for i in range(rows)
                for j in range(units)
            ]
            y = Tensor('f32', (rows, units), [min(max(v, 0), 6) if cut else v for v in sums])
            options = (8, {0: I8(3)} if cut else {})
            id = f'weights-{name}-{rows}'
            yield Case(
                id,
                'FULLY_CONNECTED',
                [x, w, bias],
                [y],
                options=options,
                tolerance={'lsb': 0, 'rtol': 1e-5, 'atol': 1e-4},
            )


def windowed(x, w, bias, stride, depthwise):
    """The real results of a convolution with padding SAME, and their shape."""
    _, height, width, channels = x.shape
    outputs, tall, wide = (w.shape[3] if depthwise else w.shape[0]), w.shape[1], w.shape[2]
    shape = (1, -(-height // stride), -(-width // stride), outputs)
    top = max((shape[1] - 1) * stride + tall - height, 0) // 2
    left = max((shape[2] - 1) * stride + wide - width, 0) // 2
    a, b, c = x.real(), w.real(), bias.real()
    results = []
    for _, row, column, out in places(shape):
        total = c[out]
        for i, j in itertools.product(range(tall), range(wide)):
            p, q = row * stride + i - top, column * stride + j - left
            if not (0 <= p < height and 0 <= q < width):
                continue
            if depthwise:
                total += a[at(x.shape, (0, p, q, out))] * b[at(w.shape, (0, i, j, out))]
                continue
            for k in range(channels):
                total += a[at(x.shape, (0, p, q, k))] * b[at(w.shape, (out, i, j, k))]
        results.append(total)
    return shape, results


def windows():
    """Convolutions whose weights have a zero point, at the ends of the range of bytes."""
    # Name, type, zero point of the weights, size of x, outputs, window, stride.
    rows = (
        ('1x1', 'u8', 100, (5, 7, 16), 24, 1, 1),
        ('1x1-wide', 'u8', 155, (6, 8, 64), 33, 1, 1),
        ('1x1', 'i8', 0, (5, 7, 16), 24, 1, 1),
        ('1x1', 'i8', 0, (2, 3, 31), 145, 1, 1),
        ('3x3', 'u8', 60, (9, 8, 3), 17, 3, 2),
        ('3x3', 'i8', 0, (9, 8, 3), 17, 3, 2),
        ('depthwise', 'u8', 40, (7, 9, 24), 0, 3, 1),
        ('depthwise', 'u8', 201, (7, 40, 70), 0, 3, 2),
        ('depthwise', 'i8', 0, (4, 5, 9), 0, 5, 1),
        ('depthwise', 'i8', 0, (4, 80, 33), 0, 3, 1),
        ('row', 'u8', 130, (1, 61, 5), 18, (1, 5), 1),
        ('row', 'i8', 0, (1, 62, 7), 3, (1, 3), 2),
    )
    for name, kind, zero, size, outputs, window, stride in rows:
        tall, wide = window if isinstance(window, tuple) else (window, window)
        depthwise = outputs == 0
        shift = 0 if kind == 'u8' else -128
        data = [(i * 89) % 256 + shift for i in range(math.prod(size))]
        x = Tensor(kind, (1, *size), data, 0.02, 119 + shift)
        shape = (1 if depthwise else outputs, tall, wide, size[2])
        data = [(i * 53) % 256 + shift for i in range(math.prod(shape))]
        count = size[2] if depthwise else outputs
        scale = 0.003
        if outputs == 145:  # a scale for each channel, more than a panel has
            scale = [0.0005 * (1 + i % 11) for i in range(outputs)]
        w = const(kind, shape, data, scale, zero)
        products = [0.02 * s for s in scale] if isinstance(scale, list) else 0.02 * scale
        bias = const('i32', (count,), [i * 700 - 5000 for i in range(count)], products, 0)
        shape, results = windowed(x, w, bias, stride, depthwise)
        step = 2 * max(abs(v) for v in results) / 255
        y = Tensor(kind, shape, [0] * len(results), step, 128 + shift).stored(results)
        options = (2, {0: I8(0), 1: I32(stride), 2: I32(stride), 3: I32(1)})
        if not depthwise:
            options = (1, {0: I8(0), 1: I32(stride), 2: I32(stride)})
        id = f'bytes-{name}-{kind}-{size[2]}'
        operator = 'DEPTHWISE_CONV_2D' if depthwise else 'CONV_2D'
        yield Case(id, operator, [x, w, bias], [y], options=options, tolerance=STEP)


def moves():
    data = [(i * 53) % 256 - 128 for i in range(2 * 3 * 5)]
    x = Tensor('i8', (2, 3, 5), data, 0.1, 5)
    perm = const('i32', (3,), [2, 0, 1])
    moved = [data[at(x.shape, (p[1], p[2], p[0]))] for p in places((5, 2, 3))]
    y = Tensor('i8', (5, 2, 3), moved, 0.1, 5)
    yield Case('bytes-transpose', 'TRANSPOSE', [x, perm], [y], tolerance=EXACT)
    edges = const('i32', (3, 2), [0, 1, 2, 0, 1, 3])
    shape = (3, 5, 9)

    def inside(p):
        q = (p[0], p[1] - 2, p[2] - 1)
        fits = all(0 <= v < n for v, n in zip(q, x.shape))
        return data[at(x.shape, q)] if fits else 5

    y = Tensor('i8', shape, [inside(p) for p in places(shape)], 0.1, 5)
    yield Case('bytes-pad', 'PAD', [x, edges], [y], tolerance=EXACT)
    y = Tensor('i8', (2, 6, 5), data[:15] * 2 + data[15:] * 2, 0.1, 5)
    options = (10, {0: I32(1)})
    id = 'bytes-concatenation'
    yield Case(id, 'CONCATENATION', [x, x], [y], options=options, tolerance=EXACT)
    pixels = [255, 0, 7, 9, 1, 254, 128, 127, 3, 200, 100, 50]
    picture = Tensor('u8', (1, 3, 4, 1), pixels, 0.1, 128)
    levels = picture.real()
    for name, kind in (('MAX_POOL_2D', max), ('AVERAGE_POOL_2D', lambda v: sum(v) / len(v))):
        taps = [
            [levels[at(picture.shape, (0, r + i, c + j, 0))] for i in (0, 1) for j in (0, 1)]
            for r in range(2)
            for c in range(3)
        ]
        y = Tensor('u8', (1, 2, 3, 1), [0] * 6, 0.1, 128).stored([kind(v) for v in taps])
        options = (5, {0: I8(1), 1: I32(1), 2: I32(1), 3: I32(2), 4: I32(2)})
        id = f'bytes-{name.lower()}'
        yield Case(id, name, [picture], [y], options=options, tolerance=STEP)


def halves():
    """Means of an even number of bytes and resizing to twice the size, which give exact halves."""
    data = [(i * 73 + i // 11) % 256 for i in range(6 * 8 * 3)]
    x = Tensor('u8', (1, 6, 8, 3), data, 0.037, 93)
    v = x.real()
    # Windows have 14 pixels. If a sum divided by 14 is exactly a half, the sum times the reciprocal
    # of 14 is not, in floats.
    options = (5, {0: I8(1), 1: I32(1), 2: I32(1), 3: I32(7), 4: I32(2)})
    pooled = [
        sum(v[at(x.shape, (0, p[1] + i, p[2] + j, p[3]))] for i in (0, 1) for j in range(7)) / 14
        for p in places((1, 5, 2, 3))
    ]
    y = Tensor('u8', (1, 5, 2, 3), [0] * 30, 0.037, 93).stored(pooled)
    id = 'bytes-average_pool-halves'
    yield Case(id, 'AVERAGE_POOL_2D', [x], [y], options=options, tolerance=STEP)
    means = [
        sum(v[at(x.shape, (0, i, p[1], p[2]))] for i in range(6)) / 6 for p in places((1, 8, 3))
    ]
    y = Tensor('u8', (1, 8, 3), [0] * 24, 0.037, 93).stored(means)
    axes = const('i32', (1,), [1])
    yield Case(
        'bytes-mean-halves', 'MEAN', [x, axes], [y], options=(27, {0: U8(0)}), tolerance=STEP
    )

    def mixed(p):
        rows, columns = [], []
        for axis, list_ in ((1, rows), (2, columns)):
            place = (p[axis] + 0.5) / 2 - 0.5
            low = math.floor(place)
            for i, weight in ((low, low + 1 - place), (low + 1, place - low)):
                list_.append((min(max(i, 0), x.shape[axis] - 1), weight))
        return sum(
            v[at(x.shape, (0, i, j, p[3]))] * a * b for i, a in rows for j, b in columns
        )

    shape = (1, 12, 16, 3)
    y = Tensor('u8', shape, [0] * 576, 0.037, 93).stored([mixed(p) for p in places(shape)])
    size = const('i32', (2,), [12, 16])
    options = (15, {3: U8(1)})
    id = 'bytes-resize_bilinear-halves'
    yield Case(id, 'RESIZE_BILINEAR', [x, size], [y], options=options, version=3, tolerance=STEP)


def softmax():
    x = Tensor('i8', (3, 7), [(i * 91) % 256 - 128 for i in range(21)], 0.08, 12)
    rows = [x.real()[7 * i : 7 * i + 7] for i in range(3)]
    data = []
    for row in rows:
        powers = [math.exp(0.5 * v) for v in row]
        data += [p / sum(powers) for p in powers]
    y = Tensor('i8', (3, 7), [0] * 21, 1 / 256, -128).stored(data)
    options = (9, {0: F32(0.5)})
    yield Case('bytes-softmax', 'SOFTMAX', [x], [y], options=options, tolerance=STEP)


def softmax16():
    """The softmax of 16-bit integers: LiteRT, tfjs-tflite and TFLite Micro gave these numbers."""
    x = [
        7513, -14423, 30204, -24705, -16983, 30735, 1564, -5195, 10557, -20431, -2820, 15820,
        -21042, 14857, 17783, 6419, 3909, 23365, -30732, -18298, 18119, -32438, 11932, 3443,
        -14068, 19316, 10958, -2472, 10230, -18528, -14384, 4624, 9056, 29932, -2360, -11472,
        32052, -24386, 32748, -18516, 9408, 29189, -13066, -14145, -29365, -26947, 16603, -14582,
        4256, -2133, -8201, 4044, -8150, -25649, 4356, -3591, -19287, 26533, 13739, -9783,
        -23335, -12206, -16007, 32465, 7379, 28227, 25141, 14083, 11989, 12067, -16062, -24384,
        11841, -13042, 18756, 1068, 6373, 16133, 5123, 16323, -28037, 5795, 25742, 21546,
        30321, -242, 20897, -7351, 17387, -11983, -31671, 13975, -6138, -3798, 11974, -24395,
    ]
    y = [
        60, 1, 15286, 1, 1, 17402, 14, 3, 2390, 1, 91, 8638,
        1, 6828, 13948, 870, 209, 24171, 1, 1, 6716, 1, 1482, 187,
        8, 25761, 3347, 127, 2803, 2, 7, 713, 43, 7011, 3, 1,
        11764, 1, 13943, 1, 248, 31071, 2, 2, 2, 2, 1439, 2,
        9558, 2009, 457, 9076, 462, 7, 9794, 1407, 2, 6182, 272, 2,
        2, 2, 2, 26306, 131, 21181, 9971, 670, 402, 410, 1, 1,
        2564, 6, 13871, 185, 675, 7311, 497, 7658, 1, 53, 6923, 2485,
        21170, 12, 2121, 2, 19147, 15, 1, 8325, 61, 109, 5107, 1,
    ]
    x, y = Tensor('i16', (12, 8), x, 0.00024414), Tensor('i16', (12, 8), y, 1 / 32768)
    options = (9, {0: F32(1)})
    yield Case('int16-softmax', 'SOFTMAX', [x], [y], options=options, tolerance=EXACT)


def cases():
    families = (tables, arithmetic, reductions, products, weight_only, windows, moves)
    for family in families + (halves, softmax, softmax16):
        yield from family()
