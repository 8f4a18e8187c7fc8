#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""bench_open_mix.py BUILD --work DIR --models NAME=FILE ... [--settings NAME ...] [--load SHARE]
                  [--ms MS] [--seconds S] [--option=--FLAG ...] [--json FILE]

An open loop of several models at once: requests arrive at random times, at fixed rates that do not
depend on the answers. The daemon with its default slots and threads beside daemons with every fixed
setting, by turns: the 99th percentile of the latency of each model, counted from the time at which
a request was to be sent.

The rates are SHARE (0.7) of those of a closed loop of all models, with three clients each, on the
daemon with the defaults. They are measured once, or read from FILE.

--work      a folder for sockets, models and the results of races, as for bench_cores.py
--settings  default, and SxT for S slots of T threads; without it, all with S and T up to the number
            of cores
--ms        the time of one measurement
--json      reads the rates and rounds of earlier runs from FILE, if it exists, and writes all

Prints medians over the rounds. The best fixed setting is the one with the smallest geometric mean
over the models; the ratio is that of the default to it, the median over the rounds. "Best of each"
compares with the best fixed setting of that model.
"""
import argparse
import itertools
import json
import math
import os
import re
import signal
import statistics
import subprocess
import sys
import time
from pathlib import Path

from bench_cores import DEFAULT, Daemon, bench_mix

CONNECTIONS = 3
CAPACITY_MS = 3000


def measure_open(daemon, rates, ms):
    """The 99th percentile and the median of the latency of each model in ms."""
    loads = {}
    for name, rate in rates.items():
        count = max(20, int(rate * ms / 1000))
        command = [daemon.inferctl, 'bench', name, '--socket', daemon.socket, '--json']
        command += ['-R', str(rate), '-n', str(count), '-C', str(CONNECTIONS)]
        loads[name] = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    found = {}
    for name, load in loads.items():
        row = json.loads(load.communicate()[0])
        row = row[0] if isinstance(row, list) else row
        found[name] = (row['p99_ms'], row['median_ms'])
    return found


def find_medians(rounds, settings, names, part):
    return {
        s: {n: statistics.median(one[s][n][part] for one in rounds if s in one) for n in names}
        for s in settings
    }


def print_rounds(rounds, settings, rates):
    names = list(rates)
    p99, p50 = (find_medians(rounds, settings, names, part) for part in (0, 1))
    fixed = [s for s in settings if s != DEFAULT]
    best = min(fixed, key=lambda s: math.prod(p99[s].values()), default=DEFAULT)
    print('| model | requests/s | ' + ' | '.join(f'{s}: p50, p99 ms' for s in settings), end='')
    print(f' | over {best} | over the best of each |')
    print('|---|---|' + '---|' * (len(settings) + 2))
    for name in names:
        own = min(fixed, key=lambda s: p99[s][name], default=DEFAULT)
        cells = [f'{p50[s][name]:.3g}, {p99[s][name]:.3g}' for s in settings]
        for rival in (best, own):
            ratios = [one[DEFAULT][name][0] / one[rival][name][0] for one in rounds]
            cells.append(f'{statistics.median(ratios):.2f}')
        print(f'| {name} | {rates[name]} | ' + ' | '.join(cells) + ' |')
    print(f'{len(rounds)} rounds')


def start_daemons(options):
    daemons = {}
    try:
        for setting in options.settings:
            fixed = re.fullmatch(r'(\d+)x(\d+)', setting)
            flags = [f'--cpu-slots={fixed[1]}', f'--cpu-threads={fixed[2]}'] if fixed else []
            daemons[setting] = Daemon(
                options.build / 'daemon/inferd',
                options.build / 'client/inferctl/inferctl',
                options.work / setting,
                options.models,
                options.option + flags,
            )
            daemons[setting].settle(options.models)
    except BaseException:
        end_daemons(daemons)
        raise
    return daemons


def end_daemons(daemons):
    for daemon in daemons.values():
        daemon.end()


def parse_options():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('build', type=Path)
    parser.add_argument('--work', type=Path, required=True)
    parser.add_argument('--models', nargs='+', required=True)
    parser.add_argument('--settings', nargs='+')
    parser.add_argument('--load', type=float, default=0.7)
    parser.add_argument('--ms', type=int, default=4000)
    parser.add_argument('--seconds', type=float, default=100)
    parser.add_argument('--option', action='append', default=[])
    parser.add_argument('--json', type=Path)
    options = parser.parse_args()
    options.models = dict(text.split('=', 1) for text in options.models)
    cores = len(os.sched_getaffinity(0))
    every = itertools.product(range(1, cores + 1), repeat=2)
    options.settings = options.settings or [DEFAULT, *(f'{s}x{t}' for s, t in every)]
    return options


def main():
    options = parse_options()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    kept = {'rates': {}, 'rounds': []}
    if options.json and options.json.exists():
        kept = json.loads(options.json.read_text())
    daemons = start_daemons(options)
    try:
        if not kept['rates']:
            full = bench_mix(daemons[DEFAULT], options.models, CAPACITY_MS)
            kept['rates'] = {
                name: max(1, round(rate * options.load)) for name, rate in full.items()
            }
        until = time.monotonic() + options.seconds
        while time.monotonic() < until:
            at = len(kept['rounds']) % len(options.settings)
            turns = options.settings[at:] + options.settings[:at]
            kept['rounds'].append(
                {s: measure_open(daemons[s], kept['rates'], options.ms) for s in turns}
            )
            if options.json:
                options.json.write_text(json.dumps(kept))
    finally:
        end_daemons(daemons)
    print_rounds(kept['rounds'], options.settings, kept['rates'])


if __name__ == '__main__':
    main()
