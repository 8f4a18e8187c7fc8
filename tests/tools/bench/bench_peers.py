#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""bench_peers.py - inferd's cpu device beside other engines, in one run: JSON, a table, a bar
chart.

  bench_peers.py run MODELS --harness DIR --build DIR --json FILE [--svg FILE]
                 [--threads 1,2] [--rounds N] [--ms MS] [--models NAME...] [--peers NAME...]
                 [--cpu-time] [--precision NAME]
  bench_peers.py show FILE.json [--svg FILE] [--least]

DIR of --harness holds peers.py and its programs' sources (its README says how they are built and
MODELS made; PEERS_BIN and NODE_PATH say where the peers are); --build is a meson build folder of
this project. inferd compares kernels when it loads a model, as the daemon does. The peers run in
turn, round after round. Ratios are taken within a round, then their
median is.

--precision  has a column of its own, beside the peers' fp32. --cpu-time   time of the processor
instead of time of the day, for one thread only: what a run costs where
             other work takes turns with it. Makes peers.py's clock the processor's by LD_PRELOAD.
--least      compares least times instead of medians: what disturbs only adds.
"""
import argparse
import collections
import json
import math
import os
import statistics
import subprocess
import sys

OURS = "inferd"
MEDIAN, LEAST = 0, 2  # of a round's figures in the JSON: median, p99, least


def run(options):
    build = os.path.abspath(options.build)
    command = [
        sys.executable,
        os.path.join(options.harness, "peers.py"),
        options.folder,
        "-t",
        options.threads,
        "-r",
        str(options.rounds),
        "--ms",
        str(options.ms),
        "-x",
        "%s=%s/tests/tools/bench_engine --race" % (OURS, build),
        "--json",
        options.json,
    ]
    if options.precision:
        command += [
            "-x",
            "%s-%s=%s/tests/tools/bench_engine --race --backend cpu:%s"
            % (OURS, options.precision, build, options.precision),
        ]
    if options.models:
        command += ["-m", *options.models]
    if options.peers:
        command += ["-p", *options.peers]
    environment = dict(os.environ)
    if options.cpu_time:
        if options.threads != "1":
            sys.exit("bench_peers.py: --cpu-time is for one thread: --threads 1")
        environment["LD_PRELOAD"] = build + "/tests/tools/libcpu_clock.so"
    subprocess.run(command, env=environment, check=True, stdout=subprocess.DEVNULL)


def read(path):
    """{threads: {model: {peer: [figures of a round, ...]}}}"""
    tables = collections.defaultdict(lambda: collections.defaultdict(dict))
    with open(path, encoding="utf-8") as file:
        for row in json.load(file):
            tables[row["threads"]][row["model"]][row["peer"]] = row["rounds"]
    return tables


def time_ms(rounds, least):
    if least:
        return min(r[LEAST] for r in rounds)
    return statistics.median(r[MEDIAN] for r in rounds)


def ratio(ours, peer, least):
    """Our time by the peer's: below 1 where inferd is faster."""
    if least:
        return time_ms(ours, True) / time_ms(peer, True)
    return statistics.median(a[MEDIAN] / b[MEDIAN] for a, b in zip(ours, peer))


def names(models):
    peers = sorted(
        {p for table in models.values() for p in table if p != OURS},
        key=lambda p: (not p.startswith(OURS), p),
    )
    return [OURS, *peers]


def slowest_ratio(table, ours, least):
    """The time of one of ours by that of the fastest peer."""
    return max(
        (ratio(table[ours], table[p], least) for p in table if not p.startswith(OURS)), default=None
    )


