#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""gen_rnn.py FILE [--kind LSTM|GRU] [--layers N] [--steps N] [--width N] [--batch N] [--both]

Writes a stack of recurrent layers as ONNX, with random weights. x is [steps, batch, width], and
every layer has `width` hidden elements. With --both, each layer runs in both directions, with half
of the elements each.
"""
import argparse

from onnx_writer import INT64, Graph

GATES = {"LSTM": 4, "GRU": 3}


def layer(graph, x, kind, width, ways):
    """A layer on x [steps, batch, width], of which the result has the same shape."""
    hidden, rows = width // ways, GATES[kind] * (width // ways)
    inputs = [
        x,
        graph.noise(ways, rows, width),
        graph.noise(ways, rows, hidden),
        graph.noise(ways, 2 * rows),
    ]
    attributes = {"hidden_size": hidden, "direction": "bidirectional" if ways == 2 else "forward"}
    if kind == "GRU":
        attributes["linear_before_reset"] = 1
    y = graph.node("Transpose", [graph.node(kind, inputs, **attributes)], perm=[0, 2, 1, 3])
    return graph.node("Reshape", [y, graph.const(INT64, [3], [0, 0, -1])])


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file")
    parser.add_argument("--kind", choices=GATES, default="LSTM")
    for name, number in (("layers", 2), ("steps", 64), ("width", 256), ("batch", 1)):
        parser.add_argument("--" + name, type=int, default=number)
    parser.add_argument("--both", action="store_true")
    options = parser.parse_args()
    graph, x = Graph(), "x"
    for _ in range(options.layers):
        x = layer(graph, x, options.kind, options.width, 2 if options.both else 1)
    dims = [options.steps, options.batch, options.width]
    graph.write(options.file, "recurrent", dims, x, dims)


if __name__ == "__main__":
    main()
