#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""gen_resnet50.py FILE: writes ResNet-50 as an ONNX model of the usual size, 100 MB.

It is for measuring imports. Weights are random. Batch norm is folded, as in most served models.
"""
import sys

from onnx_writer import Graph


class Network(Graph):
    """What the network has beside a graph's nodes."""

    def conv(self, x, channels, filters, size, stride):
        inputs = [x, self.noise(filters, channels, size, size), self.noise(filters)]
        pad = size // 2
        return self.node(
            "Conv", inputs, kernel_shape=[size] * 2, strides=[stride] * 2, pads=[pad] * 4
        )

    def block_of(self, x, channels, width, stride):
        y = self.node("Relu", [self.conv(x, channels, width, 1, 1)])
        y = self.node("Relu", [self.conv(y, width, width, 3, stride)])
        y = self.conv(y, width, 4 * width, 1, 1)
        if stride != 1 or channels != 4 * width:
            x = self.conv(x, channels, 4 * width, 1, stride)
        return self.node("Relu", [self.node("Add", [x, y])])


def main():
    graph = Network()
    x = graph.node("Relu", [graph.conv("x", 3, 64, 7, 2)])
    x = graph.node("MaxPool", [x], kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4)
    channels = 64
    for width, count, stride in ((64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2)):
        for i in range(count):
            x = graph.block_of(x, channels, width, stride if i == 0 else 1)
            channels = 4 * width
    x = graph.node("Flatten", [graph.node("GlobalAveragePool", [x])], axis=1)
    y = graph.node("Gemm", [x, graph.noise(1000, 2048), graph.noise(1000)], transB=1)
    graph.write(sys.argv[1], "resnet50", [1, 3, 224, 224], y, [1, 1000])


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__.splitlines()[0])
    main()
