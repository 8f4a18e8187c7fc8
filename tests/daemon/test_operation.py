#!/usr/bin/env python3
"""test_operation.py DAEMON INFERCTL - what an operator sees: log lines about administrative acts
and requests, a reload of the configuration, and a start that fails."""
import atexit
import json
import os
import re
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
from pathlib import Path

DAEMON, INFERCTL = map(os.path.abspath, sys.argv[1:3])
SECONDS_MAX = 60


def write_model(folder):
    """Writes a Keras model of one Dense layer without bias, 4 inputs, 3 outputs."""
    folder.mkdir(parents=True)
    layers = {
        'name': 'm',
        'layers': [
            {
                'class_name': 'Dense',
                'config': {
                    'name': 'd',
                    'units': 3,
                    'activation': 'linear',
                    'use_bias': False,
                    'batch_input_shape': [None, 4],
                },
            }
        ],
    }
    manifest = [
        {
            'paths': ['w.bin'],
            'weights': [{'name': 'd/kernel', 'shape': [4, 3], 'dtype': 'float32'}],
        }
    ]
    topology = {'class_name': 'Sequential', 'config': layers}
    text = json.dumps({'modelTopology': topology, 'weightsManifest': manifest})
    (folder / 'model.json').write_text(text)
    (folder / 'w.bin').write_bytes(struct.pack('<12f', *([1] * 12)))
    return folder


class Server:
    """A daemon with a configuration file, a log file and a folder of its own."""

    def __init__(self, folder, configuration):
        self.folder = Path(folder)
        self.configuration = self.folder / 'inferd.conf'
        self.configuration.write_text(configuration)
        (self.folder / 'run').mkdir()
        self.log_path = self.folder / 'log'
        with open(self.log_path, 'w') as log:
            self.process = subprocess.Popen(
                [DAEMON, f'--config={self.configuration}', f'--runtime-dir={self.folder}/run'],
                stderr=log,
            )
        atexit.register(self.process.kill)
        self.wait_for('serving version')

    def log(self):
        return self.log_path.read_text()

    def wait_for(self, pattern, count=1):
        """Returns the match number `count` of the pattern in the log."""
        end = time.monotonic() + SECONDS_MAX
        while True:
            found = list(re.finditer(pattern, self.log()))
            if len(found) >= count:
                return found[count - 1]
            assert time.monotonic() < end, f'"{pattern}" is not in the log: {self.log()}'
            time.sleep(0.01)

    def ctl(self, verb, *arguments, admin=True):
        name = 'admin.sock' if admin else 'inferd.sock'
        return subprocess.run(
            [INFERCTL, verb, '--socket', f'{self.folder}/run/{name}', *arguments],
            capture_output=True,
            text=True,
            timeout=SECONDS_MAX,
        )

    def end(self):
        self.process.send_signal(signal.SIGTERM)
        assert self.process.wait(SECONDS_MAX) == 0


def check_acts_are_logged(folder):
    """An administrative act leaves one line that says who did what, with which result."""
    server = Server(folder, 'backends = ref\nlog_level = notice\n')
    model = write_model(Path(folder) / 'm')
    who = f'uid={os.getuid()} pid=[0-9]+'
    assert server.ctl('load', 'm', str(model)).returncode == 0
    server.wait_for(f'admin act method=RepositoryModelLoad {who} model="m" from=descriptor .*begun')
    assert str(model) not in server.log(), 'a path of a client is in the log'
    assert server.ctl('flags', 'set', 'race', 'never').returncode == 0
    server.wait_for(f'admin act method=FlagSet {who} flag="race" value="never" result=done')
    assert server.ctl('limits', 'queue_requests_max=9').returncode == 0
    server.wait_for(f'admin act method=ServerLimits {who} limits=1 result=done')
    assert server.ctl('unload', 'm').returncode == 0
    server.wait_for(f'admin act method=RepositoryModelUnload {who} model="m" .*result=done')
    assert server.ctl('unload', 'm').returncode != 0
    server.wait_for(f'admin act method=RepositoryModelUnload {who} .*error="model .m. is not')
    # A quotation mark does not end a text of a client, nor that of an error which names it.
    assert server.ctl('flags', 'set', 'race', 'x" result=done y="').returncode != 0
    server.wait_for(
        f'admin act method=FlagSet {who} flag="race" value="x\' result=done y=\'" '
        'result=failed error="[^"]*"\n'
    )
    acts = server.log().count('admin act')
    assert server.ctl('limits', admin=False).returncode == 0, 'anybody may read the limits'
    assert server.ctl('limits', 'queue_requests_max=9', admin=False).returncode == 5
    assert server.ctl('models', admin=False).returncode == 0
    assert server.log().count('admin act') == acts, 'a question is no administrative act'
    server.end()