def show(tables, least):
    for threads, models in sorted(tables.items()):
        peers = names(models)
        print(
            "\n%d thread%s: ms, and inferd's time by the peer's\n" % (threads, "s"[: threads > 1])
        )
        print("| model | " + " | ".join(peers) + " | by the fastest peer |")
        print("|---" * (len(peers) + 2) + "|")
        logs = []
        for model, table in sorted(models.items()):
            if OURS not in table:
                continue
            cells, ratios = [], []
            for peer in peers:
                if peer not in table:
                    cells.append("-")
                    continue
                cell = "%.3g" % time_ms(table[peer], least)
                if peer != OURS and peer.startswith(OURS):
                    cell += " (%.2f of the fastest)" % slowest_ratio(table, peer, least)
                elif peer != OURS:
                    ratios.append(ratio(table[OURS], table[peer], least))
                    cell += " (%.2f)" % ratios[-1]
                cells.append(cell)
            if ratios:
                logs.append(math.log(max(ratios)))
            print(
                "| %s | %s | %s |"
                % (model, " | ".join(cells), "%.2f" % max(ratios) if ratios else "-")
            )
        if logs:
            mean = math.exp(statistics.mean(logs))
            print(
                "\ngeometric mean by the fastest peer: %.3f, which is %.2f times as fast"
                % (mean, 1 / mean)
            )


COLOURS = ["#1b6ca8", "#d1495b", "#edae49", "#66a182", "#8d6a9f", "#7a7a7a", "#4d908e"]
BAR, GAP, LEFT, WIDTH, HEAD = 11, 12, 130, 640, 46


def chart(tables, least, path):
    parts, y = [], 12
    for threads, models in sorted(tables.items()):
        peers = names(models)
        scale = WIDTH / max(
            time_ms(t[p], least) / time_ms(t[OURS], least)
            for t in models.values()
            if OURS in t
            for p in t
        )
        parts.append(
            '<text x="8" y="%d" font-weight="bold">%d thread%s: time of an inference, '
            "inferd = 1</text>" % (y + 8, threads, "s"[: threads > 1])
        )
        for i, peer in enumerate(peers):
            parts.append(
                '<rect x="%d" y="%d" width="10" height="10" fill="%s"/>'
                '<text x="%d" y="%d">%s</text>'
                % (8 + 110 * i, y + 18, COLOURS[i % len(COLOURS)], 22 + 110 * i, y + 27, peer)
            )
        y += HEAD
        for model, table in sorted(models.items()):
            if OURS not in table:
                continue
            base = time_ms(table[OURS], least)
            parts.append('<text x="8" y="%d">%s</text>' % (y + 10, model))
            for i, peer in enumerate(peers):
                if peer not in table:
                    continue
                times = time_ms(table[peer], least)
                parts.append(
                    '<rect x="%d" y="%d" width="%.1f" height="%d" fill="%s"/>'
                    '<text x="%.1f" y="%d">%.2f (%.3g ms)</text>'
                    % (
                        LEFT,
                        y,
                        times / base * scale,
                        BAR - 1,
                        COLOURS[i % len(COLOURS)],
                        LEFT + 4 + times / base * scale,
                        y + 9,
                        times / base,
                        times,
                    )
                )
                y += BAR
            y += GAP
        y += GAP
    with open(path, "w", encoding="utf-8") as file:
        file.write(
            '<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" '
            'font-family="sans-serif" font-size="10">\n<rect width="100%%" height="100%%" '
            'fill="white"/>\n%s\n</svg>\n' % (LEFT + WIDTH + 110, y, "\n".join(parts))
        )


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    verbs = parser.add_subparsers(dest="verb", required=True)
    verb = verbs.add_parser("run")
    verb.add_argument("folder")
    verb.add_argument("--harness", required=True)
    verb.add_argument("--build", required=True)
    verb.add_argument("--json", required=True)
    verb.add_argument("--threads", default="1,2")
    verb.add_argument("--rounds", type=int, default=7)
    verb.add_argument("--ms", type=float, default=600)
    verb.add_argument("--models", nargs="*")
    verb.add_argument("--peers", nargs="*")
    verb.add_argument("--precision")
    verb.add_argument("--cpu-time", action="store_true")
    verb.add_argument("--svg")
    verb.add_argument("--least", action="store_true")
    verb = verbs.add_parser("show")
    verb.add_argument("json")
    verb.add_argument("--svg")
    verb.add_argument("--least", action="store_true")
    options = parser.parse_args()
    if options.verb == "run":
        run(options)
    tables = read(options.json)
    show(tables, options.least)
    if options.svg:
        chart(tables, options.least, options.svg)


main()
