#!/usr/bin/env python3
"""test_model_access.py DAEMON INFERCTL SOURCE_ROOT [TEST...] - who may use a model, and how much of
it: the settings allow_users, allow_groups, requests_max, requests_per_second_max,
session_bytes_max, priority and priority_max."""
import json
import os
import pickle
import struct
import subprocess
import sys
import time
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
sys.dont_write_bytecode = True
# It reads the same arguments.
from life_case import (
    INFERCTL,
    QUIET_S,
    Asking,
    Server,
    inferd,
    numpy,
    place_model,
    topology,
    write_model,
)

# Users and groups of every Debian system: daemon has the number 1, games the user 5 and the group
# 60, backup 34.
DAEMON_UID, GAMES_GID, BACKUP_GID, OTHER_UID, NO_GID = 1, 60, 34, 12345, 54321


def as_user(uid, groups, call, gid=NO_GID):
    """Returns what `call` returns in a process of another user, or the inferd.Error that it
    raises."""
    read_fd, write_fd = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.setgroups(groups)
            os.setgid(gid)
            os.setuid(uid)
            try:
                result = call()
            except inferd.Error as error:
                result = (error.code, error.reason, str(error), error.retry_after_ms)
            os.write(write_fd, pickle.dumps(result))
            os._exit(0)
        finally:
            os._exit(1)
    os.close(write_fd)
    with os.fdopen(read_fd, 'rb') as stream:
        data = stream.read()
    assert os.waitpid(pid, 0)[1] == 0
    return pickle.loads(data)


