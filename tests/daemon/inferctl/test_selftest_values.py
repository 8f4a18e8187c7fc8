#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""test_selftest_values.py GENERATOR SOURCE - the answers of the known model in SOURCE are those
that GENERATOR computes by the definitions of the operators."""
import re
import subprocess
import sys


def main():
    generator, source = sys.argv[1:3]
    with open(source) as file:
        text = file.read()
    lines = subprocess.run(
        [sys.executable, generator], check=True, capture_output=True, text=True
    ).stdout.splitlines()
    assert len(lines) == 2, lines
    for line in lines:
        name, numbers = line.split(' ', 1)
        found = re.search(rf'float {name}\[[^]]*\] = {{([^}}]*)}}', text)
        assert found, f'{name} is not in {source}'
        values = [float(number.strip().rstrip('f')) for number in found[1].split(',')]
        assert values == [float(number) for number in numbers.split(',')], (name, values, numbers)


main()
