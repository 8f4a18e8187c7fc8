#!/usr/bin/env python3
"""bench_place.py DAEMON INFERCTL MODELS [--model NAME]... [--runs N] [--check] [--others
SERVED:RACING] - where automatic choice puts each model of ../shared/models, with the inputs of its
first reference case, and what that costs beside the best that could be named.

For each model: a first start (served at once, races when nothing is served), a second one (the
decision is there already: the first request says where it was answered), and then, in turns, rounds
of the model's own placement and of every candidate pinned by inferctl place, but for those that
took over three times the best in the race. With --check it fails where automatic choice takes more
than 1.05 times the best.

--others does something else: an open loop of requests for SERVED, for a while before RACING is
loaded and for a while after, when its candidates race; how long the race took, and p50 and p99 of
SERVED in both. A program to read, not a test."""
import argparse
import json
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

RATIO_MAX = 1.05

parser = argparse.ArgumentParser()
parser.add_argument('daemon')
parser.add_argument('inferctl')
parser.add_argument('models', type=Path)
parser.add_argument('--model', action='append')
parser.add_argument('--runs', type=int, default=40)
parser.add_argument('--check', action='store_true')
parser.add_argument('--others')
parser.add_argument('--rate', type=int, default=50)
parser.add_argument('--rounds', type=int, default=5)
options = parser.parse_args()


class Daemon:
    """A daemon of our own, with a cache directory that outlives it."""

    def __init__(self, folder):
        self.folder = Path(folder)
        self.socket = self.folder / 'admin.sock'
        self.process = subprocess.Popen(
            [
                options.daemon,
                f'--runtime-dir={folder}',
                f'--cache-dir={folder}/cache',
                f'--repository={folder}/models',
                '--log-level=warning',
            ]
        )
        while self.process.poll() is None and not self.socket.exists():
            time.sleep(0.01)

    def ask(self, *arguments):
        done = subprocess.run(
            [options.inferctl, '--socket', self.socket, *arguments, '--json'],
            capture_output=True,
            text=True,
        )
        if done.returncode != 0:
            raise RuntimeError(done.stderr.strip())
        return json.loads(done.stdout)

    def stop(self):
        self.process.terminate()
        self.process.wait()


def find_models():
    for folder in sorted(options.models.iterdir()):
        if options.model and folder.name not in options.model:
            continue
        files = [
            path
            for pattern in ('model/*.json', 'model/*.onnx')
            for path in sorted(folder.glob(pattern))
        ]
        if files:
            yield folder.name, files[0]


def read_cases():
    """The inputs of each model's first reference case: {model: [{name, shape, file}, ...]}."""
    with open(options.models / 'manifest.json', encoding='utf-8') as file:
        models = json.load(file)['models']
    return {model['id']: model['cases'][0]['inputs'] for model in models if model['cases']}


def publish(folder, name, path, inputs):
    """Puts a model into the repository of `folder`, to be raced for and warmed up for with the
    shapes of `inputs`."""
    version = Path(folder, 'models', name, '1')
    shutil.copytree(path.parent, version)
    (version / path.name).rename(version / ('model' + path.suffix))
    shapes = ' '.join(
        f"{row['name']}={'x'.join(map(str, row['shape'])) or 'scalar'}" for row in inputs
    )
    (version.parent / 'model.conf').write_text(f'warmup_shapes = {shapes}\n')


def words(inputs):
    return [
        word for row in inputs for word in ('-i', f"{row['name']}={options.models / row['file']}")
    ]


def median_ms(daemon, model, inputs):
    rows = daemon.ask('bench', model, '-n', str(options.runs), *words(inputs))
    return (rows[0] if isinstance(rows, list) else rows)['median_ms']


def wait_for_race(daemon, model):
    """What explain says once a decision was measured, and how long that took; at most 60 s."""
    begin = time.monotonic()
    while True:
        told = daemon.ask('explain', model)
        if (
            told['source'] != 'rule'
            or 'to be measured' not in told['reason']
            or time.monotonic() - begin > 60
        ):
            return told, time.monotonic() - begin
        time.sleep(0.2)