@unittest.skipIf(os.geteuid() != 0, 'only root can connect as other users')
class Access(unittest.TestCase):
    def start(self, conf, **settings):
        server = self.server = Server(**settings)
        for folder in (server.folder, server.folder / 'run'):
            folder.chmod(0o755)
        place_model(server.models / 'm', 1)
        place_model(server.models / 'open', 2)
        (server.models / 'm/model.conf').write_text(conf)
        server.start()
        os.chmod(server.socket, 0o666)
        self.addCleanup(server.stop)
        return server

    def set_conf(self, conf, name='m'):
        new = self.server.models / '.conf'
        new.write_text(conf)
        new.rename(self.server.models / name / 'model.conf')

    def ask(self, uid, groups=(), model='m', gid=NO_GID, **options):
        return as_user(uid, list(groups), lambda: self.server.ask(model, **options), gid)

    def call(self, uid, call, groups=()):
        """Calls a function with a client of another user."""

        def connected():
            with inferd.Client(self.server.socket) as client:
                return call(client)

        return as_user(uid, list(groups), connected)

    def expect_denied(self, answer, uid=OTHER_UID, model='m'):
        self.assertEqual(answer[:2], ('PERMISSION_DENIED', 'MODEL_ACL'), answer)
        self.assertIn(
            f"model '{model}': user {uid} may not use it; wanted a user of its setting "
            'allow_users, a member of its allow_groups, or an admin',
            answer[2],
        )

    def test_only_listed_users_and_groups_use_a_model(self):
        self.start('allow_users = daemon, 4242\nallow_groups = games\nallow_groups = 34\n')
        self.assertEqual(self.ask(DAEMON_UID), 4)
        self.assertEqual(self.ask(4242), 4)
        self.assertEqual(self.ask(OTHER_UID, [BACKUP_GID, 77]), 4)
        self.assertEqual(self.ask(OTHER_UID, [1, GAMES_GID, 99]), 4)
        self.assertEqual(self.ask(OTHER_UID, gid=GAMES_GID), 4)
        self.expect_denied(self.ask(OTHER_UID))
        self.expect_denied(self.ask(OTHER_UID, [33, 35, 59, 61]))
        # The number of a user is not that of a group.
        self.expect_denied(self.ask(OTHER_UID, [DAEMON_UID]))
        self.expect_denied(self.ask(BACKUP_GID), BACKUP_GID)
        # Root has no right on the data socket that is not listed; an admin has all.
        with self.assertRaises(inferd.Error) as caught:
            self.server.ask('m')
        self.assertEqual(caught.exception.reason, 'MODEL_ACL')
        with inferd.Client(f'{self.server.folder}/run/admin.sock') as admin:
            admin.infer('m', {'d_input': numpy.ones((1, 4), numpy.float32)})
        self.assertEqual(self.ask(OTHER_UID, model='open'), 8)

    def test_every_question_about_a_model_is_refused(self):
        self.start('allow_users = daemon\n')
        ones = {'d_input': numpy.ones((1, 4), numpy.float32)}
        for question in (
            lambda client: client.metadata('m'),
            lambda client: client.metadata('m', '1'),
            lambda client: client.metadata('m', '99'),
            lambda client: client.describe('m'),
            lambda client: client.check('m', ones),
            lambda client: client.infer('m', ones, version='1'),
            lambda client: client.infer('m@stable', ones),
            lambda client: client.infer('m', {}),
            lambda client: client.session(model='m'),
            lambda client: client.session({'d': 'd_input'}).infer('m', ones),
            lambda client: client.metadata('m:x'),
            lambda client: client.describe('m:x'),
        ):
            self.expect_denied(self.call(OTHER_UID, question))
        for verb in (['explain', 'm'], ['models', 'm'], ['wait', 'm'], ['bench', 'm']):
            answer = self.run_ctl(OTHER_UID, *verb)
            self.assertNotEqual(answer[0], 0)
            self.assertIn('may not use it', answer[1], verb)
            self.assertEqual(self.run_ctl(OTHER_UID, verb[0], 'open', *verb[2:],
                                          *(['-n', '3'] if verb[0] == 'bench' else []))[0], 0)

    def run_ctl(self, uid, verb, *arguments):
        """Returns the exit status and the output of inferctl on the data socket."""
        def run():
            done = subprocess.run(
                [INFERCTL, verb, '--socket', self.server.socket, *arguments],
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                timeout=20,
            )
            return done.returncode, done.stdout

        return as_user(uid, [], run)

    def names(self, uid):
        return self.call(uid, lambda client: sorted(m['name'] for m in client.models()))

    def test_a_model_is_hidden_from_those_who_may_not_use_it(self):
        server = self.start('allow_users = daemon\n')
        self.assertEqual(self.names(DAEMON_UID), ['m', 'open'])
        self.assertEqual(self.names(OTHER_UID), ['open'])
        self.assertEqual(sorted(row['name'] for row in server.rows()), ['m', 'open'])
        self.assertEqual(self.ask(DAEMON_UID), 4)
        self.assertNotIn('"m"', self.call(OTHER_UID, lambda client: client.metrics()))
        events = self.call(OTHER_UID, lambda client: client.events())['events']
        self.assertEqual({e['model'] for e in events if e['kind'] == 'model_ready'}, {'open'})
        # So is one that is idle or has failed, and no refused request loads it.
        self.set_conf('allow_users = daemon\nidle_unload_ms = 1\n')
        server.wait_until(lambda: server.row('m').get('state') == 'IDLE')
        loads = server.log().count('model loaded name=m')
        self.expect_denied(self.ask(OTHER_UID))
        self.assertEqual(self.names(OTHER_UID), ['open'])
        time.sleep(QUIET_S)
        self.assertEqual(server.log().count('model loaded name=m'), loads)
        (server.models / 'm/w.bin').write_bytes(b'short')
        self.ask(DAEMON_UID, timeout=10)
        server.wait_until(lambda: server.row('m').get('state') == 'UNAVAILABLE')
        self.assertEqual((self.names(OTHER_UID), self.names(DAEMON_UID)), (['open'], ['m', 'open']))
        self.expect_denied(self.ask(OTHER_UID))
        self.assertEqual(self.ask(DAEMON_UID)[1], 'MODEL_FAILED')

    def test_lists_change_without_a_load(self):
        server = self.start('allow_users = daemon\n')
        loads = server.log().count('model loaded name=m')
        self.expect_denied(self.ask(OTHER_UID))
        self.set_conf('')
        server.wait_until(lambda: self.ask(OTHER_UID) == 4)
        asking = Asking(server.socket, 'm')
        self.set_conf('allow_groups = games\n')
        server.wait_until(lambda: asking.failure is not None)
        self.assertEqual(asking.failure.reason, 'MODEL_ACL')
        self.expect_denied(self.ask(DAEMON_UID), DAEMON_UID)
        self.assertEqual(self.ask(OTHER_UID, [GAMES_GID]), 4)
        self.assertEqual(server.log().count('model loaded name=m'), loads)
        rows = json.loads(server.ctl('flags', '--model', 'm', '-o', 'json').stdout)
        setting = {row['name']: (row['value'], row['origin']) for row in rows}
        self.assertEqual(setting['allow_groups'], ('games', 'model'))
        self.assertEqual(setting['allow_users'], ('', 'default'))

    def test_files_that_are_put_back_have_their_lists_again(self):
        server = self.start('allow_users = daemon\n')
        m, kept = server.models / 'm', server.folder / 'kept'
        kept.mkdir()
        for name in ('model.conf', 'w.bin'):
            (m / name).rename(kept / name)
        (m / 'w.bin').write_bytes(b'short')
        self.set_conf('allow_users = games\n')
        server.wait_until(lambda: server.row('m').get('reason'))
        # Who may use the model changes although the new files do not load.
        server.wait_until(lambda: self.ask(DAEMON_UID) != 4)
        for name in ('model.conf', 'w.bin'):
            (kept / name).rename(m / name)
        server.wait_until(lambda: self.ask(DAEMON_UID) == 4)
        self.assertEqual(server.log().count('model loaded name=m'), 1)

    def test_a_name_that_is_not_known_opens_nothing(self):
        server = self.start('allow_users = not-there\n')
        row = server.row('m')
        self.assertEqual(row['state'], 'UNAVAILABLE')
        self.assertIn("allow_users: there is no user 'not-there'", row['reason'])
        self.assertEqual(self.names(OTHER_UID), ['open'])
        self.expect_denied(self.ask(OTHER_UID))
        self.set_conf('allow_users = daemon\n')
        server.wait_until(lambda: self.ask(DAEMON_UID) == 4)
        for conf in ('allow_groups = not-there', 'no_setting = 1', 'allow_users = 4294967295'):
            self.set_conf(conf + '\n')
            server.wait_until(lambda: server.row('m').get('reason'))
            self.assertEqual(self.ask(DAEMON_UID), 4)
            self.expect_denied(self.ask(OTHER_UID))
            self.set_conf('allow_users = daemon\n')
            server.wait_until(lambda: not server.row('m').get('reason'))
        self.set_conf('allow_users = ,\n')
        server.wait_until(lambda: not isinstance(self.ask(DAEMON_UID), (int, float)))
        self.expect_denied(self.ask(DAEMON_UID), DAEMON_UID)
        # What is beside a file that does not load says nothing about the model that is served.
        self.set_conf('allow_users = daemon\n')
        server.wait_until(lambda: self.ask(DAEMON_UID) == 4)
        outside = write_model(server.folder / 'outside', 1)
        (outside / 'model.conf').write_text('')
        (outside / 'w.bin').write_bytes(b'short')
        self.assertEqual(server.ctl('load', 'm', str(outside)).returncode, 1)
        self.expect_denied(self.ask(OTHER_UID))


