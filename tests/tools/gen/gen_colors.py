#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""gen_colors.py FILE [--deflated] [--values] - writes a small TFLite model with metadata.

The model tells the main colour of a picture of 8 x 8 pixels: it takes the mean of each channel and
its softmax. The metadata say how pictures are normalised, and the labels of the classes are in an
archive behind the model. The file has two signatures: `classify` gives the scores of the colours,
`brightness` the mean of all elements.

--deflated compresses the labels. --values makes the labels name values instead of classes.
"""
import argparse
import zipfile
from pathlib import Path

from tflite_writer import F32, I8, I32, U8, U32, archive, flatbuffer, floats, ints

FLOAT32, INT32 = 0, 2
MEAN, SOFTMAX, SKIP_GRAM = 40, 25, 30
SOFTMAX_OPTIONS, REDUCER_OPTIONS = 9, 27
AXIS_LABELS, VALUE_LABELS = 2, 3
NORMALIZATION = 1
LABELS = 'red\ngreen\nblue\n'


def tensor(name, kind, shape, buffer=0):
    return {0: ints(*shape), 1: I8(kind), 2: U32(buffer), 3: name}


def operator(code, inputs, outputs, options_type, options):
    return {0: U32(code), 1: ints(*inputs), 2: ints(*outputs), 3: U8(options_type), 4: options}


def subgraph(name, tensors, inputs, outputs, operators):
    return {0: tensors, 1: ints(*inputs), 2: ints(*outputs), 3: operators, 4: name}


def signature(key, number, inputs, outputs):
    def bindings(names):
        return [{0: name, 1: U32(index)} for name, index in names.items()]

    return {0: bindings(inputs), 1: bindings(outputs), 2: key, 4: U32(number)}


def metadata(values):
    """The flatbuffer TFLITE_METADATA."""
    kind = VALUE_LABELS if values else AXIS_LABELS
    labels = {0: 'labels.txt', 1: 'Names of the colours.', 2: I8(kind)}
    normalise = {0: U8(NORMALIZATION), 1: {0: floats(127.5), 1: floats(127.5)}}
    picture = {0: 'picture', 1: 'A picture of 8 x 8 pixels.', 4: [normalise]}
    scores = {0: 'scores', 1: 'How much of each colour there is.', 6: [labels]}
    bright = {0: 'brightness', 1: 'The mean of all elements.'}
    return flatbuffer(
        {
            0: 'Colours',
            1: 'Tells the main colour of a picture.',
            2: 'v1',
            3: [{2: [picture], 3: [scores]}, {2: [picture], 3: [bright]}],
            4: 'inferd',
            5: 'Apache License 2.0',
        },
        b'M001',
    )


def model(values=False, rows=1, broken=False):
    """The bytes of the model without its archive. `rows` is the number of pictures, or -1 if each
    request chooses it. If `broken`, `brightness` has an operator that is not supported."""
    codes = [
        {0: I8(code), 2: I32(1), 3: I32(code)} for code in (MEAN, SOFTMAX) + (SKIP_GRAM,) * broken
    ]
    picture = tensor('picture', FLOAT32, (1, 8, 8, 3))
    if rows != 1:
        picture[7] = ints(rows, 8, 8, 3)
    classify = subgraph(
        'classify',
        [
            picture,
            tensor('axes', INT32, (2,), 1),
            tensor('means', FLOAT32, (1, 3)),
            tensor('scores', FLOAT32, (1, 3)),
        ],
        [0],
        [3],
        [
            operator(0, [0, 1], [2], REDUCER_OPTIONS, {0: U8(0)}),
            operator(1, [2], [3], SOFTMAX_OPTIONS, {0: F32(4)}),
        ],
    )
    brightness = subgraph(
        'brightness',
        [picture, tensor('axes', INT32, (3,), 2), tensor('brightness', FLOAT32, (1,))],
        [0],
        [2],
        [operator(2 if broken else 0, [0, 1], [2], REDUCER_OPTIONS, {0: U8(0)})],
    )
    buffers = [{}, {0: ints(1, 2).bytes}, {0: ints(1, 2, 3).bytes}, {0: metadata(values)}]
    return flatbuffer(
        {
            0: U32(3),
            1: codes,
            2: [classify, brightness],
            3: 'Colours',
            4: buffers,
            6: [{0: 'TFLITE_METADATA', 1: U32(3)}],
            7: [
                signature('classify', 0, {'picture': 0}, {'scores': 3}),
                signature('brightness', 1, {'picture': 0}, {'brightness': 2}),
            ],
        },
        b'TFL3',
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('file', type=Path)
    parser.add_argument('--deflated', action='store_true')
    parser.add_argument('--values', action='store_true')
    arguments = parser.parse_args()
    method = zipfile.ZIP_DEFLATED if arguments.deflated else zipfile.ZIP_STORED
    labels = archive({'labels.txt': LABELS.encode()}, method)
    arguments.file.write_bytes(model(arguments.values) + labels)


if __name__ == '__main__':
    main()
