#!/usr/bin/env python3
"""test_trace.py DAEMON INFERCTL BACKGROUND - the spans of requests that the daemon writes as
OTLP/JSON, and those of an example program."""
import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from test_operation import DAEMON, SECONDS_MAX, Server, write_model, write_row

BACKGROUND = sys.argv[3]
TRACE, PARENT = '0af7651916cd43dd8448eb211c80319c', 'b7ad6b7169203331'
CHILDREN = {'queue': 'infer m', 'batch': 'infer m', 'device': 'batch', 'write': 'infer m'}


def read_spans(path, requests):
    """Returns the spans of each line, when the file has so many lines."""
    end = time.monotonic() + SECONDS_MAX
    while True:
        lines = Path(path).read_text().splitlines()
        if len(lines) >= requests:
            break
        assert time.monotonic() < end, lines
        time.sleep(0.01)
    assert len(lines) == requests, lines
    return [json.loads(line)['resourceSpans'][0]['scopeSpans'][0]['spans'] for line in lines]


def check_nesting(spans):
    """The spans of one request are those of the documentation, and children lie in parents."""
    by_name = {span['name']: span for span in spans}
    assert set(by_name) == {'infer m', *CHILDREN}, by_name
    assert len({span['spanId'] for span in spans}) == 5, spans
    assert len({span['traceId'] for span in spans}) == 1, spans
    for name, parent in CHILDREN.items():
        child, above = by_name[name], by_name[parent]
        assert child['parentSpanId'] == above['spanId'], spans
        assert int(above['startTimeUnixNano']) <= int(child['startTimeUnixNano']), spans
        assert int(child['startTimeUnixNano']) <= int(child['endTimeUnixNano']), spans
        assert int(child['endTimeUnixNano']) <= int(above['endTimeUnixNano']), spans
    root = by_name['infer m']
    assert abs(int(root['endTimeUnixNano']) / 1e9 - time.time()) < 600, root
    values = {one['key']: one['value'] for one in root['attributes']}
    assert values['inferd.model'] == {'stringValue': 'm'}, values
    assert values['inferd.uid'] == {'intValue': str(os.getuid())}, values
    return root


def infer(server, row, *arguments):
    said = server.ctl('infer', 'm', '-i', row, *arguments, admin=False)
    assert said.returncode == 0, said


def check_sampling(folder):
    """A client that samples its trace has its spans written, one that does not has none."""
    path = f'{folder}/spans.jsonl'
    server = Server(folder, f'backends = ref\ntrace_file = {path}\n')
    assert server.ctl('load', 'm', str(write_model(Path(folder) / 'm'))).returncode == 0
    row = write_row(folder)
    infer(server, row)
    infer(server, row, '--traceparent', f'00-{TRACE}-{PARENT}-00')
    infer(server, row, '--traceparent', f'00-{TRACE}-{PARENT}-01')
    infer(server, row, '--traceparent', f'00-{TRACE}-{PARENT}')
    root = check_nesting(read_spans(path, 1)[0])
    assert root['traceId'] == TRACE and root['parentSpanId'] == PARENT and root['kind'] == 2, root

    assert server.ctl('flags', 'set', 'trace_rate', '1').returncode == 0
    infer(server, row)
    infer(server, row, '--traceparent', f'00-{TRACE}-{PARENT}-00')
    infer(server, row, '--traceparent', 'malformed')
    roots = [check_nesting(spans) for spans in read_spans(path, 3)]
    assert len({root['traceId'] for root in roots}) == 3, roots
    assert all('parentSpanId' not in root for root in roots[1:]), roots

    assert server.ctl('flags', 'set', 'trace_rate', '0').returncode == 0
    assert server.ctl('flags', 'set', 'trace_parents', 'no').returncode == 0
    infer(server, row, '--traceparent', f'00-{TRACE}-{PARENT}-01')
    infer(server, row)
    said = server.ctl('metrics')
    assert 'inferd_traces_written_total 3' in said.stdout.replace('  ', ' '), said.stdout
    server.end()
    read_spans(path, 3)


def check_client_spans(folder):
    """The example program's span of each request is the parent of the daemon's span."""
    path, client_path = f'{folder}/spans.jsonl', f'{folder}/client.jsonl'
    server = Server(folder, f'backends = ref\ntrace_file = {path}\n')
    assert server.ctl('load', 'm', str(write_model(Path(folder) / 'm'))).returncode == 0
    command = [BACKGROUND, '--socket', f'{folder}/run/inferd.sock', '--spans', client_path]
    for model in ('m', 'no"such\\model'):
        said = subprocess.run([*command, model, '20'], capture_output=True, text=True)
        assert (said.returncode == 0) == (model == 'm'), said
    parents = {}
    for (span,) in read_spans(client_path, 20):
        assert span['name'] == 'infer m' and span['kind'] == 3 and span['status']['code'] == 1, span
        parents[span['spanId']] = span
    assert len(parents) == 20, parents
    for root in map(check_nesting, read_spans(path, 20)):
        above = parents.pop(root['parentSpanId'])
        assert above['traceId'] == root['traceId'], root
        # The client may read its answer before the daemon notes that it was given, and each
        # process reads the clock by itself, so the times of one need not lie in the other's.
        begin, end = (int(above[key + 'TimeUnixNano']) for key in ('start', 'end'))
        assert begin < end, above
        assert abs(begin - int(root['startTimeUnixNano'])) < 10e9, (above, root)
        assert abs(end - int(root['endTimeUnixNano'])) < 10e9, (above, root)
    server.end()


def check_failures(folder):
    """Lines without a receiver are lost, and the log says so once."""
    path = f'{folder}/socket'
    server = Server(folder, f'backends = ref\ntrace_socket = {path}\ntrace_rate = 1\n')
    assert server.ctl('load', 'm', str(write_model(Path(folder) / 'm'))).returncode == 0
    row = write_row(folder)
    infer(server, row)
    server.wait_for('warning traces are not written error="No such file')
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as receiver:
        receiver.bind(path)
        receiver.settimeout(SECONDS_MAX)
        infer(server, row)
        spans = json.loads(receiver.recv(65536))['resourceSpans'][0]['scopeSpans'][0]['spans']
        check_nesting(spans)
    server.wait_for('notice traces are written again')
    server.end()


def check_refused_settings(folder):
    server = Path(folder) / 'inferd.conf'
    server.write_text('trace_rate = 1.5\n')
    said = subprocess.run([DAEMON, f'--config={server}'], capture_output=True, text=True)
    assert said.returncode != 0 and 'a number from 0 to 1' in said.stderr, said
    server.write_text('trace_file = relative\n')
    said = subprocess.run([DAEMON, f'--config={server}'], capture_output=True, text=True)
    assert said.returncode != 0 and 'absolute path' in said.stderr, said
    arguments = [f'--runtime-dir={folder}', '--trace-file=/nowhere/at/all', '--backends=ref']
    said = subprocess.run([DAEMON, *arguments], capture_output=True, text=True)
    assert said.returncode != 0 and 'trace_file: No such file' in said.stderr, said


def main():
    for check in (check_sampling, check_client_spans, check_failures, check_refused_settings):
        with tempfile.TemporaryDirectory() as folder:
            check(folder)
    print('traces are written as they should be')


if __name__ == '__main__':
    sys.exit(main())
