# SPDX-License-Identifier: Apache-2.0
"""Decoders with past keys and values for gen_onnx_models.py: GPT-2, Llama and its relatives, and
the decoder of Whisper, in the forms of several exporters."""
import math

from onnx_models_parts import BOOL, EPSILON, FLOAT, INT32, INT64, LOWEST, Net, Tensor, pack

WIDTH, HEADS, VOCABULARY, PLACES = 32, 2, 23, 16
DEPTH = WIDTH // HEADS
# Name, batch, new tokens, tokens of the past.
STEPS = (("prompt", 1, 4, 0), ("step", 1, 1, 5), ("batch", 2, 2, 3))
# GroupQueryAttention takes several rows only with one token each or without a past.
GROUPED_STEPS = (("prompt", 1, 4, 0), ("part", 1, 2, 3), ("batch", 2, 1, 4))


class Decoder(Net):
    """A model with past keys and values of its layers as inputs."""

    def __init__(self, name, key_heads=HEADS, layers=1, **form):
        super().__init__(name, **form)
        self.key_heads, self.layers = key_heads, layers
        self.ids = self.input("input_ids", INT64, ["batch", "tokens"])
        self.mask = self.input("attention_mask", INT64, ["batch", "total"])
        self.past = [
            self.input(
                f"past.{layer}.{kind}", self.real, ["batch", key_heads, "past", DEPTH]
            )
            for layer in range(layers)
            for kind in ("key", "value")
        ]

    def add_steps(self, steps=STEPS, places=False, padded=True):
        """Adds the cases; `places` is true if the positions of tokens are an input."""
        for name, batch, tokens, past in steps:
            total = past + tokens
            # The second row has one token less, which is padding on the left.
            hidden = [n if padded else 0 for n in range(batch)]
            ones = [int(i >= n) for n in hidden for i in range(total)]
            inputs = {
                "input_ids": self.words(batch, tokens),
                "attention_mask": Tensor(INT64, [batch, total], ones),
            }
            for key in self.past:
                dims = [batch, self.key_heads, past, DEPTH]
                inputs[key.replace(".", "__")] = self.reals(*dims)
            if places:
                data = [max(past + i - n, 0) for n in hidden for i in range(tokens)]
                inputs["position_ids"] = Tensor(INT64, [batch, tokens], data)
            self.case(name, **inputs)

    def give_present(self, layer, key, value):
        dims = ["batch", self.key_heads, "total", DEPTH]
        self.result(key, f"present.{layer}.key", dims)
        self.result(value, f"present.{layer}.value", dims)

    def give_logits(self, x):
        self.result(
            self.product(x, WIDTH, VOCABULARY), "logits", ["batch", "tokens", VOCABULARY]
        )

    def join_past(self, layer, key, value):
        pair = self.past[2 * layer : 2 * layer + 2]
        key = self.node("Concat", [pair[0], key], axis=2)
        value = self.node("Concat", [pair[1], value], axis=2)
        self.give_present(layer, key, value)
        return key, value

    def causal_bias(self):
        """The bias [batch, 1, tokens, total] of a triangle and of the mask."""
        past = self.dim(self.past[0], 2)
        total = self.node("Add", [past, self.dim(self.ids, 1)])
        columns = self.node("Range", [self.long(0), total, self.long(1)])
        rows = self.node("Range", [past, total, self.long(1)])
        later = self.node("Greater", [self.unsqueeze(columns, 0), self.unsqueeze(rows, 1)])
        bias = self.node("Where", [later, self.number(LOWEST), self.number(0)])
        padding = self.node("Equal", [self.unsqueeze(self.mask, 1, 2), self.long(0)])
        return self.node("Where", [padding, self.number(LOWEST), self.unsqueeze(bias, 0, 1)])


def gemm(net, x, rows, columns):
    """Conv1D of GPT-2: Gemm on flat rows."""
    flat = net.node("Reshape", [x, net.longs(-1, rows)])
    y = net.node("Gemm", [flat, net.weight(rows, columns), net.beta(columns)])
    return net.node("Reshape", [y, net.shape(net.dim(x, 0), net.dim(x, 1), columns)])


