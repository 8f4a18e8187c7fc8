#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""test_tflite_external.py INFERD_CHECK SOURCE_ROOT - TFLite models whose constants are in another
file: the file must be in the folder of the model, and every range must be in the file."""
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

CHECK, ROOT = map(os.path.abspath, sys.argv[1:3])
sys.path.insert(0, ROOT + '/tests/tools/gen')
sys.dont_write_bytecode = True
from tflite_case import Case, Tensor, const
from tflite_writer import I64, U32

# The weights begin at byte 3 of the file.
WEIGHTS = [1.5, -2.0, 0.25]


class External(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name) / 'model'
        self.folder.mkdir()

    def check(self, file='weights.bin', rows=None):
        """Writes the model and its weights; returns what inferd-check says."""
        x, w = Tensor('f32', (3,), [0] * 3), const('f32', (3,), WEIGHTS)
        case = Case(
            'sum',
            'ADD',
            [x, w],
            [x],
            options=(11, {}),
            weights_file=file,
            weights_rows=rows or {},
        )
        model = case.model()
        (self.folder / 'sum.tflite').write_bytes(model)
        if file and '/' not in file and not (self.folder / file).exists():
            (self.folder / file).write_bytes(case.weights)
        return self.run_check()

    def run_check(self):
        return subprocess.run(
            [CHECK, self.folder / 'sum.tflite'], capture_output=True, text=True, timeout=60
        )

    def refused(self, said, *parts):
        self.assertNotEqual(said.returncode, 0, said)
        for part in parts:
            self.assertIn(part, said.stdout + said.stderr)

    def test_weights_are_read_beside_the_model(self):
        said = self.check()
        self.assertEqual(said.returncode, 0, said)
        self.assertIn('loads: ', said.stdout)

    def test_a_missing_file_is_named(self):
        self.check()
        (self.folder / 'weights.bin').unlink()
        self.refused(self.run_check(), 'external_buffer', 'weights.bin')

    def test_files_outside_of_the_folder_are_refused(self):
        (self.folder.parent / 'weights.bin').write_bytes(bytes(64))
        for file in ('../weights.bin', f'{self.folder}/weights.bin', 'a/../../weights.bin'):
            self.refused(self.check(file), 'external_buffer', "leaves the model's folder")

    def test_links_are_refused(self):
        (self.folder.parent / 'weights.bin').write_bytes(bytes(64))
        (self.folder / 'weights.bin').symlink_to('../weights.bin')
        self.refused(self.check(), 'external_buffer')

    def test_ranges_beyond_the_file_are_refused(self):
        for rows in (
            {2: I64(4)},
            {2: I64(2**62)},
            {2: I64(15)},
            {2: I64(0), 3: I64(2**63 - 1)},
        ):
            self.refused(self.check(rows=rows), 'external_buffer', "bytes of 'weights.bin'")

    def test_lengths_that_do_not_fit_the_shape_are_refused(self):
        self.refused(self.check(rows={3: I64(8)}), 'buffer', '8 bytes, its shape says 12')

    def test_other_packings_are_refused(self):
        self.refused(self.check(rows={4: 'zstd'}), "packing 'zstd'")

    def test_indices_are_checked(self):
        self.refused(self.check(rows={1: U32(1)}), 'group', 'is 1, there are 1')
        self.refused(self.check(rows={0: U32(7)}), 'external_buffer', 'which is not listed')


if __name__ == '__main__':
    unittest.main(argv=sys.argv[:1] + sys.argv[3:])
