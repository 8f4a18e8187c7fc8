# SPDX-License-Identifier: Apache-2.0
"""Cases of operators whose nodes depend on the sizes of their inputs, for gen_onnx_cases.py. The
check runs them with sizes that the file gives, and with sizes that only a run knows."""
from onnx_cases_axes import case, longs, noise
from onnx_cases_classic import ints, number, tensor, text


def list_convolutions(numbers):
    cases = []
    for mode in ("SAME_LOWER", "SAME_UPPER"):
        for dims, taps, strides in (
            ([1, 2, 7, 6], [3, 4], [2, 3]),
            ([2, 2, 5, 5], [2, 5], [3, 2]),
            ([1, 2, 5], [4], [2]),
            ([1, 2, 5, 4, 6], [3, 2, 4], [2, 2, 3]),
        ):
            filters = noise(numbers, [3, 2] + taps)
            attributes = {"auto_pad": text(mode), "strides": ints(strides)}
            name = f"{mode.lower()}-{'x'.join(map(str, dims))}"
            inputs = [noise(numbers, dims), filters, noise(numbers, [3])]
            cases.append(case(name, "Conv", attributes, inputs, ["float32"]))
            attributes = dict(attributes, kernel_shape=ints(taps))
            inputs = [noise(numbers, dims)]
            cases.append(case(name, "MaxPool", attributes, inputs, ["float32"]))
            cases.append(case(name, "AveragePool", attributes, inputs, ["float32"]))
            attributes = dict(attributes, count_include_pad=number(1))
            cases.append(case(f"{name}-all", "AveragePool", attributes, inputs, ["float32"]))
    x = tensor("uint8", [1, 1, 5, 6], [numbers.randrange(256) for _ in range(30)])
    filters = tensor("uint8", [2, 1, 3, 3], [numbers.randrange(256) for _ in range(18)])
    zero = tensor("uint8", [], [7])
    attributes = {"auto_pad": text("SAME_LOWER"), "strides": ints([2, 2])}
    cases.append(case("lower", "ConvInteger", attributes, [x, filters, zero], ["int32"]))
    return cases


def list_transposed(numbers):
    cases = []
    for mode in ("NOTSET", "SAME_UPPER", "SAME_LOWER"):
        for dims, strides, shape in (
            ([1, 2, 3, 4], [2, 3], [6, 11]),
            ([2, 2, 3, 3], [2, 2], [5, 7]),
            ([1, 2, 4], [3], [10]),
            ([1, 2, 2, 3, 2], [2, 1, 2], [4, 4, 5]),
        ):
            filters = noise(numbers, [2, 1] + [3] * len(strides))
            attributes = {"strides": ints(strides), "output_shape": ints(shape)}
            if mode != "NOTSET":
                attributes["auto_pad"] = text(mode)
            name = f"{mode.lower()}-{'x'.join(map(str, dims))}"
            inputs = [noise(numbers, dims), filters, noise(numbers, [1])]
            cases.append(case(name, "ConvTranspose", attributes, inputs, ["float32"]))
    return cases


def list_resizes(numbers):
    cases = []
    for policy in ("not_larger", "not_smaller"):
        for mode in ("nearest", "linear", "cubic"):
            for sizes in ([7, 8], [2, 9], [3, 3]):
                attributes = {
                    "mode": text(mode),
                    "keep_aspect_ratio_policy": text(policy),
                    "axes": ints([2, 3]),
                }
                inputs = [noise(numbers, [1, 1, 4, 6]), None, None, longs(sizes)]
                name = f"{policy}-{mode}-{sizes[0]}x{sizes[1]}"
                cases.append(case(name, "Resize", attributes, inputs, ["float32"], 18))
    return cases


def list_paddings(numbers):
    cases = []
    for shape in ([3, 9], [8, 2], [4, 5], [1, 10]):
        inputs = [noise(numbers, [2, 4, 5]), longs(shape)]
        name = "x".join(map(str, shape))
        attributes = {"axes": ints([1, -1])}
        cases.append(case(name, "CenterCropPad", attributes, inputs, ["float32"], 18))
    for pads in ([0, 2, 1, 0, 0, 1], [1, 1, 1, 1, 1, 1], [0, 0, 4, 0, 3, 4], [0, -1, 2, 0, 2, -1]):
        inputs = [noise(numbers, [2, 3, 4]), longs(pads)]
        attributes = {"mode": text("wrap")}
        name = "wrap-" + "".join(map(str, pads))
        cases.append(case(name, "Pad", attributes, inputs, ["float32"], 19))
    return cases


