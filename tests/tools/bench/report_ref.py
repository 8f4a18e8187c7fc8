#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""report_ref.py [--build DIR] [--backend NAME] [--index JSON] [FILE ...]

Prints for each model the share of its time, and of its multiply-adds, that the reference device
`ref` takes because the other device declines nodes. FILE is a model that bench_engine reads.
--index names the index.json of gen_transformers.py, whose models come with their inputs. Shares are
of one thread; steps of less than a microsecond count as they are printed.
"""
import argparse
import json
import os
import re
import subprocess
import sys

# A row of `bench_engine --profile`: us, share, GFLOP/s, shares of two peaks, bytes, GB/s, device.
ROW = re.compile(
    r"^ +([0-9.]+) +[0-9.]+ +([0-9.]+) +[0-9.]+ +(?:[0-9.]+|-) +[0-9.]+ +[0-9.]+ +(\S+) +\S"
)


def read_shares(text):
    """Returns the times (us) and multiply-adds (thousands) of all steps and of those on ref."""
    times, macs = {"ref": 0.0, "all": 0.0}, {"ref": 0.0, "all": 0.0}
    for line in text.splitlines():
        found = ROW.match(line)
        if found is None:
            continue
        time, rate = float(found.group(1)), float(found.group(2))
        for name in ["all"] + ["ref"] * (found.group(3) == "ref"):
            times[name] += time
            macs[name] += time * rate / 2
    return times, macs


def list_models(options):
    """Yields the arguments of bench_engine for each model, and its name."""
    for file in options.files:
        yield os.path.basename(file), [file]
    if options.index is not None:
        folder = os.path.dirname(os.path.abspath(options.index))
        with open(options.index) as file:
            index = json.load(file)
        for name, entry in index.items():
            inputs = []
            for _, path in entry["inputs"]:
                inputs += ["--input", os.path.join(folder, path)]
            yield name, inputs + [os.path.join(folder, entry["file"])]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", default="build")
    parser.add_argument("--backend", default="cpu")
    parser.add_argument("--index")
    parser.add_argument("files", nargs="*")
    options = parser.parse_args()
    program = os.path.join(options.build, "tests/tools/bench_engine")
    print("| model | ms | time on ref, % | multiply-adds on ref, % |\n|---|---|---|---|")
    worst = 0.0
    for name, arguments in list_models(options):
        command = [program, "--backend", options.backend, "--profile", "--threads", "1"]
        done = subprocess.run(
            command + ["--ms", "100"] + arguments, capture_output=True, text=True
        )
        times, macs = read_shares(done.stdout)
        if done.returncode != 0 or times["all"] == 0:
            print("| %s | - | - | %s |" % (name, done.stderr.strip().split("\n")[-1][:80]))
            continue
        share = 100 * macs["ref"] / macs["all"] if macs["all"] > 0 else 0.0
        worst = max(worst, share)
        print(
            "| %s | %.2f | %.1f | %.2f |"
            % (name, times["all"] / 1000, 100 * times["ref"] / times["all"], share),
            flush=True,
        )
    return worst > 1


if __name__ == "__main__":
    sys.exit(main())
