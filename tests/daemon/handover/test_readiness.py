#!/usr/bin/env python3
"""test_readiness.py DAEMON SOURCE_ROOT [TEST...] - what the daemon reports to the service manager
while models load."""
import os
import re
import signal
import time

from handover_case import ERROR_FLAG, ONES, HandoverCase, ask, main
from models import write_chain, write_check, write_sum

# Rows of a check that take the reference device about a second.
ROWS = 256


class ReadinessCase(HandoverCase):
    def call_infer(self, client, **fields):
        return client.call('ModelInferRequest', ask(**fields), ONES)

    def ready_message(self):
        return next(lines for lines in self.manager.messages if 'READY' in lines)

    def test_ready_when_all_models_are_loaded_or_failed(self):
        (self.models / 'a_broken').mkdir()
        (self.models / 'a_broken/model.json').write_text('{')
        (self.models / 'b_broken').mkdir()
        (self.models / 'b_broken/model.json').write_text('{')
        write_chain(self.models / 'slow')
        write_check(self.models / 'slow', rows=ROWS)  # it fails, after a second
        write_sum(self.models / 'z')
        self.start()
        status = self.ready_message()['STATUS']
        wanted = 'serving; 2 of 5 models loaded, 3 failed, loading: 0; a_broken: '
        self.assertEqual(status[: len(wanted)], wanted)

    def test_the_start_is_extended_while_models_load(self):
        self.start('--load-limit-ms=50000')
        before = self.manager.messages[: self.manager.messages.index(self.ready_message())]
        steps = [lines['EXTEND_TIMEOUT_USEC'] for lines in before if 'EXTEND_TIMEOUT_USEC' in lines]
        self.assertEqual(set(steps), {'80000000'})  # the time of a load, and 30 s
        starting = [lines['STATUS'] for lines in before if 'STATUS' in lines]
        self.assertEqual(starting[0], 'starting; 0 of 0 models loaded, 0 failed, loading: 1')
        after = self.manager.messages[len(before) :]
        self.assertFalse(any('EXTEND_TIMEOUT_USEC' in lines for lines in after), after)

    def test_clients_are_served_before_the_daemon_is_ready(self):
        write_chain(self.models / 'slow')
        write_check(self.models / 'slow', rows=16 * ROWS)
        self.start(wait=False)
        client = self.connect()
        while self.call_infer(client).flags & ERROR_FLAG:  # until it is loaded
            time.sleep(0.01)
        self.assertFalse(self.manager.ready.is_set())
        self.assertIn('starting; ', self.manager.status)

    def read_loads(self, count):
        """The names of the models that were loaded first. A thread writes the log."""
        loaded, end = [], time.monotonic() + 120
        while len(loaded) < count:
            self.assertLess(time.monotonic(), end, loaded)
            loaded = re.findall(r'model (?:loaded|failed) name=(\S+)', self.manager.log())
        return loaded[:count]

    def check_loads(self, *wanted):
        self.assertEqual(self.read_loads(len(wanted)), list(wanted))

    def test_models_load_by_priority_and_name(self):
        for name, priority in (('a', 'low'), ('b', 'normal'), ('y', 'normal'), ('z', 'high')):
            write_sum(self.models / name)
            if priority != 'normal':
                (self.models / name / 'model.conf').write_text(f'priority = {priority}\n')
        self.start()
        self.check_loads('z', 'b', 'm', 'y', 'a')

    def test_a_model_that_a_request_waits_for_loads_next(self):
        write_chain(self.models / 'a')
        write_check(self.models / 'a', rows=2 * ROWS)  # meanwhile the request comes
        for name in 'bcdy':
            write_sum(self.models / name)
        self.start(wait=False)
        client = self.connect()
        self.assertFalse(self.call_infer(client, model='y').flags & ERROR_FLAG)
        loaded = self.read_loads(6)
        # The request may come before the load of the first model begins.
        self.assertEqual(set(loaded[:2]), {'a', 'y'})
        self.assertEqual(loaded[2:], ['b', 'c', 'd', 'm'])

    def test_used_models_load_first(self):
        for name in 'az':
            write_sum(self.models / name)
        self.start()
        client = self.connect()
        self.assertFalse(self.call_infer(client, model='z').flags & ERROR_FLAG)
        for name in 'amz':
            os.utime(self.models / name / 'w.bin', (1, 1))
        os.kill(self.manager.pid, signal.SIGHUP)
        self.check_loads('a', 'm', 'z', 'z', 'a', 'm')

    def test_ready_at_once_without_load_all(self):
        self.start('--load-all=no')
        self.assertEqual(self.ready_message()['STATUS'],
                         'serving; 0 of 0 models loaded, 0 failed, loading: 0')
        messages = self.manager.messages
        self.assertFalse(any('EXTEND_TIMEOUT_USEC' in lines for lines in messages), messages)


if __name__ == '__main__':
    main()
