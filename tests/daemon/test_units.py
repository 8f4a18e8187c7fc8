#!/usr/bin/env python3
"""test_units.py BUILT_UNITS DAEMON SYSUSERS TMPFILES - what systemd gets of us is without fault,
and the service as locked down as it says."""
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

# The services, and how exposed each may be: systemd-analyze's score times ten; see docs/TESTING.md.
SERVICES = {'inferd.service': 5, 'inferd-gateway.service': 6, 'inferd-metrics@.service': 6}
INSTANCED = [
    'inferd.service',
    'inferd-gateway.service',
    'inferd.socket',
    'inferd-admin.socket',
    'inferd-gateway.socket',
]
UNITS = INSTANCED + ['inferd-metrics@.service', 'inferd-metrics.socket']
# These units have a template for several instances on one machine.
TEMPLATES = {unit.replace('.', '@.'): unit.replace('.', '@7.') for unit in INSTANCED}
# What the service may take at most: a share of the machine's memory, and no core files.
BOUNDS = [
    r'MemoryHigh=\d\d?%',
    r'MemoryMax=\d\d?%',
    r'TasksMax=\d+',
    r'LimitCORE=0',
    r'StartLimitIntervalSec=0',
]
OWN_PROGRAMS = {'inferd', 'inferd-gateway', 'inferctl'}
# The programs of other packages that units may run. A minimal system has no /bin/kill.
FOREIGN_PROGRAMS = {'/bin/sh'}


def verify(folder, units=UNITS):
    """Exit code and what was said; --man=no since the page is not installed here."""
    result = subprocess.run(
        [
            'systemd-analyze',
            'verify',
            '--recursive-errors=yes',
            '--man=no',
            *(str(folder / unit) for unit in units),
        ],
        capture_output=True,
        text=True,
    )
    return result.returncode, result.stdout + result.stderr


def check_templates(built, daemon, folder):
    """The templates are the units with other names, sockets and directories."""
    for template, instance in TEMPLATES.items():
        text = (Path(built) / template).read_text()
        for own in ('inferd', 'inferd-admin', 'inferd-gateway'):
            assert not re.search(rf'\b{own}\.(socket|service)\b', text), (template, own)
        assert '/run/inferd/' not in text and ':8000' not in text, template
        text = re.sub(r'^(ExecStart=)\S+', rf'\g<1>{Path(daemon).resolve()}', text, flags=re.M)
        (folder / template).write_text(text)
        (folder / instance).symlink_to(template)
    code, said = verify(folder, TEMPLATES.values())
    assert code == 0 and said == '', said
    sockets = [(folder / t).read_text() for t in TEMPLATES if t.endswith('.socket')]
    places = re.findall(r'^ListenStream=(.*)$', '\n'.join(sockets), re.M)
    wanted = ['/run/inferd-%i/inferd.sock', '/run/inferd-%i/admin.sock', '127.0.0.1:800%i']
    assert places == wanted, places
    gateway = (Path(built) / 'inferd-gateway@.service').read_text()
    assert all(f'={place}' in gateway for place in wanted[:2]), gateway


def check_store(service):
    """systemd keeps as many descriptors as the daemon may store, and says so."""
    limits = (Path(__file__).parent / '../../proto/core/limits.h').read_text()
    most = re.search(r'#define INF_LIMIT_STORED_FDS (\d+)u', limits).group(1)
    for line in (f'FileDescriptorStoreMax={most}', f'Environment=FDSTORE={most}'):
        assert re.search(f'^{line}$', service, re.M), line


def make_user_and_directories(root, sysusers, tmpfiles):
    """What the package's installation does, in a root of its own."""
    for source, place in ((sysusers, 'usr/lib/sysusers.d'), (tmpfiles, 'usr/lib/tmpfiles.d')):
        (root / place).mkdir(parents=True)
        shutil.copy(source, root / place / 'inferd.conf')
    (root / 'etc').mkdir()
    subprocess.run(['systemd-sysusers', f'--root={root}'], check=True, stderr=subprocess.DEVNULL)
    for table in ('etc/passwd', 'etc/group'):
        for user in ('inferd', 'inferd-gateway'):
            assert re.search(f'^{user}:', (root / table).read_text(), re.M), (table, user)
    assert re.search('^inferd:.*inferd-gateway', (root / 'etc/group').read_text(), re.M)
    subprocess.run(['systemd-tmpfiles', f'--root={root}', '--create'], check=True)
    assert (root / 'var/lib/inferd/models').stat().st_mode & 0o777 == 0o755


def main(built, daemon, sysusers, tmpfiles):
    if shutil.which('systemd-analyze') is None:
        print('SKIPPED: systemd-analyze is not installed')
        return 77
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for unit in UNITS:
            text = (Path(built) / unit).read_text()
            for program in re.findall(r'^Exec\w+=[-+!:@]*(\S+)', text, re.M):
                own = Path(program).name in OWN_PROGRAMS
                assert own or program in FOREIGN_PROGRAMS, program
            assert '@' not in re.sub(
                r'^(#.*|SystemCallFilter=.*)$', '', text, flags=re.M
            ), f'{unit}: not filled in'
            # Where it will be installed there is no daemon yet.
            (folder / unit).write_text(
                re.sub(r'^ExecStart=.*', f'ExecStart={Path(daemon).resolve()}', text, flags=re.M)
            )
        for bound in BOUNDS:
            for service in SERVICES:
                text = (folder / service).read_text()
                assert re.search(f'^{bound}$', text, re.M), (service, bound)
        check_store((folder / 'inferd.service').read_text())
        code, said = verify(folder)
        assert code == 0 and said == '', said
        check_templates(built, daemon, folder)
        for service in SERVICES:
            security = subprocess.run(
                [
                    'systemd-analyze',
                    'security',
                    '--offline=true',
                    f'--threshold={SERVICES[service]}',
                    '--no-pager',
                    str(folder / service),
                ],
                capture_output=True,
                text=True,
            )
            assert security.returncode == 0, security.stdout.splitlines()[-1:]
            print(service, security.stdout.splitlines()[-1])

        # And the check bites.
        service = folder / 'inferd.service'
        service.write_text(service.read_text().replace('[Service]', '[Service]\nNoSuchKey=yes'))
        code, said = verify(folder)
        assert code != 0 and 'NoSuchKey' in said, said
        if os.geteuid() == 0:
            make_user_and_directories(folder / 'root', sysusers, tmpfiles)
    return 0


if __name__ == '__main__':
    sys.exit(main(*sys.argv[1:]))
