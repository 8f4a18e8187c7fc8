# SPDX-License-Identifier: Apache-2.0
"""Cases of com.microsoft for gen_onnx_cases.py that ../shared/contrib-ops lacks."""
from onnx_cases_classic import tensor

WORDS, PLACES, KINDS, WIDTH = 7, 6, 2, 8


def quantised(numbers, dims, dtype):
    """A table of bytes with its scale and its zero point."""
    size = 1
    for dim in dims:
        size *= dim
    low = -128 if dtype == "int8" else 0
    data = [numbers.randrange(low, low + 256) for _ in range(size)]
    scale = tensor("float32", [], [round(numbers.uniform(0.01, 0.05), 3)])
    return tensor(dtype, dims, data), scale, tensor(dtype, [], [low + numbers.randrange(256)])


def embedding(numbers, name, dtype, segments, mask, attributes):
    """QEmbedLayerNormalization of two rows of five words."""
    tables = [[WORDS, WIDTH], [PLACES, WIDTH], [KINDS, WIDTH], [WIDTH], [WIDTH]]
    made = [quantised(numbers, dims, dtype) for dims in tables]
    ids = tensor("int32", [2, 5], [numbers.randrange(WORDS) for _ in range(10)])
    kinds = tensor("int32", [2, 5], [numbers.randrange(KINDS) for _ in range(10)])
    ones = tensor("int32", [2, 5], [1, 1, 1, 0, 0, 1, 1, 1, 1, 0])
    if not segments:
        made[2], kinds = (None, None, None), None
    values, scales, zeros = ([part[i] for part in made] for i in range(3))
    return {
        "id": f"com.microsoft/QEmbedLayerNormalization/{name}",
        "op": "QEmbedLayerNormalization",
        "domain": "com.microsoft",
        "opset": 1,
        "attributes": attributes,
        "inputs": [ids, kinds, *values, ones if mask else None, *scales, *zeros],
        "made": ["float32", "int32"],
    }


def list_contrib_cases(numbers):
    epsilon = {"epsilon": {"type": "float", "value": 0.5}}
    return [
        embedding(numbers, "uint8", "uint8", True, True, {}),
        embedding(numbers, "int8", "int8", True, True, epsilon),
        embedding(numbers, "without-segments", "uint8", False, True, {}),
        embedding(numbers, "without-mask", "int8", True, False, {}),
    ]
