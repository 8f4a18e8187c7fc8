"""A service manager for tests: it starts the daemon with listening sockets, keeps the descriptors
that the daemon stores, and gives them to the next process, as systemd does."""
import array
import ctypes
import os
import signal
import socket
import threading
import time

PR_SET_PDEATHSIG = 1


class Manager:
    """Runs a daemon as systemd would run its unit. `room` is FileDescriptorStoreMax."""

    def __init__(self, folder, command, room=4096, environment=()):
        self.folder, self.command, self.room = str(folder), command, room
        self.environment = dict(environment)
        self.store = []  # (name, descriptor), in the order of arrival
        self.lock = threading.Lock()
        self.ready, self.seen = threading.Event(), threading.Event()
        self.status = ''
        self.messages = []  # notifications of the present process, as dictionaries
        self.pid = None
        self.notify_path = self.folder + '/notify'
        self.sink = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.sink.bind(self.notify_path)
        self.data, self.admin = self.folder + '/data.sock', self.folder + '/admin.sock'
        self.listeners = []
        for path in (self.data, self.admin):
            listener = socket.socket(socket.AF_UNIX)
            listener.bind(path)
            listener.listen(1024)
            self.listeners.append(listener)
        threading.Thread(target=self._receive, daemon=True).start()

    # --- the store ---

    def _receive(self):
        while True:
            text, control, _, _ = self.sink.recvmsg(4096, socket.CMSG_SPACE(64 * 4))
            fds = array.array('i')
            for level, kind, data in control:
                if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
                    fds.frombytes(data[: len(data) // 4 * 4])
            lines = dict(line.split('=', 1) for line in text.decode().split('\n') if '=' in line)
            with self.lock:
                self._handle(lines, list(fds))

    def _handle(self, lines, fds):
        self.messages.append(lines)
        if 'FDSTORE' in lines:
            for fd in fds:
                if len(self.store) < self.room:
                    self.store.append((lines['FDNAME'], fd))
                else:
                    os.close(fd)
            fds = []
        if 'FDSTOREREMOVE' in lines:
            for name, fd in [item for item in self.store if item[0] == lines['FDNAME']]:
                self.store.remove((name, fd))
                os.close(fd)
        for fd in fds:
            os.close(fd)
        if 'STATUS' in lines:
            self.status = lines['STATUS']
        if 'X_BARRIER' in lines:
            self.seen.set()
        if 'READY' in lines:
            self.ready.set()

    def names(self, prefix=''):
        with self.lock:
            return sorted(name for name, _ in self.store if name.startswith(prefix))

    def wait_for_names(self, prefix, count, seconds=20):
        end = time.monotonic() + seconds
        while len(self.names(prefix)) != count:
            assert time.monotonic() < end, (prefix, count, self.names())
            time.sleep(0.005)

    # --- the daemon ---

    def wait_for_log(self, text, seconds=20):
        """Waits until the log has a text: a thread of its own writes the log."""
        end = time.monotonic() + seconds
        while text not in self.log():
            assert time.monotonic() < end, f"the log lacks '{text}'"
            time.sleep(0.005)

    def start(self, wait=True):
        self.ready.clear()
        self.status = ''
        self.messages = []
        with self.lock:
            named = [(listener.fileno(), name) for listener, name in
                     zip(self.listeners, ('inferd', 'inferd-admin'))]
            named += [(fd, name) for name, fd in self.store]
            pid = os.fork()
            if pid == 0:
                self._exec(named)
        self.pid = pid
        if wait:
            assert self.ready.wait(60), 'the daemon does not get ready'

    def wait_for_models(self, seconds=60):
        """Waits until no model is being loaded."""
        end = time.monotonic() + seconds
        while 'loading: 0' not in self.status:
            assert time.monotonic() < end, self.status
            time.sleep(0.005)

    def _exec(self, named):
        try:
            import fcntl

            copies = [fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 3 + len(named)) for fd, _ in named]
            for i, copy in enumerate(copies):
                os.dup2(copy, 3 + i, inheritable=True)
            environment = {
                **os.environ,
                **self.environment,
                'NOTIFY_SOCKET': self.notify_path,
                'LISTEN_PID': str(os.getpid()),
                'LISTEN_FDS': str(len(named)),
                'LISTEN_FDNAMES': ':'.join(name for _, name in named),
            }
            if self.room > 0:
                environment['FDSTORE'] = str(self.room)
            log = os.open(self.folder + '/log', os.O_WRONLY | os.O_CREAT | os.O_APPEND)
            os.dup2(log, 1)
            os.dup2(log, 2)
            ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
            signal.pthread_sigmask(signal.SIG_SETMASK, [])
            os.execve(self.command[0], self.command, environment)
        finally:
            os._exit(127)

    def log(self):
        with open(self.folder + '/log') as file:
            return file.read()

    def end(self, number=signal.SIGTERM):
        """Ends the daemon with a signal, and returns its wait status."""
        os.kill(self.pid, number)
        status = os.waitpid(self.pid, 0)[1]
        self.pid = None
        # Handle what the daemon has sent before it ended.
        self.seen.clear()
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as barrier:
            barrier.sendto(b'X_BARRIER=1', self.notify_path)
        assert self.seen.wait(20)
        return status

    def restart(self, number=signal.SIGTERM):
        """Ends the daemon and starts the next process. Returns the wait status of the first."""
        status = self.end(number)
        self.start()
        return status

    def close(self):
        if self.pid is not None:
            self.end(signal.SIGKILL)
        with self.lock:
            for _, fd in self.store:
                os.close(fd)
            self.store = []
        for listener in self.listeners:
            listener.close()
