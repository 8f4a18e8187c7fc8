# SPDX-License-Identifier: Apache-2.0
"""Parts of models whose sizes only a run knows, for gen_onnx_models.py: what stands behind a
detector, features of pictures and sounds, and recurrent layers."""
from onnx_models_parts import FLOAT, INT4, INT32, INT64, Net, Tensor
from onnx_writer import field

LAST = (1 << 63) - 1


class Open(Net):
    """A model whose inputs have named dimensions; `sizes` has their values for each case."""

    def __init__(self, name, *sizes, opset=17):
        super().__init__(name, opset)
        self.sizes, self.given = sizes, {}

    def take(self, name, dims, dtype=FLOAT, low=-1.0, high=1.0):
        """An input with random elements between `low` and `high`."""
        self.given[name] = (dims, dtype, low, high)
        return self.input(name, dtype, dims)

    def draw(self, sizes, dims, dtype, low, high):
        dims = [sizes.get(dim, dim) for dim in dims]
        count = 1
        for dim in dims:
            count *= dim
        if dtype == FLOAT:
            data = [self.numbers.uniform(low, high) for _ in range(count)]
        else:
            data = [self.numbers.randint(low, high) for _ in range(count)]
        return Tensor(dtype, dims, data)

    def give(self, *values, dtypes=()):
        """Makes the values outputs, and draws the inputs of each case."""
        for i, value in enumerate(values):
            dtype = dtypes[i] if i < len(dtypes) else FLOAT
            self.output(value, f"y{i}")
            # The port has no shape, because the runtime computes it.
            self.outputs.append(open_port(f"y{i}", dtype))
            self.output_names.append(f"y{i}")
        for number, sizes in enumerate(self.sizes):
            drawn = {key: self.draw(sizes, *of) for key, of in self.given.items()}
            self.case(f"case{number}", **drawn)
        return self


def open_port(name, dtype):
    return field(1, name) + field(2, field(1, field(1, dtype)))


def boxes_of(net, name, dims):
    """Boxes with two corners, as an input of centres and sizes."""
    x = net.take(name, dims, low=0.2, high=1.0)
    centre = net.node("Slice", [x, net.longs(0), net.longs(2), net.longs(-1)])
    half = net.node("Slice", [x, net.longs(2), net.longs(LAST), net.longs(-1)])
    half = net.node("Mul", [half, net.number(0.5)])
    corners = [net.node(op, [centre, half]) for op in ("Sub", "Add")]
    return net.node("Concat", corners, axis=-1)


def suppress(net, boxes, scores, most=3, overlap=0.4, threshold=0.1, **attributes):
    limits = [net.longs(most), net.floats([1], [overlap]), net.floats([1], [threshold])]
    return net.node("NonMaxSuppression", [boxes, scores, *limits], **attributes)


def yolo_nms():
    """Boxes and classes of several pictures, with the selected rows gathered."""
    sizes = [{"b": 1, "n": 9, "c": 2}, {"b": 3, "n": 5, "c": 3}, {"b": 2, "n": 1, "c": 1}]
    net = Open("yolo-nms", *sizes)
    boxes = boxes_of(net, "boxes", ["b", "n", 4])
    scores = net.take("scores", ["b", "n", "c"], low=0.0)
    picked = suppress(net, boxes, net.node("Transpose", [scores], perm=[0, 2, 1]))
    parts = net.split(picked, 3, 1, 1)
    rows = net.node("Concat", [parts[0], parts[2]], axis=1)
    places = net.node("Concat", [parts[0], parts[2], parts[1]], axis=1)
    return net.give(
        picked,
        net.node("GatherND", [boxes, rows]),
        net.node("GatherND", [scores, places]),
        dtypes=[INT64],
    )


def centre_nms():
    net = Open("centre-nms", {"b": 2, "n": 7, "c": 2}, opset=11)
    boxes = net.take("boxes", ["b", "n", 4], low=0.1)
    scores = net.take("scores", ["b", "c", "n"], low=0.0)
    return net.give(suppress(net, boxes, scores, center_point_box=1), dtypes=[INT64])


