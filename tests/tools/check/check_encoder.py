#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""check_encoder.py RUN_ONNX BACKEND: a small encoder of gen_bert.py against the same computed here,
in double, from what a transformer encoder is and not from the nodes that it is written in.
"""
import array
import math
import os
import random
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "gen"))
from gen_bert import HEADS_WIDTH, Encoder, build
from onnx_writer import FLOAT, tensor

LAYERS, TOKENS, WIDTH = 2, 5, 2 * HEADS_WIDTH


class Recorder(Encoder):
    """Keeps the weights, in the order in which they are made: matrices as lists of columns."""

    def __init__(self):
        super().__init__()
        self.weights = []

    def noise(self, *dims):
        name = super().noise(*dims)
        size = math.prod(dims)
        floats = array.array(
            "f", (self.block * (4 * size // len(self.block) + 1))[: 4 * size]
        ).tolist()
        self.weights.append(
            [floats[i :: dims[1]] for i in range(dims[1])] if len(dims) == 2 else floats
        )
        return name


def dot(a, b):
    return math.fsum(map(float.__mul__, a, b))


def dense(x, weights):
    columns, bias = next(weights), next(weights)
    return [[dot(row, column) + b for column, b in zip(columns, bias)] for row in x]


def norm(x, weights):
    gain, offset = next(weights), next(weights)
    rows = []
    for row in x:
        mean = math.fsum(row) / len(row)
        deviation = math.sqrt(math.fsum((v - mean) ** 2 for v in row) / len(row) + 1e-12)
        rows.append([(v - mean) / deviation * g + o for v, g, o in zip(row, gain, offset)])
    return rows


def add(x, y):
    return [[a + b for a, b in zip(*rows)] for rows in zip(x, y)]


def attend(x, weights):
    query, key, value = (dense(x, weights) for _ in range(3))
    mixed = [[] for _ in x]
    for first in range(0, WIDTH, HEADS_WIDTH):
        part = slice(first, first + HEADS_WIDTH)
        for i, row in enumerate(query):
            scores = [math.exp(dot(row[part], k[part]) / math.sqrt(HEADS_WIDTH)) for k in key]
            shares = [score / math.fsum(scores) for score in scores]
            mixed[i] += [dot(shares, column) for column in zip(*(v[part] for v in value))]
    return dense(mixed, weights)


def encode(x, weights):
    for _ in range(LAYERS):
        x = norm(add(attend(x, weights), x), weights)
        inner = [
            [v * (1 + math.erf(v / math.sqrt(2))) / 2 for v in row] for row in dense(x, weights)
        ]
        x = norm(add(dense(inner, weights), x), weights)
    return x


def main():
    run_onnx, backend = sys.argv[1:]
    recorder, y = build(LAYERS, TOKENS, WIDTH, Recorder)
    numbers, dims = random.Random(2), [1, TOKENS, WIDTH]
    x = array.array("f", (numbers.gauss(0, 1) for _ in range(TOKENS * WIDTH)))
    rows = [x[i : i + WIDTH].tolist() for i in range(0, len(x), WIDTH)]
    wanted = [v for row in encode(rows, iter(recorder.weights)) for v in row]
    with tempfile.TemporaryDirectory() as folder:
        data = os.path.join(folder, "encoder", "test_data_set_0")
        os.makedirs(data)
        recorder.write(os.path.join(folder, "encoder", "model.onnx"), "encoder", dims, y, dims)
        for name, values in (("input_0.pb", x), ("output_0.pb", wanted)):
            with open(os.path.join(data, name), "wb") as file:
                file.write(tensor(FLOAT, dims, values))
        result = subprocess.run(
            [run_onnx, folder, "--backend", backend], capture_output=True, text=True
        )
    print(result.stdout, result.stderr)
    return 0 if result.returncode == 0 and "encoder ok" in result.stdout else 1


if __name__ == "__main__":
    sys.exit(main())
