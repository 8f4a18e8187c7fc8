#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""gen_tflite_ops.py FOLDER - writes TFLite files of one operator each, with inputs and the outputs
that the definitions of the operators give, and a manifest for run_models."""
import sys
from pathlib import Path

sys.dont_write_bytecode = True
import tflite_cases_bytes
import tflite_cases_mediapipe
import tflite_cases_runtime
import tflite_cases_stablehlo
from tflite_case import write_all


def main():
    families = (
        tflite_cases_stablehlo,
        tflite_cases_mediapipe,
        tflite_cases_bytes,
        tflite_cases_runtime,
    )
    cases = [case for family in families for case in family.cases()]
    write_all(cases, Path(sys.argv[1]))


if __name__ == '__main__':
    main()
