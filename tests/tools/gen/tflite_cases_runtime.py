# SPDX-License-Identifier: Apache-2.0
"""Cases whose expected values TFLite's runtimes computed, because their kernels do not follow the
definition: quantised LSTMs, and weights of UINT8 with inputs of floats.

The runtimes are tfjs-tflite 0.0.1-alpha.10 (all cases) and LiteRT.js 2.5.3 (weights; it has no
variable tensors).
"""
from tflite_case import Case, Tensor, const, noise, single, variable
from tflite_writer import F32, I8, I32

STEP = {'lsb': 1, 'rtol': 0, 'atol': 0}
# The runtimes quantise the inputs, which moves results by up to 0.03.
DYNAMIC = {'lsb': 0, 'rtol': 0, 'atol': 0.05}


def integers(size, seed, low=-127, high=127):
    return [round(low + (high - low) * (x + 1) / 2) for x in noise(size, seed)]


def lstm(id, projected, zero, results):
    """A quantised LSTM over three steps. `zero` is the zero point of the result before the
    projection, which the kernels subtract where an affine quantisation adds it."""
    batch, steps, inputs, units, outputs = 2, 3, 5, 4, 3 if projected else 4
    x = Tensor('i8', (batch, steps, inputs), integers(30, 1, -128, 127), 0.02, -11)
    scales = [0.012 + 0.001 * i for i in range(4)]
    weights = [
        const('i8', (units, inputs), integers(20, 10 + i), scale) for i, scale in enumerate(scales)
    ]
    recurrent = [
        const('i8', (units, outputs), integers(units * outputs, 20 + i), 0.009 + 0.001 * i)
        for i in range(4)
    ]
    biases = [
        const('i32', (units,), integers(units, 30 + i, -3000, 3000), 0.02 * scale)
        for i, scale in enumerate(scales)
    ]
    projection = [None, None]
    if projected:
        data = integers(outputs * units, 40)
        bias = integers(outputs, 41, -5000, 5000)
        projection = [
            const('i8', (outputs, units), data, 0.008),
            const('i32', (outputs,), bias, 0.008 * 0.0065),
        ]
    states = [variable('i8', (batch, outputs), 0.007, 6), variable('i16', (batch, units), 2**-11)]
    peepholes, norms = [None] * 3, [None] * 4
    sums = [Tensor('f32', ())] * 4
    result = Tensor('i8', (), None, 0.0065, zero)
    y = Tensor('i8', (batch, steps, outputs), results, 0.007, 6)
    return Case(
        id,
        'UNIDIRECTIONAL_SEQUENCE_LSTM',
        [x, *weights, *recurrent, *peepholes, *biases, *projection, *states, *norms],
        [y],
        options=(71, {0: I8(4), 1: F32(0), 2: F32(0)}),
        intermediates=[*sums, result],
        version=3,
        tolerance=STEP,
    )


def lstms():
    results = [
        -41, 40, 9, 91, 34, -43, 73, -73, -40, 15, 9, 5, 9, 11, 35, 8, 121, -9, 6, 101, 10, -36,
        19, 6,
    ]
    yield lstm('int8-lstm', False, -9, results)
    results = [12, 84, 1, -24, 69, 43, 6, 73, 10, -14, 45, 43, -44, 31, 7, -24, 31, -13]
    yield lstm('int8-lstm-projection', True, -120, results)


def unsigned_weights():
    """The bytes are those of signed numbers, and the zero point is ignored."""
    data = integers(5 * 36, 3, 0, 255)
    bias = const('f32', (5,), [single(0.1 * i) for i in range(5)])
    w = const('u8', (5, 24), data[:120], 0.004, 128)
    x = Tensor('f32', (2, 24), noise(48, 7))
    y = Tensor('f32', (2, 5), FULLY_CONNECTED)
    options = (8, {})
    yield Case(
        'weights-unsigned-full',
        'FULLY_CONNECTED',
        [x, w, bias],
        [y],
        options=options,
        tolerance=DYNAMIC,
    )
    w = const('u8', (5, 3, 3, 4), data, 0.004, 0)
    x = Tensor('f32', (1, 3, 2, 4), noise(24, 8))
    y = Tensor('f32', (1, 3, 2, 5), CONVOLUTION)
    options = (1, {0: I8(0), 1: I32(1), 2: I32(1)})
    yield Case(
        'weights-unsigned-conv', 'CONV_2D', [x, w, bias], [y], options=options, tolerance=DYNAMIC
    )


FULLY_CONNECTED = [
    -1.4421, -0.6807, 0.1122, -1.5082, 0.715, -0.0381, -0.034, -0.5956, -0.4096, 1.4716,
]
CONVOLUTION = [
    -0.1336, -0.298, 0.4293, -0.0163, -0.3725, 1.5258, 0.8514, -0.9439, 0.9389, 0.4536, 0.0022,
    1.5379, 0.0347, 0.829, -0.263, 1.4536, 2.3814, -0.5413, 1.779, 1.4519, 1.3092, 0.4964, 0.4837,
    1.221, -0.1985, -0.6239, 0.5854, 0.5414, 1.1299, 0.352,
]


def cases():
    yield from lstms()
    yield from unsigned_weights()
