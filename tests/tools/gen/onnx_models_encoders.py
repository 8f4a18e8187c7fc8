# SPDX-License-Identifier: Apache-2.0
"""Encoders for gen_onnx_models.py: BERT, T5, ViT, Swin and attention across two sequences, in the
forms of several exporters."""
import math

from onnx_models_parts import EPSILON, FLOAT, INT32, INT64, Net, Tensor, pack

WIDTH, HEADS, VOCABULARY, PLACES = 16, 2, 23, 12
DEPTH = WIDTH // HEADS


def embed(net, ids, kinds):
    words = net.node("Gather", [net.weight(VOCABULARY, WIDTH, scale=1), ids])
    kinds = net.node("Gather", [net.weight(2, WIDTH, scale=1), kinds])
    table = net.const(INT64, [1, PLACES], pack(INT64, range(PLACES)))
    end = net.unsqueeze(net.dim(ids, 1), 0)
    places = net.node("Slice", [table, net.longs(0), end, net.longs(1)])
    places = net.node("Gather", [net.weight(PLACES, WIDTH, scale=1), places])
    return net.layer_norm(net.node("Add", [net.node("Add", [words, kinds]), places]), WIDTH)


def text_inputs(net, dtype=INT64):
    ids = net.input("input_ids", dtype, ["batch", "tokens"])
    mask = net.input("attention_mask", dtype, ["batch", "tokens"])
    kinds = net.input("token_type_ids", dtype, ["batch", "tokens"])
    for name, lengths in (("one", [5]), ("two", [7, 3]), ("token", [1])):
        longest = max(lengths)
        ones = [int(i < n) for n in lengths for i in range(longest)]
        net.case(
            name,
            input_ids=net.words(len(lengths), longest, dtype=dtype),
            attention_mask=Tensor(dtype, [len(lengths), longest], ones),
            token_type_ids=net.words(len(lengths), longest, count=2, dtype=dtype),
        )
    return ids, mask, kinds


def bert(name, **form):
    """The plain form of torch.onnx and optimum."""
    net = Net(name, **form)
    ids, mask, kinds = text_inputs(net)
    x, bias = embed(net, ids, kinds), net.hide(mask)
    for _ in range(2):
        q = net.heads(net.dense(x, WIDTH, WIDTH), HEADS, DEPTH)
        k = net.heads(net.dense(x, WIDTH, WIDTH), HEADS, DEPTH, (0, 2, 3, 1))
        v = net.heads(net.dense(x, WIDTH, WIDTH), HEADS, DEPTH)
        y = net.join_heads(net.attend(q, k, v, DEPTH, bias), WIDTH)
        x = net.layer_norm(net.node("Add", [net.dense(y, WIDTH, WIDTH), x]), WIDTH)
        y = net.dense(net.gelu(net.dense(x, WIDTH, 2 * WIDTH)), 2 * WIDTH, WIDTH)
        x = net.layer_norm(net.node("Add", [y, x]), WIDTH)
    net.result(x, "last_hidden_state", ["batch", "tokens", WIDTH])
    # The mean of the tokens that the mask shows, of length 1.
    shown = net.cast(net.unsqueeze(mask, 2), net.real)
    axes = [net.longs(1)] if net.opset >= 13 else []
    old = {} if axes else {"axes": [1]}
    total = net.node("ReduceSum", [net.node("Mul", [x, shown]), *axes], keepdims=0, **old)
    count = net.node("ReduceSum", [shown, *axes], keepdims=0, **old)
    pooled = net.node("Div", [total, count])
    net.result(net.node("LpNormalization", [pooled], axis=1, p=2), "embedding", ["batch", WIDTH])
    return net


