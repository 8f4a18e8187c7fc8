#!/usr/bin/env python3
"""test_slow.py DAEMON DAEMON_REF HAS_CPU - a daemon that has only the slow reference device warns
at start, unless its configuration asks for that device. DAEMON_REF has no other backend; DAEMON is
the one that is installed, and HAS_CPU is 'yes' if it has the cpu backend."""
import os
import signal
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

sys.dont_write_bytecode = True
from tested_program import wait_until_accepts

DAEMON, DAEMON_REF, HAS_CPU = sys.argv[1:4]
WARNING = 'only the slow reference device is available'
SECONDS_MAX = 60


def start_log(daemon, *arguments):
    """Starts the daemon, ends it when it accepts connections, and returns its log."""
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, 'VK_DRIVER_FILES': '/dev/null'}  # no GPU
        process = subprocess.Popen(
            [daemon, f'--runtime-dir={folder}', f'--cache-dir={folder}', *arguments],
            stderr=subprocess.PIPE,
            env=environment,
            text=True,
        )
        wait_until_accepts(Path(folder, 'inferd.sock'), process)
        process.send_signal(signal.SIGTERM)
        log = process.communicate(timeout=SECONDS_MAX)[1]
        assert process.returncode == 0, log
        return log


class Slow(unittest.TestCase):
    def test_a_daemon_with_ref_alone_warns(self):
        log = start_log(DAEMON_REF)
        self.assertEqual(log.count(WARNING), 1, log)
        self.assertIn('build with XNNPACK or Vulkan', log)

    def test_a_daemon_that_was_asked_for_ref_does_not_warn(self):
        self.assertNotIn(WARNING, start_log(DAEMON_REF, '--backends=ref'))
        self.assertNotIn(WARNING, start_log(DAEMON_REF, '--devices=ref'))

    @unittest.skipIf(HAS_CPU != 'yes', 'built without XNNPACK')
    def test_a_daemon_with_the_cpu_backend_does_not_warn(self):
        self.assertNotIn(WARNING, start_log(DAEMON))


if __name__ == '__main__':
    unittest.main(argv=sys.argv[:1])
