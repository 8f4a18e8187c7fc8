#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""compare_ort.py MODEL --build DIR [--precision NAME] [--against NUMBER]

What the cpu device answers to a generated model (bench_ort.py has them) beside what
onnxruntime-node answers to the same input, a normal deviate for each element: the worst difference
and what the answers' size is. Ends with 1 where it is more than NUMBER of the largest answer.
NODE_PATH says where onnxruntime-node is.
"""
import argparse
import array
import json
import os
import random
import re
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "gen"))
from bench_ort import GENERATORS
from onnx_writer import FLOAT, tensor

# Prints the input's shape; with an input, writes the first output's elements, and prints its shape.
PEER = """
const ort = require('onnxruntime-node'), fs = require('fs');
const [model, input, output] = process.argv.slice(1);
(async () => {
  const session = await ort.InferenceSession.create(
    model, {graphOptimizationLevel: 'all', logSeverityLevel: 3});
  const dims = session.inputMetadata[0].shape.map((d) => (typeof d === 'number' && d > 0 ? d : 1));
  if (!input) return console.log(JSON.stringify(dims));
  const bytes = fs.readFileSync(input);
  const x = new Float32Array(bytes.buffer, bytes.byteOffset, bytes.length / 4);
  const results = await session.run({[session.inputNames[0]]: new ort.Tensor('float32', x, dims)});
  const y = results[session.outputNames[0]];
  fs.writeFileSync(output, Buffer.from(y.data.buffer, y.data.byteOffset, y.data.byteLength));
  console.log(JSON.stringify(y.dims));
})().catch((error) => { console.error(error); process.exit(1); });
"""


def ask_peer(*arguments):
    result = subprocess.run(
        ["node", "-e", PEER, *arguments], check=True, capture_output=True, text=True
    )
    return json.loads(result.stdout)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("model", choices=GENERATORS)
    parser.add_argument("--build", required=True)
    parser.add_argument("--precision", default="fp32")
    parser.add_argument("--against", type=float, default=1e-5)
    options = parser.parse_args()
    here = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "gen")
    with tempfile.TemporaryDirectory() as folder:
        case = os.path.join(folder, options.model)
        data = os.path.join(case, "test_data_set_0")
        os.makedirs(data)
        model, raw, answer = (
            os.path.join(case, "model.onnx"),
            os.path.join(folder, "x"),
            os.path.join(folder, "y"),
        )
        generator, *arguments = GENERATORS[options.model]
        subprocess.run(
            [sys.executable, os.path.join(here, generator), *arguments, model], check=True
        )
        dims = ask_peer(model)
        size, numbers = 1, random.Random(3)
        for dim in dims:
            size *= dim
        x = array.array("f", (numbers.gauss(0, 1) for _ in range(size)))
        with open(raw, "wb") as file:
            file.write(x.tobytes())
        wanted_dims = ask_peer(model, raw, answer)
        with open(answer, "rb") as file:
            wanted = file.read()
        for name, shape, values in (("input_0.pb", dims, x), ("output_0.pb", wanted_dims, wanted)):
            with open(os.path.join(data, name), "wb") as file:
                file.write(tensor(FLOAT, shape, values))
        largest = max(map(abs, array.array("f", wanted)))
        print("onnxruntime: %d numbers, the largest %.4g" % (len(wanted) // 4, largest), flush=True)
        program = os.path.join(options.build, "tests/tools/run_onnx")
        text = subprocess.run(
            [program, folder, "--backend", "cpu:" + options.precision],
            capture_output=True,
            text=True,
        ).stdout
    found = re.search(r"differs by up to ([0-9.e+-]+)", text)
    if found is None and " 1 ok" not in text:
        print(text, end="")
        return 1
    worst = float(found.group(1)) if found else 0
    print(
        "worst difference of inferd: %.3g, %.2g of the largest" % (worst, worst / largest)
        if found
        else "inferd: within a thousandth of each"
    )
    return worst > options.against * largest


if __name__ == "__main__":
    sys.exit(main())