def bert_fused(name, raw_mask=True, **form):
    """As the transformer optimiser of onnxruntime writes it."""
    net = Net(name, **form)
    ids, mask, kinds = text_inputs(net, INT32)
    tables = [net.weight(n, WIDTH, scale=1) for n in (VOCABULARY, PLACES, 2)]
    norm = [net.gamma(WIDTH), net.beta(WIDTH)]
    x, count = net.microsoft(
        "EmbedLayerNormalization", [ids, kinds, *tables, *norm, mask], 2, epsilon=EPSILON
    )
    for layer in range(2):
        packed = [net.weight(WIDTH, 3 * WIDTH), net.beta(3 * WIDTH)]
        y = net.microsoft(
            "Attention", [x, *packed, mask if raw_mask else count], num_heads=HEADS
        )
        y = net.product(y, WIDTH, WIDTH)
        x = skip_norm(net, y, x)
        y = net.product(x, WIDTH, 2 * WIDTH)
        bias = net.beta(2 * WIDTH)
        if layer == 0:
            y = net.microsoft("BiasGelu", [y, bias])
        else:
            y = net.microsoft("FastGelu", [y, bias])
        x = skip_norm(net, net.product(y, 2 * WIDTH, WIDTH), x)
    net.result(x, "last_hidden_state", ["batch", "tokens", WIDTH])
    return net


def skip_norm(net, x, skip):
    parts = [net.gamma(WIDTH), net.beta(WIDTH), net.beta(WIDTH)]
    return net.microsoft("SkipLayerNormalization", [x, skip, *parts], epsilon=EPSILON)