def modes_of(told):
    """What can be named: a device, and a precision where it raced; nothing that is out of the
    question."""
    raced = [
        row
        for row in told['candidates']
        if row['verdict'] in ('chosen', 'slower') and row['median_ms']
    ]
    best = min((row['median_ms'] for row in raced), default=0)
    return sorted(
        {(row['device'], row['precision']) for row in raced if row['median_ms'] <= 3 * best}
    )


def measure(name, path, inputs):
    with tempfile.TemporaryDirectory(prefix='bench-place-') as folder:
        Path(folder, 'cache').mkdir()
        publish(folder, name, path, inputs)
        daemon = Daemon(folder)
        try:
            daemon.ask('load', name)
            _, race_s = wait_for_race(daemon, name)
        finally:
            daemon.stop()
        daemon = Daemon(folder)
        try:
            daemon.ask('load', name)
            early = daemon.ask('bench', name, '-n', '1', *words(inputs))
            early = early[0] if isinstance(early, list) else early
            second = daemon.ask('explain', name)
            modes = modes_of(second)
            times = {mode: [] for mode in [None] + modes}
            for _ in range(options.rounds):
                for mode in times:
                    device, precision = mode if mode else ('auto', 'auto')
                    daemon.ask('place', name, device, '--precision', precision)
                    times[mode].append(median_ms(daemon, name, inputs))
        finally:
            daemon.stop()
    if early['device'] != second['device']:
        print(
            f"{name}: the first request of the second start was answered by {early['device']}, "
            f"placed on {second['device']} by {second['source']}"
        )
    best = min(modes, key=lambda mode: statistics.median(times[mode]), default=None)
    auto = statistics.median(times[None])
    ratio = auto / statistics.median(times[best]) if best else 1
    print(
        f"{name:32} {second['device']:8} {second['precision']:5} {second['source']:7} "
        f"{race_s:6.1f} "
        f"{auto:9.3f} {best[0] + ' ' + best[1] if best else '-':14} "
        f"{statistics.median(times[best]) if best else auto:9.3f} {ratio:6.3f}",
        flush=True,
    )
    return ratio


def others():
    """p99 of one model before and while the candidates of another race."""
    served, racing = options.others.split(':')
    paths = dict(find_models())
    count = str(options.rate * 8)
    print(
        f"{'round':5} {'race s':>7} {'p50 ms':>8} {'p99 ms':>8} "
        f"{'p50 racing':>10} {'p99 racing':>10}"
    )
    for turn in range(options.rounds):
        with tempfile.TemporaryDirectory(prefix='bench-place-') as folder:
            Path(folder, 'cache').mkdir()
            Path(folder, 'models').mkdir()
            daemon = Daemon(folder)
            try:
                daemon.ask('load', served, str(paths[served]))
                wait_for_race(daemon, served)
                before = daemon.ask(
                    'bench', served, '-R', str(options.rate), '-A', 'even', '-n', count
                )
                daemon.ask('load', racing, str(paths[racing]))
                begin = time.monotonic()
                load = subprocess.Popen(
                    [
                        options.inferctl,
                        '--socket',
                        daemon.socket,
                        'bench',
                        served,
                        '-R',
                        str(options.rate),
                        '-A',
                        'even',
                        '-n',
                        count,
                        '--json',
                    ],
                    stdout=subprocess.PIPE,
                )
                _, race_s = wait_for_race(daemon, racing)
                meanwhile = json.loads(load.communicate()[0])
            finally:
                daemon.stop()
            rows = [row[0] if isinstance(row, list) else row for row in (before, meanwhile)]
            print(
                f"{turn:5} {race_s:7.1f} {rows[0]['median_ms']:8.3f} {rows[0]['p99_ms']:8.3f} "
                f"{rows[1]['median_ms']:10.3f} {rows[1]['p99_ms']:10.3f}",
                flush=True,
            )


if options.others:
    others()
    sys.exit(0)
print(
    f"{'model':32} {'auto on':8} {'in':5} {'by':7} {'race s':>6} {'auto ms':>9} "
    f"{'best pinned':14} {'ms':>9} {'ratio':>6}"
)
worst = 0
cases = read_cases()
for model, file in find_models():
    try:
        worst = max(worst, measure(model, file, cases[model]))
    except (RuntimeError, KeyError) as error:
        print(f'{model:32} {error}', flush=True)
print(f'worst ratio {worst:.3f}, wanted at most {RATIO_MAX}')
sys.exit(options.check and worst > RATIO_MAX)
