#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""gen_resnet50.py FILE: writes ResNet-50 as an ONNX model of the usual size, 100 MB, with weights of no meaning.

For measuring imports. Batch norm is folded, as in most models that are served.
"""
import array
import random
import sys


def varint(value):
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


class Graph:
    """Nodes and initialisers, as they are added."""

    def __init__(self):
        numbers = random.Random(1)
        self.block = array.array("f", (numbers.gauss(0, 0.02) for _ in range(1 << 16))).tobytes()
        self.nodes, self.weights, self.count = [], [], 0

    def weight(self, name, dims):
        size = 4
        for dim in dims:
            size *= dim
        data = (self.block * (size // len(self.block) + 1))[:size]
        head = b"".join(field(1, dim) for dim in dims) + field(2, 1) + field(8, name)
        self.weights.append(field(5, head + field(9, data)))
        return name

    def node(self, op, inputs, **attributes):
        output = f"v{self.count}"
        self.count += 1
        body = b"".join(field(1, name) for name in inputs) + field(2, output) + field(4, op)
        for name, value in attributes.items():
            if isinstance(value, int):
                body += field(5, field(1, name) + field(3, value) + field(20, 2))
            else:
                numbers = b"".join(field(8, number) for number in value)
                body += field(5, field(1, name) + numbers + field(20, 7))
        self.nodes.append(field(1, body))
        return output

    def conv(self, x, channels, filters, size, stride):
        name = f"w{self.count}"
        inputs = [x, self.weight(name, [filters, channels, size, size]), self.weight(name + "b", [filters])]
        pad = size // 2
        return self.node("Conv", inputs, kernel_shape=[size] * 2, strides=[stride] * 2, pads=[pad] * 4)

    def block_of(self, x, channels, width, stride):
        y = self.node("Relu", [self.conv(x, channels, width, 1, 1)])
        y = self.node("Relu", [self.conv(y, width, width, 3, stride)])
        y = self.conv(y, width, 4 * width, 1, 1)
        if stride != 1 or channels != 4 * width:
            x = self.conv(x, channels, 4 * width, 1, stride)
        return self.node("Relu", [self.node("Add", [x, y])])


def port(number, name, dims):
    shape = b"".join(field(1, field(1, dim)) for dim in dims)
    return field(number, field(1, name) + field(2, field(1, field(1, 1) + field(2, shape))))


def main():
    graph = Graph()
    x = graph.node("Relu", [graph.conv("x", 3, 64, 7, 2)])
    x = graph.node("MaxPool", [x], kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4)
    channels = 64
    for width, count, stride in ((64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2)):
        for i in range(count):
            x = graph.block_of(x, channels, width, stride if i == 0 else 1)
            channels = 4 * width
    x = graph.node("Flatten", [graph.node("GlobalAveragePool", [x])], axis=1)
    inputs = [x, graph.weight("fc", [1000, 2048]), graph.weight("fcb", [1000])]
    y = graph.node("Gemm", inputs, transB=1)
    body = b"".join(graph.nodes) + field(2, "resnet50") + b"".join(graph.weights)
    body += port(11, "x", [1, 3, 224, 224]) + port(12, y, [1, 1000])
    with open(sys.argv[1], "wb") as file:
        file.write(field(1, 8) + field(8, field(1, "") + field(2, 13)) + field(7, body))


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__.splitlines()[0])
    main()
