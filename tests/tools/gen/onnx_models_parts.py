# SPDX-License-Identifier: Apache-2.0
"""Layers of transformers as exporters write them, for gen_onnx_models.py."""
import math
import random
import struct

from onnx_writer import BOOL, FLOAT, INT32, INT64, UINT8, INT8, Graph, port, tensor

FLOAT16, UINT4, INT4 = 10, 21, 22
# Data type, NumPy's name, format of struct.
TYPES = {
    FLOAT: ("<f4", "f"),
    UINT8: ("|u1", "B"),
    INT8: ("|i1", "b"),
    INT32: ("<i4", "i"),
    INT64: ("<i8", "q"),
    BOOL: ("|b1", "?"),
    FLOAT16: ("<f2", "e"),
}
LOWEST = -3.4028234663852886e38  # the smallest FP32
EPSILON = 1e-5


def pack(dtype, values):
    return struct.pack(f"<{len(values)}{TYPES[dtype][1]}", *values)


class Tensor:
    """An input of a case."""

    def __init__(self, dtype, dims, data):
        self.dtype, self.dims, self.data = dtype, list(dims), list(data)


class Net(Graph):
    """A model with its ports, its random numbers, and the form that its products take.

    products: "plain", "int8" (dynamic, one scale), "int8-columns" (one scale for each column),
    "nbits" (MatMulNBits with `bits` bits), "blocks" (DequantizeLinear with blocks along axis 0)
    """

    def __init__(self, name, opset=17, products="plain", bits=4, half=False):
        super().__init__()
        self.name, self.opsets, self.products, self.bits = name, {"": opset}, products, bits
        self.opset, self.half = opset, half
        self.numbers = random.Random(name)
        self.inputs, self.outputs, self.output_names, self.cases, self.rounded = [], [], [], [], {}
        # The accepted difference, relative to the largest element of the output.
        self.tolerance = 4e-3 if half else 1e-2 if products.startswith("int8") else 2e-5

    # --- ports and cases ---

    def input(self, name, dtype, dims):
        self.inputs.append((name, dtype, dims))
        return name

    def result(self, value, name, dims, dtype=None):
        self.output(value, name)
        self.outputs.append(port(name, dims, self.real if dtype is None else dtype))
        self.output_names.append(name)

    def case(self, name, **inputs):
        """A case with these inputs, by name; dots of names are written as two underscores."""
        given = {key.replace("__", "."): value for key, value in inputs.items()}
        self.cases.append((name, [(name, given[name]) for name, _, _ in self.inputs]))

    def reals(self, *dims, scale=1.0):
        """A random input of floats."""
        data = [self.numbers.uniform(-scale, scale) for _ in range(math.prod(dims))]
        return Tensor(self.real, dims, data)

    def words(self, *dims, count=23, dtype=INT64):
        return Tensor(dtype, dims, [self.numbers.randrange(count) for _ in range(math.prod(dims))])

    def write_model(self, path):
        ports = [port(name, dims, dtype) for name, dtype, dims in self.inputs]
        self.write_ports(path, self.name, ports, self.outputs, self.opsets)

    # --- constants ---

    @property
    def real(self):
        return FLOAT16 if self.half else FLOAT

    def floats(self, dims, values):
        return self.const(self.real, dims, pack(self.real, values))

    def number(self, value):
        return self.floats([], [value])

    def longs(self, *values):
        return self.const(INT64, [len(values)], pack(INT64, values))

    def long(self, value):
        return self.const(INT64, [], pack(INT64, [value]))

    def random_values(self, count, scale):
        return [self.numbers.uniform(-scale, scale) for _ in range(count)]

    def weight(self, *dims, scale=None):
        scale = math.sqrt(3 / dims[0]) if scale is None else scale
        return self.floats(dims, self.random_values(math.prod(dims), scale))

    def gamma(self, width):
        return self.floats([width], [1 + x for x in self.random_values(width, 0.2)])

    def beta(self, width):
        return self.weight(width, scale=0.2)

    # --- nodes ---

    def microsoft(self, op, inputs, outputs=1, **attributes):
        """A node of com.microsoft: its output, or a list of several outputs."""
        self.opsets["com.microsoft"] = 1
        names = self.add(op, inputs, outputs, domain="com.microsoft", **attributes)
        return names[0] if outputs == 1 else names

    def cast(self, x, dtype):
        return self.node("Cast", [x], to=dtype)

    def unsqueeze(self, x, *axes):
        if self.opset < 13:
            return self.node("Unsqueeze", [x], axes=list(axes))
        return self.node("Unsqueeze", [x, self.longs(*axes)])

    def slice(self, x, start, end, axis):
        return self.node("Slice", [x, self.longs(start), self.longs(end), self.longs(axis)])

    def split(self, x, parts, axis, width):
        if self.opset < 13:
            return self.add("Split", [x], parts, axis=axis, split=[width] * parts)
        return self.add("Split", [x, self.longs(*[width] * parts)], parts, axis=axis)

    def mean(self, x):
        if self.opset < 18:
            return self.node("ReduceMean", [x], axes=[-1], keepdims=1)
        return self.node("ReduceMean", [x, self.longs(-1)], keepdims=1)

    def dim(self, x, axis):
        """A dimension of x, as a scalar that a run computes."""
        return self.node("Gather", [self.node("Shape", [x]), self.long(axis)], axis=0)

    def shape(self, *parts):
        """A shape of numbers and of scalars."""
        parts = [self.longs(x) if isinstance(x, int) else self.unsqueeze(x, 0) for x in parts]
        return self.node("Concat", parts, axis=0)

    # --- layers ---

    def product(self, x, rows, columns):
        if self.products == "plain":
            return self.node("MatMul", [x, self.weight(rows, columns)])
        if self.products == "nbits":
            return self.product_nbits(x, rows, columns)
        if self.products == "blocks":
            return self.product_blocks(x, rows, columns)
        return self.product_int8(x, rows, columns, self.products == "int8-columns")

    def product_int8(self, x, rows, columns, each):
        """As quantize_dynamic of onnxruntime writes it."""
        if x not in self.rounded:
            self.rounded[x] = self.add("DynamicQuantizeLinear", [x], 3)
        y, scale, zero = self.rounded[x]
        count = columns if each else 1
        dims, dtype = [columns] if each else [], INT8 if each else UINT8
        low, high = (-127, 127) if each else (0, 255)
        data = [self.numbers.randint(low, high) for _ in range(rows * columns)]
        scales = [self.numbers.uniform(0.5, 1) / (64 * math.sqrt(rows)) for _ in range(count)]
        zeros = self.const(dtype, dims, pack(dtype, [0 if each else 128] * count))
        weight = self.const(dtype, [rows, columns], pack(dtype, data))
        sums = self.node("MatMulInteger", [y, weight, zero, zeros])
        factor = self.node("Mul", [scale, self.floats(dims, scales)])
        return self.node("Mul", [self.cast(sums, FLOAT), factor])

    def product_nbits(self, x, rows, columns, block=16):
        count, bits = -(-rows // block), self.bits
        data = self.numbers.randbytes(columns * count * block * bits // 8)
        spread = (1 << bits) * math.sqrt(rows) / 3
        scales = [self.numbers.uniform(0.5, 1) / spread for _ in range(columns * count)]
        zeros = self.numbers.randbytes(columns * ((count * bits + 7) // 8))
        return self.microsoft(
            "MatMulNBits",
            [
                x,
                self.const(UINT8, [columns, count, block * bits // 8], data),
                self.floats([columns, count], scales),
                self.const(UINT8, [columns, (count * bits + 7) // 8], zeros),
            ],
            K=rows,
            N=columns,
            bits=bits,
            block_size=block,
        )

    def product_blocks(self, x, rows, columns, block=16):
        data = self.numbers.randbytes(rows * columns // 2)
        count = rows // block
        scales = self.random_values(count * columns, 0.2 / math.sqrt(rows))
        weight = self.node(
            "DequantizeLinear",
            [self.const(INT4, [rows, columns], data), self.floats([count, columns], scales)],
            axis=0,
            block_size=block,
        )
        return self.node("MatMul", [x, weight])

    def dense(self, x, rows, columns):
        return self.node("Add", [self.beta(columns), self.product(x, rows, columns)])

    def layer_norm(self, x, width):
        if self.opset >= 17:
            return self.node(
                "LayerNormalization", [x, self.gamma(width), self.beta(width)], epsilon=EPSILON
            )
        y = self.node("Sub", [x, self.mean(x)])
        variance = self.mean(self.node("Pow", [y, self.number(2)]))
        root = self.node("Sqrt", [self.node("Add", [variance, self.number(EPSILON)])])
        y = self.node("Mul", [self.node("Div", [y, root]), self.gamma(width)])
        return self.node("Add", [y, self.beta(width)])

    def rms_norm(self, x, width):
        if self.opset >= 23:
            return self.node("RMSNormalization", [x, self.gamma(width)], epsilon=EPSILON)
        square = self.mean(self.node("Pow", [x, self.number(2)]))
        root = self.node("Sqrt", [self.node("Add", [square, self.number(EPSILON)])])
        y = self.node("Mul", [x, self.node("Reciprocal", [root])])
        return self.node("Mul", [self.gamma(width), y])

    def gelu(self, x):
        if self.opset >= 20:
            return self.node("Gelu", [x])
        y = self.node("Erf", [self.node("Div", [x, self.number(math.sqrt(2))])])
        y = self.node("Mul", [x, self.node("Add", [y, self.number(1)])])
        return self.node("Mul", [y, self.number(0.5)])

    def gelu_tanh(self, x):
        y = self.node("Mul", [self.number(0.044715), self.node("Pow", [x, self.number(3)])])
        y = self.node("Mul", [self.number(math.sqrt(2 / math.pi)), self.node("Add", [x, y])])
        y = self.node("Add", [self.number(1), self.node("Tanh", [y])])
        return self.node("Mul", [self.node("Mul", [self.number(0.5), x]), y])

    def silu(self, x):
        return self.node("Mul", [x, self.node("Sigmoid", [x])])

    def heads(self, x, heads, width, perm=(0, 2, 1, 3)):
        """[batch, tokens, heads * width] as [batch, heads, tokens, width]."""
        dims = self.shape(self.dim(x, 0), self.dim(x, 1), heads, width)
        return self.node("Transpose", [self.node("Reshape", [x, dims])], perm=list(perm))

    def join_heads(self, x, width):
        y = self.node("Transpose", [x], perm=[0, 2, 1, 3])
        return self.node("Reshape", [y, self.longs(0, 0, width)])

    def attend(self, q, k, v, width, bias=None):
        """softmax(q k / sqrt(width) + bias) v; k is transposed already."""
        scores = self.node("Div", [self.node("MatMul", [q, k]), self.number(math.sqrt(width))])
        if bias is not None:
            scores = self.node("Add", [scores, bias])
        return self.node("MatMul", [self.node("Softmax", [scores], axis=-1), v])

    def hide(self, mask):
        """The bias [batch, 1, 1, tokens] of a mask of ones and zeros."""
        wide = self.cast(self.unsqueeze(mask, 1, 2), self.real)
        lowest = -65504.0 if self.half else LOWEST
        return self.node("Mul", [self.node("Sub", [self.number(1), wide]), self.number(lowest)])
