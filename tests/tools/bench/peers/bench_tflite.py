#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""bench_tflite.py --harness DIR --build DIR [--rounds N] [--ms MS] [--onnx FILE]... [--threads N]
MODEL.tflite...

TFLite models on the cpu device, in tfjs-tflite and in LiteRT.js under Node, by turns, one thread.
All numbers are processor time of one inference, which other programs on the machine change little.
The least of all rounds is printed, and the median of the ratios within a round. --onnx names the
same network as a quantised ONNX file (gen_mobilenet_v2.py and gen_yolox_nano.py write some), which
onnxruntime-node and inferd run beside the first model; a second --onnx belongs to the second model.
--threads measures by the clock, on a quiet machine: inferd and onnxruntime-node have so many
threads, the other runtimes have one. DIR of --harness has tflite_bench.js and ort_bench.js;
NODE_PATH says where @tensorflow/tfjs-tflite, @litertjs/core and onnxruntime-node are.
"""
import argparse
import os
import re
import statistics
import subprocess

PEERS = ("tfjs-tflite", "litertjs")
# What runs the ONNX file.
ONNX = ("inferd-onnx", "onnxruntime")


def run(command, build, own_clock):
    """The text that a program prints. With own_clock, its clock counts processor time."""
    environment = dict(os.environ)
    if own_clock:
        environment["LD_PRELOAD"] = build + "/tests/tools/libcpu_clock.so"
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    return done.stdout


def read_number(text, name):
    found = re.search(name + r"\s+([0-9.]+)", text)
    return float(found.group(1)) if found else None


def measure(name, model, onnx, options):
    """Milliseconds of one inference; None if the program failed."""
    ms = str(options.ms)
    harness = options.harness
    own_clock = options.threads is None
    threads = str(options.threads or 1)
    if name.startswith("inferd"):
        engine = options.build + "/tests/tools/bench_engine"
        file = model if name == "inferd" else onnx
        command = [engine, "--backend", "cpu", "--threads", threads, "--ms", ms, file]
        return read_number(run(command, options.build, own_clock), "min")
    if name == "onnxruntime":
        command = ["node", harness + "/ort_bench.js", threads, ms, onnx]
        return read_number(run(command, options.build, own_clock), "min")
    command = ["node", harness + "/tflite_bench.js", name, ms, model]
    return read_number(run(command, options.build, False), "cpu" if own_clock else "min")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--harness", required=True)
    parser.add_argument("--build", required=True, type=os.path.abspath)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--ms", type=int, default=400)
    parser.add_argument("--onnx", action="append", default=[], help="for the next model")
    parser.add_argument("--threads", type=int)
    parser.add_argument("models", nargs="+")
    options = parser.parse_args()
    names = ["inferd", *PEERS] + (list(ONNX) if options.onnx else [])
    print("| model | " + " | ".join(f"{name}, ms" for name in names) + " | ratios |")
    print("|---|" + "---|" * (len(names) + 1))
    for index, model in enumerate(options.models):
        onnx = options.onnx[index] if index < len(options.onnx) else None
        used = [name for name in names if name not in ONNX or onnx is not None]
        rounds = [
            {name: measure(name, model, onnx, options) for name in used}
            for _ in range(options.rounds)
        ]
        cells, ratios = [], []
        for name in names:
            times = [times[name] for times in rounds if times.get(name) is not None]
            cells.append(f"{min(times):.3f}" if times else "-")
            of_rounds = [t[name] / t["inferd"] for t in rounds if t.get(name) and t.get("inferd")]
            if name != "inferd" and of_rounds:
                ratios.append(f"{name} {statistics.median(of_rounds):.2f}")
        label = os.path.basename(os.path.dirname(model)) or model
        label = os.path.basename(model)[:-7] if label == "model" else label
        print(f"| {label} | " + " | ".join(cells) + " | " + ", ".join(ratios) + " |", flush=True)


if __name__ == "__main__":
    main()
