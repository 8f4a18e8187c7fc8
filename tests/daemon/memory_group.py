"""A control group with a limit of memory that the kernel enforces, of cgroup v2 or v1, for tests
that may make one."""
import os
from pathlib import Path

ROOT = Path('/sys/fs/cgroup')


def own_path(controller):
    """Returns the path of this process's group in the hierarchy of a controller; '': in v2."""
    for line in Path('/proc/self/cgroup').read_text().splitlines():
        _, names, path = line.split(':', 2)
        if controller in names.split(',') or (controller == names == ''):
            return path.lstrip('/')
    return None


class MemoryGroup:
    """Use make(). The names of the files: limit, peak, events."""

    def __init__(self, folder, limit, peak, events):
        self.folder, self.peak, self.events = folder, peak, events
        folder.mkdir()
        self.limit_file = folder / limit

    @staticmethod
    def make():
        """Returns a new group without a limit; None: this process may not make one."""
        name = f'inferd-test-{os.getpid()}'
        for base, files in (
            (ROOT / (own_path('') or ''), ('memory.max', 'memory.peak', 'memory.events')),
            (ROOT / 'memory' / (own_path('memory') or ''),
             ('memory.limit_in_bytes', 'memory.max_usage_in_bytes', 'memory.oom_control')),
        ):
            try:
                group = MemoryGroup(base / name, *files)
            except OSError:
                continue
            if group.limit_file.exists() and os.access(group.limit_file, os.W_OK):
                return group
            group.remove()
        return None

    def limit(self, size):
        self.limit_file.write_text(f'{size}\n')

    def prefix(self):
        """Returns a command that runs a command in the group. With MALLOC_PERTURB_, which the test
        runner sets, each allocation would be touched whole."""
        run = f'echo $$ >"{self.folder}/cgroup.procs" && exec env MALLOC_PERTURB_=0 "$@"'
        return ['sh', '-c', run, 'sh']

    def peak_bytes(self):
        """Returns the most memory that the group has used; 0: the kernel does not say."""
        path = self.folder / self.peak
        return int(path.read_text()) if path.exists() else 0

    def kills(self):
        """Returns how many processes the kernel has killed because memory was short."""
        lines = (self.folder / self.events).read_text().splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith('oom_kill '))

    def remove(self):
        self.folder.rmdir()
