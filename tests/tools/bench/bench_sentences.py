#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""bench_sentences.py MODEL CASE --build DIR [--threads N] [--rounds N] [--ms MS]

The universal sentence encoder (lite) on the cpu device, as TensorFlow.js' graph model in folder
MODEL and as the ONNX model that gen_sentences.py makes of it, beside that on onnxruntime-node and
the former on TensorFlow.js (WASM with SIMD, one thread), in turn, round after round; ratios are
taken within a round. Peers' answers are compared with what CASE.out0.npy says first (CASE.in0.npy
and in1.npy are the input); `run_models` compares ours. NODE_PATH says where the peers are, --build
is a meson build folder.
"""
import argparse
import os
import statistics
import subprocess
import sys
import tempfile

from bench_ort import measure


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("model")
    parser.add_argument("case")
    parser.add_argument("--build", required=True)
    parser.add_argument("--threads", default="1")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--ms", default="300")
    options = parser.parse_args()
    here = os.path.dirname(os.path.abspath(__file__))
    with tempfile.TemporaryDirectory() as folder:
        onnx = os.path.join(folder, "sentences.onnx")
        subprocess.run(
            [
                sys.executable,
                os.path.join(here, "..", "gen", "gen_sentences.py"),
                options.model,
                onnx,
            ],
            check=True,
        )
        peer = ["node", os.path.join(here, "bench_sentences.js")]
        inputs = [
            part for index in (0, 1) for part in ("--input", "%s.in%d.npy" % (options.case, index))
        ]
        ours = [
            os.path.join(options.build, "tests/tools/bench_engine"),
            "--backend",
            "cpu",
            "--threads",
            options.threads,
            "--ms",
            options.ms,
            *inputs,
        ]
        commands = {
            "inferd": [*ours, options.model],
            "inferd, ONNX": [*ours, onnx],
            "onnxruntime": [*peer, "ort", options.threads, options.ms, onnx, options.case],
            "tfjs-wasm": [*peer, "tfjs-wasm", "1", options.ms, options.model, options.case],
        }
        rounds = [
            {name: measure(command) for name, command in commands.items()}
            for _ in range(options.rounds)
        ]
    for name in commands:
        print(
            "%-13s %7.3f ms (least %7.3f); "
            "inferd takes %.2f of its time, by the medians of rounds, %.2f by least times"
            % (
                name,
                statistics.median(each[name][0] for each in rounds),
                min(each[name][1] for each in rounds),
                *(
                    statistics.median(each["inferd"][i] / each[name][i] for each in rounds)
                    for i in (0, 1)
                ),
            )
        )


if __name__ == "__main__":
    main()
