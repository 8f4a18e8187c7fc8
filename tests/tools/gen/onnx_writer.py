# SPDX-License-Identifier: Apache-2.0
"""Writes ONNX models without any package, for the gen_*.py of this folder.

It encodes the messages of protobuf itself.
"""
import array
import random

FLOAT, UINT8, INT8, INT32, INT64, STRING, BOOL = 1, 2, 3, 6, 7, 8, 9  # TensorProto.DataType
CODES = {FLOAT: "f", UINT8: "B", INT8: "b", INT32: "i", INT64: "q"}
IR_VERSION, OPSET = 8, 13
# AttributeProto.AttributeType
ATTRIBUTE_FLOAT, ATTRIBUTE_INT, ATTRIBUTE_STRING = 1, 2, 3
ATTRIBUTE_FLOATS, ATTRIBUTE_INTS, ATTRIBUTE_STRINGS = 6, 7, 8


def varint(value):
    value &= (1 << 64) - 1
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


def field(number, value):
    """A field of a message: bytes, text or an integer."""
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    if isinstance(value, str):
        value = value.encode()
    return varint(number << 3 | 2) + varint(len(value)) + value


def attribute(name, value):
    """An integer, a float, a text, or a list of one of these."""
    if isinstance(value, str):
        return field(1, name) + field(4, value) + field(20, ATTRIBUTE_STRING)
    if isinstance(value, int):
        return field(1, name) + field(3, value) + field(20, ATTRIBUTE_INT)
    if isinstance(value, float):
        number = array.array("f", [value]).tobytes()
        return field(1, name) + varint(2 << 3 | 5) + number + field(20, ATTRIBUTE_FLOAT)
    if value and isinstance(value[0], str):
        texts = b"".join(field(9, text) for text in value)
        return field(1, name) + texts + field(20, ATTRIBUTE_STRINGS)
    if value and isinstance(value[0], float):
        packed = array.array("f", value).tobytes()
        return field(1, name) + field(7, packed) + field(20, ATTRIBUTE_FLOATS)
    return (
        field(1, name) + b"".join(field(8, number) for number in value) + field(20, ATTRIBUTE_INTS)
    )


def port(name, dims, dtype=FLOAT):
    """An input or output of a graph; a dimension that only a run tells is a name."""
    shape = b"".join(field(1, field(2 if isinstance(dim, str) else 1, dim)) for dim in dims)
    return field(1, name) + field(2, field(1, field(1, dtype) + field(2, shape)))


def tensor(dtype, dims, values, name=""):
    """A TensorProto of numbers, or of bytes that are them already, or of strings."""
    if dtype == STRING:
        texts = b"".join(field(6, text) for text in values)
        return b"".join(field(1, dim) for dim in dims) + field(2, dtype) + field(8, name) + texts
    data = values if isinstance(values, bytes) else array.array(CODES[dtype], values).tobytes()
    return (
        b"".join(field(1, dim) for dim in dims) + field(2, dtype) + field(8, name) + field(9, data)
    )


class Graph:
    """Nodes and initialisers, as they are added. Values are called by their names."""

    def __init__(self):
        self.nodes, self.constants = [], []
        self.block = b""

    def const(self, dtype, dims, values):
        """A constant; `values` as tensor() takes them."""
        name = f"c{len(self.constants)}"
        self.constants.append(field(5, tensor(dtype, dims, values, name)))
        return name

    def noise(self, *dims):
        """A constant of floats about 0, quickly: the same 65,536 over and over."""
        if not self.block:
            numbers = random.Random(1)
            self.block = array.array(
                "f", (numbers.gauss(0, 0.02) for _ in range(1 << 16))
            ).tobytes()
        size = 4
        for dim in dims:
            size *= dim
        return self.const(FLOAT, dims, (self.block * (size // len(self.block) + 1))[:size])

    def add(self, op, inputs, outputs, domain="", **attributes):
        """Adds a node of so many outputs, which it returns."""
        names = [f"v{len(self.nodes)}" + f"_{i}" * (i > 0) for i in range(outputs)]
        body = (
            b"".join(field(1, name) for name in inputs)
            + b"".join(field(2, name) for name in names)
            + field(4, op)
        )
        body += b"".join(field(5, attribute(name, value)) for name, value in attributes.items())
        self.nodes.append(field(1, body + (field(7, domain) if domain else b"")))
        return names

    def node(self, op, inputs, **attributes):
        """Adds a node of one output, which it returns."""
        return self.add(op, inputs, 1, **attributes)[0]

    def output(self, value, name):
        """Gives a value the name of an output of the model."""
        self.nodes.append(field(1, field(1, value) + field(2, name) + field(4, "Identity")))

    def write(self, path, name, x_dims, y, y_dims):
        """Writes the model from x to `y`."""
        self.write_ports(path, name, [port("x", x_dims)], [port(y, y_dims)])

    def write_ports(self, path, name, inputs, outputs, opsets=None):
        """Writes the model with these ports, and with the versions of domains in `opsets`."""
        body = b"".join(self.nodes) + field(2, name) + b"".join(self.constants)
        body += b"".join(field(11, one) for one in inputs) + b"".join(
            field(12, one) for one in outputs
        )
        with open(path, "wb") as file:
            file.write(field(1, IR_VERSION) + field(7, body))
            for domain, version in (opsets or {"": OPSET}).items():
                file.write(field(8, field(1, domain) + field(2, version)))
