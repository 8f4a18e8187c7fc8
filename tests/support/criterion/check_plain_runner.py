#!/usr/bin/env python3
"""check_plain_runner.py PROGRAM - runs the tests of runner_samples.c with plain_runner.c.

Checks that the runner reports each test as its name says."""
import re
import subprocess
import sys


def main(program):
    run = subprocess.run([program], capture_output=True, text=True, timeout=60)
    wanted = {'pass': 'PASS', 'fail': 'FAIL', 'skip': 'SKIP'}
    lines = re.findall(r'\[(PASS|FAIL|SKIP)\] samples::(\w+)', run.stderr)
    reported = {name: result for result, name in lines}
    wrong = [
        f'{name}: {result}' for name, result in reported.items()
        if result != wanted[name.split('_')[0]]
    ]
    totals = 'Tested: 7 | Passing: 2 | Failing: 5 |'
    if wrong or len(reported) != 8 or totals not in run.stderr or run.returncode != 1:
        sys.exit(f'wrong: {wrong}, exit code {run.returncode}\n{run.stderr}')


if __name__ == '__main__':
    main(sys.argv[1])
