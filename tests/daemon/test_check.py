#!/usr/bin/env python3
"""test_check.py INFERCTL INFERD_CHECK MODELS - what inferctl check says of models, and of what are
none."""
import json
import os
import struct
import subprocess
import sys
import tempfile
from pathlib import Path


sys.path.insert(0, str(Path(__file__).resolve().parents[1] / 'tools/gen'))
sys.dont_write_bytecode = True
import tflite_cases_runtime
from tflite_case import Case, Tensor, const


def run(inferctl, *arguments):
    return subprocess.run([inferctl, *arguments], capture_output=True, text=True, timeout=60)


def write(folder, layers, weights):
    manifest = [
        {
            'paths': ['w.bin'],
            'weights': [{'name': n, 'shape': s, 'dtype': 'float32'} for n, s, _ in weights],
        }
    ]
    (folder / 'model.json').write_text(
        json.dumps(
            {
                'modelTopology': {'class_name': 'Sequential', 'config': layers},
                'weightsManifest': manifest,
            }
        )
    )
    (folder / 'w.bin').write_bytes(
        b''.join(struct.pack('<f', 1) * count for _, _, count in weights)
    )


def layer(kind, **config):
    return {'class_name': kind, 'config': {'name': 'd', 'batch_input_shape': [None, 4], **config}}


