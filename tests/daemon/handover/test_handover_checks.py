#!/usr/bin/env python3
"""test_handover_checks.py DAEMON SOURCE_ROOT [TEST...] - the next process checks what an earlier
one, or something else, left in the store: formats, slots, and descriptors."""
import os
import resource
import signal
import socket
import struct
import sys

sys.dont_write_bytecode = True
from handover_case import HandoverCase, main

from raw_client import Closed


class HandoverChecks(HandoverCase):
    def check_all_lost(self, client):
        self.manager.wait_for_log('is not used')
        with self.assertRaises(Closed):
            client.next()
        # The next clients are kept.
        again = self.kept()
        self.manager.restart(signal.SIGKILL)
        self.check_infer(again)

    def test_a_later_format_that_this_reader_may_read(self):
        self.start()
        client = self.kept()
        self.replace(lambda store: os.pwrite(self.handover_fd(), struct.pack('<II', 2, 1), 16))
        self.check_infer(client)
        self.manager.restart()
        self.check_infer(client)

    def test_a_format_of_the_future(self):
        self.start()
        client = self.kept()
        self.replace(lambda store: os.pwrite(self.handover_fd(), struct.pack('<II', 3, 2), 16))
        self.check_all_lost(client)

    def test_a_foreign_handover(self):
        self.start()
        client = self.kept()

        def swap(store):
            index = next(i for i, item in enumerate(store) if item[0] == 'inferd-handover')
            os.close(store[index][1])
            store[index] = ('inferd-handover', os.memfd_create('foreign'))

        self.replace(swap)
        self.check_all_lost(client)

    def test_a_second_handover(self):
        """The one that is used stays in the store, whichever of the two comes first."""
        self.start()
        client = self.kept()
        self.replace(lambda store: store.insert(
            0, ('inferd-handover', os.memfd_create('foreign'))))
        self.manager.wait_for_names('inferd-handover', 1)
        self.check_infer(client)
        self.replace(lambda store: store.append(
            ('inferd-handover', os.dup(self.handover_fd()))))
        self.manager.wait_for_log('reason="another one is used"')
        self.manager.wait_for_names('inferd-handover', 1)
        self.check_infer(client)
        self.manager.restart(signal.SIGKILL)
        self.check_infer(client)

    def test_slots_that_are_damaged(self):
        """The daemon survives whatever is in a slot; connections of others are kept."""
        self.start()
        for seed in range(8):
            clients = [self.connect() for _ in range(2)]
            self.manager.wait_for_names('inferd-c-', 2)
            slot = int(self.manager.names('inferd-c-')[0].split('-')[2])
            at = 4096 + (128 << 10) + slot * (128 << 10)

            def damage(store):
                # The state and the generation stay, everything else is noise.
                for offset in (8, 128 + seed * 40, 8192 + seed * 64, 16384):
                    os.pwrite(self.handover_fd(), bytes([255 - seed] * 40), at + offset)

            self.replace(damage)
            alive = 0
            for client in clients:
                try:
                    client.socket.settimeout(5)
                    self.check_infer(client)
                    alive += 1
                except (Closed, AssertionError, KeyError, BrokenPipeError):
                    pass
            self.assertGreaterEqual(alive, 1)
            for client in clients:
                client.close()
            self.manager.wait_for_names('inferd-c-', 0)

    def test_descriptors_that_are_none_of_ours(self):
        self.start()
        client = self.kept()
        client.register(5, 4096)
        self.manager.wait_for_names('inferd-r-', 1)
        name = self.manager.names('inferd-c-')[0]
        region = self.manager.names('inferd-r-')[0]
        ends = socket.socketpair()

        def add(store):
            store.append(('inferd-c-77-1', os.dup(ends[0].fileno())))
            store.append((name, os.dup(ends[0].fileno())))
            store.append((region, os.open('/dev/null', os.O_RDONLY)))
            store.append(('inferd-r-0-1-3', os.open('/dev/null', os.O_RDONLY)))
            store.append(('inferd-x', os.open('/dev/null', os.O_RDONLY)))
            store.append(('inferd-c-1-2-3', os.open('/dev/null', os.O_RDONLY)))

        self.replace(add)
        self.check_infer(client)
        ends[0].close()
        self.assertNotIn('inferd-x', self.manager.names())
        # The second descriptor of a name has not removed the first one from the store.
        self.manager.restart(signal.SIGKILL)
        self.check_infer(client)
        self.assertEqual(self.server_status()['regions'], 1)
        client.close()
        self.manager.wait_for_names('inferd-c-', 0)

    def test_the_daemon_starts_with_a_full_store(self):
        """The names of all descriptors are one variable of the environment."""
        most = resource.getrlimit(resource.RLIMIT_NOFILE)
        if most[1] != resource.RLIM_INFINITY and most[1] < 10000:
            self.skipTest('too few descriptors')
        resource.setrlimit(resource.RLIMIT_NOFILE, (10000, most[1]))
        self.addCleanup(resource.setrlimit, resource.RLIMIT_NOFILE, most)
        self.start()
        client = self.kept()
        name = 'inferd-r-4095-4294967295-255'

        def fill(store):
            while len(store) < self.manager.room:
                store.append((name, os.open('/dev/null', os.O_RDONLY)))

        self.replace(fill)
        self.check_infer(client)
        self.manager.wait_for_names(name, 0)

    def test_a_socket_of_another_daemon_is_refused(self):
        self.start()
        client = self.kept()
        ends = socket.socketpair()

        def swap(store):
            index = next(i for i, item in enumerate(store) if item[0].startswith('inferd-c-'))
            store[index] = (store[index][0], os.dup(ends[0].fileno()))

        self.replace(swap)
        ends[1].settimeout(10)
        self.assertEqual(ends[1].recv(1), b'')
        self.manager.wait_for_names('inferd-c-', 0)
        del client


if __name__ == '__main__':
    main()
