#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""gen_bert.py FILE [--layers N] [--tokens N] [--width N]: writes an encoder of BERT's kind as ONNX.

The default is the shape of BERT-base, 12 layers of width 768 (340 MB). Weights are random, and all
layers have the same operators. Layer norm and gelu are written in parts, as exporters of opset 13
do. The input x [1, tokens, width] holds embeddings.
"""
import argparse
import math

from onnx_writer import FLOAT, INT64, Graph

HEADS_WIDTH = 64  # of a head


class Encoder(Graph):
    """What an encoder has beside a graph's nodes."""

    def scalar(self, number):
        return self.const(FLOAT, [], [number])

    def dense(self, x, inputs, outputs):
        return self.node(
            "Add", [self.node("MatMul", [x, self.noise(inputs, outputs)]), self.noise(outputs)]
        )

    def norm(self, x, width):
        centred = self.node("Sub", [x, self.node("ReduceMean", [x], axes=[-1])])
        square = self.node("Pow", [centred, self.scalar(2)])
        variance = self.node("ReduceMean", [square], axes=[-1])
        deviation = self.node("Sqrt", [self.node("Add", [variance, self.scalar(1e-12)])])
        scaled = self.node("Mul", [self.node("Div", [centred, deviation]), self.noise(width)])
        return self.node("Add", [scaled, self.noise(width)])

    def gelu(self, x):
        error = self.node("Erf", [self.node("Div", [x, self.scalar(math.sqrt(2))])])
        both = self.node("Mul", [x, self.node("Add", [error, self.scalar(1)])])
        return self.node("Mul", [both, self.scalar(0.5)])

    def heads(self, x, tokens, width, order):
        shape = self.const(INT64, [4], [1, tokens, width // HEADS_WIDTH, HEADS_WIDTH])
        split = self.node("Reshape", [self.dense(x, width, width), shape])
        return self.node("Transpose", [split], perm=order)

    def attend(self, x, tokens, width):
        query = self.heads(x, tokens, width, [0, 2, 1, 3])
        key = self.heads(x, tokens, width, [0, 2, 3, 1])
        value = self.heads(x, tokens, width, [0, 2, 1, 3])
        scores = self.node(
            "Div", [self.node("MatMul", [query, key]), self.scalar(math.sqrt(HEADS_WIDTH))]
        )
        mixed = self.node("MatMul", [self.node("Softmax", [scores], axis=3), value])
        joined = self.node("Transpose", [mixed], perm=[0, 2, 1, 3])
        shape = self.const(INT64, [3], [1, tokens, width])
        return self.dense(self.node("Reshape", [joined, shape]), width, width)

    def layer(self, x, tokens, width):
        x = self.norm(self.node("Add", [self.attend(x, tokens, width), x]), width)
        inner = self.gelu(self.dense(x, width, 4 * width))
        return self.norm(self.node("Add", [self.dense(inner, 4 * width, width), x]), width)


def build(layers, tokens, width, kind=Encoder):
    """An encoder and what its result is called."""
    encoder, x = kind(), "x"
    for _ in range(layers):
        x = encoder.layer(x, tokens, width)
    return encoder, x


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file")
    parser.add_argument("--layers", type=int, default=12)
    parser.add_argument("--tokens", type=int, default=128)
    parser.add_argument("--width", type=int, default=768)
    options = parser.parse_args()
    encoder, y = build(options.layers, options.tokens, options.width)
    dims = [1, options.tokens, options.width]
    encoder.write(options.file, "encoder", dims, y, dims)


if __name__ == "__main__":
    main()
