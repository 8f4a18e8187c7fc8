# SPDX-License-Identifier: Apache-2.0
"""Cases whose expected values TFLite's runtimes computed, because their kernels do not follow the
definition: weights of UINT8 with inputs of floats.

The runtimes are tfjs-tflite 0.0.1-alpha.10 and LiteRT.js 2.5.3.
"""
from tflite_case import Case, Tensor, const, noise, single
from tflite_writer import I8, I32

# The runtimes quantise the inputs, which moves results by up to 0.03.
DYNAMIC = {'lsb': 0, 'rtol': 0, 'atol': 0.05}


def integers(size, seed, low=-127, high=127):
    return [round(low + (high - low) * (x + 1) / 2) for x in noise(size, seed)]


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
    yield from unsigned_weights()