def gpt(name, **form):
    net = Decoder(name, **form)
    places = net.input("position_ids", INT64, ["batch", "tokens"])
    net.add_steps(places=True)
    words = net.weight(VOCABULARY, WIDTH, scale=1)
    x = net.node("Gather", [words, net.ids])
    x = net.node("Add", [x, net.node("Gather", [net.weight(PLACES, WIDTH, scale=1), places])])
    # The triangle is a constant of the longest sequence, of which each run takes a part.
    triangle = [int(c <= r) for r in range(PLACES) for c in range(PLACES)]
    triangle = net.const(BOOL, [1, 1, PLACES, PLACES], bytes(triangle))
    low = net.dim(net.past[0], 2)
    high = net.unsqueeze(net.node("Add", [low, net.dim(net.ids, 1)]), 0)
    low = net.unsqueeze(low, 0)
    triangle = net.node("Slice", [triangle, low, high, net.longs(2)])
    triangle = net.node("Slice", [triangle, net.longs(0), high, net.longs(3)])
    hidden = net.hide(net.mask)
    for layer in range(net.layers):
        y = gemm(net, net.layer_norm(x, WIDTH), WIDTH, 3 * WIDTH)
        q, k, v = (net.heads(z, HEADS, DEPTH) for z in net.split(y, 3, 2, WIDTH))
        k, v = net.join_past(layer, k, v)
        k = net.node("Transpose", [k], perm=[0, 1, 3, 2])
        y = net.node("Div", [net.node("MatMul", [q, k]), net.number(math.sqrt(DEPTH))])
        y = net.node("Where", [triangle, y, net.number(LOWEST)])
        y = net.node("Softmax", [net.node("Add", [y, hidden])], axis=-1)
        y = net.join_heads(net.node("MatMul", [y, v]), WIDTH)
        x = net.node("Add", [gemm(net, y, WIDTH, WIDTH), x])
        y = net.gelu_tanh(gemm(net, net.layer_norm(x, WIDTH), WIDTH, 2 * WIDTH))
        x = net.node("Add", [gemm(net, y, 2 * WIDTH, WIDTH), x])
    x = net.node("MatMul", [net.layer_norm(x, WIDTH), net.node("Transpose", [words], perm=[1, 0])])
    net.result(x, "logits", ["batch", "tokens", VOCABULARY])
    return net


def gpt_fused(name, **form):
    """Attention of com.microsoft, whose past has keys and values in one tensor."""
    net = Net(name, **form)
    ids = net.input("input_ids", INT32, ["batch", "tokens"])
    mask = net.input("attention_mask", INT32, ["batch", "total"])
    pasts = [net.input(f"past.{i}", net.real, [2, "batch", HEADS, "past", DEPTH]) for i in (0, 1)]
    for case, batch, tokens, past in STEPS:
        total = past + tokens
        ones = [int(i >= n) for n in range(batch) for i in range(total)]
        net.case(
            case,
            input_ids=net.words(batch, tokens, dtype=INT32),
            attention_mask=Tensor(INT32, [batch, total], ones),
            past__0=net.reals(2, batch, HEADS, past, DEPTH),
            past__1=net.reals(2, batch, HEADS, past, DEPTH),
        )
    x = net.node("Gather", [net.weight(VOCABULARY, WIDTH, scale=1), ids])
    y = net.layer_norm(x, WIDTH)
    for layer in range(2):
        packed = [net.weight(WIDTH, 3 * WIDTH), net.beta(3 * WIDTH)]
        y, present = net.microsoft(
            "Attention", [y, *packed, mask, pasts[layer]], 2, num_heads=HEADS, unidirectional=1
        )
        net.result(present, f"present.{layer}", [2, "batch", HEADS, "total", DEPTH])
        bias = [net.gamma(WIDTH), net.beta(WIDTH), net.beta(WIDTH)]
        y, _, _, x = net.microsoft(
            "SkipLayerNormalization", [x, net.product(y, WIDTH, WIDTH), *bias], 4, epsilon=EPSILON
        )
        y = net.microsoft("FastGelu", [net.product(y, WIDTH, 24), net.beta(24)])
        bias = [net.gamma(WIDTH), net.beta(WIDTH), net.beta(WIDTH)]
        y, _, _, x = net.microsoft(
            "SkipLayerNormalization", [x, net.product(y, 24, WIDTH), *bias], 4, epsilon=EPSILON
        )
    net.result(net.product(y, WIDTH, VOCABULARY), "logits", ["batch", "tokens", VOCABULARY])
    return net


def frequencies(depth):
    return [10000 ** (-i / depth) for i in range(0, depth, 2)]


