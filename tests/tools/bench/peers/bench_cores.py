#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""bench_cores.py BUILD --work DIR [--models NAME=FILE ...] [--settings NAME ...] [--clients N,...]
               [--before BUILD] [--ms MS] [--seconds S] [--mix] [--ort] [--option=--FLAG ...]
               [--json FILE]

The daemon with its default slots and threads beside daemons with fixed ones: requests a second and
latency of closed loops. All daemons run at once and idle while another one is measured. The
settings take turns within each round, and rounds go on for S seconds.

--work      a folder for sockets, models and the results of races, which later runs use again: the
            first run measures only after all races are over
--models    files, or folders of files; for --ort they must be ONNX
--settings  default, SxT for S slots of T threads, and "before", which is the default of another
            build, whose folder --before names
--option    a further option of all daemons
--mix       all models at once, with three clients each, instead of one model after the other; the
            figure is the processor time that the answers would take on one core alone
--ort       onnxruntime-node with its default options too, in a program with as many requests in
            flight as there are clients; NODE_PATH says where it is
--json      reads the rounds of earlier runs from FILE, if it exists, and writes all rounds to it,
            so that a long measurement can be made in pieces

Prints medians over the rounds: requests a second, the median latency of one client, and the
processor time of the daemon for each request, which stands for the energy. The ratios are medians
over the rounds of the default's figure divided by that of the fixed setting whose median is best,
of "before", and of onnxruntime.
"""
import argparse
import json
import os
import re
import shutil
import signal
import statistics
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).parent
DEFAULT, BEFORE, ORT = 'default', 'before', 'onnxruntime'
MIX_STREAMS = 3
# Figures of a measurement; the processor time of the daemon is that of one request.
UNITS = ('/s', 'ms', 'cpu ms')


def copy_model(source, folder):
    """Copies a file or a folder of files, and names the model's own file as a repository does."""
    folder.mkdir(parents=True, exist_ok=True)
    for file in source.iterdir() if source.is_dir() else [source]:
        own = file.suffix in ('.json', '.onnx', '.tflite')
        shutil.copyfile(file, folder / (f'model{file.suffix}' if own else file.name))


class Daemon:
    """A daemon with one setting, and all models."""

    def __init__(self, program, inferctl, folder, models, options):
        self.inferctl = inferctl
        self.socket = str(folder / 'inferd.sock')
        for name, file in models.items():
            copy_model(Path(file), folder / 'models' / name / '1')
        self.log = folder / 'log'
        self.process = subprocess.Popen(
            [program, f'--runtime-dir={folder}', f'--cache-dir={folder}']
            + [f'--repository={folder}/models', '--backends=cpu,ref', *options],
            stderr=self.log.open('w'),
        )

    def call(self, *arguments):
        command = [self.inferctl, *map(str, arguments), '--socket', self.socket]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout

    def settle(self, models):
        """Waits until every model is loaded and its race, if one is due, is over."""
        while not os.path.exists(self.socket):
            time.sleep(0.02)
        for name in models:
            self.call('wait', name)
            self.call('bench', name, '-n', 3)
        for name in models:
            while 'to be measured' in self.call('explain', name):
                time.sleep(0.2)

    def requests(self):
        return {row['name']: row['requests'] for row in json.loads(self.call('models', '--json'))}

    def cpu_ms(self):
        """The processor time of the daemon so far."""
        stat = Path(f'/proc/{self.process.pid}/stat').read_text().rpartition(')')[2].split()
        return (int(stat[11]) + int(stat[12])) * 1000 / os.sysconf('SC_CLK_TCK')

    def end(self):
        self.process.terminate()
        self.process.wait()


def bench_daemon(daemon, name, clients, ms, rates):
    """Requests a second, median latency in ms, and processor time of the daemon for each in ms."""
    key = (daemon, name, clients)
    runs = max(20, clients * 4, int(rates.get(key, 50) * ms / 1000))
    before = daemon.cpu_ms()
    row = json.loads(daemon.call('bench', name, '-n', runs, '-c', clients, '--json'))
    cpu_ms = (daemon.cpu_ms() - before) / runs
    row = row[0] if isinstance(row, list) else row
    rates[key] = row['per_second']
    return row['per_second'], row['median_ms'], cpu_ms


def bench_ort(models, name, clients, ms):
    program = [HERE / 'bench_cores.js', models[name], clients, ms]
    done = subprocess.run(['node', *map(str, program)], capture_output=True, text=True, check=True)
    return tuple(float(word) for word in done.stdout.split())


def bench_mix(daemon, models, ms):
    """Answers a second of each model, while all of them are asked for at once."""
    command = [daemon.inferctl, 'bench', '--socket', daemon.socket, '-n', '1000000']
    loads = [
        subprocess.Popen(command + ['-c', str(MIX_STREAMS), name], stdout=subprocess.DEVNULL)
        for name in models
    ]
    time.sleep(0.3)
    before, start = daemon.requests(), time.monotonic()
    time.sleep(ms / 1000)
    after, seconds = daemon.requests(), time.monotonic() - start
    for load in loads:
        load.terminate()
        load.wait()
    return {name: (after[name] - before[name]) / seconds for name in models}


