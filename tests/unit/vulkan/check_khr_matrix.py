#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""check_khr_matrix.py KHR_MATRIX.PY - what khr_matrix.py makes of a small module. The numbers are
those of the specifications of SPV_NV_cooperative_matrix and SPV_KHR_cooperative_matrix."""
import importlib.util
import sys
import unittest

spec = importlib.util.spec_from_file_location('khr_matrix', sys.argv.pop(1))
khr_matrix = importlib.util.module_from_spec(spec)
sys.dont_write_bytecode = True
spec.loader.exec_module(khr_matrix)

MAGIC, VERSION, BOUND = 0x07230203, 0x10500, 40
UINT, TRUE, FALSE, STRIDE, POINTER = 1, 3, 4, 5, 6
FIRST, SECOND, SUM = 10, 11, 12  # types of matrices
ZERO, ONE, TWO = BOUND, BOUND + 1, BOUND + 2  # constants that are added
EXTENSION = 'SPV_{}_cooperative_matrix'


def module(first=FIRST, second=SECOND):
    """A module that loads two factors, adds their product to a sum, and stores the sum."""
    instructions = [
        (17, [1]),  # another capability stays
        (17, [5357]),
        (10, khr_matrix.text_words(EXTENSION.format('NV'))),
        (21, [UINT, 32, 0]),
        (41, [2, TRUE]),
        (42, [2, FALSE]),
        (5358, [SUM, 7, 8, 20, 21]),
        (5358, [FIRST, 9, 8, 20, 22]),
        (5358, [SECOND, 9, 8, 22, 21]),
        (5359, [first, 30, POINTER, STRIDE, TRUE]),
        (5359, [second, 31, POINTER, STRIDE, FALSE, 24, 2]),
        (61, [second, 32, 33]),  # a load of a variable
        (5361, [SUM, 34, 30, 32, 35]),
        (5360, [POINTER, 34, STRIDE, FALSE]),
    ]
    words = [MAGIC, VERSION, 0, BOUND, 0]
    for op, operands in instructions:
        words += khr_matrix.join(op, operands)
    return words


class Convert(unittest.TestCase):
    def setUp(self):
        self.words = khr_matrix.convert(module())
        self.instructions = list(khr_matrix.split(self.words))

    def test_the_header_counts_the_new_constants(self):
        self.assertEqual(self.words[:5], [MAGIC, VERSION, 0, BOUND + 3, 0])

    def test_capability_and_extension_are_those_of_khr(self):
        self.assertIn((17, [1]), self.instructions)
        self.assertIn((17, [6022]), self.instructions)
        self.assertIn((10, khr_matrix.text_words(EXTENSION.format('KHR'))), self.instructions)

    def test_types_say_which_operand_they_are_after_the_constants_that_say_it(self):
        types = [
            (43, [UINT, ZERO, 0]),
            (43, [UINT, ONE, 1]),
            (43, [UINT, TWO, 2]),
            (4456, [SUM, 7, 8, 20, 21, TWO]),
            (4456, [FIRST, 9, 8, 20, 22, ZERO]),
            (4456, [SECOND, 9, 8, 22, 21, ONE]),
        ]
        self.assertEqual(self.instructions[6:12], types)

    def test_loads_and_stores_name_the_order_before_the_stride(self):
        rest = [
            (4457, [FIRST, 30, POINTER, ONE, STRIDE]),  # by column
            (4457, [SECOND, 31, POINTER, ZERO, STRIDE, 24, 2]),
            (61, [SECOND, 32, 33]),
            (4459, [SUM, 34, 30, 32, 35]),
            (4458, [POINTER, 34, ZERO, STRIDE]),
        ]
        self.assertEqual(self.instructions[12:], rest)

    def test_operands_of_one_type_are_refused(self):
        with self.assertRaises(AssertionError):
            khr_matrix.convert(module(second=FIRST))


if __name__ == '__main__':
    unittest.main()