def check_requests_are_logged(folder):
    """At level debug of the part `access`, which can be set while the daemon runs, each request
    leaves one line with model, user, connection, stream, times of its phases, and outcome."""
    server = Server(folder, 'backends = ref\nlog = access:debug\n')
    model = write_model(Path(folder) / 'm')
    assert server.ctl('load', 'm', str(model)).returncode == 0
    row = write_row(folder)
    for _ in range(3):
        assert server.ctl('infer', 'm', '-i', row, admin=False).returncode == 0
    who = fr'uid={os.getuid()} client=\d+ stream=\d+'
    times = ' '.join(fr'{phase}_us=\d+' for phase in ('total', 'queue', 'input', 'run', 'output'))
    pattern = f'request done method=ModelInfer {who} model=m version=1 device=ref'
    server.wait_for(pattern + fr' rows=1 batch_rows=1 {times} result=done', 3)
    server.wait_for(f'debug request done method=ModelMetadata {who} result=done')
    assert server.ctl('models', 'absent', admin=False).returncode == 4
    failure = 'request failed method=ModelMetadata .*code=NOT_FOUND .*error="model .absent. is'
    server.wait_for(failure)
    assert str(model) not in server.log(), 'a path of a client is in the log'
    assert 'debug model' not in server.log(), 'only the access log is at debug'

    assert server.ctl('flags', 'set', 'log', 'access:info').returncode == 0
    lines = server.log().count('request done')
    assert server.ctl('infer', 'm', '-i', row, admin=False).returncode == 0
    assert server.ctl('flags', 'set', 'log', 'scheduler:debug,access:debug').returncode == 0
    assert server.ctl('infer', 'm', '-i', row, admin=False).returncode == 0
    server.wait_for(pattern, 4)
    assert server.log().count('method=ModelInfer') - lines <= 5
    said = server.ctl('flags', 'set', 'log', 'kitchen:debug')
    assert said.returncode != 0 and 'scheduler' in said.stderr, said
    said = server.ctl('flags', 'set', 'log_kind_lines', 'many')
    assert said.returncode != 0 and 'number from 0 to' in said.stderr, said
    assert server.ctl('flags', 'set', 'log_kind_lines', '5').returncode == 0
    assert server.ctl('unload', 'm').returncode == 0
    server.wait_for('model unloaded name=m version=1')
    server.end()


def write_slow_model(folder):
    """A chain of products that takes plain loops longer than any timeout of the tests."""
    dims = {'shape': {'dim': [{'size': '256'}, {'size': '256'}]}}
    kind, no = {'type': 'DT_FLOAT'}, {'b': False}
    nodes = [{'name': 'x', 'op': 'Placeholder', 'attr': {'dtype': kind, 'shape': dims}}]
    for i in range(60):
        attributes = {'T': kind, 'transpose_a': no, 'transpose_b': no}
        left = f's{i - 1}' if i else 'x'
        nodes.append({'name': f's{i}', 'op': 'MatMul', 'input': [left, 'x'], 'attr': attributes})
    model = {'format': 'graph-model', 'modelTopology': {'node': nodes}, 'weightsManifest': []}
    path = Path(folder) / 'slow'
    path.mkdir()
    (path / 'model.json').write_text(json.dumps(model))
    return path


