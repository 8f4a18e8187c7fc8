#!/usr/bin/env python3
"""report.py BUILD... - counts what `meson test` ran in build folders and prints what failed or was skipped.

Criterion tests count one by one (the run must have had CRITERION_VERBOSITY_LEVEL=1), everything else
one a program. Ends with 'N passed, N failed, N skipped'; exit 1 where something failed or nothing ran.
"""
import json
import re
import sys
from pathlib import Path

SYNTHESIS = re.compile(r'Synthesis: Tested: \d+ \| Passing: (\d+) \| Failing: (\d+) \| Crashing: (\d+)')
NOTABLE = re.compile(r'\[(FAIL|SKIP|CRASH)\]|Assertion Failed|^\s*\[----\]\s+(?!Criterion)\S|ERROR: \w*Sanitizer|'
                     r'WARNING: ThreadSanitizer|runtime error:|^SKIP')

def count(test):
    """(passed, failed, skipped) of one program."""
    output = test.get('stdout', '') + test.get('stderr', '')
    criterion = SYNTHESIS.search(output)
    if criterion:
        passing, failing, crashing = map(int, criterion.groups())
        failed = failing + crashing
        if test['result'] not in ('OK', 'EXPECTEDFAIL') and failed == 0:
            failed = 1  # it died, or ran out of time, around the tests
        return passing, failed, len(re.findall(r'\[SKIP\]', output))
    return {'OK': (1, 0, 0), 'SKIP': (0, 0, 1)}.get(test['result'], (0, 1, 0))

def main(builds):
    totals = [0, 0, 0]
    for build in builds:
        log = Path(build) / 'meson-logs' / 'testlog.json'
        for line in log.read_text().splitlines():
            test = json.loads(line)
            counts = count(test)
            totals = [a + b for a, b in zip(totals, counts)]
            if counts[1] == 0 and counts[2] == 0:
                continue
            print(f"{build}: {test['name']}: {test['result'].lower()}, {counts[1]} failed, {counts[2]} skipped")
            output = (test.get('stdout', '') + test.get('stderr', '')).splitlines()
            notable = [text for text in output if NOTABLE.search(text)] or output[-15:]
            print('\n'.join('    ' + text for text in notable[:60]))
    print('{} passed, {} failed, {} skipped'.format(*totals))
    return 1 if totals[1] or not totals[0] else 0

if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
