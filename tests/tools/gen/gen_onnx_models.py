#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""gen_onnx_models.py FOLDER ANSWERS.jsonl [--record]

Writes small ONNX models with random weights of a fixed seed, their inputs, and a manifest for
run_models with the outputs in ANSWERS.jsonl. These are the ones of onnxruntime-node, without its
optimisations: --record computes them (NODE_PATH says where the package is).
"""
import json
import math
import struct
import subprocess
import sys
from pathlib import Path

sys.dont_write_bytecode = True
from onnx_models_decoders import list_decoders
from onnx_models_encoders import list_encoders
from onnx_models_open import list_open
from onnx_models_parts import TYPES, pack

# Runs the cases of models, and prints for each case its outputs as JSON.
PEER = """
const ort = require('onnxruntime-node'), fs = require('fs'), root = process.argv[1];
const arrays = {float32: Float32Array, int64: BigInt64Array, int32: Int32Array, uint8: Uint8Array,
                int8: Int8Array, bool: Uint8Array, float16: Uint16Array};
(async () => {
  for (const {model, cases, outputs} of JSON.parse(fs.readFileSync(root + '/peer.json'))) {
    let session;
    try {
      session = await ort.InferenceSession.create(root + '/' + model,
        {graphOptimizationLevel: 'disabled', logSeverityLevel: 3, intraOpNumThreads: 1});
    } catch (error) { console.error(model, String(error)); continue; }
    for (const {id, inputs} of cases) {
      try {
        const feeds = {};
        for (const {name, type, dims, file} of inputs) {
          const bytes = fs.readFileSync(root + '/' + file), array = arrays[type];
          const data = new array(bytes.buffer.slice(bytes.byteOffset + 128, bytes.byteOffset +
                                                    bytes.length));
          feeds[name] = new ort.Tensor(type, data, dims);
        }
        const results = await session.run(feeds);
        console.log(JSON.stringify({id, outputs: outputs.map((name) => ({name,
          dtype: results[name].type, dims: results[name].dims,
          data: Array.from(results[name].data).map((x) => typeof x === 'bigint' ? Number(x) : x)}))
        }));
      } catch (error) { console.error(id, String(error)); }
    }
  }
})();
"""
NAMES = {
    "float32": ("<f4", "f"),
    "float16": ("<f2", "H"),
    "int64": ("<i8", "q"),
    "int32": ("<i4", "i"),
    "bool": ("|b1", "B"),
}


def encode_npy(kind, dims, data):
    dims = "(" + "".join(f"{x}, " for x in dims) + ")"
    head = f"{{'descr': '{kind}', 'fortran_order': False, 'shape': {dims}, }}"
    head = head.ljust(117) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head.encode() + data


def peer_type(kind):
    return next(name for name, (other, _) in NAMES.items() if other == kind)


def write_inputs(net, folder):
    """Writes the inputs of all cases; returns what the manifest and the peer need of them."""
    cases = []
    for case, inputs in net.cases:
        rows = []
        for number, (name, x) in enumerate(inputs):
            file = f"{net.name}.{case}.{number}.npy"
            kind = TYPES[x.dtype][0]
            (folder / file).write_bytes(encode_npy(kind, x.dims, pack(x.dtype, x.data)))
            rows.append({"name": name, "type": peer_type(kind), "dims": x.dims, "file": file})
        cases.append({"id": f"{net.name}/{case}", "case": case, "inputs": rows})
    return cases


def record(models, folder, answers):
    (folder / "peer.json").write_text(json.dumps(models))
    result = subprocess.run(
        ["node", "-e", PEER, str(folder)], check=True, stdout=subprocess.PIPE, text=True
    )
    with open(answers, "w") as file:
        for line in result.stdout.splitlines():
            case = json.loads(line)
            for output in case["outputs"]:
                if output["dtype"] == "float32":
                    output["data"] = [float(f"{x:.7g}") for x in output["data"]]
            file.write(json.dumps(case, separators=(",", ":")) + "\n")


def read_reals(dtype, data):
    if dtype == "float16":
        return struct.unpack(f"<{len(data)}e", struct.pack(f"<{len(data)}H", *data))
    return data


def write_outputs(net, case, outputs, folder):
    rows = []
    for number, output in enumerate(outputs):
        kind, code = NAMES[output["dtype"]]
        data = output["data"]
        file = f"{case['id'].replace('/', '.')}.out{number}.npy"
        bytes_of = struct.pack(f"<{len(data)}{code}", *data)
        (folder / file).write_bytes(encode_npy(kind, output["dims"], bytes_of))
        reals = [abs(x) for x in read_reals(output["dtype"], data) if math.isfinite(x)]
        # A half has its own rounding, whatever the model computes with.
        atol = net.tolerance * max(reals, default=0)
        tolerance = {"atol": atol, "rtol": 0} if "float" in output["dtype"] else {"lsb": 0}
        rows.append({"name": output["name"], "dtype": output["dtype"], "file": file})
        rows[-1]["tolerance"] = tolerance
    return rows


def main():
    folder, answers = Path(sys.argv[1]), Path(sys.argv[2])
    folder.mkdir(parents=True, exist_ok=True)
    nets = list_encoders() + list_decoders() + list_open()
    models = []
    for net in nets:
        net.write_model(folder / f"{net.name}.onnx")
        models.append({"model": f"{net.name}.onnx", "cases": write_inputs(net, folder)})
        models[-1]["outputs"] = net.output_names
    if "--record" in sys.argv:
        record(models, folder, answers)
    recorded = {}
    for line in answers.read_text().splitlines():
        case = json.loads(line)
        recorded[case["id"]] = case["outputs"]
    for net, model in zip(nets, models):
        model["id"], model["format"] = net.name, "onnx"
        for case in model["cases"]:
            case["outputs"] = write_outputs(net, case, recorded[case["id"]], folder)
    (folder / "manifest.json").write_text(json.dumps({"models": models}))


if __name__ == "__main__":
    main()
