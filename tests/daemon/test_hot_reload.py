#!/usr/bin/env python3
"""test_hot_reload.py DAEMON INFERCTL SOURCE_ROOT [RELOADS [SEED]] - loads models again and again
while clients ask: new versions, labels that move, rollbacks, checks that fail, copies that stall,
broken files, files that vanish, a full disk. No request may fail, every answer must be one of a
model that was right, and memory, descriptors and threads of the daemon must not grow. Prints what
happened. RELOADS is the number of changes (default 120, about 20 s; 1000 take minutes)."""
import contextlib
import os
import random
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

RELOADS = int(sys.argv[4]) if len(sys.argv) > 4 else 120
SEED = int(sys.argv[5]) if len(sys.argv) > 5 else 1
sys.argv[4:] = []
sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parent / 'life'))
sys.dont_write_bytecode = True
# It reads the same arguments.
from life_case import DAEMON, SETTLE_MS, Server, topology, weights, write_model
import inferd
import numpy
from tested_program import is_sanitized

CACHE_BYTES = 1 << 20
VERSIONS_MAX = 4  # kept on disk
BAD = 1001  # the factor of models that must never answer
MIB = 1 << 20
# What the allocator may keep more at the end than after the first tenth.
GROWTH_MAX = 3 * MIB
STEPS_FIRST = 30
FULL_DISK_TRIES = 5


class Asking(threading.Thread):
    """Asks a model all the time, and keeps the account of its answers."""

    def __init__(self, reloads, model):
        super().__init__(daemon=True)
        self.reloads, self.model = reloads, model
        self.count, self.failures, self.end, self.longest = 0, [], False, 0.0
        self.start()

    def run(self):
        row = numpy.ones((1, 4), numpy.float32)
        with inferd.Client(self.reloads.server.socket) as client:
            while not self.end:
                begin = time.monotonic()
                try:
                    answer = client.infer(self.model, {'d_input': row}, timeout=20)
                    values = set(next(iter(answer.values())).ravel().tolist())
                    if not values <= self.reloads.values or len(values) != 1:
                        self.failures.append(f'{self.model}: {values}')
                except inferd.Error as error:
                    self.failures.append(f'{self.model}: {error}')
                self.count += 1
                self.longest = max(self.longest, time.monotonic() - begin)