def rotary_tables(net, places, depth):
    """Cosines and sines [batch, 1, tokens, depth] of positions, as transformers exports them."""
    steps = frequencies(depth)
    steps = net.floats([1, len(steps), 1], steps)
    angles = net.node("MatMul", [steps, net.cast(net.unsqueeze(places, 1), FLOAT)])
    angles = net.node("Transpose", [angles], perm=[0, 2, 1])
    angles = net.node("Concat", [angles, angles], axis=-1)
    return [net.unsqueeze(net.node(op, [angles]), 1) for op in ("Cos", "Sin")]


def rotate(net, x, tables, depth):
    """Rotates the first `depth` elements of each head, by halves."""
    rest = None
    if depth < DEPTH:
        x, rest = net.slice(x, 0, depth, 3), net.slice(x, depth, (1 << 63) - 1, 3)
    low, high = net.slice(x, 0, depth // 2, 3), net.slice(x, depth // 2, (1 << 63) - 1, 3)
    turned = net.node("Concat", [net.node("Neg", [high]), low], axis=-1)
    y = [net.node("Mul", [x, tables[0]]), net.node("Mul", [turned, tables[1]])]
    y = net.node("Add", y)
    return y if rest is None else net.node("Concat", [y, rest], axis=-1)


def repeat_heads(net, x, times):
    if times == 1:
        return x
    y = net.unsqueeze(x, 2)
    y = net.node("Expand", [y, net.shape(1, 1, times, 1, 1)])
    dims = net.shape(net.dim(x, 0), HEADS, net.dim(x, 2), DEPTH)
    return net.node("Reshape", [y, dims])


def feed_gated(net, y, activate=None):
    gate = (activate or net.silu)(net.product(y, WIDTH, 2 * WIDTH))
    y = net.node("Mul", [gate, net.product(y, WIDTH, 2 * WIDTH)])
    return net.product(y, 2 * WIDTH, WIDTH)


def llama(name, key_heads=1, rotated=DEPTH, norm_heads=False, cap=0.0, **form):
    """`rotated`: elements of a head that have a rotary embedding; `norm_heads`: queries and keys
    are normalised, as in Qwen 3; `cap`: scores are capped by tanh, as in Gemma 2."""
    net = Decoder(name, key_heads, **form)
    places = net.input("position_ids", INT64, ["batch", "tokens"])
    net.add_steps(places=True)
    x = net.node("Gather", [net.weight(VOCABULARY, WIDTH, scale=1), net.ids])
    tables, bias = rotary_tables(net, places, rotated), net.causal_bias()
    for layer in range(net.layers):
        y = net.rms_norm(x, WIDTH)
        q = net.heads(net.product(y, WIDTH, WIDTH), HEADS, DEPTH)
        k = net.heads(net.product(y, WIDTH, key_heads * DEPTH), key_heads, DEPTH)
        v = net.heads(net.product(y, WIDTH, key_heads * DEPTH), key_heads, DEPTH)
        if norm_heads:
            q, k = net.rms_norm(q, DEPTH), net.rms_norm(k, DEPTH)
        q, k = (rotate(net, z, tables, rotated) for z in (q, k))
        k, v = net.join_past(layer, k, v)
        k, v = (repeat_heads(net, z, HEADS // key_heads) for z in (k, v))
        k = net.node("Transpose", [k], perm=[0, 1, 3, 2])
        y = net.node("Mul", [net.node("MatMul", [q, k]), net.number(DEPTH**-0.5)])
        if cap:
            y = net.node("Tanh", [net.node("Div", [y, net.number(cap)])])
            y = net.node("Mul", [y, net.number(cap)])
        y = net.node("Softmax", [net.node("Add", [y, bias])], axis=-1)
        y = net.join_heads(net.node("MatMul", [y, v]), WIDTH)
        x = net.node("Add", [x, net.product(y, WIDTH, WIDTH)])
        x = net.node("Add", [x, feed_gated(net, net.rms_norm(x, WIDTH))])
    net.give_logits(net.rms_norm(x, WIDTH))
    return net


def llama_23(name, key_heads=1, **form):
    """With RMSNormalization, RotaryEmbedding and Attention of ai.onnx 23."""
    net = Decoder(name, key_heads, opset=23, **form)
    places = net.input("position_ids", INT64, ["batch", "tokens"])
    net.add_steps(places=True)
    x = net.node("Gather", [net.weight(VOCABULARY, WIDTH, scale=1), net.ids])
    tables, bias = cached_tables(net, DEPTH), net.causal_bias()
    for layer in range(net.layers):
        y = net.rms_norm(x, WIDTH)
        q, k, v = (net.product(y, WIDTH, n * DEPTH) for n in (HEADS, key_heads, key_heads))
        q = net.node("RotaryEmbedding", [q, *tables, places], num_heads=HEADS)
        k = net.node("RotaryEmbedding", [k, *tables, places], num_heads=key_heads)
        pair = net.past[2 * layer : 2 * layer + 2]
        y, key, value = net.add(
            "Attention", [q, k, v, bias, *pair], 3, q_num_heads=HEADS, kv_num_heads=key_heads
        )
        net.give_present(layer, key, value)
        x = net.node("Add", [x, net.product(y, WIDTH, WIDTH)])
        x = net.node("Add", [x, feed_gated(net, net.rms_norm(x, WIDTH), net.gelu)])
    net.give_logits(net.rms_norm(x, WIDTH))
    return net


def cached_tables(net, depth):
    """Constant cosines and sines [positions, depth / 2]."""
    angles = [place * step for place in range(PLACES) for step in frequencies(depth)]
    dims = [PLACES, depth // 2]
    return [net.floats(dims, [op(angle) for angle in angles]) for op in (math.cos, math.sin)]


def llama_fused(name, key_heads=1, packed=False, **form):
    """As the model builder of onnxruntime-genai writes it; `packed`: one product makes queries,
    keys and values. The rest are attributes of GroupQueryAttention."""
    attributes = {key: form.pop(key) for key in list(form) if key in GROUPED}
    net = Decoder(name, key_heads, **form)
    net.add_steps(GROUPED_STEPS, padded=False)
    x = net.node("Gather", [net.weight(VOCABULARY, WIDTH, scale=1), net.ids])
    tables = cached_tables(net, DEPTH)
    lengths = net.node("ReduceSum", [net.mask, net.longs(1)], keepdims=0)
    lengths = net.cast(net.node("Sub", [lengths, net.long(1)]), INT32)
    total = net.cast(net.dim(net.mask, 1), INT32)
    y = net.node("SimplifiedLayerNormalization", [x, net.gamma(WIDTH)], axis=-1, epsilon=EPSILON)
    for layer in range(net.layers):
        if packed:
            q, k, v = net.product(y, WIDTH, (HEADS + 2 * key_heads) * DEPTH), "", ""
        else:
            q, k, v = (net.product(y, WIDTH, n * DEPTH) for n in (HEADS, key_heads, key_heads))
        pair = net.past[2 * layer : 2 * layer + 2]
        y, key, value = net.microsoft(
            "GroupQueryAttention",
            [q, k, v, *pair, lengths, total, *tables],
            3,
            num_heads=HEADS,
            kv_num_heads=key_heads,
            do_rotary=1,
            scale=DEPTH**-0.5,
            **attributes,
        )
        net.give_present(layer, key, value)
        for block in (lambda y: net.product(y, WIDTH, WIDTH), lambda y: feed_gated(net, y)):
            y, _, _, x = net.microsoft(
                "SkipSimplifiedLayerNormalization",
                [x, block(y), net.gamma(WIDTH)],
                4,
                epsilon=EPSILON,
            )
    net.give_logits(y)
    return net


GROUPED = ("local_window_size", "softcap", "rotary_interleaved", "smooth_softmax")


def whisper(name, **form):
    """MultiHeadAttention with past keys of the decoder, and with keys of the encoder."""
    net = Net(name, **form)
    ids = net.input("input_ids", INT64, ["batch", "tokens"])
    dims = ["batch", HEADS, "past", DEPTH]
    past = [net.input(f"past.{kind}", net.real, dims) for kind in ("key", "value")]
    dims = ["batch", HEADS, "places", DEPTH]
    memory = [net.input(f"encoder.{kind}", net.real, dims) for kind in ("key", "value")]
    for case, batch, tokens, length in (("step", 1, 1, 4), ("batch", 2, 1, 2)):
        net.case(
            case,
            input_ids=net.words(batch, tokens),
            past__key=net.reals(batch, HEADS, length, DEPTH),
            past__value=net.reals(batch, HEADS, length, DEPTH),
            encoder__key=net.reals(batch, HEADS, 6, DEPTH),
            encoder__value=net.reals(batch, HEADS, 6, DEPTH),
        )
    low = net.dim(past[0], 2)
    places = net.node("Range", [low, net.node("Add", [low, net.dim(ids, 1)]), net.long(1)])
    x = net.node("Gather", [net.weight(VOCABULARY, WIDTH, scale=1), ids])
    x = net.node("Add", [x, net.node("Gather", [net.weight(PLACES, WIDTH, scale=1), places])])
    y = net.layer_norm(x, WIDTH)
    inputs = [net.product(y, WIDTH, WIDTH) for _ in range(3)]
    inputs += [net.beta(3 * WIDTH), "", "", *past]
    y, key, value = net.microsoft("MultiHeadAttention", inputs, 3, num_heads=HEADS)
    net.result(key, "present.key", ["batch", HEADS, "total", DEPTH])
    net.result(value, "present.value", ["batch", HEADS, "total", DEPTH])
    x = net.node("Add", [x, net.dense(y, WIDTH, WIDTH)])
    q = net.product(net.layer_norm(x, WIDTH), WIDTH, WIDTH)
    bias = net.beta(3 * WIDTH)
    y = net.microsoft("MultiHeadAttention", [q, *memory, bias], num_heads=HEADS)
    x = net.node("Add", [x, net.dense(y, WIDTH, WIDTH)])
    y = net.dense(net.gelu(net.dense(net.layer_norm(x, WIDTH), WIDTH, 24)), 24, WIDTH)
    x = net.layer_norm(net.node("Add", [x, y]), WIDTH)
    net.result(net.product(x, WIDTH, VOCABULARY), "logits", ["batch", "tokens", VOCABULARY])
    return net


def phi(name, **form):
    """RotaryEmbedding of com.microsoft on a part of each head, and MultiHeadAttention."""
    net = Decoder(name, HEADS, **form)
    places = net.input("position_ids", INT64, ["batch", "tokens"])
    net.add_steps(places=True)
    x = net.node("Gather", [net.weight(VOCABULARY, WIDTH, scale=1), net.ids])
    bias = net.causal_bias()
    tables = cached_tables(net, 4)
    for layer in range(net.layers):
        y = net.layer_norm(x, WIDTH)
        q, k, v = (net.dense(y, WIDTH, WIDTH) for _ in range(3))
        q, k = (
            net.microsoft(
                "RotaryEmbedding",
                [z, places, *tables],
                num_heads=HEADS,
                rotary_embedding_dim=4,
                interleaved=layer,
            )
            for z in (q, k)
        )
        pair = net.past[2 * layer : 2 * layer + 2]
        z, key, value = net.microsoft(
            "MultiHeadAttention", [q, k, v, "", "", bias, *pair], 3, num_heads=HEADS
        )
        net.give_present(layer, key, value)
        # Attention and the rest read the same normalised input.
        y = net.dense(net.microsoft("QuickGelu", [net.dense(y, WIDTH, 24)]), 24, WIDTH)
        x = net.node("Add", [net.node("Add", [x, net.dense(z, WIDTH, WIDTH)]), y])
    net.give_logits(net.layer_norm(x, WIDTH))
    return net


def list_decoders():
    return [
        gpt("gpt-opset13", opset=13),
        gpt("gpt-opset17", layers=2),
        gpt("gpt-opset18", opset=18),
        gpt_fused("gpt-fused"),
        gpt_fused("gpt-fused-half", half=True),
        gpt_fused("gpt-fused-int8", products="int8"),
        llama("llama-opset17", layers=2),
        llama("llama-opset21-blocks", opset=21, products="blocks"),
        llama("llama-int8", products="int8-columns"),
        llama("llama-nbits4", products="nbits"),
        llama("qwen3-opset18", norm_heads=True, opset=18),
        llama("stablelm-opset14", key_heads=2, rotated=4, opset=14),
        llama("gemma2-opset17", cap=2.0),
        llama_23("llama-opset23", layers=2),
        llama_23("llama-opset23-one-each", key_heads=2),
        llama_fused("llama-fused", layers=2),
        llama_fused("llama-fused-packed", packed=True),
        llama_fused("llama-fused-half", half=True),
        llama_fused("llama-fused-nbits4", products="nbits"),
        llama_fused("llama-fused-nbits8", products="nbits", bits=8, packed=True),
        llama_fused("llama-fused-window", local_window_size=2),
        llama_fused("llama-fused-softcap", softcap=1.5, rotary_interleaved=1),
        llama_fused("llama-fused-smooth", smooth_softmax=1),
        whisper("whisper-fused"),
        phi("phi-fused"),
    ]