def main(inferctl, program, models):
    os.environ['INFERD_CHECK'] = program
    with tempfile.TemporaryDirectory() as path:
        folder = Path(path)
        write(folder, [layer('Dense', units=3)], [('d/kernel', [4, 3], 12), ('d/bias', [3], 3)])
        for file in (folder, folder / 'model.json'):
            done = run(inferctl, '-o', 'json', 'check', str(file))
            assert done.returncode == 0, done.stderr
            report = json.loads(done.stdout)
            assert report['format'] == 'tfjs_layers_model', report
            # 4 x 3 weights and 3 biases; a multiplication for each weight.
            assert (
                report['parameters'] == 15
                and report['constant_bytes'] == 60
                and report['macs'] == 12
            ), report
            assert report['inputs'] == [
                {'name': 'd_input', 'datatype': 'FP32', 'shape': '[?,4]'}
            ], report
            assert report['outputs'] == [
                {'name': 'd', 'datatype': 'FP32', 'shape': '[?,3]'}
            ], report
            assert report['shapes'] == ['[1,4]'], report
            assert report['operators']['Dense'] == 1, report
            assert report['version'] == '' and report['quantization'] == '', report
            assert report['devices'][-1]['device'] == 'ref' and all(
                d['loads'] for d in report['devices']
            ), report
        done = run(inferctl, 'check', path)
        assert done.returncode == 0 and '[1,4]' in done.stdout and 'ref' in done.stdout, done

        # The same and more: one product with the bias in it, from the input to the output.
        report = json.loads(run(inferctl, '-o', 'json', 'inspect', path).stdout)
        assert (
            report['graph'].startswith('input ') and report['graph'].count('matmul(') == 1
        ), report
        for device in report['devices']:
            [step] = device['plan']
            assert step['node'] == 'd' and step['operator'] == 'matmul' and step['macs'] == 12, step
            assert step['device'] == device['device'], (step, device)
            [out] = step['outputs']
            assert (out['place'], out['index'], out['shape'], out['bytes']) == (
                'output',
                0,
                '[1,3]',
                12,
            ), out
            assert device['arena_bytes'] == 0 and device['interpreted'] == 0, device
            # 12 weights and 3 of the bias: constants as small as these are kept as they are.
            assert device['const_bytes'] == 60, device
            assert device['buffer_bytes'] >= 12 or device['device'] not in ('cpu', 'ref'), device
        done = run(inferctl, 'inspect', path)
        assert (
            done.returncode == 0
            and 'matmul(' in done.stdout
            and 'in output 0, 12 bytes' in done.stdout
        ), done

        # A TFLite file: the version, the operators and the types of tensors.
        x = Tensor('i8', (2, 3), None, 0.5, 1)
        y = Tensor('i8', (2, 4), None, 0.25, 2)
        w = const('i8', (4, 3), range(12), [0.5, 1.0, 0.5, 1.0])
        case = Case('file', 'FULLY_CONNECTED', [x, w], [y], options=(8, {}))
        (folder / 'file.tflite').write_bytes(case.model())
        done = run(inferctl, '-o', 'json', 'check', str(folder / 'file.tflite'))
        report = json.loads(done.stdout)
        assert (report['format'], report['version']) == ('tflite', 'schema 3'), report
        assert report['operators'] == {'FULLY_CONNECTED': 1}, report
        kinds = 'weights INT8 per channel (1); other tensors INT8 (2)'
        assert report['quantization'] == kinds, report
        done = run(inferctl, 'check', str(folder / 'file.tflite'))
        for line in ('tflite schema 3', 'operators  FULLY_CONNECTED 1', kinds):
            assert line in done.stdout, done

        # An LSTM with the arithmetic of 8-bit gates, which is not built.
        case = next(tflite_cases_runtime.lstms())
        case.intermediates = case.intermediates + [Tensor('i8', (), None, 0.1)] * 7
        (folder / 'gates.tflite').write_bytes(case.model())
        done = run(inferctl, 'check', str(folder / 'gates.tflite'))
        assert done.returncode == 1 and '12 intermediate tensors, wanted 5' in done.stderr, done

        write(folder, [layer('VectorQuantizer'), layer('Lambda', name='e')], [])
        done = run(inferctl, 'check', path)
        assert (
            done.returncode == 1 and 'Lambda (1 layer), VectorQuantizer (1 layer)' in done.stderr
        ), done
        # More than a line has room for.
        write(folder, [layer(f'Lacking{i:03}', name=f'l{i}') for i in range(90)], [])
        done = run(inferctl, 'check', path)
        assert done.returncode == 1 and 'more' in done.stderr.splitlines()[0], done
        assert all(f'Lacking{i:03} (1 layer)' in done.stderr for i in range(90)), done
        (folder / 'model.json').write_text('{')
        assert run(inferctl, 'check', path).returncode == 1
        assert run(inferctl, 'inspect', path).returncode == 1
    assert run(inferctl, 'check', path).returncode == 4
    assert run(inferctl, 'inspect', path).returncode == 4
    assert run(inferctl, 'check').returncode == 2
    for arguments in ([], ['--inspect'], ['--bad', path], [path, path]):
        assert subprocess.run([program, *arguments], capture_output=True).returncode == 2, arguments
    # Times of the engine alone, for inferctl bench --direct.
    with tempfile.TemporaryDirectory() as path:
        write(Path(path), [layer('Dense', units=3)], [('d/kernel', [4, 3], 12), ('d/bias', [3], 3)])
        timed = [program, '--time', '7', '--device', 'ref', '--shapes', 'd_input=5x4', path]
        report = json.loads(
            subprocess.run(timed, capture_output=True, text=True, check=True).stdout
        )
        assert report['device'] == 'ref' and len(report['times_ms']) == 7, report
        assert all(0 < ms < 1000 for ms in report['times_ms']), report
        for place, value, words in (
            (4, 'tpu', "device 'tpu'"),
            (6, 'd_input=5x5', '[5,5]'),
            (6, 'x=1', "'x'"),
        ):
            done = subprocess.run(
                timed[:place] + [value] + timed[place + 1 :], capture_output=True, text=True
            )
            assert done.returncode != 0 and words in done.stderr, done
        assert subprocess.run([program, '--time', 'x', path], capture_output=True).returncode == 2
    os.environ['INFERD_CHECK'] = '/nowhere/inferd-check'
    done = run(inferctl, 'check', path)
    assert done.returncode == 1 and 'comes with the daemon' in done.stderr, done

    os.environ['INFERD_CHECK'] = program
    model = Path(models) / 'nsfwjs-mobilenet_v2' / 'model'
    if model.is_dir():
        report = json.loads(run(inferctl, '-o', 'json', 'check', str(model)).stdout)
        assert report['macs'] == 299855360, report
    # A model with loops, and branches that depend on values: some nodes have no plan.
    model = Path(models) / 'handtrack-ssd-int8' / 'model' / 'handtrack.json'
    if model.is_file():
        report = json.loads(run(inferctl, '-o', 'json', 'inspect', str(model)).stdout)
        for device in report['devices']:
            assert device['loads'] and device['interpreted'] > 0, device
            assert device['steps'] == len(device['plan']) > 0, device
            # Nothing lies beyond the arena.
            ends = [
                o['offset'] + o['bytes']
                for s in device['plan']
                for o in s['outputs']
                if 'offset' in o
            ]
            assert max(ends) <= device['arena_bytes'] >= device['live_max_bytes'] > 0, device
    return 0


sys.exit(main(*sys.argv[1:]))
