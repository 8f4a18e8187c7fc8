#!/usr/bin/env python3
"""test_timeline.py DAEMON INFERCTL - inferctl trace writes a file for Perfetto."""
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from test_operation import INFERCTL, SECONDS_MAX, Server, write_model, write_row


def start_trace(server, path, duration):
    return subprocess.Popen(
        [INFERCTL, 'trace', '--socket', f'{server.folder}/run/admin.sock', '-o', path]
        + ['-d', duration],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def start_long_trace(server, path, other):
    """Starts a recording to `path`, and waits until it has begun: then a second recording, to
    `other`, is refused. Returns the process of the first one."""
    process = start_trace(server, path, '60s')
    end = time.monotonic() + SECONDS_MAX
    while server.ctl('trace', '-o', other, '-d', '1ms').returncode == 0:
        assert time.monotonic() < end
        if process.poll() is not None:  # the short recording was the first one
            process = start_trace(server, path, '60s')
        time.sleep(0.05)
    return process


def end_trace(process):
    out, err = process.communicate(timeout=SECONDS_MAX)
    assert process.returncode == 0, (out, err)
    return out


def read_tracks(path):
    """Returns the names of processes and threads, the slices of each thread, and the asynchronous
    slices of each process."""
    trace = json.loads(Path(path).read_text())
    names, slices, ends = {}, {}, {}
    for event in trace['traceEvents']:
        track = (event['pid'], event['tid'])
        if event['ph'] == 'M':
            key = event['pid'] if event['name'] == 'process_name' else track
            assert key not in names, f'{event} names a track again'
            names[key] = event['args']['name']
        elif event['ph'] == 'X':
            assert event['dur'] >= 0, event
            slices.setdefault(track, []).append((event['ts'], event['ts'] + event['dur'], event))
        else:
            assert event['ph'] in 'be', event
            key = (event['pid'], event['id2']['local'], event['name'])
            ends.setdefault(key, {})[event['ph']] = event['ts']
    assert all(set(pair) == {'b', 'e'} and pair['b'] <= pair['e'] for pair in ends.values()), ends
    return trace, names, slices, ends


def check_nesting(slices):
    """Slices of one thread contain each other or are apart, as the format demands."""
    for rows in slices.values():
        stack = []
        for begin, end, event in sorted(rows, key=lambda row: (row[0], -row[1])):
            while stack and stack[-1] <= begin:
                stack.pop()
            assert not stack or end <= stack[-1] + 0.0011, f'{event} ends after its parent'
            stack.append(end)


def check_a_request_is_on_its_tracks(folder):
    server = Server(folder, 'backends = ref\n')
    assert server.ctl('load', 'm', str(write_model(Path(folder) / 'm'))).returncode == 0
    row, path = write_row(folder), f'{folder}/trace.json'
    process = start_trace(server, path, '1500ms')
    for _ in range(20):
        assert server.ctl('infer', 'm', '-i', row, admin=False).returncode == 0
        if process.poll() is not None:
            break
    assert ' requests' in end_trace(process)
    trace, names, slices, ends = read_tracks(path)
    check_nesting(slices)
    assert names[1] == 'loop' and names[2] == 'workers' and names[10] == 'queue ref', names
    workers = [track for track in slices if track[0] == 2]
    assert workers and all(names[track].startswith('ref worker ') for track in workers), names
    runs = [event['name'] for track in workers for _, _, event in slices[track]]
    requests = trace['otherData']['requests']
    assert requests >= 1 and trace['otherData']['lost'] == 0, trace['otherData']
    assert runs.count('m') == runs.count('run') == requests, runs
    loop = [event['name'] for _, _, event in slices[(1, 1)]]
    assert loop.count('read') >= requests and set(loop) <= {'read', 'finish'}, loop

    # Each request is once on the track of its connection and once on that of its queue.
    on_queue = {key[1]: pair for key, pair in ends.items() if key[0] == 10}
    on_connection = {key[1]: (key, pair) for key, pair in ends.items() if key[0] >= 1000}
    assert len(on_queue) == len(on_connection) == requests, ends
    for number, (key, whole) in on_connection.items():
        assert names[key[0]] == f'connection {key[0] - 1000} uid {os.getuid()}', names
        assert key[2].startswith('m stream ') and key[2].endswith(' OK'), key
        assert whole['b'] == on_queue[number]['b'] <= on_queue[number]['e'] <= whole['e'], key
        # A run lies within the request, after its time in the queue.
        assert any(
            on_queue[number]['e'] == begin and end <= whole['e']
            for track in workers
            for begin, end, event in slices[track]
            if event['name'] == 'm'
        ), key
    server.end()


def check_limits(folder):
    """One admin records at a time, and the recording ends with its connection."""
    server = Server(folder, 'backends = ref\n')
    path = f'{folder}/trace.json'
    said = server.ctl('trace', '-o', path, '-d', '10ms', admin=False)
    assert said.returncode == 5 and 'admin' in said.stderr, said
    for wrong in ('0', '601s', '1h', 'x', '-1', 'nan'):
        said = server.ctl('trace', '-o', path, '-d', wrong)
        assert said.returncode == 2 and 'wanted 1ms to 600s' in said.stderr, said
    assert server.ctl('trace').returncode == 2
    said = server.ctl('trace', '-o', '/nowhere/at/all', '-d', '10ms')
    assert said.returncode == 7 and 'No such file' in said.stderr, said

    other = f'{folder}/other.json'
    process = start_long_trace(server, path, other)
    said = server.ctl('trace', '-o', other, '-d', '1ms')
    assert said.returncode == 1 and 'records the timeline' in said.stderr, said
    process.kill()
    process.communicate(timeout=SECONDS_MAX)
    end = time.monotonic() + SECONDS_MAX
    while server.ctl('trace', '-o', other, '-d', '1ms').returncode != 0:
        assert time.monotonic() < end
    # A signal ends the recording, and the file is whole.
    process = start_long_trace(server, path, other)
    process.terminate()
    end_trace(process)
    assert read_tracks(path)[1][1] == 'loop'
    server.end()


def main():
    for check in (check_a_request_is_on_its_tracks, check_limits):
        with tempfile.TemporaryDirectory() as folder:
            check(folder)
    print('the timeline shows what the daemon does')


if __name__ == '__main__':
    sys.exit(main())