def check_failed_inferences_are_logged(folder):
    """The line of an inference that fails has the same fields, and the error."""
    server = Server(folder, 'backends = ref\nlog = access:debug\n')
    assert server.ctl('load', 'slow', str(write_slow_model(folder))).returncode == 0
    matrix = write_array(folder, 'matrix.npy', (256, 256))
    who = fr'uid={os.getuid()} client=\d+ stream=\d+'
    times = ' '.join(fr'{phase}_us=\d+' for phase in ('total', 'queue', 'input', 'run', 'output'))
    said = server.ctl('infer', 'slow', '-t', '20', '-i', matrix, admin=False)
    assert said.returncode != 0, said
    server.wait_for(
        f'request done method=ModelInfer {who} model=slow version=1 device=ref rows=1 '
        fr'batch_rows=\d+ {times} result=failed code=DEADLINE_EXCEEDED reason=\w+ error="[^"]+"\n'
    )
    total = re.search(r'model=slow .* total_us=(\d+)', server.log())
    assert 20_000 <= int(total.group(1)) < 60_000_000, total.group(0)
    server.end()


def write_row(folder):
    """Writes the input of the model as a .npy file."""
    return write_array(folder, 'row.npy', (1, 4))


def write_array(folder, name, shape):
    """Writes zeros as a .npy file."""
    path = Path(folder) / name
    header = f"{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}}}".ljust(117) + '\n'
    data = bytes(4 * shape[0] * shape[1])
    path.write_bytes(b'\x93NUMPY\x01\x00' + struct.pack('<H', 118) + header.encode() + data)
    return str(path)


def check_files_are_loaded_by_descriptor(folder):
    """A model is loaded from a directory that the daemon cannot reach by its path, as below /home
    under ProtectHome=yes."""
    server = Server(folder, 'backends = ref\n')
    model = write_model(Path(folder) / 'home' / 'm')
    for path in ('m', 'm/', 'm/model.json', './m/model.json'):
        said = subprocess.run(
            [INFERCTL, 'load', '--socket', f'{folder}/run/admin.sock', 'm', path],
            cwd=model.parent,
            capture_output=True,
            text=True,
            timeout=SECONDS_MAX,
        )
        assert said.returncode == 0 and 'until the daemon ends' in said.stdout, (path, said)
    server.wait_for('from=descriptor', 4)
    # The daemon uses the descriptor and no path: a hidden directory can be loaded.
    hide = ['unshare', '--mount', 'sh', '-c']
    if os.geteuid() == 0 and subprocess.run([*hide, 'true']).returncode == 0:
        load_hidden_directory(server, folder, model, hide)
    said = server.ctl('load', 'm', str(Path(folder) / 'absent'))
    assert said.returncode == 4 and 'No such file' in said.stderr, said
    said = server.ctl('load', 'm', str(model / 'w.bin'))
    assert said.returncode == 1 and 'no format' in said.stderr, said
    server.end()


def load_hidden_directory(server, folder, model, hide):
    """Loads a model that exists in the mount namespace of the client only."""
    private = Path(folder) / 'private'
    private.mkdir()
    script = f'mount -t tmpfs none {private} && cp -r {model} {private}/p && exec {INFERCTL} '
    for path in ('p', 'p/model.json'):
        load = f'load --socket {folder}/run/admin.sock private {private}/{path}'
        said = subprocess.run([*hide, script + load], capture_output=True, text=True)
        assert said.returncode == 0, said
    assert not (private / 'p').exists()


def check_labels_fit_the_classes(folder):
    """Labels whose number is not that of the classes are refused, not given to wrong classes."""
    server = Server(folder, 'backends = ref\n')
    assert server.ctl('load', 'm', str(write_model(Path(folder) / 'm'))).returncode == 0
    labels = Path(folder) / 'labels.txt'
    arguments = ['infer', 'm', '-i', write_row(folder), '-l', str(labels)]
    for text, code in (('a\nb\nc\n\n', 0), ('a\nb\nc', 0), ('a\nb\n', 2), ('a\nb\nc\nd\n', 2)):
        labels.write_text(text)
        said = server.ctl(*arguments, admin=False)
        assert said.returncode == code, (text, said)
        assert code == 0 or '3 classes' in said.stderr, said
    server.end()


