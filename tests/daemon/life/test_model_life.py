#!/usr/bin/env python3
"""test_model_life.py DAEMON INFERCTL SOURCE_ROOT [TEST...] - models that change while they are
served: files that change, copies that stall, checks that fail, versions and labels. Clients ask all
the time, and no request may fail."""
import json
import re
import shutil
import signal
import sys
import threading
import time
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
sys.dont_write_bytecode = True
# It reads the same arguments.
from life_case import (
    QUIET_S,
    SECONDS_MAX,
    Asking,
    Server,
    inferd,
    numpy,
    place_model,
    weights,
    write_model,
)


def loaded_names(log):
    """Returns the models that were loaded, in this order."""
    return re.findall('model loaded name=(\\w+)', log)


class Changes(unittest.TestCase):
    def start(self, **settings):
        self.server = Server(**settings)
        place_model(self.server.models / 'm', 1)
        self.server.start()
        self.assertEqual(self.server.ask('m'), 4)
        self.addCleanup(self.server.stop)
        return self.server

    def test_changed_files_are_loaded_without_a_failed_request(self):
        for settings in ({}, {'watch': 'poll', 'watch_poll_ms': 20}):
            server = Server(**settings)
            place_model(server.models / 'm', 1)
            server.start()
            asking = Asking(server.socket, 'm')
            server.wait_until(lambda: asking.count > 0 or asking.failure)
            for factor in range(2, 8):
                # Each file is replaced by a rename; the model settles when both are.
                new = server.models / 'm' / '.w'
                new.write_bytes(weights(factor))
                new.rename(server.models / 'm' / 'w.bin')
                server.wait_for_answer(4 * factor)
            self.assertEqual(asking.stop(), [4, 8, 12, 16, 20, 24, 28])
            server.stop()

    def test_a_file_that_is_being_written_waits(self):
        server = self.start()
        asking = Asking(server.socket, 'm')
        with open(server.models / 'm' / 'w.bin', 'r+b', buffering=0) as file:
            file.write(weights(2)[:20])
            time.sleep(QUIET_S)
            self.assertNotIn('model files changed', server.log())
            self.assertEqual(server.ask('m'), 4)
            file.write(weights(2)[20:])
        server.wait_for_answer(8)
        self.assertEqual(asking.stop(), [4, 8])

    def test_a_neighbour_that_changes_loads_nothing(self):
        for settings in ({}, {'watch': 'poll', 'watch_poll_ms': 20}):
            server = self.start(**settings, log_level='debug')
            for change in range(4):
                with open(server.models / 'm/log', 'a') as log:
                    log.write('line\n')
                seen = 'files beside a model changed name=m'
                server.wait_until(lambda: server.log().count(seen) > change)
            server.wait_until(lambda: not server.rows_loading())
            self.assertEqual(server.log().count('model loaded name=m'), 1)
            self.assertNotIn('model files changed', server.log())
            (server.models / 'm/w.bin').write_bytes(weights(2))
            server.wait_for_answer(8)
            self.assertIn('model files changed name=m file=w.bin', server.log())
            self.assertEqual(server.log().count('model loaded name=m'), 2)

    def test_a_broken_model_leaves_the_old_one_and_a_reason(self):
        server = self.start()
        asking = Asking(server.socket, 'm')
        (server.models / 'm' / 'w.bin').write_bytes(weights(2)[:20])
        server.wait_until(lambda: server.row('m').get('reason'))
        row = server.row('m')
        self.assertEqual(row['state'], 'READY')
        self.assertIn('w.bin', row['reason'])
        self.assertEqual(server.ask('m'), 4)
        (server.models / 'm' / 'w.bin').write_bytes(weights(3))
        server.wait_for_answer(12)
        self.assertFalse(server.row('m').get('reason'))
        self.assertEqual(asking.stop(), [4, 12])

    def write_check(self, folder, answer, tolerance=None, dtype=numpy.float32):
        (folder / 'check').mkdir(exist_ok=True)
        numpy.save(folder / 'check/input.0.npy', numpy.ones((2, 4), dtype))
        numpy.save(folder / 'check/output.0.npy', numpy.full((2, 3), answer, numpy.float32))
        if tolerance is not None:
            (folder / 'check/tolerance').write_text(f'{tolerance}\n')

    def test_a_model_serves_only_if_it_passes_its_check(self):
        server = Server()
        write_model(server.models / 'm/1', 1)
        self.write_check(server.models / 'm/1', 4)
        write_model(server.models / 'bad', 1)
        self.write_check(server.models / 'bad', 5)
        server.start()
        self.addCleanup(server.stop)
        self.assertIn('model passed its check name=m version=1', server.log())
        reason = server.row('bad')['reason']
        self.assertIn('element 0 of output 0 is 4, wanted 5', reason)
        asking = Asking(server.socket, 'm')
        # A new version with another answer is refused, and the old one serves.
        folder = write_model(server.models / 'm/.new', 2)
        self.write_check(folder, 4)
        folder.rename(server.models / 'm/2')
        server.wait_until(lambda: 'wanted 4' in server.row('m').get('reason', ''))
        self.assertEqual((server.row('m')['state'], server.row('m')['version']), ('READY', '1'))
        self.assertEqual(asking.answers, [4])
        # The check is a part of the model: a change of it is noticed.
        self.write_check(server.models / 'm/2', 8.5, tolerance=0.1)
        server.wait_for_answer(8)
        self.assertEqual(asking.stop(), [4, 8])
        self.assertEqual(server.row('m')['version'], '2')
        for broken, reason in (
            (lambda folder: self.write_check(folder, 8, tolerance='much'), 'check/tolerance'),
            (lambda folder: self.write_check(folder, 8, 0, numpy.float64), 'wanted FP32'),
            (lambda folder: (folder / 'check/input.0.npy').write_bytes(b'x'), 'check/input.0.npy'),
            (lambda folder: (folder / 'check/input.0.npy').unlink(), 'input.0.npy: does not exist'),
            (lambda folder: self.only_empty_check(folder), 'input.0.npy: does not exist'),
        ):
            broken(server.models / 'm/2')
            server.wait_until(lambda: reason in server.row('m').get('reason', ''))
            self.assertEqual(server.ask('m'), 8)

    def only_empty_check(self, folder):
        for path in (folder / 'check').iterdir():
            path.unlink()

    def versions(self, name='m'):
        return {row['version']: row for row in self.server.rows() if row['name'] == name}

    def set_versions(self, text):
        new = self.server.models / '.conf'
        new.write_text(text)
        new.rename(self.server.models / 'm/model.conf')

    def start_versions(self, text, count=3):
        server = self.server = Server()
        (server.models / 'm').mkdir()
        for number in range(1, count + 1):
            place_model(server.models / f'm/{number}', number)
        self.set_versions(text)
        server.start()
        self.addCleanup(server.stop)
        server.wait_until(lambda: self.versions() and not server.rows_loading())
        return server

    def test_several_versions_are_served(self):
        server = self.start_versions('versions = latest 2\n')
        self.assertEqual(sorted(self.versions()), ['2', '3'])
        self.assertEqual(server.ask('m'), 12)
        self.assertEqual(server.ask('m', version='2'), 8)
        with self.assertRaisesRegex(inferd.Error, "no version '1'"):
            server.ask('m', version='1')
        asking = Asking(server.socket, 'm')
        three = Asking(server.socket, 'm', version='3')
        place_model(server.models / 'm/4', 4)
        server.wait_for_answer(16)
        server.wait_until(lambda: sorted(self.versions()) == ['3', '4'])
        self.assertEqual(asking.stop(), [12, 16])
        self.assertEqual(three.stop(), [12])
        self.set_versions('versions = all\n')
        server.wait_until(lambda: sorted(self.versions()) == ['1', '2', '3', '4'])
        server.wait_until(lambda: not server.rows_loading())
        self.assertEqual([server.ask('m', version=str(i)) for i in (1, 2, 3, 4)], [4, 8, 12, 16])
        loads = server.log().count('model loaded name=m')
        self.set_versions('versions = 1, 3\n')
        server.wait_until(lambda: sorted(self.versions()) == ['1', '3'])
        self.assertEqual((server.ask('m'), server.ask('m', version='1')), (12, 4))
        self.assertLessEqual(server.log().count('model loaded name=m'), loads + 1)
        # A file of a version that is not the default one.
        (server.models / 'm/1/w.bin').write_bytes(weights(7))
        server.wait_for_answer(28, version='1')
        self.assertEqual(server.ask('m'), 12)
        self.assertEqual(server.ctl('unload', 'm', '--version', '3').returncode, 0)
        self.assertEqual((sorted(self.versions()), server.ask('m')), (['1'], 28))
        self.assertEqual(server.ctl('unload', 'm').returncode, 0)
        self.assertEqual(self.versions(), {})

    def test_versions_that_are_not_there_leave_what_is_served(self):
        server = self.start_versions('versions = 1\n')
        self.set_versions('versions = 7, 8\n')
        server.wait_until(lambda: 'names no version' in self.versions()['1'].get('reason', ''))
        self.assertIn('versions = 7, 8', self.versions()['1']['reason'])
        self.assertIn('the highest one there is 3', self.versions()['1']['reason'])
        self.assertEqual((sorted(self.versions()), server.ask('m')), (['1'], 4))
        place_model(server.models / 'm/8', 8)
        server.wait_for_answer(32)
        self.assertEqual(sorted(self.versions()), ['8'])

    def test_labels_move_without_a_failed_request(self):
        server = self.start_versions('labels = stable=1, canary=3\n')
        self.assertEqual(sorted(self.versions()), ['1', '3'])
        self.assertEqual(self.versions()['1']['labels'], 'stable')
        self.assertEqual(self.versions()['3']['labels'], 'canary')
        self.assertEqual(server.ask('m'), 12)
        stable = Asking(server.socket, 'm', version='stable')
        canary = Asking(server.socket, 'm', version='canary')
        for version in (2, 1, 3, 2):
            self.set_versions(f'labels = stable={version}, canary={4 - version}\n')
            server.wait_for_answer(4 * version, version='stable')
            self.assertEqual(server.ask('m', version='canary'), 4 * (4 - version))
        self.assertEqual((server.ask('m@stable'), server.ask('m@canary'), server.ask('m@3')),
                         (8, 8, 12))
        with self.assertRaisesRegex(inferd.Error, "no label 'beta'"):
            server.ask('m@beta')
        self.assertEqual(stable.stop(), [4, 8, 4, 12, 8])
        self.assertEqual(canary.stop(), [12, 8, 12, 4, 8])
        server.wait_until(lambda: sorted(self.versions()) == ['2', '3'])
        self.assertEqual(self.versions()['2']['labels'], 'stable,canary')
        # A label does not move to a version that is not there, or fails.
        self.set_versions('labels = stable=9\n')
        server.wait_until(lambda: 'version 9 is not' in self.versions()['3'].get('reason', ''))
        self.assertEqual(server.ask('m', version='stable'), 8)
        place_model(server.models / 'm/9', 9)
        server.wait_for_answer(36, version='stable')
        self.assertEqual(sorted(self.versions()), ['9'])
        with self.assertRaisesRegex(inferd.Error, "no label 'canary'; its labels: stable=9"):
            server.ask('m', version='canary')

    def test_a_version_that_fails_leaves_the_others(self):
        server = self.start_versions('versions = latest 2\nlabels = stable=3\n')
        stable = Asking(server.socket, 'm', version='stable')
        folder = write_model(server.models / 'm/.new', 4)
        self.write_check(folder, 1)
        folder.rename(server.models / 'm/4')
        server.wait_until(lambda: 'the check failed' in self.versions()['3'].get('reason', ''))
        self.assertEqual((server.ask('m'), server.ask('m', version='3')), (12, 12))
        self.assertEqual(stable.stop(), [12])

    def test_wait_ends_when_a_model_is_ready_or_failed(self):
        server = self.start()
        answer = server.ctl('wait', 'm')
        self.assertEqual((answer.returncode, answer.stdout), (0, 'm version 1 is ready\n'))
        self.assertEqual(server.ctl('wait', 'absent').returncode, 4)
        self.assertEqual(server.ctl('wait', 'absent', '--timeout', '200').returncode, 6)
        self.assertEqual(server.ctl('wait', 'm', '--version', '2').returncode, 4)
        write_model(server.models / 'bad', 1)
        self.write_check(server.models / 'bad', 5)
        answer = server.ctl('wait', 'bad', '--timeout', '10000')
        self.assertEqual(answer.returncode, 1)
        self.assertIn('the check failed', answer.stderr)
        place_model(server.models / 'late', 3)
        answer = server.ctl('wait', 'late', '--timeout', '10000', '-o', 'json')
        self.assertEqual(json.loads(answer.stdout)['state'], 'READY')
        self.assertEqual(server.ask('late'), 12)

    def test_idle_models_are_unloaded_and_loaded_again(self):
        server = self.server = Server()
        for name, text in (
            ('m', 'idle_unload_ms = 300\n'),
            ('kept', 'idle_unload_ms = 300\npinned = yes\n'),
            ('plain', ''),
            ('two', 'idle_unload_ms = 300\nversions = all\nlabels = old=1\n'),
        ):
            folder = server.models / name
            if name == 'two':
                folder.mkdir()
                place_model(folder / '1', 1)
                place_model(folder / '2', 2)
            else:
                write_model(folder, 1)
            (folder / 'model.conf').write_text(text)
        server.start()
        self.addCleanup(server.stop)
        expected = {
            ('kept', '1'): 'READY',
            ('m', '1'): 'IDLE',
            ('plain', '1'): 'READY',
            ('two', '1'): 'IDLE',
            ('two', '2'): 'IDLE',
        }
        server.wait_until(lambda: self.states() == expected)
        # Each version has events of its own. The states are those after a load or an unload.
        kinds = [(e['model'], e['version'], e['kind']) for e in self.events()]
        for name, version in (('m', '1'), ('two', '1'), ('two', '2')):
            self.assertEqual(kinds.count((name, version, 'model_idle')), 1)
        self.assertNotIn('model_unloaded', [kind for _, _, kind in kinds])
        self.assertNotIn('model_replaced', [kind for _, _, kind in kinds])
        self.assertEqual(server.row('m')['memory_bytes'], 0)
        self.assertEqual(server.ctl('wait', 'm').returncode, 0)
        # Asking whether a model is ready loads nothing.
        with inferd.Client(server.socket) as client:
            for name in ('m', 'two@old'):
                self.assertTrue(client._ask('model_ready', {'name': name})['ready'])
        time.sleep(QUIET_S)
        self.assertEqual(self.states(), expected)
        # The request waits for the load. On a busy machine the model may become idle again before
        # its state is read, so the log counts.
        loads = server.log().count('model loaded name=m')
        self.assertEqual(server.ask('m', timeout=10), 4)
        server.wait_until(lambda: server.log().count('model loaded name=m') == loads + 1)
        self.assertEqual(server.ask('two', version='old', timeout=10), 4)
        self.assertEqual(server.ask('two', timeout=10), 8)
        # A model that is used stays. On a busy machine the client may pause for so long that the
        # model is idle, so one good round is enough.
        for _ in range(10):
            loads = server.log().count('model loaded name=m')
            end = time.monotonic() + 1
            while time.monotonic() < end:
                self.assertEqual(server.ask('m', timeout=10), 4)
                time.sleep(0.02)
            if server.log().count('model loaded name=m') == loads:
                break
        self.assertEqual(server.log().count('model loaded name=m'), loads)
        # Changed files are found by the next request or by the watch, whichever is first.
        server.wait_until(lambda: self.states() == expected)
        (server.models / 'm/w.bin').write_bytes(weights(3))
        server.wait_until(lambda: 'model files changed name=m' in server.log())
        self.assertEqual(server.ask('m', timeout=10), 12)
        # A model whose files are gone fails with the reason; an idle one can be unloaded.
        server.wait_until(lambda: self.states() == expected)
        (server.models / 'two/1/w.bin').unlink()
        with self.assertRaises(inferd.Error):
            server.ask('two', version='1', timeout=10)
        server.wait_until(lambda: self.states()[('two', '1')] == 'UNAVAILABLE')
        server.wait_until(lambda: self.states()[('m', '1')] == 'IDLE')
        self.assertEqual(server.ctl('unload', 'm').returncode, 0)
        self.assertNotIn(('m', '1'), self.states())
        self.assertEqual(
            self.counter('inferd_model_unloads_total', cause='idle'),
            server.log().count('reason=idle_unload_ms'),
        )
        self.assertEqual(self.counter('inferd_model_unloads_total', cause='admin'), 1)
        # An event is about a change: no version has the same event twice in succession, and none
        # was unloaded before the admin did that.
        last = {}
        for event in self.events():
            key = event['model'], event['version']
            if event['kind'] in ('model_idle', 'model_ready', 'model_unloaded'):
                self.assertNotEqual(last.get(key), event['kind'], key)
                last[key] = event['kind']
            if event['kind'] == 'model_unloaded':
                self.assertEqual(event['model'], 'm')

    def test_a_limit_of_memory_unloads_the_model_that_was_used_least_recently(self):
        # Without batches, so that the memory is the same in each run.
        server = self.server = Server(batch_rows_max=1)
        for name in 'abcd':
            write_model(server.models / name, ord(name))
        (server.models / 'd/model.conf').write_text('pinned = yes\n')
        server.start()
        sizes = {row['name']: row['memory_bytes'] for row in server.rows()}
        self.assertGreater(min(sizes.values()), 0)
        server.process.send_signal(signal.SIGTERM)
        server.process.wait(SECONDS_MAX)
        server.settings['model_bytes_max'] = sum(sizes.values()) - 1
        server.start()
        self.addCleanup(server.stop)

        def ready():
            return [name for (name, _), state in self.states().items() if state == 'READY']

        server.wait_until(lambda: len(ready()) == 3 and not server.rows_loading())
        for _ in range(3):
            for name in 'abc':
                self.assertEqual(server.ask(name, timeout=10), 4 * ord(name))
                server.wait_until(lambda: len(ready()) == 3)
                self.assertIn(name, ready())
                self.assertIn('d', ready())
        # Two of three models fit beside the pinned one, and they are asked in turns: at least one
        # is unloaded in each round, and one at the start.
        unloads = server.log().count('reason=model_bytes_max')
        self.assertGreaterEqual(unloads, 4)
        self.assertEqual(self.counter('inferd_model_unloads_total', cause='memory'), unloads)

    def counter(self, name, **labels):
        """Returns one sample of the metrics."""
        answer = self.server.ctl('metrics', '-o', 'json')
        self.assertEqual(answer.returncode, 0, answer.stderr)
        samples = next(m['samples'] for m in json.loads(answer.stdout) if m['name'] == name)
        return next(s['value'] for s in samples if s['labels'] == labels)

    def events(self):
        answer = self.server.ctl('events', '-o', 'json')
        self.assertEqual(answer.returncode, 0, answer.stderr)
        return [json.loads(line) for line in answer.stdout.splitlines()]

    def states(self):
        return {(row['name'], row['version']): row['state'] for row in self.server.rows()}

    def test_new_models_appear_and_removed_ones_stay(self):
        server = self.start()
        (server.models / 'n').mkdir()
        place_model(server.models / 'n' / '1', 5)
        server.wait_until(lambda: server.row('n').get('state') == 'READY')
        self.assertEqual(server.ask('n'), 20)
        (server.models / 'm' / 'w.bin').unlink()
        (server.models / 'm' / 'model.json').unlink()
        (server.models / 'm').rmdir()
        time.sleep(QUIET_S)
        self.assertEqual(server.ask('m'), 4)

    def test_nothing_is_noticed_if_the_setting_says_so(self):
        server = self.start(watch='never')
        (server.models / 'm' / 'w.bin').write_bytes(weights(2))
        time.sleep(QUIET_S)
        self.assertEqual(server.ask('m'), 4)
        server.process.send_signal(signal.SIGHUP)
        server.wait_for_answer(8)

    def test_a_half_copied_model_is_loaded_once_after_a_start(self):
        server = Server(watch_settle_ms=2000, log_level='info')
        place_model(server.models / 'old', 1)
        time.sleep(2.1)
        write_model(server.models / 'half', 2)
        copying = threading.Event()

        def copy():
            """Goes on until the model would have been loaded at the start."""
            while not copying.wait(0.1):
                (server.models / 'half' / 'w.bin').write_bytes(weights(2)[:20])

        copier = threading.Thread(target=copy, daemon=True)
        copier.start()
        begin = time.monotonic()
        server.start(wait=False)
        self.addCleanup(server.stop)
        self.addCleanup(copying.set)
        self.assertEqual(server.ask('old'), 4)
        self.assertEqual(server.row('half')['state'], 'LOADING')
        asking = Asking(server.socket, 'half')
        time.sleep(max(0.0, begin + 4 - time.monotonic()))
        self.assertEqual(server.row('half')['state'], 'LOADING')
        copying.set()
        copier.join()
        (server.models / 'half' / 'w.bin').write_bytes(weights(2))
        server.wait_for_answer(8, 'half')
        self.assertEqual(asking.stop(), [8])
        self.assertEqual(server.log().count('model loaded name=half'), 1)
        self.assertNotIn('model failed', server.log())
        self.assertNotIn('put off, because its files change name=old', server.log())

    def test_the_models_that_were_used_most_are_loaded_first_after_a_restart(self):
        server = Server(watch='never', log_level='info')
        server.settings['state_dir'] = server.folder
        for index, name in enumerate('abc'):
            place_model(server.models / name, index + 1)
        for used in ('b', 'c'):
            server.start()
            for _ in range(8):
                server.ask(used)
            server.process.terminate()
            self.assertEqual(server.process.wait(SECONDS_MAX), 0)
        self.assertEqual(loaded_names(server.log()), ['b', 'a', 'c'])
        server.start()
        self.addCleanup(server.stop)
        # The requests of the last time count more than those of the time before.
        self.assertEqual(loaded_names(server.log()), ['c', 'b', 'a'])

    def test_reload_says_what_it_does(self):
        server = self.start(watch='never')
        place_model(server.models / 'n', 2)
        write_model(server.models / 'bad', 3)
        (server.models / 'bad' / 'model.conf').write_text('nonsense = 1\n')
        code, report = server.reload()
        self.assertEqual(code, 1)
        outcomes = {row['model']: row['outcome'] for row in report['models']}
        self.assertEqual(outcomes, {'bad': 'refused', 'n': 'loading', 'm': 'unchanged'})
        self.assertIn('nonsense', report['models'][0]['reason'])
        server.wait_until(lambda: server.row('n').get('state') == 'READY')
        (server.models / 'bad' / 'model.conf').unlink()
        (server.models / 'n' / 'w.bin').write_bytes(weights(5))
        shutil.rmtree(server.models / 'm')
        with inferd.Client(server.admin) as client:
            report = client.reload()
        self.assertEqual([(row['name'], row['state']) for row in report['models']],
                         [('bad', 'loading'), ('n', 'loading'), ('m', 'removed')])
        self.assertIn('until it is unloaded', report['models'][2]['reason'])
        server.wait_until(lambda: server.ask('n') == 20)
        self.assertEqual(server.ask('m'), 4)
        with inferd.Client(server.socket) as client:
            with self.assertRaises(inferd.Error) as caught:
                client.reload()
            self.assertEqual(caught.exception.code, 'PERMISSION_DENIED')

    def test_a_directory_without_its_ready_file_waits(self):
        server = Server(ready_file='DONE')
        write_model(server.models / 'm' / '1', 1)
        (server.models / 'm' / '1' / 'DONE').touch()
        server.start()
        self.addCleanup(server.stop)
        self.assertEqual(server.ask('m'), 4)
        write_model(server.models / 'm' / '2', 2)
        write_model(server.models / 'n', 3)
        server.wait_until(lambda: server.row('n').get('state') == 'UNAVAILABLE')
        self.assertIn('DONE', server.row('n')['reason'])
        self.assertEqual((server.ask('m'), server.row('m')['version']), (4, '1'))
        (server.models / 'm' / '2' / 'DONE').touch()
        (server.models / 'n' / 'DONE').touch()
        server.wait_for_answer(8)
        server.wait_until(lambda: server.row('n').get('state') == 'READY')


if __name__ == '__main__':
    unittest.main(argv=[sys.argv[0], *sys.argv[4:]], verbosity=2)