def list_moves(numbers):
    cases = []
    x = noise(numbers, [1, 1, 2, 2])
    where = tensor("int64", [1, 1, 2, 2], [1, 3, 8, 15])
    attributes = {"kernel_shape": ints([2, 2]), "strides": ints([2, 2])}
    cases.append(case("plain", "MaxUnpool", attributes, [x, where], ["float32"]))
    attributes = {"blocksize": number(2), "mode": text("CRD")}
    inputs = [noise(numbers, [2, 8, 2, 3])]
    cases.append(case("crd", "DepthToSpace", attributes, inputs, ["float32"]))
    attributes = {
        "kernel_shape": ints([2, 2]),
        "strides": ints([2, 1]),
        "storage_order": number(1),
    }
    inputs = [noise(numbers, [2, 2, 5, 4])]
    cases.append(case("columns", "MaxPool", attributes, inputs, ["float32", "int64"]))
    for corners in (0, 1):
        inputs = [noise(numbers, [1, 2, 3, 2, 4]), noise(numbers, [1, 2, 2, 2, 3])]
        attributes = {"align_corners": number(corners)}
        cases.append(case(f"volume{corners}", "GridSample", attributes, inputs, ["float32"], 20))
    return cases


def list_blocks(numbers):
    x = tensor("uint8", [2, 6], [numbers.randrange(256) for _ in range(12)])
    inputs = [x, noise(numbers, [2, 2]), tensor("uint8", [2, 2], [1, 128, 7, 255])]
    attributes = {"block_size": number(3), "axis": number(1)}
    return [case("blocks", "DequantizeLinear", attributes, inputs, ["float32"], 21)]


def list_transforms(numbers):
    cases = []
    for dims, attributes, name in (
        ([1, 5, 1], {}, "real"),
        ([2, 6, 2], {}, "complex"),
        ([1, 6, 2], {"inverse": number(1)}, "inverse"),
        ([1, 7, 1], {"onesided": number(1)}, "onesided"),
    ):
        for length in (None, 4, 9):
            inputs = [noise(numbers, dims)]
            if length is not None:
                inputs.append(tensor("int64", [], [length]))
            ending = "" if length is None else f"-{length}"
            made = ["float32"]
            cases.append(case(name + ending, "DFT", dict(attributes, axis=number(1)), inputs, made))
    return cases


def list_heads(numbers):
    cases = []
    for heads, size, name in ((2, 4, "equal"), (4, 6, "grouped")):
        q, k = [1, heads, 3, size], [1, 2, 5, size]
        inputs = [noise(numbers, q), noise(numbers, k), noise(numbers, k)]
        cases.append(case(name, "Attention", {}, inputs, ["float32"], 23))
        causal = {"is_causal": number(1), "scale": {"type": "float", "value": 0.25}}
        cases.append(case(f"{name}-causal", "Attention", causal, inputs, ["float32"], 23))
    caches = [noise(numbers, [6, 2]), noise(numbers, [6, 2])]
    places = tensor("int64", [1, 3], [4, 0, 5])
    for size, attributes, name in (
        (4, {}, "whole"),
        (4, {"interleaved": number(1)}, "interleaved"),
        (7, {"rotary_embedding_dim": number(4)}, "part"),
    ):
        inputs = [noise(numbers, [1, 2, 3, size]), *caches, places]
        cases.append(case(name, "RotaryEmbedding", attributes, inputs, ["float32"], 23))
    return cases


def list_suppressions(numbers):
    """Boxes around few centres, some with equal scores."""
    cases = []
    sizes = ((1, 1, 9, 4), (2, 3, 40, 3), (1, 2, 30, 1000), (2, 1, 5, 0))
    for pictures, classes, count, most in sizes:
        boxes, scores = [], []
        for _ in range(pictures * count):
            y, x = numbers.choice([0, 0, 0.4, 1]), numbers.choice([0, 0.1, 0.3, 2])
            h, w = round(numbers.uniform(0.2, 1), 2), round(numbers.uniform(0.2, 1), 2)
            corners = [y, x, round(y + h, 2), round(x + w, 2)]
            boxes += corners if numbers.random() < 0.7 else corners[2:] + corners[:2]
        for _ in range(pictures * classes * count):
            scores.append(numbers.choice([0.1, 0.5, round(numbers.random(), 2)]))
        inputs = [tensor("float32", [pictures, count, 4], boxes)]
        inputs.append(tensor("float32", [pictures, classes, count], scores))
        inputs += [longs([most]), tensor("float32", [1], [0.4]), tensor("float32", [1], [0.2])]
        name = f"{pictures}x{classes}x{count}-{most}"
        cases.append(case(name, "NonMaxSuppression", {}, inputs, ["int64"], 11))
    return cases


def list_inverses(numbers):
    """Real signals from the first terms of their transforms."""
    cases = []
    for length in (None, 6, 7):
        points = None if length is None else tensor("int64", [], [length])
        inputs = [noise(numbers, [1, 4, 2]), points, tensor("int64", [], [1])]
        attributes = {"inverse": number(1), "onesided": number(1)}
        cases.append(case(f"irfft-{length}", "DFT", attributes, inputs, ["float32"], 20))
    return cases


def list_open_cases(numbers):
    return (
        list_convolutions(numbers)
        + list_transposed(numbers)
        + list_resizes(numbers)
        + list_paddings(numbers)
        + list_moves(numbers)
        + list_blocks(numbers)
        + list_transforms(numbers)
        + list_heads(numbers)
        + list_suppressions(numbers)
        + list_inverses(numbers)
    )
