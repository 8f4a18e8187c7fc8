#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""gen_yolox_nano.py [--float] FILE.tflite|FILE.onnx: writes YOLOX-nano for pictures of 416 x 416.

A TFLite file has INT8 weights with a scale per channel and float activations (dynamic range), or
float weights with --float. An ONNX file has the same network with operators between QuantizeLinear
and DequantizeLinear, as tools of static quantisation write it. Weights are random.
"""
import random
import sys
from pathlib import Path

import onnx_writer
from gen_colors import operator, subgraph, tensor
from tflite_writer import I8, I32, U32, U8, F32, Vector, flatbuffer, floats, ints

SIZE, CLASSES = 416, 80


class Weights:
    """Random weights of convolutions: integers, and a scale for each channel."""

    def __init__(self):
        self.numbers = random.Random(1)

    def draw(self, channels, depth):
        integers = [
            max(-127, min(127, round(self.numbers.gauss(0, 40)))) for _ in range(channels * depth)
        ]
        for channel in range(channels):
            integers[channel * depth] = 127
        scales = [self.numbers.uniform(0.5, 1.5) * 0.02 / depth**0.5 for _ in range(channels)]
        return integers, scales, [self.numbers.gauss(0, 0.5) for _ in range(channels)]


class TFLite:
    """Writes operators of a TFLite file. A value is (index of the tensor, size, channels)."""

    CODES = {
        'add': 0, 'concat': 2, 'conv': 3, 'depthwise': 4, 'sigmoid': 14, 'max_pool': 17, 'mul': 18,
        'reshape': 22, 'space_to_depth': 26, 'nearest': 97,
    }  # fmt: skip
    NAMES = list(CODES)

    def __init__(self, is_float):
        self.weights, self.is_float = Weights(), is_float
        self.buffers, self.tensors, self.operators = [{}], [], []
        self.x = self.value(SIZE, 3)

    def add_tensor(self, shape, kind=0, data=None):
        if data is not None:
            self.buffers.append({0: data})
        buffer = len(self.buffers) - 1 if data is not None else 0
        self.tensors.append(tensor(f't{len(self.tensors)}', kind, shape, buffer))
        return len(self.tensors) - 1

    def value(self, size, channels):
        return self.add_tensor((1, size, size, channels)), size, channels

    def run(self, name, inputs, output, kind=0, options=None):
        code = self.NAMES.index(name)
        self.operators.append(operator(code, inputs, [output[0]], kind, options or {}))
        return output

    def focus(self, x):
        y = self.value(x[1] // 2, 4 * x[2])
        return self.run('space_to_depth', [x[0]], y, 19, {0: I32(2)})

    def conv(self, x, channels, kernel, stride, is_depthwise):
        depth = kernel * kernel * (1 if is_depthwise else x[2])
        integers, scales, bias = self.weights.draw(channels, depth)
        shape, axis = (channels, kernel, kernel, x[2]), 0
        if is_depthwise:
            shape, axis = (1, kernel, kernel, channels), 3
            integers = [integers[c * depth + i] for i in range(depth) for c in range(channels)]
        each = [channels, depth][axis == 0]
        if self.is_float:
            scale = [scales[i % each if axis else i // each] for i in range(len(integers))]
            data = floats(*[a * b for a, b in zip(integers, scale)]).bytes
            w = self.add_tensor(shape, 0, data)
        else:
            w = self.add_tensor(shape, 9, Vector('b', integers).bytes)
            zeros = Vector('q', [0] * channels)
            self.tensors[w][4] = {2: floats(*scales), 3: zeros, 6: I32(axis)}
        b = self.add_tensor((channels,), 0, floats(*bias).bytes)
        y = self.value(x[1] // stride, channels)
        if is_depthwise:
            options = {0: I8(0), 1: I32(stride), 2: I32(stride), 3: I32(1)}
            return self.run('depthwise', [x[0], w, b], y, 2, options)
        options = {0: I8(0), 1: I32(stride), 2: I32(stride)}
        return self.run('conv', [x[0], w, b], y, 1, options)

    def sigmoid(self, x):
        return self.run('sigmoid', [x[0]], self.value(x[1], x[2]))

    def mul(self, a, b):
        return self.run('mul', [a[0], b[0]], self.value(a[1], a[2]), 21)

    def plus(self, a, b):
        return self.run('add', [a[0], b[0]], self.value(a[1], a[2]), 11)

    def concat(self, *parts):
        y = self.value(parts[0][1], sum(part[2] for part in parts))
        return self.run('concat', [part[0] for part in parts], y, 10, {0: I32(3)})

    def max_pool(self, x, kernel):
        sizes = {1: I32(1), 2: I32(1), 3: I32(kernel), 4: I32(kernel)}
        return self.run('max_pool', [x[0]], self.value(x[1], x[2]), 5, {0: I8(0), **sizes})

    def upsample(self, x):
        size = self.add_tensor((2,), 2, ints(2 * x[1], 2 * x[1]).bytes)
        return self.run('nearest', [x[0], size], self.value(2 * x[1], x[2]), 74)

    def finish(self, path, levels):
        rows, count = [], 0
        for index, size, channels in levels:
            shape = ints(1, size * size, channels)
            y = (self.add_tensor((1, size * size, channels)),)
            to = self.add_tensor((3,), 2, shape.bytes)
            rows.append(self.run('reshape', [index, to], y, 17, {0: shape})[0])
            count += size * size
        y = (self.add_tensor((1, count, 5 + CLASSES)),)
        self.run('concat', rows, y, 10, {0: I32(1)})
        main = subgraph('main', self.tensors, [self.x[0]], [y[0]], self.operators)
        codes = [{0: I8(code), 2: I32(1), 3: I32(code)} for code in self.CODES.values()]
        root = {0: U32(3), 1: codes, 2: [main], 3: 'yolox_nano', 4: self.buffers}
        Path(path).write_bytes(flatbuffer(root, b'TFL3'))


class Onnx(onnx_writer.Graph):
    """Writes nodes of an ONNX file. A value is (name, size, channels)."""

    # Scale and zero point of sums, and of results of sigmoid functions.
    SUM, SHARE = (12 / 255, 128), (1 / 255, 0)

    def __init__(self):
        super().__init__()
        self.weights = Weights()
        self.x = self.requantize('x', self.SHARE), SIZE, 3

    def requantize(self, x, meaning):
        ends = [
            self.const(onnx_writer.FLOAT, [], [meaning[0]]),
            self.const(onnx_writer.UINT8, [], [meaning[1]]),
        ]
        return self.node('DequantizeLinear', [self.node('QuantizeLinear', [x] + ends)] + ends)

    def focus(self, x):
        return self.node('SpaceToDepth', [x[0]], blocksize=2), x[1] // 2, 4 * x[2]

    def conv(self, x, channels, kernel, stride, is_depthwise):
        inputs = 1 if is_depthwise else x[2]
        depth = kernel * kernel * inputs
        integers, scales, bias = self.weights.draw(channels, depth)
        w = [
            self.const(onnx_writer.INT8, [channels, inputs, kernel, kernel], integers),
            self.const(onnx_writer.FLOAT, [channels], scales),
            self.const(onnx_writer.INT8, [channels], [0] * channels),
        ]
        each = [scale * self.SUM[0] for scale in scales]
        b = [
            self.const(onnx_writer.INT32, [channels], [round(a / s) for a, s in zip(bias, each)]),
            self.const(onnx_writer.FLOAT, [channels], each),
            self.const(onnx_writer.INT32, [channels], [0] * channels),
        ]
        before = (kernel - stride) // 2
        constants = [self.node('DequantizeLinear', each, axis=0) for each in (w, b)]
        y = self.node(
            'Conv',
            [x[0]] + constants,
            kernel_shape=[kernel] * 2,
            strides=[stride] * 2,
            pads=[before] * 2 + [kernel - stride - before] * 2,
            group=x[2] if is_depthwise else 1,
        )
        return self.requantize(y, self.SUM), x[1] // stride, channels

    def sigmoid(self, x):
        return self.requantize(self.node('Sigmoid', [x[0]]), self.SHARE), x[1], x[2]

    def mul(self, a, b):
        return self.requantize(self.node('Mul', [a[0], b[0]]), self.SUM), a[1], a[2]

    def plus(self, a, b):
        return self.requantize(self.node('Add', [a[0], b[0]]), self.SUM), a[1], a[2]

    def concat(self, *parts):
        y = self.node('Concat', [part[0] for part in parts], axis=1)
        return self.requantize(y, self.SUM), parts[0][1], sum(part[2] for part in parts)

    def max_pool(self, x, kernel):
        y = self.node('MaxPool', [x[0]], kernel_shape=[kernel] * 2, pads=[kernel // 2] * 4)
        return self.requantize(y, self.SUM), x[1], x[2]

    def upsample(self, x):
        scales = self.const(onnx_writer.FLOAT, [4], [1, 1, 2, 2])
        y = self.node('Resize', [x[0], '', scales], mode='nearest')
        return self.requantize(y, self.SUM), 2 * x[1], x[2]

    def finish(self, path, levels):
        rows = [
            self.node('Reshape', [name, self.const(onnx_writer.INT64, [3], [1, channels, -1])])
            for name, _, channels in levels
        ]
        y = self.node('Concat', rows, axis=2)
        count = sum(size * size for _, size, _ in levels)
        self.write(path, 'yolox_nano', [1, 3, SIZE, SIZE], y, [1, 5 + CLASSES, count])


def conv(graph, x, channels, kernel=1, stride=1, is_depthwise=False):
    y = graph.conv(x, channels, kernel, stride, is_depthwise)
    return graph.mul(y, graph.sigmoid(y))


def separable(graph, x, channels, stride=1):
    return conv(graph, conv(graph, x, x[2], 3, stride, True), channels)


def stage(graph, x, channels, count, has_shortcut=True):
    """A layer of two branches, of which one has `count` bottlenecks."""
    a, b = conv(graph, x, channels // 2), conv(graph, x, channels // 2)
    for _ in range(count):
        y = separable(graph, conv(graph, a, channels // 2), channels // 2)
        a = graph.plus(a, y) if has_shortcut else y
    return conv(graph, graph.concat(a, b), channels)


def backbone(graph):
    x = conv(graph, graph.focus(graph.x), 16, 3)
    x = stage(graph, separable(graph, x, 32, 2), 32, 1)
    small = stage(graph, separable(graph, x, 64, 2), 64, 3)
    middle = stage(graph, separable(graph, small, 128, 2), 128, 3)
    x = conv(graph, separable(graph, middle, 256, 2), 128)
    x = conv(graph, graph.concat(x, *[graph.max_pool(x, kernel) for kernel in (5, 9, 13)]), 256)
    return small, middle, stage(graph, x, 256, 1, False)


def neck(graph, small, middle, large):
    top = conv(graph, large, 128)
    x = stage(graph, graph.concat(graph.upsample(top), middle), 128, 1, False)
    side = conv(graph, x, 64)
    first = stage(graph, graph.concat(graph.upsample(side), small), 64, 1, False)
    x = graph.concat(separable(graph, first, 64, 2), side)
    second = stage(graph, x, 128, 1, False)
    x = graph.concat(separable(graph, second, 128, 2), top)
    return first, second, stage(graph, x, 256, 1, False)


def head(graph, x):
    x = conv(graph, x, 64)
    classes = separable(graph, separable(graph, x, 64), 64)
    boxes = separable(graph, separable(graph, x, 64), 64)
    return graph.concat(
        graph.conv(boxes, 4, 1, 1, False),
        graph.sigmoid(graph.conv(boxes, 1, 1, 1, False)),
        graph.sigmoid(graph.conv(classes, CLASSES, 1, 1, False)),
    )


def main():
    path = sys.argv[-1]
    graph = Onnx() if path.endswith('.onnx') else TFLite('--float' in sys.argv)
    graph.finish(path, [head(graph, level) for level in neck(graph, *backbone(graph))])


if __name__ == '__main__':
    main()
