#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""gen_mobilenet_v2.py [--float] FILE: writes MobileNet v2 as an ONNX model between QuantizeLinear and
DequantizeLinear, as tools of static quantisation do, with weights of no meaning: UINT8 activations, INT8
weights with a scale a channel. --float: the same network of floats. For measuring.
"""
import array
import random
import sys


def varint(value):
    value &= (1 << 64) - 1
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


def field(number, value):
    """A field of a message: bytes, text or an integer."""
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    if isinstance(value, str):
        value = value.encode()
    return varint(number << 3 | 2) + varint(len(value)) + value


FLOAT, UINT8, INT8, INT32 = 1, 2, 3, 6
CODES = {FLOAT: 'f', UINT8: 'B', INT8: 'b', INT32: 'i'}
# Scale and zero point of what is cut at 6, and of sums.
CUT, SUM = (6 / 255, 0), (12 / 255, 128)


class Graph:
    """Nodes and initialisers, as they are added."""

    def __init__(self, quantized):
        self.numbers = random.Random(1)
        self.quantized = quantized
        self.nodes, self.weights, self.count = [], [], 0

    def const(self, dtype, dims, values):
        name = f'c{len(self.weights)}'
        head = b''.join(field(1, dim) for dim in dims) + field(2, dtype) + field(8, name)
        self.weights.append(field(5, head + field(9, array.array(CODES[dtype], values).tobytes())))
        return name

    def node(self, op, inputs, **attributes):
        output = f'v{self.count}'
        self.count += 1
        body = b''.join(field(1, name) for name in inputs) + field(2, output) + field(4, op)
        for name, value in attributes.items():
            if isinstance(value, int):
                body += field(5, field(1, name) + field(3, value) + field(20, 2))
            else:
                numbers = b''.join(field(8, number) for number in value)
                body += field(5, field(1, name) + numbers + field(20, 7))
        self.nodes.append(field(1, body))
        return output

    def requantize(self, x, meaning):
        if not self.quantized:
            return x
        ends = [self.const(FLOAT, [], [meaning[0]]), self.const(UINT8, [], [meaning[1]])]
        return self.node('DequantizeLinear', [self.node('QuantizeLinear', [x] + ends)] + ends)

    def weight(self, dims, x_scale):
        """Weights and bias of a convolution or product whose first axis is the channels."""
        depth = 1
        for dim in dims[1:]:
            depth *= dim
        size, channels = depth * dims[0], dims[0]
        scales = [self.numbers.uniform(0.5, 1.5) * 0.03 / depth**0.5 for _ in range(channels)]
        weights = [min(max(round(self.numbers.gauss(0, 40)), -127), 127) for _ in range(size)]
        bias = [self.numbers.gauss(0.3, 0.5) for _ in range(channels)]
        if not self.quantized:
            floats = [weights[i] * scales[i // depth] for i in range(size)]
            return [self.const(FLOAT, dims, floats), self.const(FLOAT, [channels], bias)]
        w = [self.const(INT8, dims, weights), self.const(FLOAT, [channels], scales),
             self.const(INT8, [channels], [0] * channels)]
        each = [scale * x_scale for scale in scales]
        b = [self.const(INT32, [channels], [round(bias[i] / each[i]) for i in range(channels)]),
             self.const(FLOAT, [channels], each), self.const(INT32, [channels], [0] * channels)]
        return [self.node('DequantizeLinear', w, axis=0), self.node('DequantizeLinear', b, axis=0)]

    def conv(self, x, dims, x_is, y_is, stride=1, group=1):
        pad = dims[2] // 2
        y = self.node('Conv', [x] + self.weight(dims, x_is[0]), kernel_shape=dims[2:],
                      strides=[stride] * 2, pads=[pad] * 4, group=group)
        if y_is is CUT:
            y = self.node('Clip', [y, self.const(FLOAT, [], [0]), self.const(FLOAT, [], [6])])
        return self.requantize(y, y_is)

    def block_of(self, x, channels, filters, stride, expand, x_is):
        y, y_is, inner = x, x_is, channels * expand
        if expand > 1:
            y, y_is = self.conv(y, [inner, channels, 1, 1], y_is, CUT), CUT
        y = self.conv(y, [inner, 1, 3, 3], y_is, CUT, stride, inner)
        y = self.conv(y, [filters, inner, 1, 1], CUT, SUM)
        if stride == 1 and channels == filters:
            y = self.requantize(self.node('Add', [x, y]), SUM)
        return y


def port(number, name, dims):
    shape = b''.join(field(1, field(1, dim)) for dim in dims)
    return field(number, field(1, name) + field(2, field(1, field(1, FLOAT) + field(2, shape))))


def main():
    graph = Graph(sys.argv[1] != '--float')
    x = graph.conv(graph.requantize('x', CUT), [32, 3, 3, 3], CUT, CUT, 2)
    x = graph.block_of(x, 32, 16, 1, 1, CUT)
    channels = 16
    for filters, count, stride in ((24, 2, 2), (32, 3, 2), (64, 4, 2), (96, 3, 1), (160, 3, 2), (320, 1, 1)):
        for i in range(count):
            x = graph.block_of(x, channels, filters, stride if i == 0 else 1, 6, SUM)
            channels = filters
    x = graph.conv(x, [1280, 320, 1, 1], SUM, CUT)
    x = graph.requantize(graph.node('GlobalAveragePool', [x]), CUT)
    x = graph.node('Flatten', [x], axis=1)
    x = graph.node('Gemm', [x] + graph.weight([1000, 1280], CUT[0]), transB=1)
    y = graph.requantize(x, SUM)
    body = b''.join(graph.nodes) + field(2, 'mobilenet_v2') + b''.join(graph.weights)
    body += port(11, 'x', [1, 3, 224, 224]) + port(12, y, [1, 1000])
    with open(sys.argv[-1], 'wb') as file:
        file.write(field(1, 8) + field(7, body) + field(8, field(2, 13)))


if __name__ == '__main__':
    main()
