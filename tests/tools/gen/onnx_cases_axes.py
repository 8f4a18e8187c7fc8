# SPDX-License-Identifier: Apache-2.0
"""Cases of operators whose axes a run computes, of DeformConv, and of TensorScatter, and
of com.microsoft that the shared cases lack, for gen_onnx_cases.py."""
from onnx_cases_classic import ints, number, tensor, text


def case(name, op, attributes, inputs, made, opset=18):
    """A case of ai.onnx; `made` has the types of the outputs."""
    return {
        "id": f"ai.onnx/{op}/{name}",
        "op": op,
        "domain": "",
        "opset": opset,
        "attributes": attributes,
        "inputs": inputs,
        "made": made,
    }


def noise(numbers, dims, dtype="float32"):
    size = 1
    for dim in dims:
        size *= dim
    if dtype == "int32":
        return tensor(dtype, dims, [numbers.randrange(-9, 10) for _ in range(size)])
    return tensor(dtype, dims, [round(numbers.uniform(-3, 3), 2) for _ in range(size)])


def longs(values):
    return tensor("int64", [len(values)], values)


KINDS = ["Sum", "Mean", "Max", "Min", "Prod", "L1", "L2", "LogSum", "LogSumExp", "SumSquare"]


def list_reductions(numbers):
    cases = []
    for kind in KINDS:
        for axes in ([1], [-1, 0], [2, 1, 0]):
            for keep in (0, 1):
                x = noise(numbers, [3, 5, 2])
                if kind == "LogSum":
                    x["data"] = [abs(value) + 0.5 for value in x["data"]]
                name = "".join(map(str, axes)) + f"-keep{keep}"
                attributes = {"keepdims": number(keep)}
                inputs = [x, longs(axes)]
                cases.append(case(name, f"Reduce{kind}", attributes, inputs, ["float32"]))
        if kind in ("Sum", "Mean", "Max", "Min", "Prod"):
            inputs = [noise(numbers, [4, 1, 3], "int32"), longs([0])]
            cases.append(case("int32", f"Reduce{kind}", {}, inputs, ["int32"]))
    return cases


def list_moves(numbers):
    cases = []
    for axes in ([0], [-1, 1], [2, 0, -1]):
        name = "".join(map(str, axes))
        inputs = [noise(numbers, [2, 3]), longs(axes)]
        cases.append(case(name, "Unsqueeze", {}, inputs, ["float32"], 13))
    for dims, axes in (([1, 3, 2], [0]), ([4, 1, 1, 5], [-2, 1]), ([1, 1, 1], [0, 2, 1])):
        name = "".join(map(str, axes))
        inputs = [noise(numbers, dims), longs(axes)]
        cases.append(case(name, "Squeeze", {}, inputs, ["float32"], 13))
    for starts, ends, axes, steps in (
        ([1], [3], [1], None),
        ([-2, 0], [1 << 62, 2], [-1, 0], [1, 1]),
        ([4, 0], [-(1 << 40), 5], [1, 2], [-1, 2]),
        ([5, 1, 0], [2, 3, 1], [2, 0, 1], [-2, 1, 1]),
    ):
        inputs = [noise(numbers, [3, 5, 6]), longs(starts), longs(ends), longs(axes)]
        if steps is not None:
            inputs.append(longs(steps))
        name = "".join(map(str, axes))
        cases.append(case(name, "Slice", {}, inputs, ["float32"], 13))
    for mode in ("constant", "reflect", "edge"):
        for pads, axes in (([1, 2], [1]), ([0, 1, 2, 1], [-1, 0])):
            value = tensor("float32", [], [1.5]) if mode == "constant" else None
            inputs = [noise(numbers, [3, 4, 5]), longs(pads), value, longs(axes)]
            name = f"{mode}-" + "".join(map(str, axes))
            cases.append(case(name, "Pad", {"mode": text(mode)}, inputs, ["float32"]))
    return cases


