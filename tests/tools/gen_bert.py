#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""gen_bert.py FILE [--layers N] [--tokens N] [--width N]: writes a transformer encoder of BERT-base's shape as ONNX,
with weights of no meaning, in the operators that exporters of opset 13 write: layer norm and gelu in parts.

x [1, tokens, width] are embeddings. 12 layers of 768 are 340 MB; each layer is like the others.
"""
import argparse
import array
import math
import struct

from gen_resnet50 import Graph, field, port

HEADS_WIDTH = 64  # of a head


class Encoder(Graph):
    """What an encoder has beside a graph's nodes."""

    def scalar(self, number):
        name = f"s{len(self.weights)}"
        self.weights.append(field(5, field(2, 1) + field(8, name) + field(9, struct.pack("<f", number))))
        return name

    def ints(self, *numbers):
        name = f"i{len(self.weights)}"
        data = array.array("q", numbers).tobytes()
        self.weights.append(field(5, field(1, len(numbers)) + field(2, 7) + field(8, name) + field(9, data)))
        return name

    def list_node(self, op, inputs, attribute, numbers):
        """A node with one list of integers."""
        output = f"v{self.count}"
        self.count += 1
        body = b"".join(field(1, name) for name in inputs) + field(2, output) + field(4, op)
        packed = b"".join(field(8, number & (1 << 64) - 1) for number in numbers)
        self.nodes.append(field(1, body + field(5, field(1, attribute) + packed + field(20, 7))))
        return output

    def dense(self, x, inputs, outputs):
        product = self.node("MatMul", [x, self.weight(f"w{len(self.weights)}", [inputs, outputs])])
        return self.node("Add", [product, self.weight(f"b{len(self.weights)}", [outputs])])

    def norm(self, x, width):
        centred = self.node("Sub", [x, self.list_node("ReduceMean", [x], "axes", [-1])])
        square = self.node("Pow", [centred, self.scalar(2)])
        variance = self.list_node("ReduceMean", [square], "axes", [-1])
        deviation = self.node("Sqrt", [self.node("Add", [variance, self.scalar(1e-12)])])
        gain = self.weight(f"g{len(self.weights)}", [width])
        scaled = self.node("Mul", [self.node("Div", [centred, deviation]), gain])
        return self.node("Add", [scaled, self.weight(f"o{len(self.weights)}", [width])])

    def gelu(self, x):
        error = self.node("Erf", [self.node("Div", [x, self.scalar(math.sqrt(2))])])
        both = self.node("Mul", [x, self.node("Add", [error, self.scalar(1)])])
        return self.node("Mul", [both, self.scalar(0.5)])

    def heads(self, x, tokens, width, order):
        shape = self.ints(1, tokens, width // HEADS_WIDTH, HEADS_WIDTH)
        split = self.node("Reshape", [self.dense(x, width, width), shape])
        return self.list_node("Transpose", [split], "perm", order)

    def attend(self, x, tokens, width):
        query = self.heads(x, tokens, width, [0, 2, 1, 3])
        key = self.heads(x, tokens, width, [0, 2, 3, 1])
        value = self.heads(x, tokens, width, [0, 2, 1, 3])
        scores = self.node("Div", [self.node("MatMul", [query, key]), self.scalar(math.sqrt(HEADS_WIDTH))])
        mixed = self.node("MatMul", [self.node("Softmax", [scores], axis=3), value])
        joined = self.list_node("Transpose", [mixed], "perm", [0, 2, 1, 3])
        return self.dense(self.node("Reshape", [joined, self.ints(1, tokens, width)]), width, width)

    def layer(self, x, tokens, width):
        x = self.norm(self.node("Add", [self.attend(x, tokens, width), x]), width)
        inner = self.gelu(self.dense(x, width, 4 * width))
        return self.norm(self.node("Add", [self.dense(inner, 4 * width, width), x]), width)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file")
    parser.add_argument("--layers", type=int, default=12)
    parser.add_argument("--tokens", type=int, default=128)
    parser.add_argument("--width", type=int, default=768)
    options = parser.parse_args()
    encoder = Encoder()
    x, dims = "x", [1, options.tokens, options.width]
    for _ in range(options.layers):
        x = encoder.layer(x, options.tokens, options.width)
    graph = b"".join(encoder.nodes) + field(2, "encoder") + b"".join(encoder.weights)
    graph += port(11, "x", dims) + port(12, x, dims)
    with open(options.file, "wb") as file:
        file.write(field(1, 7) + field(7, graph) + field(8, field(2, 13)))


if __name__ == "__main__":
    main()
