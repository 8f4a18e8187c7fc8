#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""bench_transformers.py MODELS --build DIR [--threads N] [--rounds N] [--ms MS] [--cpu-time]
                      [--only NAME]... [--before DIR] [--isa-max SET] [--bf16]

Models with several inputs on the cpu device and on onnxruntime-node, in turn, round after round.
MODELS is a folder that gen_transformers.py of the benchmarks' harness wrote; its index.json names
the models and their inputs. --build is a meson build folder, and --before another one that is timed
in the same rounds. NODE_PATH says where onnxruntime-node is. Prints the median over the rounds of
each program's median, the minimum of its minima, and the ratio of both to onnxruntime-node's.
--cpu-time counts processor time, which a loaded machine disturbs less; it is for one thread.
--bf16 also times inferd in bf16; the peer computes in fp32.
"""
import argparse
import json
import os
import re
import statistics
import subprocess
import sys


def measure(command, environment):
    """(median, least) in ms, of the line that both programs print."""
    text = subprocess.run(
        command, check=True, capture_output=True, text=True, env=environment
    ).stdout
    return [float(re.search(name + r"\s+([0-9.]+)", text).group(1)) for name in ("median", "min")]


def engine_command(build, options, model, files, backend="cpu"):
    command = [os.path.join(build, "tests/tools/bench_engine"), "--race", "--backend", backend]
    command += ["--threads", options.threads, "--ms", options.ms]
    command += ["--isa-max", options.isa_max] if options.isa_max else []
    for file in files:
        command += ["--input", file]
    return [*command, model]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("models")
    parser.add_argument("--build", required=True)
    parser.add_argument("--before")
    parser.add_argument("--threads", default="1")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--ms", default="250")
    parser.add_argument("--cpu-time", action="store_true")
    parser.add_argument("--only", action="append")
    parser.add_argument("--isa-max")
    parser.add_argument("--bf16", action="store_true")
    options = parser.parse_args()
    here = os.path.dirname(os.path.abspath(__file__))
    environment = dict(os.environ)
    if options.cpu_time:
        if options.threads != "1":
            sys.exit("bench_transformers.py: --cpu-time is for one thread: --threads 1")
        clock = os.path.join(os.path.abspath(options.build), "tests/tools/libcpu_clock.so")
        environment["LD_PRELOAD"] = clock
    with open(os.path.join(options.models, "index.json"), encoding="utf-8") as file:
        index = json.load(file)
    for name in options.only or index:
        model = os.path.join(options.models, index[name]["file"])
        inputs = [(key, os.path.join(options.models, file)) for key, file in index[name]["inputs"]]
        files = [file for _, file in inputs]
        peer = ["node", os.path.join(here, "bench_transformers.js"), options.threads, options.ms]
        commands = {"inferd": engine_command(options.build, options, model, files)}
        if options.bf16:
            commands["bf16"] = engine_command(options.build, options, model, files, "cpu:bf16")
        if options.before:
            commands["before"] = engine_command(options.before, options, model, files)
        commands["onnxruntime"] = [*peer, model, *(text for pair in inputs for text in pair)]
        rounds = {program: [] for program in commands}
        for _ in range(options.rounds):
            for program, command in commands.items():
                rounds[program].append(measure(command, environment))
        medians = {program: statistics.median(m for m, _ in r) for program, r in rounds.items()}
        leasts = {program: min(least for _, least in r) for program, r in rounds.items()}
        line = [f"{name:28}"]
        for program in commands:
            line.append(f"{program} {medians[program]:8.3f} {leasts[program]:8.3f}")
            if program != "onnxruntime":
                line.append(
                    f"({medians[program] / medians['onnxruntime']:.2f} "
                    f"{leasts[program] / leasts['onnxruntime']:.2f})"
                )
        print("  ".join(line), flush=True)


if __name__ == "__main__":
    main()
