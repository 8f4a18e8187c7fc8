#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""bench_ort.py MODEL --harness DIR --build DIR [--threads N] [--rounds N] [--ms MS] [--precision
NAME]

A generated model on the cpu device and on onnxruntime-node, in turn, round after round; ratios are
taken within a round. MODEL is int8 or float, MobileNet v2 of 8-bit numbers or of floats
(gen_mobilenet_v2.py), or encoder, two layers of BERT-base (gen_bert.py), or one of the recurrent
networks below (gen_rnn.py). DIR of --harness holds ort_bench.js, NODE_PATH says where
onnxruntime-node is; --build is a meson build folder. --precision is what the cpu device computes
in.
"""
import argparse
import os
import re
import statistics
import subprocess
import sys
import tempfile


GENERATORS = {
    "int8": ["gen_mobilenet_v2.py"],
    "float": ["gen_mobilenet_v2.py", "--float"],
    "encoder": ["gen_bert.py", "--layers", "2"],
    "lstm": ["gen_rnn.py"],
    "lstm-both": ["gen_rnn.py", "--both"],
    "lstm-large": ["gen_rnn.py", "--width", "1024"],
    "lstm-batch": ["gen_rnn.py", "--batch", "16"],
    "gru": ["gen_rnn.py", "--kind", "GRU"],
}


def measure(command):
    """(median, least) in ms, of the line that both programs print."""
    text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return [float(re.search(name + r"\s+([0-9.]+)", text).group(1)) for name in ("median", "min")]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("model", choices=GENERATORS)
    parser.add_argument("--harness", required=True)
    parser.add_argument("--build", required=True)
    parser.add_argument("--threads", default="1")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--ms", default="700")
    parser.add_argument("--precision", default="fp32")
    options = parser.parse_args()
    here = os.path.dirname(os.path.abspath(__file__))
    with tempfile.TemporaryDirectory() as folder:
        model = os.path.join(folder, options.model + ".onnx")
        generator, *arguments = GENERATORS[options.model]
        subprocess.run(
            [sys.executable, os.path.join(here, "..", "gen", generator), *arguments, model],
            check=True,
        )
        peer = [
            "node",
            os.path.join(options.harness, "ort_bench.js"),
            options.threads,
            options.ms,
            model,
        ]
        ours = [
            os.path.join(options.build, "tests/tools/bench_engine"),
            "--backend",
            "cpu:" + options.precision,
            "--threads",
            options.threads,
            "--ms",
            options.ms,
            model,
        ]
        rounds = []
        for number in range(options.rounds):
            pair = measure(peer), measure(ours)
            rounds.append(pair)
            print(
                "round %d: onnxruntime %.3f ms (least %.3f), inferd %.3f (least %.3f)"
                % (number + 1, *pair[0], *pair[1]),
                flush=True,
            )
    for index, name in enumerate(("medians", "least times")):
        print(
            "by %s: inferd is %.2f times as fast"
            % (name, statistics.median(peer[index] / ours[index] for peer, ours in rounds))
        )


if __name__ == "__main__":
    main()