def list_deformed(numbers):
    """DeformConv: strides, dilations, pads, groups of channels and of offsets, mask and bias."""
    cases = []
    for name, size, filters, options in (
        ("plain", [1, 1, 5, 6], [2, 1, 3, 3], {}),
        ("pads", [2, 2, 5, 4], [3, 2, 3, 2], {"pads": [1, 0, 1, 1]}),
        ("strides", [1, 2, 7, 9], [2, 2, 3, 3], {"strides": [2, 3], "pads": [1, 1, 1, 1]}),
        ("dilations", [1, 1, 8, 9], [1, 1, 2, 3], {"dilations": [3, 2]}),
        ("groups", [1, 4, 5, 5], [6, 2, 3, 3], {"group": 2, "pads": [1, 1, 1, 1]}),
        ("offset-groups", [2, 4, 5, 5], [3, 4, 3, 3], {"offset_group": 2}),
        ("both", [1, 4, 6, 5], [4, 2, 2, 2], {"group": 2, "offset_group": 4}),
        ("one", [1, 3, 4, 4], [5, 3, 1, 1], {}),
    ):
        for masked in (False, True):
            pads = options.get("pads", [0, 0, 0, 0])
            strides, dilations = options.get("strides", [1, 1]), options.get("dilations", [1, 1])
            out = [
                (size[2 + i] + pads[i] + pads[2 + i] - dilations[i] * (filters[2 + i] - 1) - 1)
                // strides[i]
                + 1
                for i in range(2)
            ]
            taps = filters[2] * filters[3] * options.get("offset_group", 1)
            inputs = [
                noise(numbers, size),
                noise(numbers, filters),
                noise(numbers, [size[0], 2 * taps, *out]),
            ]
            if masked:
                inputs += [noise(numbers, filters[:1]), noise(numbers, [size[0], taps, *out])]
            attributes = {
                key: number(value) if isinstance(value, int) else ints(value)
                for key, value in options.items()
            }
            attributes["kernel_shape"] = ints(filters[2:])
            full = name + "-mask" * masked
            cases.append(case(full, "DeformConv", attributes, inputs, ["float32"], 19))
    return cases


def list_written_rows(numbers):
    """TensorScatter: both modes, several axes, and rows that continue at the start of the cache."""
    cases = []
    for name, cache, rows, axis, positions, mode in (
        ("plain", [2, 5, 3], [2, 2, 3], None, [1, 3], None),
        ("heads", [2, 3, 6, 2], [2, 3, 1, 2], -2, [5, 0], "linear"),
        ("first-axis", [2, 4, 3], [2, 3, 3], 1, [0, 1], "linear"),
        ("last-axis", [2, 2, 5], [2, 2, 2], 2, [3, 1], "linear"),
        ("begin", [1, 4, 2], [1, 3, 2], -2, None, "linear"),
        ("circular", [3, 4, 2], [3, 3, 2], -2, [0, 3, 2], "circular"),
        ("circular-heads", [2, 2, 5, 3], [2, 2, 4, 3], 2, [4, 1], "circular"),
        ("circular-all", [2, 3, 1], [2, 3, 1], 1, [1, 2], "circular"),
        ("circular-again", [2, 3, 2], [2, 2, 2], 1, [3, 8], "circular"),
        ("circular-far", [2, 3, 2], [2, 2, 2], 1, [5000000003, 2**62], "circular"),
    ):
        for dtype in ("float32", "int32"):
            inputs = [noise(numbers, cache, dtype), noise(numbers, rows, dtype)]
            inputs += [longs(positions)] if positions is not None else []
            attributes = {"axis": number(axis)} if axis is not None else {}
            if mode is not None:
                attributes["mode"] = text(mode)
            full = f"{name}-{dtype}"
            cases.append(case(full, "TensorScatter", attributes, inputs, [dtype], 24))
    return cases


def list_axes_cases(numbers):
    """All cases of this file, with random numbers from `numbers`."""
    moves = list_reductions(numbers) + list_moves(numbers)
    return moves + list_deformed(numbers) + list_written_rows(numbers)


# Sizes of the embeddings of com.microsoft.
WORDS, PLACES, SEGMENTS, WIDTH = 7, 6, 2, 8


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
    tables = [[WORDS, WIDTH], [PLACES, WIDTH], [SEGMENTS, WIDTH], [WIDTH], [WIDTH]]
    made = [quantised(numbers, dims, dtype) for dims in tables]
    ids = tensor("int32", [2, 5], [numbers.randrange(WORDS) for _ in range(10)])
    kinds = tensor("int32", [2, 5], [numbers.randrange(SEGMENTS) for _ in range(10)])
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
