# SPDX-License-Identifier: Apache-2.0
"""A protobuf codec for the metadata of frames (proto/wire/inferd.proto). Messages are dicts."""

# The messages as {name: {number: (field, kind)}}. The kind is u (unsigned), i (signed), b (bool),
# s (text) or the name of a message. A star before the kind means a list. A test compares this
# table with inferd.proto.
MESSAGES = {
    'Location': {1: ('offset', 'u'), 2: ('length', 'u'), 3: ('region_id', 'u')},
    'InferInputTensor': {
        1: ('name', 's'),
        2: ('datatype', 's'),
        3: ('shape', '*i'),
        100: ('location', 'Location'),
        101: ('session_tensor', 's'),
    },
    'InferRequestedOutputTensor': {
        1: ('name', 's'),
        100: ('location', 'Location'),
        101: ('session_tensor', 's'),
    },
    'ModelInferRequest': {
        1: ('model_name', 's'),
        2: ('model_version', 's'),
        3: ('id', 's'),
        5: ('inputs', '*InferInputTensor'),
        6: ('outputs', '*InferRequestedOutputTensor'),
        100: ('timeout_ns', 'u'),
        101: ('device', 's'),
        102: ('priority', 'u'),
        103: ('queue_timeout_ns', 'u'),
        110: ('session_id', 'u'),
        111: ('order_key', 'u'),
        120: ('mode', 's'),
        123: ('precision', 's'),
        124: ('traceparent', 's'),
        125: ('tracestate', 's'),
    },
    'Timing': {
        1: ('queue_ns', 'u'),
        2: ('input_ns', 'u'),
        3: ('compute_ns', 'u'),
        4: ('output_ns', 'u'),
        5: ('core_ns', 'u'),
        6: ('threads', 'u'),
    },
    'InferOutputTensor': {
        1: ('name', 's'),
        2: ('datatype', 's'),
        3: ('shape', '*i'),
        100: ('location', 'Location'),
    },
    'ModelInferResponse': {
        1: ('model_name', 's'),
        2: ('model_version', 's'),
        3: ('id', 's'),
        5: ('outputs', '*InferOutputTensor'),
        100: ('timing', 'Timing'),
        101: ('batch_size', 'u'),
        102: ('device', 's'),
        103: ('precision', 's'),
        104: ('credit_return', 'u'),
        105: ('flags', 'u'),
        106: ('padded_to', 'u'),
    },
    'ServerLiveResponse': {1: ('live', 'b')},
    'ServerReadyResponse': {1: ('ready', 'b')},
    'ServerMetadataResponse': {1: ('name', 's'), 2: ('version', 's'), 3: ('extensions', '*s')},
    'ModelReadyRequest': {1: ('name', 's'), 2: ('version', 's')},
    'ModelReadyResponse': {1: ('ready', 'b')},
    'ModelMetadataRequest': {1: ('name', 's'), 2: ('version', 's')},
    'TensorMetadata': {
        1: ('name', 's'),
        2: ('datatype', 's'),
        3: ('shape', '*i'),
        100: ('unranked', 'b'),
    },
    'ModelMetadataResponse': {
        1: ('name', 's'),
        2: ('versions', '*s'),
        3: ('platform', 's'),
        4: ('inputs', '*TensorMetadata'),
        5: ('outputs', '*TensorMetadata'),
    },
    'ModelIndex': {
        1: ('name', 's'),
        2: ('version', 's'),
        3: ('state', 's'),
        4: ('reason', 's'),
        100: ('device', 's'),
        101: ('platform', 's'),
        102: ('memory_bytes', 'u'),
        103: ('requests', 'u'),
        104: ('macs', 'u'),
        105: ('labels', 's'),
    },
    'RepositoryIndexResponse': {1: ('models', '*ModelIndex')},
    'RepositoryModelLoadRequest': {
        2: ('model_name', 's'),
        100: ('device', 's'),
        101: ('path', 's'),
        102: ('file', 's'),
        103: ('save', 'b'),
    },
    'LoadProgress': {1: ('stage', 's'), 2: ('percent', 'u')},
    'RepositoryModelUnloadRequest': {
        2: ('model_name', 's'),
        100: ('version', 's'),
        101: ('delete_files', 'b'),
    },
    'RepositoryReloadResponse': {
        1: ('models', '*ModelIndex'),
        2: ('left_out', 'u'),
        3: ('changed_settings', 's'),
        4: ('restart_settings', 's'),
        5: ('config_error', 's'),
    },
    'Device': {
        1: ('name', 's'),
        2: ('backend', 's'),
        3: ('kind', 's'),
        4: ('description', 's'),
        5: ('priority', 'i'),
        6: ('slots', 'u'),
        7: ('threads', 'u'),
        8: ('queue_depth', 'u'),
        9: ('queue_limit', 'u'),
        10: ('requests', 'u'),
        11: ('busy_ns', 'u'),
        12: ('memory_bytes', 'u'),
        13: ('health', 's'),
        220: ('precisions', 's'),
    },
    'DeviceListResponse': {1: ('devices', '*Device')},
    'ServerStatusResponse': {
        1: ('version', 's'),
        2: ('uptime_ns', 'u'),
        3: ('state', 's'),
        4: ('connections', 'u'),
        5: ('connections_total', 'u'),
        6: ('requests_accepted', 'u'),
        7: ('requests_ok', 'u'),
        8: ('requests_failed', 'u'),
        9: ('requests_in_flight', 'u'),
        10: ('regions', 'u'),
        11: ('region_bytes', 'u'),
        12: ('models_ready', 'u'),
        13: ('resident_bytes', 'u'),
        14: ('log_lines_dropped', 'u'),
        220: ('answers_checked', 'u'),
        221: ('answers_drifted', 'u'),
        222: ('answers_unchecked', 'u'),
        223: ('models_demoted', 'u'),
    },
    'State': {1: ('output', 's'), 2: ('input', 's'), 3: ('shape', '*i'), 4: ('shaped', 'b')},
    'SessionOpenRequest': {
        1: ('session_id', 'u'),
        2: ('states', '*State'),
        240: ('model_name', 's'),
        241: ('model_version', 's'),
        242: ('fork_of', 'u'),
        243: ('max_length', 'u'),
    },
    'SessionRewindRequest': {1: ('session_id', 'u'), 2: ('length', 'u'), 3: ('release', 'b')},
    'SessionCloseRequest': {1: ('session_id', 'u')},
    'Limits': {
        1: ('meta_bytes', 'u'),
        2: ('data_bytes', 'u'),
        3: ('streams', 'u'),
        4: ('regions', 'u'),
        5: ('region_bytes', 'u'),
        6: ('frame_fds', 'u'),
        7: ('stream_bytes', 'u'),
    },
    'Hello': {
        1: ('major', 'u'),
        2: ('minor', 'u'),
        3: ('client_name', 's'),
        4: ('client_version', 's'),
        5: ('limits', 'Limits'),
        6: ('features', '*s'),
    },
    'HelloAck': {
        1: ('major', 'u'),
        2: ('minor', 'u'),
        3: ('server_name', 's'),
        4: ('server_version', 's'),
        5: ('limits', 'Limits'),
        6: ('features', '*s'),
        7: ('credit_requests', 'u'),
        8: ('epoch_high', 'u'),
        9: ('epoch_low', 'u'),
        10: ('role', 's'),
        11: ('clock', 's'),
        240: ('credit_bytes', 'u'),
    },
    'LiveLimit': {1: ('name', 's'), 2: ('value', 'u'), 3: ('min', 'u'), 4: ('max', 'u')},
    'ServerLimitsRequest': {1: ('limits', '*LiveLimit')},
    'ServerLimitsResponse': {1: ('limits', '*LiveLimit')},
    'MetricsRequest': {1: ('format', 's')},
    'MetricsResponse': {1: ('media_type', 's')},
    'Request': {
        1: ('client_id', 'u'),
        2: ('stream_id', 'u'),
        3: ('uid', 'u'),
        4: ('pid', 'i'),
        5: ('method', 's'),
        6: ('model', 's'),
        7: ('version', 's'),
        8: ('device', 's'),
        9: ('phase', 's'),
        10: ('age_ns', 'u'),
        11: ('data_bytes', 'u'),
        12: ('rows', 'u'),
        13: ('id', 's'),
    },
    'RequestListResponse': {1: ('requests', '*Request'), 2: ('left_out', 'u')},
    'Client': {
        1: ('client_id', 'u'),
        2: ('uid', 'u'),
        3: ('pid', 'i'),
        4: ('name', 's'),
        5: ('role', 's'),
        6: ('age_ns', 'u'),
        7: ('requests', 'u'),
        8: ('in_flight', 'u'),
        9: ('data_bytes', 'u'),
        10: ('unread_bytes', 'u'),
        11: ('regions', 'u'),
        12: ('region_bytes', 'u'),
        13: ('sessions', 'u'),
    },
    'ClientListResponse': {1: ('clients', '*Client'), 2: ('left_out', 'u')},
    'ClientTarget': {1: ('client_id', 'u'), 2: ('stream_id', 'u')},
    'ReportRequest': {1: ('topic', 's'), 2: ('after', 'u'), 3: ('wait', 'b')},
    'Credit': {1: ('requests', 'u'), 2: ('bytes', 'u')},
    'Data': {1: ('total_bytes', 'u')},
    'MemRegister': {1: ('region_id', 'u'), 2: ('size', 'u'), 3: ('writable', 'b')},
    'MemAlloc': {1: ('region_id', 'u'), 2: ('size', 'u')},
    'MemRegistered': {1: ('region_id', 'u'), 2: ('size', 'u')},
    'MemUnregister': {1: ('region_id', 'u')},
    'MemReleased': {1: ('region_id', 'u')},
    'Goaway': {1: ('last_stream', 'u'), 2: ('reason', 's'), 3: ('drain_ns', 'u')},
    'Status': {
        1: ('code', 'u'),
        2: ('message', 's'),
        100: ('reason', 'u'),
        101: ('retry_after_ms', 'u'),
        102: ('model', 's'),
        103: ('version', 's'),
        104: ('tensor', 's'),
        105: ('expected', 's'),
        106: ('actual', 's'),
        107: ('phase', 's'),
    },
    'Empty': {},
}