class Reloads:
    def __init__(self):
        self.random = random.Random(SEED)
        self.values = set()  # all answers that may come
        self.factor = 0
        self.done = {}  # how often each step was made
        self.server = Server(watch_settle_ms=SETTLE_MS // 4, backends='cpu,ref', race='never')
        self.cache = self.server.folder / 'cache'
        self.cache.mkdir()
        self.server.settings['cache_dir'] = self.cache
        self.full = self.small_disk()
        self.m, self.n = self.server.models / 'm', self.server.models / 'n'
        self.versions = []
        self.m.mkdir()
        for _ in range(2):
            self.place()
        self.labels = {'stable': self.versions[0], 'canary': self.versions[1]}
        self.write_labels()
        write_model(self.n, self.next_factor())
        self.server.start()
        self.n_value = 4 * self.factor

    def small_disk(self):
        """Gives the daemon a cache on a file system of its own, if that is allowed. Returns the
        path by which the test fills it; None: there is none."""
        prefix = ['unshare', '--mount', *([] if os.geteuid() == 0 else ['--map-root-user'])]
        mount = f'mount -t tmpfs -o size={CACHE_BYTES} tmpfs "$0" && exec "$@"'
        prefix += ['sh', '-c', mount, str(self.cache)]
        if shutil.which('unshare') is None or subprocess.run(
            [*prefix, 'true'], capture_output=True
        ).returncode:
            print('no file system may be mounted: the disk does not get full')
            return None
        self.server.prefix = prefix
        return 'filler'

    def next_factor(self):
        self.factor += 1
        self.values.add(4.0 * self.factor)
        return self.factor

    # --- the repository ---

    def place(self, factor=None, check=None, change=None):
        """Puts a complete new version at its place by a rename. Returns its number."""
        number = (self.versions[-1] if self.versions else 0) + 1
        new = write_model(self.m / '.new', self.next_factor() if factor is None else factor)
        if check is not None:
            (new / 'check').mkdir()
            numpy.save(new / 'check/input.0.npy', numpy.ones((1, 4), numpy.float32))
            numpy.save(new / 'check/output.0.npy', numpy.full((1, 3), check, numpy.float32))
        if change is not None:
            change(new)
        new.rename(self.m / str(number))
        self.versions.append(number)
        return number

    def write_labels(self):
        new = self.server.models / '.conf'
        labels = ', '.join(f'{name}={version}' for name, version in self.labels.items())
        new.write_text(f'versions = latest 1\nlabels = {labels}\n')
        new.rename(self.m / 'model.conf')

    def drop_versions(self):
        """Deletes the oldest versions, which may still be served."""
        while len(self.versions) > VERSIONS_MAX:
            old = next(v for v in self.versions if v not in self.labels.values())
            shutil.rmtree(self.m / str(old))
            self.versions.remove(old)

    def wait_for_value(self, value, model='m'):
        self.server.wait_until(lambda: self.server.ask(model, timeout=20) == value)

    def withdraw(self, number):
        """Takes a version away at once, by a rename. If its files were deleted one after another, a
        load could find a bad version without its check, and would serve it."""
        gone = self.m / '.gone'
        (self.m / str(number)).rename(gone)
        shutil.rmtree(gone)
        self.versions.remove(number)

    # --- steps ---

    def new_version(self):
        self.place()
        self.wait_for_value(4 * self.factor)
        self.drop_versions()

    def moved_label(self):
        self.labels['stable'] = self.random.choice(self.versions)
        self.labels['canary'] = self.random.choice(self.versions)
        self.write_labels()
        name = self.random.choice(list(self.labels))
        self.server.wait_until(
            lambda: any(
                row['version'] == str(self.labels[name]) and name in (row.get('labels') or '')
                for row in self.server.rows()
            )
        )

    def rollback(self):
        """A new version is taken away again, and the one before it serves."""
        before = self.server.ask('m', timeout=20)
        number = self.place()
        self.wait_for_value(4 * self.factor)
        self.withdraw(number)
        assert self.server.ctl('load', 'm').returncode == 0
        self.wait_for_value(before)

    def failed_check(self):
        failed = self.loads('failed')
        number = self.place(BAD, check=1)
        # A load of a version that an earlier step took away may fail first.
        self.server.wait_until(
            lambda: self.loads('failed') > failed
            and any('the check failed' in (row.get('reason') or '') for row in self.server.rows())
        )
        self.withdraw(number)

    def passed_check(self):
        self.factor += 1
        self.values.add(4.0 * self.factor)
        self.place(self.factor, check=4 * self.factor)
        self.wait_for_value(4 * self.factor)
        self.drop_versions()

    def stalled_copy(self):
        """The file of a new version grows in steps that are longer than the settling time."""
        number = self.versions[-1] + 1
        folder = self.m / str(number)
        folder.mkdir()
        (folder / 'model.json').write_text(topology())
        data = weights(self.next_factor())
        with open(folder / 'w.bin', 'wb', buffering=0) as file:
            for at in range(0, len(data), 16):
                file.write(data[at : at + 16])
                time.sleep(0.02)
        self.versions.append(number)
        self.wait_for_value(4 * self.factor)
        self.drop_versions()

    def broken_model(self):
        def break_model(folder):
            change = self.random.choice(('json', 'short', 'empty', 'folder'))
            if change == 'json':
                text = topology()
                (folder / 'model.json').write_text(text[: self.random.randrange(1, len(text))])
            elif change == 'short':
                (folder / 'w.bin').write_bytes(weights(BAD)[:-4])
            elif change == 'empty':
                (folder / 'w.bin').write_bytes(b'')
            else:
                (folder / 'w.bin').unlink()
                (folder / 'w.bin').mkdir()

        failed = self.loads('failed')
        number = self.place(BAD, change=break_model)
        self.server.wait_until(lambda: self.loads('failed') > failed)
        self.withdraw(number)

    def vanished_files(self):
        """A new version is deleted while it settles or is loaded."""
        number = self.place()
        time.sleep(self.random.uniform(0, 3 * SETTLE_MS / 1000))
        shutil.rmtree(self.m / str(number))
        self.versions.remove(number)
        # What is asked for by name is what is there.
        self.server.ctl('load', 'm')
        self.server.wait_until(lambda: not self.server.rows_loading())

    def replaced_files(self):
        new = self.n / '.w'
        new.write_bytes(weights(self.next_factor()))
        new.rename(self.n / 'w.bin')
        self.n_value = 4 * self.factor
        self.wait_for_value(self.n_value, 'n')

    def reload_signal(self):
        self.server.process.send_signal(signal.SIGHUP)
        self.server.wait_until(lambda: not self.server.rows_loading())

    def loaded_again(self):
        assert self.server.ctl('load', 'n').returncode == 0

    def full_disk(self):
        """A model is loaded while the cache has no room for its plan."""
        if self.full is None:
            return
        filler = Path(f'/proc/{self.server.process.pid}/root{self.cache}/{self.full}')
        notes = self.server.log().count('No space left on device')

        def no_room_was_noted():
            return self.server.log().count('No space left on device') > notes

        # A plan of other files that the daemon removes makes room for one new plan.
        for _ in range(FULL_DISK_TRIES):
            with contextlib.suppress(OSError), open(filler, 'ab', buffering=0) as file:
                while True:
                    file.write(bytes(1 << 12))
            self.replaced_files()
            self.new_version()
            with contextlib.suppress(AssertionError):
                self.server.wait_until(no_room_was_noted, seconds_max=5)
                break
        assert no_room_was_noted(), self.server.log()
        filler.unlink()

    # --- the account ---

    def loads(self, outcome=None):
        text = self.server.ctl('metrics').stdout
        lines = [line for line in text.splitlines()
                 if line.startswith('inferd_model_loads_total{')]
        assert lines, text
        return sum(float(line.split()[-1]) for line in lines
                   if outcome is None or f'"{outcome}"' in line)

    def usage(self):
        """Returns memory in bytes, descriptors and threads of the daemon at rest."""
        self.server.wait_until(lambda: not self.server.rows_loading())
        time.sleep(0.5)
        proc = Path(f'/proc/{self.server.process.pid}')
        status = dict(line.split(':', 1) for line in (proc / 'status').read_text().splitlines())
        return (
            int(status['RssAnon'].split()[0]) << 10,
            len(os.listdir(proc / 'fd')),
            int(status['Threads']),
        )

    def make_step(self):
        steps = [
            self.new_version, self.moved_label, self.rollback, self.failed_check,
            self.passed_check, self.stalled_copy, self.broken_model, self.vanished_files,
            self.replaced_files, self.replaced_files, self.reload_signal, self.loaded_again,
            self.full_disk,
        ]
        # Each step once, then at random.
        index = sum(self.done.values())
        step = steps[index] if index < len(steps) else self.random.choice(steps)
        self.done[step.__name__] = self.done.get(step.__name__, 0) + 1
        step()

    def run(self):
        asking = [Asking(self, model)
                  for model in ('m', 'm@stable', 'm@canary', 'n', 'm', 'n')]
        begin, first, usage = time.monotonic(), self.loads(), None
        while sum(self.done.values()) < RELOADS:
            self.make_step()
            failures = [failure for client in asking for failure in client.failures]
            assert not failures, (list(self.done)[-1], failures[:5], self.server.log()[-3000:])
            # After the first steps, all is there that is made once.
            if sum(self.done.values()) == max(RELOADS // 10, STEPS_FIRST):
                usage = self.usage()
        end_usage = self.usage()
        for client in asking:
            client.end = True
        for client in asking:
            client.join()
        total = self.loads() - first
        print(
            f'{RELOADS} changes, {total:.0f} loads ({self.loads("failed"):.0f} failed, as they had '
            f'to) in '
            f'{time.monotonic() - begin:.0f} s: {sum(c.count for c in asking)} requests, '
            f'{sum(len(c.failures) for c in asking)} failed, the longest took '
            f'{max(c.longest for c in asking) * 1000:.0f} ms'
        )
        print(', '.join(f'{name} {count}' for name, count in sorted(self.done.items())))
        print(
            f'memory {usage[0] / MIB:.1f} -> {end_usage[0] / MIB:.1f} MiB, descriptors '
            f'{usage[1]} -> {end_usage[1]}, threads {usage[2]} -> {end_usage[2]}'
        )
        assert is_sanitized(DAEMON) or end_usage[0] <= usage[0] + GROWTH_MAX
        assert end_usage[1:] == usage[1:]
        status = self.server.ctl('status').stdout
        self.server.stop()
        assert status


Reloads().run()