def check_timeouts_cover_the_greeting(folder):
    """A daemon that does not answer costs a client its timeout and not more."""
    server = Server(folder, 'backends = ref\n')
    server.process.send_signal(signal.SIGSTOP)
    begin = time.monotonic()
    said = server.ctl('infer', 'm', '-t', '300', admin=False)
    seconds = time.monotonic() - begin
    server.process.send_signal(signal.SIGCONT)
    assert said.returncode == 6, said
    assert seconds < 5, f'{seconds} s'
    server.end()


def check_errors_as_json(folder):
    """With -o json an error is an object on stderr."""
    server = Server(folder, 'backends = ref\n')
    said = server.ctl('models', 'absent', '-o', 'json', admin=False)
    error = json.loads(said.stderr)
    assert said.returncode == error['exit_code'] == 4, said
    assert error['error'] == "model 'absent' is not loaded", said
    assert said.stdout == ''
    assert server.ctl('models', '--json', admin=False).stderr == ''
    server.end()


def check_tables_fit(folder):
    """The flags are narrow unless all is asked for, and a profile has the slowest nodes first."""
    server = Server(folder, 'backends = ref\n')
    assert server.ctl('load', 'm', str(write_model(Path(folder) / 'm'))).returncode == 0
    head = server.ctl('flags', admin=False).stdout.splitlines()[0].split()
    assert head == ['name', 'value', 'origin', 'change'], head
    head = server.ctl('flags', '--long', admin=False).stdout.splitlines()[0].split()
    assert 'help' in head and 'default' in head, head
    nodes = json.loads(server.ctl('profile', 'm', '--json').stdout)
    times = [row['ms'] for row in nodes if row['ms'] > 0]
    rows = server.ctl('profile', 'm').stdout.split('\n\n')[0].splitlines()[1:]
    shown = [float(re.search(r' ([0-9.e-]+) +[0-9.]+ % ', row)[1]) for row in rows]
    assert len(shown) == len(times) and shown == sorted(shown, reverse=True), (rows, nodes)
    every = server.ctl('profile', 'm', '--all').stdout.split('\n\n')[0].splitlines()[1:]
    assert len(every) == len(nodes), every
    server.end()


def check_precision_is_checked_once(folder):
    """The result of a precision check is kept in the cache directory."""
    model = write_model(Path(folder) / 'models' / 'm')
    (model / 'model.conf').write_text('precision = bf16\n')
    configuration = f'repository = {folder}/models\ncache_dir = {folder}/cache\n'
    (Path(folder) / 'cache').mkdir()
    for start, wanted in enumerate((1, 0)):
        home = Path(folder) / str(start)
        home.mkdir()
        server = Server(home, configuration)
        server.wait_for('model (loaded|failed) name=m')
        assert server.log().count('precision checked name=m precision=bf16') == wanted
        said = server.ctl('models').stdout
        server.end()
    assert (Path(folder) / 'cache' / 'precision.db').exists(), said


def check_failed_models_are_not_unloaded(folder):
    """Unloading a model that never loaded says so, and removes its row."""
    (Path(folder) / 'models' / 'bad').mkdir(parents=True)
    (Path(folder) / 'models' / 'bad' / 'model.json').write_text('{}')
    server = Server(folder, f'backends = ref\nrepository = {folder}/models\n')
    server.wait_for('model failed name=bad')
    said = server.ctl('unload', 'bad')
    assert said.returncode == 1 and 'was not loaded' in said.stderr, said
    assert 'bad' not in server.ctl('models').stdout
    server.end()