def measure(options, daemons, rounds):
    until = time.monotonic() + options.seconds
    rates = {}
    names = [*daemons, *([ORT] if options.ort and not options.mix else [])]
    number = 0
    while time.monotonic() < until:
        one = {}
        at = number % len(names)
        for name in options.models if not options.mix else ['mix']:
            for clients in options.clients if not options.mix else [MIX_STREAMS]:
                for setting in names[at:] + names[:at]:
                    key = f'{name} {clients} {setting}'
                    if options.mix:
                        one[key] = bench_mix(daemons[setting], options.models, options.ms)
                    elif setting == ORT:
                        one[key] = bench_ort(options.models, name, clients, options.ms)
                    else:
                        one[key] = bench_daemon(
                            daemons[setting], name, clients, options.ms, rates
                        )
        rounds.append(one)
        number += 1
        # After each round, so that a measurement that is ended early leaves what it has.
        if options.json:
            options.json.write_text(json.dumps(rounds))


def figure_of(rounds, key, part, work):
    """The figures of a key in all rounds that have it, by the number of the round."""
    found = {}
    for number, one in enumerate(rounds):
        if key in one and isinstance(one[key], dict):
            found[number] = sum(rate * work[name] for name, rate in one[key].items())
        elif key in one and part < len(one[key]):
            found[number] = one[key][part]
    return found


def print_line(rounds, subject, settings, part, work):
    figures = {s: figure_of(rounds, f'{subject} {s}', part, work) for s in settings}
    best = max if part == 0 else min
    fixed = [s for s in settings if s not in (DEFAULT, BEFORE, ORT)]
    medians = {s: statistics.median(figures[s].values()) for s in settings if figures[s]}
    rivals = [best((s for s in fixed if s in medians), key=medians.get, default=''), BEFORE, ORT]
    cells = [f'{medians[s]:.4g}' if s in medians else '-' for s in settings]
    for rival in rivals:
        theirs = figures.get(rival, {})
        ratios = [x / theirs[n] for n, x in figures.get(DEFAULT, {}).items() if n in theirs]
        cells.append(f'{statistics.median(ratios):.3f}' if ratios else '-')
    print(f'| {subject} | {UNITS[part]} | ' + ' | '.join(cells) + f' | {len(rounds)} |')


def print_rounds(rounds):
    keys = sorted({key for one in rounds for key in one}, key=lambda key: key.split()[0])
    subjects = sorted({(key.split()[0], int(key.split()[1])) for key in keys})
    settings = sorted({key.rsplit(' ', 1)[1] for key in keys}, key=lambda s: (s != DEFAULT, s))
    alone = {}
    for key in keys:
        name, clients, setting = key.split()
        if clients == '1' and setting == '1x1':
            alone[name] = 1 / statistics.median(figure_of(rounds, key, 0, {}).values())
    columns = [*settings, 'over fixed', 'over before', 'over ort', 'rounds']
    print('| model, clients | | ' + ' | '.join(columns) + ' |')
    print('|---|---|' + '---|' * (len(settings) + 4))
    for subject in (f'{name} {clients}' for name, clients in subjects):
        mine = [one for one in rounds if any(key.startswith(f'{subject} ') for key in one)]
        print_line(mine, subject, settings, 0, alone)
        if subject.endswith(' 1'):
            print_line(mine, subject, settings, 1, alone)
        if not subject.startswith('mix '):
            print_line(mine, subject, settings, 2, alone)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('build', type=Path)
    parser.add_argument('--work', type=Path, required=True)
    parser.add_argument('--models', nargs='+', default=[])
    parser.add_argument('--settings', nargs='+', default=[DEFAULT, '1x1', '1x2', '2x1', '2x2'])
    parser.add_argument('--clients', default='1,2,4,16')
    parser.add_argument('--before', type=Path)
    parser.add_argument('--ms', type=int, default=300)
    parser.add_argument('--seconds', type=float, default=100)
    parser.add_argument('--mix', action='store_true')
    parser.add_argument('--ort', action='store_true')
    parser.add_argument('--option', action='append', default=[])
    parser.add_argument('--json', type=Path)
    options = parser.parse_args()
    options.models = dict(text.split('=', 1) for text in options.models)
    options.clients = [int(word) for word in options.clients.split(',')]
    rounds = []
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    if options.json and options.json.exists():
        rounds = json.loads(options.json.read_text())
    daemons = {}
    try:
        for setting in options.settings if options.models else []:
            build = options.before if setting == BEFORE else options.build
            fixed = re.fullmatch(r'(\d+)x(\d+)', setting)
            flags = [f'--cpu-slots={fixed[1]}', f'--cpu-threads={fixed[2]}'] if fixed else []
            daemons[setting] = Daemon(
                build / 'daemon/inferd',
                options.build / 'client/inferctl/inferctl',
                options.work / setting,
                options.models,
                options.option + flags,
            )
            # One after the other, so that their races do not disturb each other.
            daemons[setting].settle(options.models)
        if daemons:
            measure(options, daemons, rounds)
    finally:
        for daemon in daemons.values():
            daemon.end()
    print_rounds(rounds)


if __name__ == '__main__':
    main()
