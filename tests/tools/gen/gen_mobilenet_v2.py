#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""gen_mobilenet_v2.py [--float] FILE: writes MobileNet v2 as a quantised ONNX model.

Operators stand between QuantizeLinear and DequantizeLinear, as tools of static quantisation write
them: UINT8 activations, INT8 weights with a scale per channel. Weights are random. --float writes
the same network in floats.
"""
import random
import sys

from onnx_writer import FLOAT, INT8, INT32, UINT8, Graph

# Scale and zero point of what is cut at 6, and of sums.
CUT, SUM = (6 / 255, 0), (12 / 255, 128)


class Network(Graph):
    """What the network has beside a graph's nodes."""

    def __init__(self, quantized):
        super().__init__()
        self.numbers = random.Random(1)
        self.quantized = quantized

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
        w = [
            self.const(INT8, dims, weights),
            self.const(FLOAT, [channels], scales),
            self.const(INT8, [channels], [0] * channels),
        ]
        each = [scale * x_scale for scale in scales]
        b = [
            self.const(INT32, [channels], [round(bias[i] / each[i]) for i in range(channels)]),
            self.const(FLOAT, [channels], each),
            self.const(INT32, [channels], [0] * channels),
        ]
        return [self.node('DequantizeLinear', w, axis=0), self.node('DequantizeLinear', b, axis=0)]

    def conv(self, x, dims, x_is, y_is, stride=1, group=1):
        pad = dims[2] // 2
        y = self.node(
            'Conv',
            [x] + self.weight(dims, x_is[0]),
            kernel_shape=dims[2:],
            strides=[stride] * 2,
            pads=[pad] * 4,
            group=group,
        )
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


def main():
    graph = Network(sys.argv[1] != '--float')
    x = graph.conv(graph.requantize('x', CUT), [32, 3, 3, 3], CUT, CUT, 2)
    x = graph.block_of(x, 32, 16, 1, 1, CUT)
    channels = 16
    for filters, count, stride in (
        (24, 2, 2),
        (32, 3, 2),
        (64, 4, 2),
        (96, 3, 1),
        (160, 3, 2),
        (320, 1, 1),
    ):
        for i in range(count):
            x = graph.block_of(x, channels, filters, stride if i == 0 else 1, 6, SUM)
            channels = filters
    x = graph.conv(x, [1280, 320, 1, 1], SUM, CUT)
    x = graph.requantize(graph.node('GlobalAveragePool', [x]), CUT)
    x = graph.node('Flatten', [x], axis=1)
    x = graph.node('Gemm', [x] + graph.weight([1000, 1280], CUT[0]), transB=1)
    graph.write(sys.argv[-1], 'mobilenet_v2', [1, 3, 224, 224], graph.requantize(x, SUM), [1, 1000])


if __name__ == '__main__':
    main()