def check_reload_by_admin(folder):
    """inferctl reload says which settings changed, and why a wrong file is not applied."""
    server = Server(folder, 'backends = ref\n')
    server.configuration.write_text('backends = ref\nqueue_requests_max = 10\ncpu_slots = 2\n')
    answer = server.ctl('reload', '-o', 'json')
    report = json.loads(answer.stdout)
    assert (answer.returncode, report['config_error']) == (0, ''), answer
    assert report['changed_settings'] == 'queue_requests_max', report
    assert report['restart_settings'] == 'cpu_slots', report
    server.configuration.write_text('nonsense = 1\n')
    answer = server.ctl('reload')
    assert answer.returncode == 1 and 'nonsense' in answer.stderr, answer
    assert server.ctl('reload', '-o', 'json').stdout.count('"changed_settings": ""') == 1
    server.end()


def check_reload(folder):
    """SIGHUP applies live flags that changed in the file, and names those that need a restart."""
    server = Server(folder, 'backends = ref\nqueue_requests_max = 20\n')
    assert server.ctl('limits', 'requests_per_uid_max=77').returncode == 0
    server.configuration.write_text('backends = ref\nqueue_requests_max = 10\ncpu_slots = 2\n')
    server.process.send_signal(signal.SIGHUP)
    server.wait_for('configuration read again changed="queue_requests_max"')
    server.wait_for('a restart is needed for changed flags="cpu_slots"')
    limits = {
        row['limit']: row['value'] for row in json.loads(server.ctl('limits', '--json').stdout)
    }
    assert limits['queue_requests_max'] == 10, limits
    assert limits['requests_per_uid_max'] == 77, 'a reload undid what an admin had set'
    flags = json.loads(server.ctl('flags', '--json').stdout)
    origin = next(row['origin'] for row in flags if row['name'] == 'queue_requests_max')
    assert origin == 'file', origin
    # A broken file changes nothing and is named with its line.
    server.configuration.write_text('backends = ref\nqueue_requests_max = many\n')
    server.process.send_signal(signal.SIGHUP)
    server.wait_for('configuration not applied error=".*inferd.conf:2: queue_requests_max = many')
    # Of many reloads in a row, the last one sees the last state of the file.
    for value in range(2, 9):
        server.configuration.write_text(f'backends = ref\nqueue_requests_max = {value}\n')
        for _ in range(3):
            server.process.send_signal(signal.SIGHUP)
    server.wait_for('flag set name=queue_requests_max value="8" by=file')
    # Removing the line restores the default, as far as there is room for.
    server.configuration.write_text('backends = ref\nqueue_requests_max = 20\nlog_level = debug\n')
    server.process.send_signal(signal.SIGHUP)
    server.wait_for('configuration read again changed="queue_requests_max,log_level"')
    server.end()


def check_failed_start(folder):
    """Under a service manager a daemon that cannot start says why, and does not end at once, so
    that clients that connect in a loop cannot make the manager give up on the sockets."""
    path = f'{folder}/notify'
    manager = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    manager.settimeout(SECONDS_MAX)
    manager.bind(path)
    arguments = [DAEMON, f'--runtime-dir={folder}', '--colour=red']
    environment = {**os.environ, 'NOTIFY_SOCKET': path}
    begin = time.monotonic()
    process = subprocess.Popen(arguments, env=environment, stderr=subprocess.DEVNULL)
    said = manager.recv(4096).decode()
    assert said.startswith('STATUS=not started: --colour'), said
    assert process.wait(SECONDS_MAX) == 2
    assert time.monotonic() - begin >= 4, 'it ended at once'
    # SIGTERM ends the wait.
    begin = time.monotonic()
    process = subprocess.Popen(arguments, env=environment, stderr=subprocess.DEVNULL)
    manager.recv(4096)
    process.send_signal(signal.SIGTERM)
    process.wait(SECONDS_MAX)
    assert time.monotonic() - begin < 4, 'SIGTERM did not end the wait'
    # A person who starts it by hand does not wait.
    begin = time.monotonic()
    assert subprocess.run(arguments, stderr=subprocess.DEVNULL).returncode == 2
    assert time.monotonic() - begin < 4


def main():
    checks = [check for name, check in sorted(globals().items()) if name.startswith('check_')]
    for check in checks:
        with tempfile.TemporaryDirectory() as folder:
            check(folder)
    return 0


if __name__ == '__main__':
    sys.exit(main())
