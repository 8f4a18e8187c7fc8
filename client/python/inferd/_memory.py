# SPDX-License-Identifier: Apache-2.0
"""Memory shared with the daemon: memfds, and the arrays in them."""
import bisect
import fcntl
import mmap
import os
import threading
import time
import weakref

import numpy

from ._errors import Error

_ADD_SEALS = 1033
_SEALS = 1 | 2 | 4  # SEAL, SHRINK and GROW, which the daemon requires
_SMALLEST = 64 << 10
_REFUSED_S = 1.0  # after a refusal, no region is registered for this time


class Region:
    """One memfd, mapped. `array` has all bytes of the mapping. Arrays that share its memory keep
    the mapping alive.
    """

    def __init__(self, id, size):
        self.id, self.size, self.refused = id, size, False
        self.fd = os.memfd_create('inferd-python', os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        try:
            os.posix_fallocate(self.fd, 0, size)
            fcntl.fcntl(self.fd, _ADD_SEALS, _SEALS)
            self._map = mmap.mmap(self.fd, size)
        except BaseException:
            os.close(self.fd)
            raise
        # A new connection needs its own registration.
        weakref.finalize(self, os.close, self.fd).atexit = False
        self.address = numpy.frombuffer(self._map, numpy.uint8).__array_interface__['data'][0]

    def bytes(self):
        """A new array of all bytes. When this array and all views of it are freed, no code can read
        the memory through it.
        """
        return numpy.frombuffer(self._map, numpy.uint8)


class Memory:
    """The regions of one connection. The functions `register` and `unregister` send frames to the
    daemon. Thread-safe.
    """

    def __init__(self, register, unregister):
        self._register, self._unregister = register, unregister
        self._lock = threading.Lock()  # not held while waiting for the daemon
        self._last_id = 0
        self._addresses = []  # sorted, parallel to the regions
        self._regions = []
        self._unused = {}  # size: regions
        self._returned = []  # filled by finalizers, which may run at any point
        self._try_from = 0.0

    def take(self, size):
        """Returns an unused region of at least `size` bytes. Returns None if the daemon refuses the
        region, if it refused one less than _REFUSED_S ago, or if there is no memory.
        """
        room = max(_SMALLEST, 1 << (size - 1).bit_length())
        with self._lock:
            self._sort_returned()
            if self._unused.get(room):
                return self._unused[room].pop()
            if time.monotonic() < self._try_from:
                return None
            self._last_id += 1
            try:
                region = Region(self._last_id, room)
            except OSError:
                return None
            # Another thread that reconnects meanwhile registers the region as well.
            at = bisect.bisect(self._addresses, region.address)
            self._addresses.insert(at, region.address)
            self._regions.insert(at, region)
        try:
            shared = self._share(region)
        except Error:
            self._forget(region)
            raise
        if not shared:
            self._forget(region)
        return region if shared else None

    def _share(self, region):
        try:
            self._register(region)
        except Error as error:
            if error.code == 'UNAVAILABLE':
                raise
            self._try_from = time.monotonic() + _REFUSED_S
            region.refused = True
            return False
        region.refused = False
        return True

    def register_all(self):
        """Registers the regions of the previous connection with a new one."""
        self._try_from = 0.0
        with self._lock:
            regions = list(self._regions)
        for region in regions:
            self._share(region)

    def _sort_returned(self):
        """Makes returned regions available again, or frees them. The caller holds the lock."""
        while self._returned:
            region = self._returned.pop()
            if region.refused:
                self._remove(region)
            else:
                self._unused.setdefault(region.size, []).append(region)

    def give_back(self, region):
        """Returns a region that is no longer used. Takes no lock, because finalizers call it at any
        point.
        """
        self._returned.append(region)

    def drop(self, region):
        """Drops a region that the daemon may still use, so that it is never reused."""
        self._forget(region)
        self._unregister(region)

    def _forget(self, region):
        with self._lock:
            self._remove(region)

    def _remove(self, region):
        at = self._regions.index(region)
        del self._addresses[at], self._regions[at]

    def array(self, region, shape, dtype):
        """Returns an array at the start of the region. When the last reference to the array is
        gone, the region is returned.
        """
        whole = region.bytes()
        weakref.finalize(whole, self.give_back, region).atexit = False
        size = int(numpy.prod(shape, dtype=numpy.int64)) * dtype.itemsize
        return whole[:size].view(dtype).reshape(shape)

    def find(self, array):
        """Returns (region, offset) of an array in a registered region, otherwise (None, 0)."""
        address = array.__array_interface__['data'][0]
        with self._lock:
            at = bisect.bisect(self._addresses, address) - 1
            region = self._regions[at] if at >= 0 else None
        if region is None or not array.flags.c_contiguous:
            return None, 0
        offset = address - region.address
        known = not region.refused and offset + array.nbytes <= region.size
        return (region, offset) if known else (None, 0)
