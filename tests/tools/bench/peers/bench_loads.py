#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""bench_loads.py BUILD SOURCE_ROOT [--rounds N] [--models NAME,... | --files FILE...] [--plans]

From the order to load a model to its first answer: the daemon and onnxruntime-node, in turn, round
after round, on the same ONNX files. NODE_PATH says where onnxruntime-node is. Each
measurement has a process of its own, with files in the page cache. Kernels are not raced. With
--plans, the daemon loads what it has compiled before. --files measures the daemon alone on these
files, with inputs of zeros, and prints also the processor time of the daemon. Needs numpy.
"""
import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

PEER = """
const ort = require('onnxruntime-node');
(async () => {
  const size = Number(process.argv[2]);
  const data = new Float32Array(3 * size * size);
  const begin = process.hrtime.bigint();
  const session = await ort.InferenceSession.create(process.argv[1]);
  const created = process.hrtime.bigint();
  const feeds = {[session.inputNames[0]]: new ort.Tensor('float32', data, [1, 3, size, size])};
  await session.run(feeds);
  console.log(Number(created - begin) / 1e6, Number(process.hrtime.bigint() - begin) / 1e6);
})();
"""
# The generator of each model with its arguments; @ stands for the file to write. Then the height
# and width of the input.
MODELS = {
    'mobilenet-v2': (['gen_mobilenet_v2.py', '--float', '@'], 224),
    'facemesh': (['gen_from_tfjs.py', '../shared/models/facemesh/model/facemesh.json', '@'], 192),
    'posenet': (['gen_from_tfjs.py', '../shared/models/posenet/model/posenet.json', '@'], 385),
    'resnet-18': (['gen_resnet50.py', '@', '18'], 224),
    'resnet-50': (['gen_resnet50.py', '@'], 224),
}

parser = argparse.ArgumentParser()
parser.add_argument('build')
parser.add_argument('root')
parser.add_argument('--rounds', type=int, default=7)
parser.add_argument('--models', default=','.join(MODELS))
parser.add_argument('--files', nargs='+', type=Path, default=[])
parser.add_argument('--plans', action='store_true')
options = parser.parse_args()
root = Path(options.root).resolve()
sys.path.insert(0, str(root / 'client/python'))
import inferd
import numpy


def generate(folder, name):
    (folder / name).mkdir(parents=True)
    path = folder / name / 'model.onnx'
    generator, *arguments = (path if part == '@' else part for part in MODELS[name][0])
    command = [sys.executable, root / 'tests/tools/gen' / generator, *arguments]
    subprocess.run(command, check=True, cwd=root)
    return path


def measure_peer(path, size):
    """Returns the times of create, and of create and the first answer, in ms."""
    command = ['node', '-e', PEER, path, str(size)]
    shown = subprocess.run(command, check=True, capture_output=True, text=True)
    return [float(word) for word in shown.stdout.split()]


def processor_ms(process):
    """Returns the processor time that the process has taken, in ms."""
    fields = Path(f'/proc/{process.pid}/stat').read_text().rpartition(')')[2].split()
    return (int(fields[11]) + int(fields[12])) * 1000 / os.sysconf('SC_CLK_TCK')


def make_inputs(inputs):
    """Returns zeros for the inputs of a model; unknown dimensions are 1."""
    return {
        tensor['name']: numpy.zeros([max(dim, 1) for dim in tensor['shape']],
                                    tensor['datatype'].replace('FP', 'float').lower())
        for tensor in inputs
    }


def measure_daemon(folder, name):
    """Returns the time of the load as the daemon logs it, the time until the first answer, and the
    processor time until then, in ms."""
    run = folder / 'run'
    run.mkdir(exist_ok=True)
    command = [f'{options.build}/daemon/inferd', f'--runtime-dir={run}',
               f'--repository={folder}/models', f'--cache-dir={folder}/cache', '--load-all=no',
               '--backends=cpu', '--race=never', '--watch=never']
    if not options.plans:
        command.append('--plan-bytes-max=0')
    log = open(folder / 'log', 'w+')
    process = subprocess.Popen(command, stderr=log)
    try:
        while not (run / 'admin.sock').exists() or 'serving' not in (folder / 'log').read_text():
            time.sleep(0.01)
        with inferd.Client(f'{run}/admin.sock') as client:
            used = processor_ms(process)
            begin = time.monotonic()
            client.load(name)
            inputs = make_inputs(client.metadata(name)['inputs'])
            client.infer(name, inputs)
            first = (time.monotonic() - begin) * 1000
            used = processor_ms(process) - used
        time.sleep(0.3)  # keeps the plan and what was raced
    finally:
        process.terminate()
        process.wait()
    loaded = next(line for line in (folder / 'log').read_text().splitlines()
                  if 'model loaded' in line)
    return [float(loaded.split(' ms=')[1].split()[0]), first, used]


def bench_files(folder):
    for file in options.files:
        name = file.stem if file.stem != 'model' else file.parent.name
        (folder / 'models' / name).mkdir(parents=True)
        shutil.copy(file, folder / 'models' / name / ('model' + file.suffix))
        measure_daemon(folder, name)  # with --plans, keeps the plan
        rows = [measure_daemon(folder, name) for _ in range(options.rounds)]
        load, first, used = map(statistics.median, zip(*rows))
        least = [min(column) for column in zip(*rows)]
        print(f'{name}: load {load:.1f}, with the first answer {first:.1f} ms, {used:.0f} ms of '
              f'processor time; least {least[0]:.1f}, {least[1]:.1f}, {least[2]:.0f}', flush=True)


def main():
    with tempfile.TemporaryDirectory(prefix='inferd-loads-') as temporary:
        folder = Path(temporary)
        (folder / 'cache').mkdir()
        if options.files:
            bench_files(folder)
            return
        for name in options.models.split(','):
            path = generate(folder / 'models', name)
            size = MODELS[name][1]
            measure_daemon(folder, name)  # with --plans, keeps the plan
            measure_peer(path, size)
            rows = [measure_daemon(folder, name) + measure_peer(path, size)
                    for _ in range(options.rounds)]
            load, first, _, create, peer = map(statistics.median, zip(*rows))
            ratio = statistics.median(row[1] / row[4] for row in rows)
            print(f'{name}: load {load:.0f}, with the first answer {first:.1f} ms; '
                  f'onnxruntime-node create {create:.1f}, with the first answer {peer:.1f} ms; '
                  f'{ratio:.2f} times the peer; least {min(r[1] for r in rows):.1f} and '
                  f'{min(r[4] for r in rows):.1f}', flush=True)


main()