class Quotas(unittest.TestCase):
    def start(self, slow='', **confs):
        server = self.server = Server(batch_rows_max=1)
        for name, conf in confs.items():
            place_model(server.models / name, 1)
            (server.models / name / 'model.conf').write_text(conf)
        self.write_slow('slow', slow)
        server.start()
        self.addCleanup(server.stop)
        self.client = inferd.Client(server.socket, retry=0)
        self.addCleanup(self.client.close)
        return server

    def write_slow(self, name, conf):
        """Writes a model with 1024 x 1024 products for each row, in plain loops."""
        folder = self.server.models / '.new'
        folder.mkdir()
        (folder / 'model.json').write_text(topology(inputs=1024, outputs=1024))
        (folder / 'w.bin').write_bytes(struct.pack('<f', 1) * 1024 * 1024)
        (folder / 'model.conf').write_text(conf)
        folder.rename(self.server.models / name)

    def submit(self, model, rows=1, **options):
        inputs = 4 if model in 'mn' else 1024
        return self.client.submit(
            model, {'d_input': numpy.ones((rows, inputs), numpy.float32)}, **options
        )

    def counted_quota(self, model, kind):
        """Returns limit, held and refused of a quota as the metrics say."""
        samples = json.loads(self.client.metrics('json'))
        numbers = []
        for name in ('limit', 'held', 'refused'):
            name = f'inferd_model_quota_{name}' + ('_total' if name == 'refused' else '')
            [metric] = [m for m in samples if m['name'] == name]
            numbers += [
                s['value']
                for s in metric['samples']
                if s['labels'] == {'model': model, 'quota': kind}
            ]
        return tuple(numbers)

    def told_quota(self, model, kind):
        """Returns the same as the description of the model says."""
        [told] = [q for q in self.client.describe(model)['quotas'] if q['name'] == kind]
        return told['limit'], told['held'], told['refused']

    def quota(self, model, kind):
        """Returns limit, held and refused of a quota. Both sources must agree, unless a request
        ended between reading one and the other."""
        self.server.wait_until(
            lambda: self.counted_quota(model, kind) == self.told_quota(model, kind)
        )
        return self.told_quota(model, kind)

    def expect_refused(self, pending, reason):
        with self.assertRaises(inferd.Error) as caught:
            pending.result() if hasattr(pending, 'result') else pending()
        self.assertEqual(caught.exception.code, 'RESOURCE_EXHAUSTED')
        self.assertEqual(caught.exception.reason, reason, caught.exception)
        return caught.exception

    def test_requests_in_flight_are_limited(self):
        self.start(m='', slow='requests_max = 2\n')
        # On a busy machine a request may end before the next one comes.
        rows = numpy.ones((512, 1024), numpy.float32)
        pending = [self.client.submit('slow', {'d_input': rows}) for _ in range(12)]
        # Other models are not concerned.
        self.submit('m', priority='high').result()
        answers, errors = 0, []
        for one in pending:
            try:
                self.assertEqual(one.result()['d'][0, 0], 1024)
                answers += 1
            except inferd.Error as error:
                errors.append(error)
        self.assertGreaterEqual(answers, 2)
        self.assertGreaterEqual(len(errors), 1)
        for error in errors:
            self.assertEqual((error.code, error.reason), ('RESOURCE_EXHAUSTED', 'QUOTA_REQUESTS'))
            self.assertIn("model 'slow': 2 requests are in flight", str(error))
            self.assertEqual(error.retry_after_ms, 10)
        refused = len(errors)
        self.server.wait_until(lambda: self.quota('slow', 'requests')[1] == 0)
        self.assertEqual(self.quota('slow', 'requests'), (2, 0, refused))
        # A request that fails, or is cancelled, gives its place back.
        for _ in range(3):
            with self.assertRaises(inferd.Error):
                self.client.infer('slow', {'d_input': numpy.ones((1, 3), numpy.float32)})
        with inferd.Client(self.server.socket) as gone:
            gone.submit('slow', {'d_input': numpy.ones((512, 1024), numpy.float32)})
        self.server.wait_until(lambda: self.quota('slow', 'requests')[1] == 0)
        self.assertEqual(self.quota('slow', 'requests'), (2, 0, refused))
        shown = self.server.ctl('models', 'slow').stdout
        self.assertIn(f'0 held, limit 2, {refused} refused', shown)

    def test_requests_a_second_are_limited(self):
        server = self.start(m='requests_per_second_max = 5\n', n='')
        started = time.monotonic()
        answers, error = 0, None
        while error is None:
            try:
                self.submit('m').result()
                answers += 1
            except inferd.Error as refused:
                error = refused
        took = time.monotonic() - started
        self.assertGreaterEqual(answers, 5)
        self.assertLessEqual(answers, 6 + 5 * took)
        self.assertEqual((error.code, error.reason), ('RESOURCE_EXHAUSTED', 'QUOTA_REQUESTS'))
        self.assertIn('more than 5 requests in a second', str(error))
        self.assertTrue(1 <= error.retry_after_ms <= 201, error.retry_after_ms)
        self.assertEqual(self.quota('m', 'requests_per_second'), (5, 0, 1))
        self.submit('n').result()
        time.sleep(error.retry_after_ms / 1000)
        self.submit('m').result()
        # Clients wait by themselves until they may.
        with inferd.Client(server.socket, retry=10) as patient:
            for _ in range(4):
                patient.infer('m', {'d_input': numpy.ones((1, 4), numpy.float32)}, timeout=10)
        # A change takes effect without a load.
        loads = server.log().count('model loaded name=m')
        (server.models / 'm/model.conf').write_text('')
        server.wait_until(lambda: 'quotas' not in self.client.describe('m'))
        for _ in range(20):
            self.submit('m').result()
        self.assertEqual(server.log().count('model loaded name=m'), loads)

    def test_memory_of_sessions_is_limited(self):
        server = self.start(m='session_bytes_max = 90000\n')
        ones = {'d_input': numpy.ones((4096, 4), numpy.float32)}
        with inferd.Client(server.socket) as first, inferd.Client(server.socket) as second:
            held = first.session()
            held.infer('m', ones, keep={'d': 'kept'})
            limit, used, refused = self.quota('m', 'session_bytes')
            self.assertEqual((limit, refused), (90000, 0))
            self.assertTrue(4096 * 12 <= used <= 60000, used)
            other = second.session()
            error = self.expect_refused(
                lambda: other.infer('m', ones, keep={'d': 'kept'}), 'QUOTA_BYTES'
            )
            self.assertIn('session_bytes_max', str(error))
            self.assertGreaterEqual(self.quota('m', 'session_bytes')[2], 1)
            # A fork is charged like the session that it is made of.
            self.expect_refused(held.fork, 'QUOTA_BYTES')
            held.close()
            # Its memory is given back when its last request has been released.
            server.wait_until(lambda: self.quota('m', 'session_bytes')[1] < 10000)
            other.infer('m', ones, keep={'d': 'kept'})
        server.wait_until(lambda: self.quota('m', 'session_bytes')[1] == 0)

    def test_priorities_have_a_default_and_a_cap(self):
        self.start(m='')
        for name, conf in (
            ('plain', ''),
            ('urgent', 'priority = high\n'),
            ('capped', 'priority_max = low\n'),
            ('humble', 'priority = low\n'),
        ):
            self.write_slow(name, conf)
            self.server.wait_until(lambda: self.server.row(name).get('state') == 'READY')
        [slots] = [device['slots'] for device in self.client.devices() if device['name'] == 'ref']
        for first, second, options in (
            ('plain', 'urgent', {}),
            ('capped', 'plain', {'priority': 'high'}),
            ('humble', 'plain', {}),
        ):
            self.assertTrue(
                any(self.is_overtaken(slots, first, second, options) for _ in range(8)),
                (first, second),
            )
        for _ in range(2):
            self.assertFalse(self.is_overtaken(slots, 'plain', 'plain', {}))

    def is_overtaken(self, slots, first, second, options):
        """Returns whether the second of two requests begins first. All slots are taken when they
        come, and both run for much longer than the time between their arrivals. On a machine that
        is busy they may wait for so long that priorities do not count."""
        blockers = [self.submit('slow', 64) for _ in range(slots)]
        early = self.submit(first, 32, **options)
        late = self.submit(second, 32)
        for blocker in blockers:
            blocker.result()
        waits = [one.result().timing['queue_ns'] for one in (early, late)]
        return waits[0] > waits[1] + 5_000_000


if __name__ == '__main__':
    unittest.main(argv=[sys.argv[0], *sys.argv[4:]], verbosity=2)