def relative_bias(net, tokens, buckets=8, far=16):
    """The bias [1, heads, tokens, tokens] of T5: logarithmic buckets of distances."""
    places = net.node("Range", [net.long(0), tokens, net.long(1)])
    rows, columns = net.unsqueeze(places, 1), net.unsqueeze(places, 0)
    distance = net.node("Sub", [columns, rows])
    half = buckets // 2
    ahead = net.cast(net.node("Greater", [distance, net.long(0)]), INT64)
    ahead = net.node("Mul", [ahead, net.long(half)])
    distance = net.node("Abs", [distance])
    near = net.node("Less", [distance, net.long(half // 2)])
    ratio = net.node("Div", [net.cast(distance, FLOAT), net.number(half // 2)])
    log = net.node("Div", [net.node("Log", [ratio]), net.number(math.log(far / (half // 2)))])
    log = net.node("Mul", [log, net.number(half - half // 2)])
    log = net.node("Add", [net.cast(log, INT64), net.long(half // 2)])
    log = net.node("Min", [log, net.long(half - 1)])
    bucket = net.node("Add", [ahead, net.node("Where", [near, distance, log])])
    bias = net.node("Gather", [net.weight(buckets, HEADS, scale=1), bucket])
    return net.unsqueeze(net.node("Transpose", [bias], perm=[2, 0, 1]), 0)


def t5(name, **form):
    net = Net(name, **form)
    ids = net.input("input_ids", INT64, ["batch", "tokens"])
    mask = net.input("attention_mask", INT64, ["batch", "tokens"])
    for lengths in ([6], [4, 9]):
        longest = max(lengths)
        ones = [int(i < n) for n in lengths for i in range(longest)]
        net.case(
            f"batch{len(lengths)}",
            input_ids=net.words(len(lengths), longest),
            attention_mask=Tensor(INT64, [len(lengths), longest], ones),
        )
    x = net.node("Gather", [net.weight(VOCABULARY, WIDTH, scale=1), ids])
    bias = net.node("Add", [relative_bias(net, net.dim(ids, 1)), net.hide(mask)])
    for _ in range(2):
        y = net.rms_norm(x, WIDTH)
        q = net.heads(net.product(y, WIDTH, WIDTH), HEADS, DEPTH)
        k = net.heads(net.product(y, WIDTH, WIDTH), HEADS, DEPTH, (0, 2, 3, 1))
        v = net.heads(net.product(y, WIDTH, WIDTH), HEADS, DEPTH)
        scores = net.node("Add", [net.node("MatMul", [q, k]), bias])
        y = net.node("MatMul", [net.node("Softmax", [scores], axis=-1), v])
        x = net.node("Add", [x, net.product(net.join_heads(y, WIDTH), WIDTH, WIDTH)])
        y = net.rms_norm(x, WIDTH)
        gate = net.gelu_tanh(net.product(y, WIDTH, 2 * WIDTH))
        y = net.node("Mul", [gate, net.product(y, WIDTH, 2 * WIDTH)])
        x = net.node("Add", [x, net.product(y, 2 * WIDTH, WIDTH)])
    net.result(net.rms_norm(x, WIDTH), "last_hidden_state", ["batch", "tokens", WIDTH])
    return net


def vit(name, **form):
    net = Net(name, **form)
    x = net.input("pixel_values", net.real, ["batch", 3, "height", "width"])
    net.case("one", pixel_values=net.reals(1, 3, 8, 8))
    net.case("two", pixel_values=net.reals(2, 3, 8, 8))
    filters = net.weight(WIDTH, 3, 4, 4, scale=0.25)
    y = net.node("Conv", [x, filters, net.beta(WIDTH)], kernel_shape=[4, 4], strides=[4, 4])
    y = net.node("Reshape", [y, net.shape(net.dim(x, 0), WIDTH, -1)])
    y = net.node("Transpose", [y], perm=[0, 2, 1])
    token = net.node("Expand", [net.weight(1, 1, WIDTH), net.shape(net.dim(x, 0), 1, 1)])
    y = net.node("Concat", [token, y], axis=1)
    y = net.node("Add", [y, net.weight(1, 5, WIDTH, scale=1)])
    for _ in range(2):
        z = net.layer_norm(y, WIDTH)
        # One product makes queries, keys and values, as timm has it.
        z = net.dense(z, WIDTH, 3 * WIDTH)
        z = net.node("Reshape", [z, net.shape(net.dim(z, 0), net.dim(z, 1), 3, HEADS, DEPTH)])
        z = net.node("Transpose", [z], perm=[2, 0, 3, 1, 4])
        q, k, v = (net.node("Gather", [z, net.long(i)], axis=0) for i in range(3))
        k = net.node("Transpose", [k], perm=[0, 1, 3, 2])
        z = net.join_heads(net.attend(q, k, v, DEPTH), WIDTH)
        y = net.node("Add", [y, net.dense(z, WIDTH, WIDTH)])
        z = net.dense(net.gelu(net.dense(net.layer_norm(y, WIDTH), WIDTH, 24)), 24, WIDTH)
        y = net.node("Add", [y, z])
    y = net.node("Gather", [net.layer_norm(y, WIDTH), net.long(0)], axis=1)
    y = net.node("Gemm", [y, net.weight(7, WIDTH, scale=0.5), net.beta(7)], transB=1)
    net.result(y, "logits", ["batch", 7])
    return net


def roll(net, x, by, axis):
    """torch.roll by slices."""
    end = (1 << 63) - 1
    return net.node(
        "Concat", [net.slice(x, -by, end, axis), net.slice(x, 0, -by, axis)], axis=axis
    )


def swin(name, **form):
    """Attention in shifted windows of 2 x 2 with a table of relative positions."""
    net = Net(name, **form)
    x = net.input("x", net.real, ["batch", 4, 4, WIDTH])
    net.case("one", x=net.reals(1, 4, 4, WIDTH))
    net.case("two", x=net.reals(2, 4, 4, WIDTH))
    index = [3 * (1 + r // 2 - c // 2) + 1 + r % 2 - c % 2 for r in range(4) for c in range(4)]
    y = x
    for shift in (0, 1):
        z = net.layer_norm(y, WIDTH)
        if shift:
            z = roll(net, roll(net, z, -shift, 1), -shift, 2)
        z = net.node("Reshape", [z, net.longs(-1, 2, 2, 2, 2, WIDTH)])
        z = net.node("Transpose", [z], perm=[0, 1, 3, 2, 4, 5])
        z = net.node("Reshape", [z, net.longs(-1, 4, WIDTH)])
        q = net.heads(net.dense(z, WIDTH, WIDTH), HEADS, DEPTH)
        k = net.heads(net.dense(z, WIDTH, WIDTH), HEADS, DEPTH, (0, 2, 3, 1))
        v = net.heads(net.dense(z, WIDTH, WIDTH), HEADS, DEPTH)
        table = net.weight(9, HEADS, scale=1)
        bias = net.node("Gather", [table, net.longs(*index)], axis=0)
        bias = net.node("Reshape", [bias, net.longs(4, 4, HEADS)])
        bias = net.unsqueeze(net.node("Transpose", [bias], perm=[2, 0, 1]), 0)
        z = net.join_heads(net.attend(q, k, v, DEPTH, bias), WIDTH)
        z = net.node("Reshape", [net.dense(z, WIDTH, WIDTH), net.longs(-1, 2, 2, 2, 2, WIDTH)])
        z = net.node("Transpose", [z], perm=[0, 1, 3, 2, 4, 5])
        z = net.node("Reshape", [z, net.longs(-1, 4, 4, WIDTH)])
        if shift:
            z = roll(net, roll(net, z, shift, 1), shift, 2)
        y = net.node("Add", [y, z])
    # Patch merging: every second row and column.
    step = [net.longs(0, 0), net.longs(4, 4), net.longs(1, 2), net.longs(2, 2)]
    corner = [net.longs(1, 1), net.longs(4, 4), net.longs(1, 2), net.longs(2, 2)]
    y = net.node(
        "Concat", [net.node("Slice", [y, *step]), net.node("Slice", [y, *corner])], axis=-1
    )
    net.result(net.product(y, 2 * WIDTH, WIDTH), "merged", ["batch", 2, 2, WIDTH])
    return net


def cross(name, **form):
    """MultiHeadAttention of one sequence on another, with a mask of its tokens."""
    net = Net(name, **form)
    x = net.input("x", net.real, ["batch", "tokens", WIDTH])
    memory = net.input("memory", net.real, ["batch", "places", WIDTH])
    mask = net.input("mask", INT32, ["batch", "places"])
    for case, batch, tokens, places in (("one", 1, 3, 4), ("two", 2, 1, 5)):
        ones = [int(i < places - n) for n in range(batch) for i in range(places)]
        net.case(
            case,
            x=net.reals(batch, tokens, WIDTH),
            memory=net.reals(batch, places, WIDTH),
            mask=Tensor(INT32, [batch, places], ones),
        )
    inputs = [net.product(y, WIDTH, WIDTH) for y in (x, memory, memory)]
    inputs += [net.beta(3 * WIDTH), mask]
    y = net.microsoft("MultiHeadAttention", inputs, num_heads=HEADS)
    net.result(net.product(y, WIDTH, WIDTH), "y", ["batch", "tokens", WIDTH])
    return net


def list_encoders():
    return [
        bert("bert-opset17"),
        bert("bert-opset11", opset=11),
        bert("bert-opset20", opset=20),
        bert("bert-half", half=True),
        bert("bert-int8", products="int8"),
        bert("bert-int8-columns", products="int8-columns"),
        bert("bert-blocks", opset=21, products="blocks"),
        bert_fused("bert-fused"),
        bert_fused("bert-fused-lengths", raw_mask=False),
        bert_fused("bert-fused-half", half=True),
        bert_fused("bert-fused-nbits4", products="nbits"),
        bert_fused("bert-fused-nbits8", products="nbits", bits=8),
        t5("t5-opset17"),
        t5("t5-opset13", opset=13),
        vit("vit-opset17"),
        vit("vit-opset20-int8", opset=20, products="int8"),
        vit("vit-half", half=True),
        swin("swin-opset17"),
        cross("cross-fused"),
        cross("cross-fused-half", half=True),
    ]
