#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""test_serving_tflite.py DAEMON INFERCTL SOURCE_ROOT - a TFLite model with metadata: inferctl
models shows them, and inferctl infer normalises pictures and names classes by them."""
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
        self.picture = self.folder / 'green.png'
        self.picture.write_bytes(png(40, 250, 10))
        self.log = (self.folder / 'log').open('w')
        self.addCleanup(self.log.close)
        self.process = subprocess.Popen(
            [DAEMON, f'--runtime-dir={self.folder}', f'--repository={self.folder}/models']
            + ['--backends=ref', '--drain-timeout-ms=200'],
            stderr=self.log,
        )
        self.addCleanup(self.stop)
        end = time.monotonic() + SECONDS_MAX
        while not (self.folder / 'admin.sock').exists():
            self.assertLess(time.monotonic(), end, 'no socket')
            time.sleep(0.02)

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


if __name__ == '__main__':
    unittest.main(argv=sys.argv[:1] + sys.argv[4:])
