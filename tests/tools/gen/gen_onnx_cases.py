#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""gen_onnx_cases.py OUT.jsonl

Writes cases of single ONNX operators, in the form that run_contrib reads, with the outputs that
onnxruntime-node gives. They are those of exporters of classical models (ai.onnx.ml), those whose
axes a run computes, those whose nodes depend on sizes, and those of com.microsoft that the shared
cases lack. NODE_PATH says where onnxruntime-node is.
"""
import json
import os
import random
import struct
import subprocess
import sys
import tempfile

from onnx_cases_axes import list_axes_cases, list_contrib_cases
from onnx_cases_classic import list_classic_cases
from onnx_cases_open import list_open_cases
from onnx_writer import field, port, varint

# TensorProto.DataType of the names in a case.
TYPES = {
    "float32": 1,
    "uint8": 2,
    "int8": 3,
    "int32": 6,
    "int64": 7,
    "string": 8,
    "bool": 9,
    "float64": 11,
}
# AttributeProto.AttributeType, and the field that holds the value.
ATTRIBUTES = {
    "float": (1, 2),
    "int": (2, 3),
    "string": (3, 4),
    "tensor": (4, 5),
    "floats": (6, 7),
    "ints": (7, 8),
    "strings": (8, 9),
}

# Runs each model of a list of files with its inputs, and prints the outputs as JSON.
PEER = """
const ort = require('onnxruntime-node'), fs = require('fs');
const arrays = {float32: Float32Array, float64: Float64Array, int32: Int32Array, uint8: Uint8Array,
                int8: Int8Array, bool: Uint8Array};
const number = (x) => typeof x === 'string' ? Number(x) : x;
const make = (t) => new ort.Tensor(t.dtype, t.dtype === 'string' ? t.data :
  t.dtype === 'int64' ? BigInt64Array.from(t.data.map((x) => BigInt(x))) :
  arrays[t.dtype].from(t.data.map(number)), t.dims);
const plain = (x) => typeof x === 'bigint' ? Number(x) : typeof x === 'number' && !isFinite(x) ?
  String(x) : x;
(async () => {
  for (const {file, inputs, names} of JSON.parse(fs.readFileSync(process.argv[1]))) {
    try {
      const session = await ort.InferenceSession.create(
        file, {graphOptimizationLevel: 'disabled', logSeverityLevel: 3, intraOpNumThreads: 1});
      const feeds = {};
      for (const [name, tensor] of Object.entries(inputs)) feeds[name] = make(tensor);
      const results = await session.run(feeds);
      console.log(JSON.stringify(names.map((name) => ({dtype: results[name].type,
        dims: Array.from(results[name].dims),
        data: Array.from(results[name].data).map((x) => results[name].type === 'bool' ? !!x :
          plain(x))}))));
    } catch (error) { console.log(JSON.stringify({error: String(error)})); }
  }
})();
"""


def encode_tensor(tensor):
    """A TensorProto with the data in the field of its type."""
    fields = {"float32": (4, "<f"), "float64": (10, "<d")}
    body = b"".join(field(1, dim) for dim in tensor["dims"]) + field(2, TYPES[tensor["dtype"]])
    if tensor["dtype"] in fields:
        number, code = fields[tensor["dtype"]]
        packed = b"".join(struct.pack(code, float(x)) for x in tensor["data"])
        return body + field(number, packed)
    number = 7 if tensor["dtype"] == "int64" else 5
    return body + b"".join(field(number, int(x)) for x in tensor["data"])


def encode_value(kind, value):
    number = ATTRIBUTES[kind][1]
    if kind in ("float", "floats"):
        return varint(number << 3 | 5) + struct.pack("<f", float(value))
    if kind == "tensor":
        return field(number, encode_tensor(value))
    return field(number, value)


def encode_attribute(name, attribute):
    kind, value = attribute["type"], attribute["value"]
    items = value if isinstance(value, list) else [value]
    body = b"".join(encode_value(kind, item) for item in items)
    return field(1, name) + field(20, ATTRIBUTES[kind][0]) + body


def encode_model(case, outputs):
    """A ModelProto of the one node of the case, whose ports are as run_contrib names them."""
    inputs = case["inputs"]
    node = b"".join(field(1, f"i{i}" if x is not None else "") for i, x in enumerate(inputs))
    node += b"".join(field(2, f"o{i}") for i in range(len(outputs)))
    node += field(4, case["op"]) + field(7, case["domain"])
    for name, attribute in case["attributes"].items():
        node += field(5, encode_attribute(name, attribute))
    graph = field(1, node) + field(2, "case")
    for i, tensor in enumerate(inputs):
        if tensor is not None:
            graph += field(11, port(f"i{i}", tensor["dims"], TYPES[tensor["dtype"]]))
    for i, dtype in enumerate(outputs):
        # The port has no shape, because the runtime computes it.
        graph += field(
            12, field(1, f"o{i}") + field(2, field(1, field(1, TYPES[dtype])))
        )
    opsets = field(8, field(1, case["domain"]) + field(2, case["opset"]))
    if case["domain"]:
        opsets += field(8, field(1, "") + field(2, 17))
    return field(1, 10) + field(7, graph) + opsets


def record(cases, folder):
    """Returns the outputs of each case, or a dictionary with the text of an error."""
    listed = []
    for number, case in enumerate(cases):
        path = os.path.join(folder, f"{number}.onnx")
        with open(path, "wb") as file:
            file.write(encode_model(case, case["made"]))
        listed.append(
            {
                "file": path,
                "inputs": {f"i{i}": x for i, x in enumerate(case["inputs"]) if x is not None},
                "names": [f"o{i}" for i in range(len(case["made"]))],
            }
        )
    index = os.path.join(folder, "index.json")
    with open(index, "w") as file:
        json.dump(listed, file)
    result = subprocess.run(
        ["node", "-e", PEER, index], check=True, capture_output=True, text=True
    )
    return [json.loads(line) for line in result.stdout.splitlines()]


def shorten(tensor):
    """Floats as the shortest texts that read back as the same FP32."""
    if tensor["dtype"] == "float32":
        tensor["data"] = [x if isinstance(x, str) else float(f"{x:.9g}") for x in tensor["data"]]
    return tensor


def main():
    numbers = random.Random(7)
    cases = list_classic_cases(numbers) + list_axes_cases(numbers)
    cases += list_contrib_cases(numbers) + list_open_cases(numbers)
    with tempfile.TemporaryDirectory() as folder:
        answers = record(cases, folder)
    failed = 0
    with open(sys.argv[1], "w") as file:
        for case, answer in zip(cases, answers):
            del case["made"]
            if "error" in answer:
                print(case["id"], answer["error"], file=sys.stderr)
                failed += 1
                continue
            case["outputs"] = [shorten(tensor) for tensor in answer]
            case["tolerance"] = {"atol": 1e-4, "rtol": 1e-4}
            case["source"] = "gen_onnx_cases.py"
            case["verified"] = "onnxruntime-node 1.30.0 CPU"
            file.write(json.dumps(case, separators=(",", ":")) + "\n")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