_DEFAULTS = {'u': 0, 'i': 0, 'b': False, 's': ''}


def _put_varint(out, value):
    value &= (1 << 64) - 1
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)


def _put_bytes(out, number, data):
    _put_varint(out, number << 3 | 2)
    _put_varint(out, len(data))
    out += data


def _put_one(out, number, kind, value):
    if kind == 's':
        _put_bytes(out, number, value.encode())
    elif kind in 'uib':
        _put_varint(out, number << 3)
        _put_varint(out, int(value))
    else:
        _put_bytes(out, number, encode(kind, value))


def encode(name, message):
    """Returns the bytes of a message. Fields that are absent, None, 0 or empty are omitted."""
    out = bytearray()
    for number, (field, kind) in MESSAGES[name].items():
        value = message.get(field)
        if value is None or (kind[0] in 'uibs*' and not value):
            continue
        if kind == '*i':
            packed = bytearray()
            for item in value:
                _put_varint(packed, item)
            _put_bytes(out, number, packed)
        elif kind[0] == '*':
            for item in value:
                _put_one(out, number, kind[1:], item)
        else:
            _put_one(out, number, kind, value)
    return bytes(out)


def _varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, at
        shift += 7


def _signed(value):
    return value - (1 << 64) if value >> 63 else value


def _fields(data):
    """Yields (number, value) of each field. The value is an int or, for a length-delimited field,
    its bytes.
    """
    at = 0
    while at < len(data):
        key, at = _varint(data, at)
        wire = key & 7
        if wire == 0:
            value, at = _varint(data, at)
        elif wire == 2:
            size, at = _varint(data, at)
            value, at = data[at : at + size], at + size
        else:
            at += {1: 8, 5: 4}[wire]
            continue
        yield key >> 3, value


def _value(kind, value):
    if kind == 's':
        return str(value, 'utf-8')
    if kind == 'b':
        return bool(value)
    if kind == 'i':
        return _signed(value)
    return value if kind == 'u' else decode(kind, value)


def _list(kind, value):
    if kind in 'uib' and not isinstance(value, int):  # a list in the packed encoding
        at, items = 0, []
        while at < len(value):
            item, at = _varint(value, at)
            items.append(_value(kind, item))
        return items
    return [_value(kind, value)]


def decode(name, data):
    """Returns a message as a dict with all its fields. A sub-message that is absent is None."""
    fields = MESSAGES[name]
    message = {
        field: [] if kind[0] == '*' else _DEFAULTS.get(kind) for field, kind in fields.values()
    }
    for number, value in _fields(data):
        if number not in fields:
            continue
        field, kind = fields[number]
        if kind[0] == '*':
            message[field] += _list(kind[1:], value)
        else:
            message[field] = _value(kind, value)
    return message
