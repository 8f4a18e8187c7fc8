#!/usr/bin/env python3
"""check_page.py FOLDER - checks that the page of the GPU kit in FOLDER names what is wrong.

Writes what the steps of report.sh could have printed, runs page.awk, and compares the findings.
"""
import re
import subprocess
import sys
import tempfile
from pathlib import Path

# NAME: (exit code or None if the step was not run, seconds, what it printed)
STEPS = {
    'device': (0, 3, 'Some GPU, driver 1\n1 models, 0 unsupported; outputs: 8 ok, 0 FAIL\n'),
    'models-fp32': (1, 20, 'm out 0.5 0.5 FAIL\n1 models; outputs: 7 ok, 1 FAIL, 0 informative\n'),
    'models-fp16': (0, 20, '1 models; outputs: 8 ok, 0 FAIL, 0 informative\n'),
    'candidates': (0, 9, '[====] Synthesis: Tested: 5 | Passing: 5 | Failing: 0 | Crashing: 0 \n'),
    'winograd': (0, 9, '[====] Synthesis: Tested: 9 | Passing: 9 | Failing: 0 | Crashing: 0 \n'),
    'products': (0, 9, '[====] Synthesis: Tested: 7 | Passing: 7 | Failing: 0 | Crashing: 0 \n'),
    'attention': (1, 9, '[====] Synthesis: Tested: 8 | Passing: 7 | Failing: 1 | Crashing: 0 \n'),
    'random': (124, 40, ''),
    'operators-01': (
        1,
        9,
        '[----] t.c:1: Assertion Failed\n[----]   conv2d differs\n'
        '[====] Synthesis: Tested: 7 | Passing: 6 | Failing: 1 | Crashing: 0 \n',
    ),
    'operators-02': (None, 0, 'not run: the time was over\n'),
    'shader-checks': (
        0,
        9,
        '[====] Synthesis: Tested: 9 | Passing: 9 | Failing: 0 | Crashing: 0 \n',
    ),
    'model-shaders': (
        0,
        9,
        'fp32 inferd posenet shaders right 9 wrong 0 unchecked 1 ms 4\n'
        'fp16 inferd posenet shaders right 7 wrong 2 unchecked 1 ms 5\n',
    ),
    'loss-time': (
        0,
        9,
        'selfie median_ms 9.5 p99_ms 12 max_ms 40 1 lost\n'
        'posenet median_ms 9 p99_ms 12 max_ms 95.5 1 lost\n'
        'facemesh median_ms 9 p99_ms 12 max_ms 12 0 lost\n',
    ),
    'device-loss': (0, 9, '[====] Synthesis: Tested: 9 | Passing: 9 | Failing: 0 | Crashing: 0 \n'),
    'speed-posenet': (
        0,
        5,
        'ref inferd posenet 1 median 1000 p99 1 min 1\ncpu inferd posenet 1 median 10 p99 1 min 1\n'
        'vulkan inferd posenet 1 median 16 p99 1 min 1\n'
        'raced inferd posenet 1 median 20 p99 1 min 1\n'
        'fp16 inferd posenet 1 median 25 p99 1 min 1\n',
    ),
    'speed-selfie': (
        0,
        5,
        'ref inferd selfie 1 median 300 p99 1 min 1\ncpu inferd selfie 1 median 3 p99 1 min 1\n'
        'vulkan inferd selfie 1 median 2 p99 1 min 1\nraced inferd selfie 1 median 1 p99 1 min 1\n'
        'fp16 inferd selfie 1 median 0.9 p99 1 min 1\n',
    ),
    'shaders-posenet': (
        0,
        5,
        '  conv2d [1x8x8x3]->32 strips_8 10.0 blocks_4_1 4.0*  Conv_1\n'
        '  conv2d [1x4x4x32]->32 strips_8 3.0* blocks_4_1 wrong  Conv_2\n',
    ),
    'shaders-selfie': (0, 5, '  conv2d [1x8x8x3]->16 strips_8 2.0 blocks_8_1 1.0*  Conv\n'),
    'placement': (
        0,
        30,
        '--- model posenet\nposenet version 1 runs on vulkan0 (backend vulkan) in fp32\n'
        'model device requests streams per_second first_ms median_ms mean_ms p95_ms\n'
        'posenet vulkan0 60 1 50 30 20.0 20 21\nposenet cpu 60 1 100 11 10.0 10 11\n'
        'posenet ref 60 1 1 1000 1000.0 1000 1000\n',
    ),
    'host': (0, 3, 'inferd posenet host us median (min): ours 150.5 (90) driver-submit 5 (4)\n'),
    'starts': (0, 3, 'start 1 inferd posenet first 900\n'),
    'upload': (0, 3, '4194304 bytes, copied wall least 900\n'),
}

WANTED = [
    'real models, fp32, beside their references: exit code 1: 1 models; outputs: 7 ok, 1 FAIL, 0 '
    'informative',
    'real models, fp32, beside their references: m out 0.5 0.5 FAIL',
    'attention in one dispatch and node by node, all results beside ref: exit code 1: [====] '
    'Synthesis: Tested: 8 | Passing: 7 | Failing: 1 | Crashing: 0',
    'random graphs beside ref: cut off after 40 s',
    'operators, part 01 of 24: exit code 1',
    'operators, part 01 of 24: [----] t.c:1: Assertion Failed [----]   conv2d differs',
    'operators, part 02 of 24: not run, the time was over',
    'posenet: slower with races (20 ms) than by the rule (16 ms)',
    'posenet: 50 times as fast as ref, wanted 100',
    'posenet: slower in 16 bits',
    'placement of posenet: vulkan0 takes 2 of the time of cpu',
    'host time of a run is 150.5 us, wanted at most 100',
    'shader blocks_4_1 computes wrongly',
    'checks of shaders: fp16 inferd posenet shaders right 7 wrong 2',
    'a request took more than 50 ms longer because of a device loss: posenet',
    'time of a device loss: nothing was lost: facemesh',
]


def main(folder):
    with tempfile.TemporaryDirectory() as work:
        for name, (code, seconds, printed) in STEPS.items():
            (Path(work) / name).write_text(printed)
            if code is not None:
                (Path(work) / f'{name}.done').write_text(f'{code} {seconds}\n')
        awk = ['awk', '-f', Path(folder).resolve() / 'page.awk', '-v', f'out={work}']
        awk += ['-v', 'software=no'] + sorted(STEPS)
        run = subprocess.run(awk, cwd=work, capture_output=True, text=True, timeout=60)
        plot = (Path(work) / 'speed.svg').read_text()
    page = run.stdout
    findings = [line for line in page.splitlines() if re.match(r'- \*\*\d+\*\* ', line)]
    missing = [text for text in WANTED if not any(text in line for line in findings)]
    wrong = [line for line in findings if not any(text in line for text in WANTED)]
    parts = ['| selfie | 300 | 3 | 2 | 1 | 0.9 | 300 | 3 | 2 |', '| blocks | 2 |', '| strips | 1 |',
             '| posenet | vulkan0 |']
    missing += [part for part in parts if part not in page]
    if run.returncode != 0 or run.stderr or missing or wrong or plot.count('<rect') != 1 + 5 + 10:
        sys.exit(f'{run.stderr}missing: {missing}\nnot wanted: {wrong}\n{page}')


if __name__ == '__main__':
    main(sys.argv[1])