def torchvision_nms():
    """batched_nms: each class is moved to a place of its own."""
    net = Open("torchvision-nms", {"n": 8}, {"n": 3})
    boxes = boxes_of(net, "boxes", ["n", 4])
    scores = net.take("scores", ["n"], low=0.0)
    labels = net.take("labels", ["n"], INT64, 0, 2)
    largest = net.node("ReduceMax", [boxes], keepdims=0)
    step = net.node("Add", [largest, net.number(1)])
    moved = net.node("Mul", [net.cast(labels, FLOAT), step])
    moved = net.node("Add", [boxes, net.unsqueeze(moved, 1)])
    picked = suppress(net, net.unsqueeze(moved, 0), net.unsqueeze(scores, 0, 1), most=100)
    picked = net.node("Gather", [picked, net.longs(2)], axis=1)
    picked = net.node("Squeeze", [picked, net.longs(1)])
    kept = net.node("Gather", [scores, picked])
    count = net.node("Concat", [net.longs(4), net.node("Shape", [kept])], axis=0)
    count = net.node("ReduceMin", [count], keepdims=1, axes=[0])
    best = net.add("TopK", [kept, count], 2, axis=0)
    picked = net.node("Gather", [picked, best[1]])
    return net.give(
        best[0],
        net.node("Gather", [boxes, picked]),
        net.node("Gather", [labels, picked]),
        dtypes=[FLOAT, FLOAT, INT64],
    )


def detr():
    """The best of all queries and classes, and their boxes."""
    net = Open("detr", {"b": 1, "q": 6}, {"b": 2, "q": 9})
    scores = net.node("Sigmoid", [net.take("logits", ["b", "q", 5])])
    boxes = boxes_of(net, "boxes", ["b", "q", 4])
    sizes = net.take("sizes", ["b", 2], INT64, 100, 500)
    flat = net.node("Flatten", [scores], axis=1)
    values, places = net.add("TopK", [flat, net.longs(4)], 2, axis=1)
    rows = net.node("Div", [places, net.long(5)])
    labels = net.node("Mod", [places, net.long(5)])
    index = net.node("Expand", [net.unsqueeze(rows, 2), net.longs(1, 1, 4)])
    kept = net.node("GatherElements", [boxes, index], axis=1)
    height, width = net.split(net.cast(sizes, FLOAT), 2, 1, 1)
    scale = net.node("Concat", [width, height, width, height], axis=1)
    kept = net.node("Mul", [kept, net.unsqueeze(scale, 1)])
    return net.give(values, labels, kept, dtypes=[FLOAT, INT64, FLOAT])


def yolo_head():
    """Anchors of a grid whose size the picture decides."""
    net = Open("yolo-head", {"b": 1, "h": 3, "w": 4}, {"b": 2, "h": 2, "w": 2})
    x = net.take("x", ["b", 4, "h", "w"])
    y = net.node("Conv", [x, net.weight(14, 4, 1, 1, scale=0.5), net.beta(14)])
    b, h, w = (net.dim(y, i) for i in (0, 2, 3))
    y = net.node("Reshape", [y, net.shape(b, 2, 7, h, w)])
    y = net.node("Sigmoid", [net.node("Transpose", [y], perm=[0, 1, 3, 4, 2])])
    rows = net.node("Range", [net.long(0), h, net.long(1)])
    columns = net.node("Range", [net.long(0), w, net.long(1)])
    dims = net.shape(h, w)
    rows = net.node("Expand", [net.unsqueeze(rows, 1), dims])
    columns = net.node("Expand", [net.unsqueeze(columns, 0), dims])
    grid = [net.unsqueeze(z, 2) for z in (columns, rows)]
    grid = net.cast(net.unsqueeze(net.node("Concat", grid, axis=2), 0, 1), FLOAT)
    place = net.slice(y, 0, 2, 4)
    place = net.node("Add", [net.node("Mul", [place, net.number(2)]), grid])
    size = net.node("Pow", [net.slice(y, 2, 4, 4), net.number(2)])
    anchors = net.floats([1, 2, 1, 1, 2], [1, 2, 3, 1.5])
    size = net.node("Mul", [size, anchors])
    y = net.node("Concat", [place, size, net.slice(y, 4, LAST, 4)], axis=4)
    return net.give(net.node("Reshape", [y, net.shape(b, -1, 7)]))


