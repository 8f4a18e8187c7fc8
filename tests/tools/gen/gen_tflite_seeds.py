#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""gen_tflite_seeds.py HEADER - writes small TFLite files as the seeds of the fuzz targets."""
import sys
import zipfile
from pathlib import Path

import gen_colors
from gen_colors import FLOAT32, INT32, operator, subgraph, tensor
from tflite_writer import F32, I8, I32, U8, U32, Vector, archive, flatbuffer, floats, ints

INT8, BOOL = 9, 6
ADD, CONV_2D, LESS, WHILE, FULLY_CONNECTED = 0, 3, 58, 119, 9
ADD_OPTIONS, CONV_OPTIONS, WHILE_OPTIONS, FULL_OPTIONS = 11, 1, 93, 8


def model(codes, subgraphs, buffers):
    return flatbuffer(
        {
            0: U32(3),
            1: [{0: I8(code), 2: I32(1), 3: I32(code)} for code in codes],
            2: subgraphs,
            3: 'seed',
            4: [{}] + [{0: data} for data in buffers],
        },
        b'TFL3',
    )


def quantised(name, kind, shape, scales, zeros, buffer=0, axis=0):
    made = tensor(name, kind, shape, buffer)
    made[4] = {2: floats(*scales), 3: Vector('q', zeros), 6: I32(axis)}
    return made


def conv():
    """A quantised convolution with a scale for each channel."""
    tensors = [
        quantised('x', INT8, (1, 4, 4, 2), [0.5], [-1]),
        quantised('w', INT8, (3, 2, 2, 2), [0.1, 0.2, 0.3], [0, 0, 0], 1),
        quantised('b', INT32, (3,), [0.05, 0.1, 0.15], [0, 0, 0], 2),
        quantised('y', INT8, (1, 4, 4, 3), [0.7], [3]),
    ]
    options = {0: I8(0), 1: I32(1), 2: I32(1), 3: I8(1)}
    run = operator(0, [0, 1, 2], [3], CONV_OPTIONS, options)
    return model(
        [CONV_2D],
        [subgraph('main', tensors, [0], [3], [run])],
        [bytes(range(24)), ints(1, -2, 3).bytes],
    )


def loop():
    """WHILE with a condition and a body."""
    scalar, one = tensor('i', INT32, ()), tensor('n', INT32, (), 1)
    main = subgraph(
        'main',
        [scalar, tensor('o', INT32, ())],
        [0],
        [1],
        [operator(1, [0], [1], WHILE_OPTIONS, {0: I32(1), 1: I32(2)})],
    )
    condition = subgraph(
        'cond',
        [scalar, one, tensor('c', BOOL, ())],
        [0],
        [2],
        [operator(0, [0, 1], [2], 0, {})],
    )
    body = subgraph(
        'body',
        [scalar, one, tensor('s', INT32, ())],
        [0],
        [2],
        [operator(2, [0, 1], [2], ADD_OPTIONS, {0: I8(0)})],
    )
    return model([LESS, WHILE, ADD], [main, condition, body], [ints(4).bytes])


def sparse():
    """FULLY_CONNECTED with sparse weights: rows dense, columns compressed."""
    weights = tensor('w', FLOAT32, (2, 4), 1)
    weights[6] = {
        0: ints(0, 1),
        2: [
            {0: I8(0), 1: I32(2)},
            {0: I8(1), 2: U8(1), 3: {0: ints(0, 1, 2)}, 4: U8(1), 5: {0: ints(1, 3)}},
        ],
    }
    tensors = [tensor('x', FLOAT32, (1, 4)), weights, tensor('y', FLOAT32, (1, 2))]
    run = operator(0, [0, 1, -1], [2], FULL_OPTIONS, {0: I8(0)})
    return model(
        [FULLY_CONNECTED], [subgraph('main', tensors, [0], [2], [run])], [floats(1, 2).bytes]
    )


def seeds():
    labels = {'labels.txt': gen_colors.LABELS.encode()}
    yield gen_colors.model() + archive(labels)
    yield gen_colors.model(True) + archive(labels, zipfile.ZIP_DEFLATED)
    yield conv()
    yield loop()
    yield sparse()


def main():
    lines = ['// Written by gen_tflite_seeds.py.', 'const struct fuzz_seed fuzz_seeds[] = {']
    for seed in seeds():
        text = ''.join(f'\\x{byte:02x}' for byte in seed)
        parts = [f'"{text[i:i + 80]}"' for i in range(0, len(text), 80)]
        lines += ['FUZZ_SEED(' + '\n'.join(parts) + '),']
    lines += ['};', 'const size_t fuzz_seed_count = sizeof fuzz_seeds / sizeof fuzz_seeds[0];']
    lines += ['const bool fuzz_has_positions = true;', '']
    Path(sys.argv[1]).write_text('\n'.join(lines))


if __name__ == '__main__':
    main()
