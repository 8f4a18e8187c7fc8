#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""gen_selftest.py - computes what the known model of inferctl selftest answers, by the definitions
of its operators, in double precision, and prints it as in client/inferctl/selftest/known_model.c.
The weights and inputs are sixteenths, so that all values before the softmax are exact."""
import math
from itertools import product

SIZE, CHANNELS, FILTERS, CLASSES = 8, 3, 8, 10


def fill(count, seed, scale=1 / 16):
    """The same numbers as fill_values() of known_model.c."""
    return [((i * 37 + seed) % 17 - 8) * scale for i in range(count)]


def clip(value):
    return min(max(value, 0), 6)


def conv(x, size, channels, weights, biases, filters, kernel, stride, depthwise=False):
    """A convolution with SAME padding; x is a list in the order height, width, channels."""
    out = size // stride
    pad = max((out - 1) * stride + kernel - size, 0) // 2
    answer = []
    for row, column, f in product(range(out), range(out), range(filters)):
        total = biases[f]
        for i, j in product(range(kernel), range(kernel)):
            y, z = row * stride + i - pad, column * stride + j - pad
            if not (0 <= y < size and 0 <= z < size):
                continue
            for c in [f] if depthwise else range(channels):
                at = (i * kernel + j) * channels + c
                weight = weights[at] if depthwise else weights[at * filters + f]
                total += x[(y * size + z) * channels + c] * weight
        answer.append(total)
    return answer


def main():
    x = fill(SIZE * SIZE * CHANNELS, 5)
    weights = fill(9 * CHANNELS * FILTERS, 1)
    dense = conv(x, SIZE, CHANNELS, weights, fill(FILTERS, 2), FILTERS, 3, 2)
    dense = [clip(value) for value in dense]
    half = SIZE // 2
    deep = conv(dense, half, FILTERS, fill(9 * FILTERS, 3), fill(FILTERS, 4), FILTERS, 3, 1, True)
    deep = [clip(value) for value in deep]
    point = conv(deep, half, FILTERS, fill(FILTERS**2, 6), fill(FILTERS, 7), FILTERS, 1, 1)
    total = [a + b for a, b in zip(point, dense)]
    means = [sum(total[c::FILTERS]) / half**2 for c in range(FILTERS)]
    weights, biases = fill(FILTERS * CLASSES, 8, 1), fill(CLASSES, 9)
    logits = [
        biases[k] + sum(means[c] * weights[c * CLASSES + k] for c in range(FILTERS))
        for k in range(CLASSES)
    ]
    powers = [math.exp(value - max(logits)) for value in logits]
    for name, values in ('logits', logits), ('scores', [p / sum(powers) for p in powers]):
        print(name, ', '.join(f'{value:.9g}' for value in values))


main()