def pyramid():
    """A feature map that grows to the size of another one."""
    cases = [
        {"b": 1, "h": 5, "w": 6, "u": 3, "v": 3},
        {"b": 2, "h": 4, "w": 3, "u": 2, "v": 2},
    ]
    net = Open("pyramid", *cases)
    large = net.take("large", ["b", 3, "h", "w"])
    small = net.take("small", ["b", 3, "u", "v"])
    sizes = net.node("Shape", [large])
    head = net.node("Shape", [small])
    sizes = net.node("Concat", [net.slice(head, 0, 2, 0), net.slice(sizes, 2, 4, 0)], axis=0)
    grown = [
        net.node("Resize", [small, "", "", sizes], mode=mode, **more)
        for mode, more in (
            ("nearest", {"coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}),
            ("linear", {"coordinate_transformation_mode": "align_corners"}),
            ("cubic", {"coordinate_transformation_mode": "pytorch_half_pixel"}),
        )
    ]
    twice = net.node("Resize", [small, "", net.floats([4], [1, 1, 2, 2])], mode="linear")
    return net.give(*(net.node("Add", [large, y]) for y in grown), twice)


def padded():
    """Convolutions and pools whose padding depends on the size."""
    net = Open("padded", {"b": 1, "h": 5, "w": 6}, {"b": 2, "h": 4, "w": 7})
    x = net.take("x", ["b", 2, "h", "w"])
    filters = net.weight(3, 2, 3, 3, scale=0.3)
    wide = net.weight(3, 2, 2, 4, scale=0.3)
    y = [
        net.node("Conv", [x, filters], auto_pad="SAME_UPPER", strides=[2, 2]),
        net.node("Conv", [x, wide], auto_pad="SAME_LOWER"),
    ]
    for op in ("MaxPool", "AveragePool"):
        y.append(net.node(op, [x], auto_pad="SAME_UPPER", strides=[2, 2], kernel_shape=[3, 3]))
        y.append(net.node(op, [x], auto_pad="SAME_LOWER", kernel_shape=[2, 2]))
    return net.give(*y)


def grown():
    """Transposed convolutions whose padding depends on the size."""
    net = Open("grown", {"b": 1, "h": 3, "w": 4}, {"b": 2, "h": 2, "w": 5})
    x = net.take("x", ["b", 2, "h", "w"])
    filters = net.weight(2, 3, 3, 3, scale=0.3)
    y = [
        net.node("ConvTranspose", [x, filters], auto_pad=pad, strides=[2, 2])
        for pad in ("SAME_UPPER", "SAME_LOWER", "VALID")
    ]
    more = {"strides": [3, 3], "output_padding": [1, 2]}
    y.append(net.node("ConvTranspose", [x, filters], auto_pad="SAME_UPPER", **more))
    return net.give(*y)


def wav2vec():
    """Strided convolutions of a signal, normalised groups, positions by a grouped convolution."""
    net = Open("wav2vec", {"b": 1, "n": 40}, {"b": 2, "n": 25})
    x = net.take("x", ["b", "n"])
    x = net.node("Sub", [x, net.node("ReduceMean", [x], axes=[-1], keepdims=1)])
    y = net.node("Conv", [net.unsqueeze(x, 1), net.weight(6, 1, 5, scale=0.5)], strides=[2])
    y = net.node("InstanceNormalization", [y, net.gamma(6), net.beta(6)])
    y = net.gelu(y)
    y = net.node("Conv", [y, net.weight(6, 6, 3, scale=0.3), net.beta(6)], strides=[2])
    y = net.gelu(y)
    place = net.node(
        "Conv", [y, net.weight(6, 3, 4, scale=0.3), net.beta(6)], group=2, pads=[2, 2]
    )
    place = net.slice(place, 0, -1, 2)
    y = net.node("Transpose", [net.node("Add", [y, net.gelu(place)])], perm=[0, 2, 1])
    y = net.layer_norm(y, 6)
    return net.give(y, net.node("ArgMax", [y], axis=-1, keepdims=0), dtypes=[FLOAT, INT64])


def recurrent(kind, gates, opset):
    """A bidirectional layer over sequences of several lengths, and its state."""
    net = Open(f"{kind.lower()}-{opset}", {"b": 1, "n": 4}, {"b": 2, "n": 3}, opset=opset)
    x = net.take("x", ["n", "b", 3])
    lengths = net.take("lengths", ["b"], INT32, 1, 3)
    state = net.take("h", [2, "b", 4])
    parts = [
        net.weight(2, gates * 4, 3, scale=0.5),
        net.weight(2, gates * 4, 4, scale=0.5),
        net.weight(2, 2 * gates * 4, scale=0.5),
    ]
    more = [net.take("c", [2, "b", 4])] if kind == "LSTM" else []
    extra = {"linear_before_reset": 1} if kind == "GRU" else {}
    y = net.add(
        kind,
        [x, *parts, lengths, state, *more],
        2 + len(more),
        hidden_size=4,
        direction="bidirectional",
        **extra,
    )
    return net.give(*y)


def regions():
    """RoiAlign of as many regions as a run has, after a choice by a score."""
    net = Open("regions", {"h": 6, "w": 7, "n": 5}, {"h": 4, "w": 4, "n": 2}, opset=16)
    x = net.take("x", [1, 2, "h", "w"])
    boxes = net.node("Mul", [boxes_of(net, "boxes", ["n", 4]), net.number(4)])
    scores = net.take("scores", ["n"])
    best = net.node("Greater", [scores, net.number(-0.9)])
    places = net.node("NonZero", [best])
    places = net.node("Squeeze", [places, net.longs(0)])
    boxes = net.node("Gather", [boxes, places])
    zeros = net.node("Mul", [places, net.long(0)])
    y = net.node(
        "RoiAlign", [x, boxes, zeros], output_height=2, output_width=2, sampling_ratio=2
    )
    kept = net.node("Compress", [scores, best], axis=0)
    return net.give(y, kept, places, dtypes=[FLOAT, FLOAT, INT64])


def tokens():
    """Positions that skip padding, and rows at the last token."""
    net = Open("tokens", {"b": 2, "n": 5}, {"b": 1, "n": 3}, opset=18)
    ids = net.take("ids", ["b", "n"], INT64, 0, 3)
    x = net.take("x", ["b", "n", 4])
    shown = net.node("Not", [net.node("Equal", [ids, net.long(1)])])
    places = net.node("CumSum", [net.cast(shown, INT64), net.long(1)])
    last = net.node("ArgMax", [ids], axis=1, keepdims=0, select_last_index=1)
    rows = net.node("Range", [net.long(0), net.dim(ids, 0), net.long(1)])
    index = net.node("Concat", [net.unsqueeze(rows, 1), net.unsqueeze(last, 1)], axis=1)
    end = net.node("GatherND", [x, index])
    scores = net.node("Einsum", [x, x], equation="bnd,bmd->bnm")
    low = net.node("Trilu", [scores], upper=0)
    hot = net.node("OneHot", [ids, net.long(4), net.floats([2], [0, 1])])
    counts = net.node("ReduceSum", [hot, net.longs(1)], keepdims=0)
    picked = net.node("ScatterND", [x, index, end], reduction="add")
    values, kinds, back, times = net.add("Unique", [ids], 4)
    return net.give(
        places, end, low, counts, picked, values, back, times,
        dtypes=[INT64, FLOAT, FLOAT, FLOAT, FLOAT, INT64, INT64, INT64],
    )


def moved():
    """Depth to space, tiles, and windows whose sizes come from shapes."""
    net = Open("moved", {"b": 1, "h": 2, "w": 4}, {"b": 3, "h": 4, "w": 2})
    x = net.take("x", ["b", 4, "h", "w"])
    y = net.node("DepthToSpace", [x], blocksize=2, mode="CRD")
    z = net.node("SpaceToDepth", [x], blocksize=2)
    tiled = net.node("Tile", [x, net.shape(1, 1, net.dim(x, 0), 2)])
    parts = net.node("Reshape", [x, net.shape(0, 2, 2, net.dim(x, 2), -1)])
    parts = net.node("Transpose", [parts], perm=[0, 2, 1, 3, 4])
    grid = net.take("grid", ["b", "h", "w", 2], low=-1.2, high=1.2)
    sampled = net.node("GridSample", [x, grid], align_corners=0)
    norm = net.node("LRN", [x], size=3)
    flipped = net.node("Slice", [x, net.longs(-1), net.longs(-LAST), net.longs(3), net.longs(-1)])
    return net.give(y, z, tiled, parts, sampled, norm, flipped)


def linear_attention(rule):
    """A sequence of unknown length, with a state that the next run continues."""
    sizes = [{"b": 1, "n": 4}, {"b": 2, "n": 3}, {"b": 1, "n": 1}]
    net = Open(f"linear-attention-{rule.replace('_', '-')}", *sizes)
    q, k, v = (net.take(name, ["b", "n", size]) for name, size in (("q", 8), ("k", 4), ("v", 6)))
    state = net.take("state", ["b", 2, 2, 3])
    inputs = [q, k, v, state]
    gated, delta = "gated" in rule, "delta" in rule
    if gated:
        inputs.append(net.take("decay", ["b", "n", 4], low=-1, high=0))
    if delta:
        inputs += [""] * (not gated) + [net.take("beta", ["b", "n", 2], low=0)]
    y, end = net.microsoft(
        "LinearAttention", inputs, 2, q_num_heads=4, kv_num_heads=2, update_rule=rule, scale=0.5
    )
    return net.give(y, end)


def causal_conv(activation):
    """A convolution over a sequence of unknown length that continues the last run."""
    sizes = [{"b": 1, "n": 4}, {"b": 2, "n": 1}]
    net = Open(f"causal-conv-{activation}", *sizes)
    x, state = net.take("x", ["b", 5, "n"]), net.take("state", ["b", 5, 2])
    inputs = [x, net.weight(5, 1, 3, scale=0.5), net.beta(5), state]
    return net.give(*net.microsoft("CausalConvWithState", inputs, 2, activation=activation))


def block_rows(net, rows, columns, zeros, tail=()):
    """Weights [columns, rows, *tail] with blocks of 16 along the rows."""
    data = net.numbers.randbytes(rows * columns // 2)
    count = rows // 16
    scales = net.floats([columns, count, *tail], net.random_values(columns * count, 0.05))
    inputs = [net.const(INT4, [columns, rows, *tail], data), scales]
    if zeros:
        data = net.numbers.randbytes(columns * count // 2)
        inputs.append(net.const(INT4, [columns, count, *tail], data))
    return net.node("DequantizeLinear", inputs, axis=1, block_size=16)


def blocks(zeros):
    """Transposed weights in blocks: of products, of a convolution of one tap, and of a table."""
    net = Open(f"blocks{'-zeros' * zeros}", {"b": 1, "n": 3}, {"b": 2, "n": 1}, opset=21)
    x = net.take("x", ["b", "n", 32])
    flat = net.node("Reshape", [x, net.longs(-1, 32)])
    weights = block_rows(net, 32, 6, zeros)
    turned = net.node("Transpose", [weights], perm=[1, 0])
    picture = net.unsqueeze(net.node("Transpose", [x], perm=[0, 2, 1]), 3)
    square = net.take("square", [32, 32])
    same = net.node("Transpose", [weights], perm=[0, 1])
    ids = net.take("ids", ["b", "n"], INT64, -8, 7)
    return net.give(
        net.node("Gemm", [flat, weights, net.beta(6)], transB=1, alpha=0.5),
        net.node("MatMul", [x, turned]),
        net.node("Gemm", [flat, turned]),
        net.node("Gemm", [square, weights], transA=1, transB=1),
        net.node("Gemm", [flat, same], transB=1),
        net.node("Conv", [picture, block_rows(net, 32, 4, zeros, (1, 1)), net.beta(4)]),
        net.node("Gather", [block_rows(net, 32, 8, zeros), ids]),
        net.node("Gather", [weights, net.long(2)]),
    )


def list_open():
    return [
        yolo_nms(),
        centre_nms(),
        torchvision_nms(),
        detr(),
        yolo_head(),
        pyramid(),
        padded(),
        grown(),
        wav2vec(),
        recurrent("LSTM", 4, 14),
        recurrent("GRU", 3, 14),
        recurrent("RNN", 1, 7),
        regions(),
        tokens(),
        moved(),
        blocks(False),
        blocks(True),
        causal_conv("none"),
        causal_conv("silu"),
        linear_attention("linear"),
        linear_attention("gated"),
        linear_attention("delta"),
        linear_attention("gated_delta"),
    ]
