#!/usr/bin/env python3
"""report.py BUILD... - counts what `meson test` ran in build folders, and prints what failed or was
skipped, and which programs took longest.
report.py --again BUILD - prints the names of the programs of one build to run a second time.

Criterion tests count one by one (the run must have had CRITERION_VERBOSITY_LEVEL=1), everything
else one a program. Ends with 'N passed, N failed, N skipped'; exit 1 where something failed or
nothing ran.

A program that failed on a busy machine may be run a second time, alone, into the log 'second': its
second result counts, and the first is printed. A sanitizer's finding is never given a second
chance.
"""
import heapq
import json
import re
import sys
from pathlib import Path

SYNTHESIS = re.compile(
    r'Synthesis: Tested: \d+ \| Passing: (\d+) \| Failing: (\d+) \| Crashing: (\d+)'
)
SANITIZER = re.compile(r'ERROR: (Address|Memory)Sanitizer|WARNING: ThreadSanitizer|runtime error:')
NOTABLE = re.compile(
    r'\[(FAIL|SKIP|CRASH)\]|Assertion Failed|^\s*\[----\]\s+(?!Criterion)\S|ERROR: \w*Sanitizer|'
    r'WARNING: ThreadSanitizer|runtime error:|^SKIP'
)

SLOWEST_COUNT = 12


def count(test):
    """(passed, failed, skipped) of one program."""
    output = output_of(test)
    criterion = SYNTHESIS.search(output)
    if criterion:
        passing, failing, crashing = map(int, criterion.groups())
        failed = failing + crashing
        if test['result'] not in ('OK', 'EXPECTEDFAIL') and failed == 0:
            failed = 1  # it died, or ran out of time, around the tests
        return passing, failed, len(re.findall(r'\[SKIP\]', output))
    return {'OK': (1, 0, 0), 'SKIP': (0, 0, 1)}.get(test['result'], (0, 1, 0))


def tests_of(build, log):
    """What ran, by name; nothing where there is no such log."""
    path = Path(build) / 'meson-logs' / f'{log}.json'
    if not path.exists():
        return {}
    return {test['name']: test for test in map(json.loads, path.read_text().splitlines())}


def output_of(test):
    return test.get('stdout', '') + test.get('stderr', '')


def sanitized(output):
    """Whether a sanitizer found something; what a failed assertion left unfreed is no finding."""
    return (
        SANITIZER.search(output) or 'LeakSanitizer' in output and 'Assertion Failed' not in output
    )


def again(build):
    for name, test in tests_of(build, 'testlog').items():
        if count(test)[1] and not sanitized(output_of(test)):
            print(name.split(' / ')[-1])


def describe(build, test, counts, remark):
    print(
        f"{build}: {test['name']}: {test['result'].lower()}, {counts[1]} failed, "
        f"{counts[2]} skipped{remark}"
    )
    output = output_of(test).splitlines()
    notable = [text for text in output if NOTABLE.search(text)] or output[-15:]
    print('\n'.join('    ' + text for text in notable[:60]))


def print_slowest(build):
    slowest = heapq.nlargest(
        SLOWEST_COUNT, tests_of(build, 'testlog').values(), key=lambda test: test['duration']
    )
    names = (f"{test['name'].split(' / ')[-1]} {test['duration']:.0f} s" for test in slowest)
    print(f"{build}: slowest: {', '.join(names)}")


def main(builds):
    totals = [0, 0, 0]
    for build in builds:
        second = tests_of(build, 'second')
        for name, test in tests_of(build, 'testlog').items():
            counts = count(test)
            if counts[1] and name in second:
                describe(build, test, counts, '; run again, alone:')
                test = second[name]
                counts = count(test)
                print(f"{build}: {name}: {test['result'].lower()} the second time")
            totals = [a + b for a, b in zip(totals, counts)]
            if counts[1] or counts[2]:
                describe(build, test, counts, '')
        print_slowest(build)
    print('{} passed, {} failed, {} skipped'.format(*totals))
    return 1 if totals[1] or not totals[0] else 0


if __name__ == '__main__':
    if sys.argv[1:2] == ['--again']:
        again(sys.argv[2])
    else:
        sys.exit(main(sys.argv[1:]))
