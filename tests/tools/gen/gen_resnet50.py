#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""gen_resnet50.py FILE [18]: writes ResNet-50 as an ONNX model of the usual size, 100 MB, or
ResNet-18, 46 MB.

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

    def bottleneck(self, x, channels, width, stride):
        """A block of ResNet-50; its output has 4 * width channels."""
        y = self.node("Relu", [self.conv(x, channels, width, 1, 1)])
        y = self.node("Relu", [self.conv(y, width, width, 3, stride)])
        y = self.conv(y, width, 4 * width, 1, 1)
        if stride != 1 or channels != 4 * width:
            x = self.conv(x, channels, 4 * width, 1, stride)
        return self.node("Relu", [self.node("Add", [x, y])])

    def basic(self, x, channels, width, stride):
        """A block of ResNet-18."""
        y = self.node("Relu", [self.conv(x, channels, width, 3, stride)])
        y = self.conv(y, width, width, 3, 1)
        if stride != 1 or channels != width:
            x = self.conv(x, channels, width, 1, stride)
        return self.node("Relu", [self.node("Add", [x, y])])


def main():
    small = sys.argv[2:] == ["18"]
    counts, factor = ((2, 2, 2, 2), 1) if small else ((3, 4, 6, 3), 4)
    graph = Network()
    x = graph.node("Relu", [graph.conv("x", 3, 64, 7, 2)])
    x = graph.node("MaxPool", [x], kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4)
    channels = 64
    for width, count, stride in zip((64, 128, 256, 512), counts, (1, 2, 2, 2)):
        for i in range(count):
            block = graph.basic if small else graph.bottleneck
            x = block(x, channels, width, stride if i == 0 else 1)
            channels = factor * width
    x = graph.node("Flatten", [graph.node("GlobalAveragePool", [x])], axis=1)
    weights = [graph.noise(1000, channels), graph.noise(1000)]
    y = graph.node("Gemm", [x, *weights], transB=1)
    name = "resnet18" if small else "resnet50"
    graph.write(sys.argv[1], name, [1, 3, 224, 224], y, [1, 1000])


if __name__ == "__main__":
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__.splitlines()[0])
    main()
