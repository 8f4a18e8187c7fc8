#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""gen_sentences.py MODEL FILE: writes the universal sentence encoder (lite) as ONNX.

It translates the TensorFlow.js graph model in folder MODEL node by node. Inputs are those of the
model, indices [n, 2] and values [n] of INT32. Integers within the model become INT64, which ONNX
requires for shapes and indices. 1x1 convolutions are written as matrix products.
"""
import array
import json
import sys
from pathlib import Path

from onnx_writer import FLOAT, INT32, INT64, Graph, port
from tfjs_weights import list_weights

BOOL = 9
TENSOR_TYPES = {1: FLOAT, 3: INT64, 9: INT64, 10: BOOL}  # TensorFlow's DataType
LAST = (1 << 63) - 1
SAME = {
    "Add": "Add",
    "BiasAdd": "Add",
    "Sub": "Sub",
    "Mul": "Mul",
    "RealDiv": "Div",
    "Maximum": "Max",
    "Less": "Less",
    "Greater": "Greater",
    "LogicalNot": "Not",
    "Tanh": "Tanh",
    "Sin": "Sin",
    "Cos": "Cos",
    "Relu": "Relu",
    "Reshape": "Reshape",
    "Range": "Range",
    "MatMul": "MatMul",
    "GatherNd": "GatherND",
    "Shape": "Shape",
}
REDUCE = {"Mean": "ReduceMean", "Max": "ReduceMax", "Prod": "ReduceProd", "Sum": "ReduceSum"}


class Converter(Graph):
    """What has been converted: values by the names that TensorFlow gives them."""

    def __init__(self, folder):
        super().__init__()
        model = json.loads((folder / "model.json").read_text(encoding="utf-8"))
        self.values, self.numbers = {}, {}  # names here; numbers of constants
        self.tf_nodes = model["modelTopology"]["node"]
        for weight, _, data in list_weights(folder, model["weightsManifest"]):
            self.add_weight(weight, data)

    def add_weight(self, weight, data):
        name, dims = weight["name"], weight["shape"]
        if weight["dtype"] == "int32":
            self.numbers[name] = list(array.array("i", data))
            self.values[name] = self.const(INT64, dims, self.numbers[name])
        else:
            dims = dims[2:] if len(dims) == 4 else dims  # filters of single pixels
            self.values[name] = self.const(FLOAT, dims, data)

    def ints(self, *numbers):
        return self.const(INT64, [len(numbers)], numbers)

    def strided_slice(self, node, x):
        """A part of one axis, or one element of each of the axes that it names."""
        begin, end = self.numbers[node["input"][1]], self.numbers[node["input"][2]]
        masks = {
            name: int(value.get("i", 0))
            for name, value in node["attr"].items()
            if name.endswith("mask")
        }
        for axis in reversed(range(len(begin))):
            bit = 1 << axis
            if masks["shrink_axis_mask"] & bit:
                x = self.node("Gather", [x, self.const(INT64, [], [begin[axis]])], axis=axis)
            elif not (masks["begin_mask"] & bit and masks["end_mask"] & bit):
                first = 0 if masks["begin_mask"] & bit else begin[axis]
                last = LAST if masks["end_mask"] & bit else end[axis]
                x = self.node("Slice", [x, self.ints(first), self.ints(last), self.ints(axis)])
        return x

    def convert(self, node):
        """The names of the node's results."""
        op, attributes = node["op"], node.get("attr", {})
        x = [self.values[name] for name in node["input"]]
        numbers = [self.numbers.get(name) for name in node["input"]]
        if op in SAME:
            return self.node(SAME[op], x)
        if op in REDUCE:
            keep = int(attributes["keep_dims"].get("b", False))
            if op == "Sum":
                axes = self.ints(*numbers[1])
                return self.node("ReduceSum", [x[0], axes], keepdims=keep)
            return self.node(REDUCE[op], x[:1], axes=numbers[1], keepdims=keep)
        return getattr(self, "convert_" + op)(x, numbers, attributes, node)

    def convert_StridedSlice(self, x, numbers, attributes, node):
        return self.strided_slice(node, x[0])

    def convert_Where(self, x, numbers, attributes, node):
        return self.node("Transpose", [self.node("NonZero", x)], perm=[1, 0])

    def convert_GatherV2(self, x, numbers, attributes, node):
        return self.node("Gather", x[:2], axis=numbers[2][0])

    def scatter(self, zero, shape, indices, updates):
        return self.node("ScatterND", [self.node("Expand", [zero, shape]), indices, updates])

    def convert_SparseToDense(self, x, numbers, attributes, node):
        return self.scatter(x[3], x[1], x[0], x[2])

    def convert_ScatterNd(self, x, numbers, attributes, node):
        return self.scatter(self.const(FLOAT, [], [0]), x[2], x[0], x[1])

    def convert_Cast(self, x, numbers, attributes, node):
        return self.node("Cast", x, to=TENSOR_TYPES[attributes["DstT"]["type"]])

    def convert_ConcatV2(self, x, numbers, attributes, node):
        return self.node("Concat", x[:-1], axis=numbers[-1][0])

    def convert_Pack(self, x, numbers, attributes, node):
        return self.node(
            "Concat", [self.node("Unsqueeze", [part, self.ints(0)]) for part in x], axis=0
        )

    def convert_ExpandDims(self, x, numbers, attributes, node):
        return self.node("Unsqueeze", [x[0], self.ints(*numbers[1])])

    def convert_Squeeze(self, x, numbers, attributes, node):
        return self.node(
            "Squeeze", [x[0], self.ints(*map(int, attributes["squeeze_dims"]["list"]["i"]))]
        )

    def convert_Square(self, x, numbers, attributes, node):
        return self.node("Mul", [x[0], x[0]])

    def convert_Rsqrt(self, x, numbers, attributes, node):
        return self.node("Reciprocal", [self.node("Sqrt", x)])

    def convert_Conv2D(self, x, numbers, attributes, node):
        return self.node("MatMul", x)

    def convert_SplitV(self, x, numbers, attributes, node):
        return self.add("Split", x[:2], len(numbers[1]), axis=numbers[2][0])

    def convert_Transpose(self, x, numbers, attributes, node):
        return self.node("Transpose", x[:1], perm=numbers[1])

    def convert_BatchMatMul(self, x, numbers, attributes, node):
        if attributes.get("adj_y", {}).get("b"):
            x[1] = self.node("Transpose", [x[1]], perm=[0, 1, 3, 2])
        return self.node("MatMul", x)

    def convert_Slice(self, x, numbers, attributes, node):
        if (
            numbers[2] is None
            or numbers[1] is None
            or any(size not in (1, -1) for size in numbers[2])
        ):
            sys.exit("gen_sentences.py: %s: this Slice is not built" % node["name"])
        ends = [LAST if size < 0 else first + size for first, size in zip(numbers[1], numbers[2])]
        return self.node("Slice", [x[0], x[1], self.ints(*ends), self.ints(*range(len(ends)))])

    def convert_Softmax(self, x, numbers, attributes, node):
        return self.node("Softmax", x, axis=-1)

    def build(self):
        """Converts all nodes, and says what the last one's result is called."""
        for node in self.tf_nodes:
            name = node["name"]
            if node["op"] == "Const":
                continue
            if node["op"] == "Placeholder":
                self.values[name] = self.node("Cast", [name], to=INT64)
                continue
            results = self.convert(node)
            if isinstance(results, str):
                results = [results]
            self.values[name] = results[0]
            for i, result in enumerate(results):
                self.values["%s:%d" % (name, i)] = result
        return self.values[self.tf_nodes[-1]["name"]]


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__.splitlines()[0])
    converter = Converter(Path(sys.argv[1]))
    y = converter.build()
    converter.write_ports(
        sys.argv[2],
        "sentences",
        [port("indices", ["n", 2], INT32), port("values", ["n"], INT32)],
        [port(y, ["sentences", 512])],
    )


if __name__ == "__main__":
    main()
