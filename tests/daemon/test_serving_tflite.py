#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""test_serving_tflite.py DAEMON INFERCTL SOURCE_ROOT - a TFLite model with metadata: inferctl
models shows them, and inferctl infer normalises pictures and names classes by them. Clients name
its signatures as MODEL:SIGNATURE. An ONNX model with metadata is served likewise."""
import json
import math
import os
import signal
import struct
import subprocess
import sys
import tempfile
import time
import unittest
import zlib
from pathlib import Path

DAEMON, INFERCTL, ROOT = map(os.path.abspath, sys.argv[1:4])
sys.path.insert(0, ROOT + '/tests/tools/gen')
sys.dont_write_bytecode = True
import gen_colors
from tested_program import wait_until_accepts
from onnx_writer import Graph, field
from tflite_writer import archive

SECONDS_MAX = 60
SIDE = 8


def png(red, green, blue):
    """A picture of one colour."""

    def chunk(kind, data):
        check = struct.pack('>I', zlib.crc32(kind + data))
        return struct.pack('>I', len(data)) + kind + data + check

    rows = (b'\0' + bytes((red, green, blue)) * SIDE) * SIDE
    head = struct.pack('>IIBBBBB', SIDE, SIDE, 8, 2, 0, 0, 0)
    chunks = chunk(b'IHDR', head) + chunk(b'IDAT', zlib.compress(rows)) + chunk(b'IEND', b'')
    return b'\x89PNG\r\n\x1a\n' + chunks


def scores(*color, beta=4):
    """What the model computes: the softmax of the normalised means."""
    powers = [math.exp(beta * (x - 127.5) / 127.5) for x in color]
    return [x / sum(powers) for x in powers]


class Case(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        (self.folder / 'models').mkdir()
        (self.folder / 'cache').mkdir()
        self.picture = self.folder / 'green.png'
        self.picture.write_bytes(png(40, 250, 10))
        self.log = (self.folder / 'log').open('w')
        self.addCleanup(self.log.close)
        self.start()
        self.addCleanup(self.stop)

    def start(self):
        self.process = subprocess.Popen(
            [DAEMON, f'--runtime-dir={self.folder}', f'--repository={self.folder}/models']
            + [f'--cache-dir={self.folder}/cache', '--backends=ref', '--drain-timeout-ms=200'],
            stderr=self.log,
        )
        wait_until_accepts(self.folder / 'admin.sock', self.process)

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        self.assertEqual(self.process.wait(SECONDS_MAX), 0)

    def ctl(self, verb, *arguments):
        return subprocess.run(
            [INFERCTL, verb, '--socket', f'{self.folder}/admin.sock', *map(str, arguments)],
            capture_output=True,
            text=True,
            timeout=SECONDS_MAX,
        )

    def said(self, *arguments):
        said = self.ctl(*arguments)
        self.assertEqual(said.returncode, 0, said)
        return said.stdout

    def load(self, name, values=False, labels=gen_colors.LABELS):
        path = self.folder / f'{name}.tflite'
        path.write_bytes(gen_colors.model(values) + archive({'labels.txt': labels.encode()}))
        self.said('load', name, path)

    def answer(self, name, *arguments):
        text = self.said('infer', name, '-i', self.picture, '--json', *arguments)
        return json.loads(text)['outputs'][0]


class OnnxMetadata(Case):
    def load_means(self, **properties):
        """A model of the mean of each colour, with these keys."""
        path = self.folder / 'means.onnx'
        graph = Graph()
        means = graph.node('GlobalAveragePool', ['x'])
        graph.output(graph.node('Flatten', [means]), 'y')
        graph.write(path, 'means', [1, 3, SIDE, SIDE], 'y', [1, 3])
        with path.open('ab') as file:
            file.write(field(6, 'Mean colours.'))
            for key, value in properties.items():
                file.write(field(14, field(1, key) + field(2, value)))
        self.said('load', 'means', path)

    def test_are_shown_and_used(self):
        names = "{0: 'red', 1: 'green', 2: 'blue'}"
        self.load_means(names=names, stride='32', task='classify', license='MIT')
        text = self.said('models', 'means')
        lines = [' '.join(line.split()) for line in text.splitlines()]
        first = lines.index('description Mean colours.')
        more = ['stride: 32', 'task: classify', 'license MIT']
        self.assertEqual(lines[first + 1 : first + 4], more)
        self.assertIn('x mean 0, deviation 255', lines)
        self.assertIn('y 3 labels of classes in names: red, green, blue', lines)
        top = self.answer('means')['top']
        self.assertEqual([row['label'] for row in top], ['green', 'red', 'blue'])
        for row, value in zip(top, (250, 40, 10)):
            self.assertAlmostEqual(row['score'], value / 255, 5)


class Metadata(Case):
    def test_are_shown(self):
        self.load('colors')
        text = self.said('models', 'colors')
        for part in (
            'Tells the main colour of a picture.',
            'Apache License 2.0',
            'A picture of 8 x 8 pixels.; mean 127.5, deviation 127.5',
            '3 labels of classes in labels.txt: red, green, blue',
            'classify, brightness',
        ):
            self.assertIn(part, text)
        picture, output = json.loads(self.said('models', 'colors', '-o', 'json'))
        self.assertEqual((picture['mean'], picture['deviation']), ([127.5], [127.5]))
        self.assertEqual(output['labels'], ['red', 'green', 'blue'])
        self.assertNotIn('labels', picture)
        # Moving the model to another device keeps what it says.
        self.said('place', 'colors', 'ref', '--precision', 'fp32')
        self.assertEqual(self.said('models', 'colors'), text)

    def test_prepare_pictures_and_name_classes(self):
        self.load('colors')
        output = self.answer('colors')
        self.assertEqual(
            [row['label'] for row in output['top']], ['green', 'red', 'blue'], output
        )
        want = sorted(scores(40, 250, 10), reverse=True)
        for row, score in zip(output['top'], want):
            self.assertAlmostEqual(row['score'], score, 6)
        self.assertIn('green', self.said('infer', 'colors', '-i', self.picture))
        # Options replace what the model says.
        plain = self.answer('colors', '-r', '0:255')
        self.assertAlmostEqual(plain['top'][0]['score'], 1, 6)
        names = self.folder / 'names.txt'
        names.write_text('a\nb\nc\n')
        self.assertEqual(self.answer('colors', '-l', names)['top'][0]['label'], 'b')

    def test_prepare_pictures_of_all_verbs(self):
        """debug, bench and verify read their inputs with the same function."""
        self.load('colors')
        for arguments, low, high in (((), (10 - 127.5) / 127.5, (250 - 127.5) / 127.5),
                                     (('-r', '0:255'), 10, 250)):
            said = self.said('debug', 'colors', '-i', self.picture, '-o', 'json', *arguments)
            means = json.loads(said)[0]
            self.assertAlmostEqual(means['least'], low, 5)
            self.assertAlmostEqual(means['largest'], high, 5)
        self.assertIn('ok', self.said('verify', 'colors', '-i', self.picture))
        self.said('bench', 'colors', '-i', self.picture, '-n', '3')

    def test_name_values(self):
        self.load('values', values=True)
        output = self.answer('values', '-r', '0:255')
        # The scores are 0, 1 and 0: each is the number of a label.
        self.assertEqual([row['label'] for row in output['values']], ['red', 'green', 'red'])
        self.assertNotIn('top', output)
        text = self.said('infer', 'values', '-i', self.picture, '-r', '0:255', '-k', '2')
        self.assertIn('values of scores', text)

    def test_that_do_not_fit_name_nothing(self):
        self.load('few', labels='red\ngreen\n')
        self.assertEqual(self.answer('few')['top'][0]['label'], '')

    def test_that_are_damaged_are_reported(self):
        path = self.folder / 'damaged.tflite'
        path.write_bytes(gen_colors.model())
        self.said('load', 'damaged', path)
        problem = "labels 'labels.txt': no associated file has this name"
        self.assertIn(problem, self.said('models', 'damaged'))
        self.assertIn('model metadata damaged name=damaged', (self.folder / 'log').read_text())
        self.assertEqual(self.answer('damaged')['top'][0]['label'], '')

    def test_are_absent_of_models_that_do_not_exist(self):
        said = self.ctl('models', 'nothing')
        self.assertEqual(said.returncode, 4, said)


class Signatures(Case):
    """The file has the signatures classify, which is the default one, and brightness."""

    def rows(self):
        return {row['name']: row for row in json.loads(self.said('models', '-o', 'json'))}

    def brightness(self, *arguments):
        self.said('infer', 'colors:brightness', '-i', self.picture, '-o', self.folder, *arguments)
        return struct.unpack('<f', (self.folder / 'brightness.npy').read_bytes()[-4:])[0]

    def refused(self, text, *arguments):
        said = self.ctl(*arguments)
        self.assertNotEqual(said.returncode, 0, said)
        self.assertIn(text, said.stderr)

    def test_are_models_of_one_file(self):
        self.load('colors')
        rows = self.rows()
        self.assertEqual(sorted(rows), ['colors', 'colors:brightness'])
        self.assertEqual(rows['colors:brightness']['state'], 'READY')
        mean = (40 + 250 + 10) / 3
        self.assertAlmostEqual(self.brightness(), (mean - 127.5) / 127.5, 6)
        self.assertEqual(self.answer('colors:classify'), self.answer('colors'))
        self.assertEqual(self.answer('colors:classify@1'), self.answer('colors'))
        self.assertIn('brightness: The mean of all', self.said('models', 'colors:brightness'))
        rows = self.rows()
        self.assertEqual(rows['colors']['requests'], 4)
        self.assertEqual(rows['colors:brightness']['requests'], 1)

    def test_are_read_from_plans_at_the_next_start(self):
        path = self.folder / 'models/colors.tflite'
        path.write_bytes(gen_colors.model(False) + archive({'labels.txt': b'red\ngreen\nblue\n'}))
        self.said('load', 'colors')
        shown, answer = self.said('models', 'colors'), self.answer('colors')
        brightness = self.brightness()
        self.said('load', 'colors')  # after the plans are kept, in the order of the loader
        self.assertEqual(len(list((self.folder / 'cache').glob('plan-*'))), 2)
        self.stop()
        # The file cannot be read any longer, although it looks the same.
        times = path.stat()
        path.write_bytes(b' ' * times.st_size)
        os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
        (self.folder / 'admin.sock').unlink(missing_ok=True)
        self.start()
        self.said('wait', 'colors')
        self.assertEqual(self.said('models', 'colors'), shown)
        self.assertIn('green', shown)
        self.assertEqual(self.answer('colors'), answer)
        self.assertEqual(self.brightness(), brightness)

    def test_are_named_by_the_python_package(self):
        sys.path.insert(0, ROOT + '/client/python')
        try:
            import inferd
            import numpy
        except ImportError:
            self.skipTest('numpy is not installed')
        self.load('colors')
        with inferd.Client(str(self.folder / 'inferd.sock')) as client:
            described = client.metadata('colors:brightness')
            self.assertEqual([x['name'] for x in described['outputs']], ['brightness'])
            picture = numpy.full((1, SIDE, SIDE, 3), 0.5, numpy.float32)
            result = client.infer('colors:brightness', {'picture': picture})
            self.assertEqual(result['brightness'].tolist(), [0.5])
            self.assertEqual(client.describe('colors:brightness')['name'], 'colors:brightness')

    def test_are_placed_and_unloaded_with_their_model(self):
        self.load('colors')
        before = self.brightness()
        self.said('place', 'colors', 'ref', '--precision', 'fp32')
        self.assertEqual(self.brightness(), before)
        self.assertEqual(self.rows()['colors:brightness']['requests'], 2)
        together = 'all its signatures are'
        self.refused(together, 'place', 'colors:brightness', 'ref')
        self.refused(together, 'unload', 'colors:brightness')
        self.said('profile', 'colors:brightness')
        self.said('unload', 'colors')
        self.assertEqual(self.rows(), {})
        self.refused('is not loaded', 'infer', 'colors:brightness', '-i', self.picture)

    def test_that_do_not_exist_are_refused(self):
        self.load('colors')
        self.refused(
            "has no signature 'loud'; it has classify, brightness",
            *('infer', 'colors:loud', '-i', self.picture),
        )

    def test_that_cannot_be_loaded_are_listed_with_the_reason(self):
        path = self.folder / 'train.tflite'
        path.write_bytes(gen_colors.model(broken=True))
        self.said('load', 'train', path)
        row = self.rows()['train:brightness']
        self.assertEqual(row['state'], 'UNAVAILABLE')
        self.assertIn('SKIP_GRAM', row['reason'])
        self.refused('SKIP_GRAM', 'infer', 'train:brightness', '-i', self.picture)
        self.assertEqual(self.answer('train')['shape'], [1, 3])

    def test_settings_choose_one(self):
        model = self.folder / 'models' / 'bright'
        model.mkdir()
        (model / 'model.tflite').write_bytes(gen_colors.model())
        (model / 'model.conf').write_text('signature = brightness\n')
        self.said('load', 'bright')
        self.assertEqual(sorted(self.rows()), ['bright'])
        self.assertEqual(self.answer('bright')['shape'], [1])
        self.assertEqual(self.answer('bright:brightness')['shape'], [1])
        self.refused("it has brightness", 'infer', 'bright:classify', '-i', self.picture)

    def test_keep_their_model_loaded_while_they_are_used(self):
        model = self.folder / 'models' / 'idle'
        model.mkdir()
        (model / 'model.tflite').write_bytes(gen_colors.model())
        (model / 'model.conf').write_text('idle_unload_ms = 3000\n')
        self.said('load', 'idle')

        def log():
            return (self.folder / 'log').read_text()

        begin = time.monotonic()
        while time.monotonic() < begin + 6:
            self.said('infer', 'idle:brightness', '-i', self.picture)
            time.sleep(0.2)
        self.assertNotIn('unloaded while idle', log())
        while 'unloaded while idle' not in log():
            self.assertLess(time.monotonic(), begin + SECONDS_MAX)
            time.sleep(0.1)
        self.assertEqual(sorted(self.rows()), ['idle'])
        # The next request loads the model with its signatures again.
        self.said('infer', 'idle:brightness', '-i', self.picture)
        self.assertEqual(sorted(self.rows()), ['idle', 'idle:brightness'])

    def test_have_saved_shapes_of_their_own(self):
        path = self.folder / 'many.tflite'
        path.write_bytes(gen_colors.model(rows=-1))
        self.said('load', 'many', path)
        for name, count in (('many', 2), ('many:brightness', 3)):
            array = self.folder / f'{count}.npy'
            header = f"{{'descr': '<f4', 'fortran_order': False, 'shape': ({count}, 8, 8, 3), }}"
            header = header.ljust(117) + '\n'
            array.write_bytes(
                b'\x93NUMPY\x01\x00' + struct.pack('<H', len(header)) + header.encode()
                + bytes(4 * count * SIDE * SIDE * 3)
            )
            self.said('infer', name, '-i', array)
        self.said('unload', 'many')
        self.said('load', 'many', path)
        log = (self.folder / 'log').read_text()
        self.assertNotIn('for shapes it served', log)
        text = (self.folder / 'cache' / 'shapes.db').read_text()
        keys = {
            rows: {line.split()[0] for line in text.splitlines() if f'{rows}x8x8x3' in line}
            for rows in (2, 3)
        }
        self.assertEqual((len(keys[2]), len(keys[3])), (1, 1), text)
        self.assertNotEqual(keys[2], keys[3], text)


if __name__ == '__main__':
    unittest.main(argv=sys.argv[:1] + sys.argv[4:])
