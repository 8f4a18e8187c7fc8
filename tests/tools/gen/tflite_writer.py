# SPDX-License-Identifier: Apache-2.0
"""Writes TFLite files: flatbuffers from Python values, and the metadata and archive behind them.

A table is a dict from field number to value. A value is a number with its format, as in I32(3), a
table, a string, a list of tables or strings, bytes, or a vector of numbers, as in ints(1, 2).
"""
import io
import struct
import zipfile


class Number:
    """A scalar field."""

    def __init__(self, form, value):
        self.bytes = struct.pack('<' + form, value)


def I8(value):
    return Number('b', value)


def U8(value):
    return Number('B', value)


def I32(value):
    return Number('i', value)


def U32(value):
    return Number('I', value)


def I64(value):
    return Number('q', value)


def F32(value):
    return Number('f', value)


class Vector:
    """A vector of numbers."""

    def __init__(self, form, values):
        self.count = len(values)
        self.bytes = struct.pack(f'<{len(values)}{form}', *values)


def ints(*values):
    return Vector('i', values)


def floats(*values):
    return Vector('f', values)


class _File:
    def __init__(self, identifier):
        self.data = bytearray(4) + identifier

    def align(self, size):
        self.data += bytes(-len(self.data) % size)

    def point(self, at, target):
        struct.pack_into('<I', self.data, at, target - at)

    def table(self, fields):
        """Writes a table and what its fields point to; returns its position."""
        count = max(fields, default=-1) + 1
        self.align(8)
        vtable = len(self.data)
        start = vtable + (4 + 2 * count + 7) // 8 * 8
        inline = bytearray(4)
        places, links = [0] * count, []
        for number, value in sorted(fields.items()):
            data = value.bytes if isinstance(value, Number) else bytes(4)
            inline += bytes(-len(inline) % len(data))
            places[number] = len(inline)
            if not isinstance(value, Number):
                links.append((start + len(inline), value))
            inline += data
        self.data += struct.pack(f'<HH{count}H', 4 + 2 * count, len(inline), *places)
        self.data += bytes(start - len(self.data)) + inline
        struct.pack_into('<i', self.data, start, start - vtable)
        for at, value in links:
            self.point(at, self.value(value))
        return start

    def value(self, value):
        """Writes a table, string or vector; returns its position."""
        if isinstance(value, dict):
            return self.table(value)
        if isinstance(value, list):
            return self.list(value)
        if isinstance(value, str):
            return self.vector(len(value.encode()), value.encode() + b'\0', 4)
        if isinstance(value, bytes):
            return self.vector(len(value), value, 16)
        return self.vector(value.count, value.bytes, 8)

    def vector(self, count, data, alignment):
        self.align(alignment)
        self.data += bytes(alignment - 4) + struct.pack('<I', count) + data
        return len(self.data) - len(data) - 4

    def list(self, items):
        at = self.vector(len(items), bytes(4 * len(items)), 4)
        for i, item in enumerate(items):
            self.point(at + 4 + 4 * i, self.value(item))
        return at


def flatbuffer(root, identifier):
    """The bytes of a flatbuffer with this root table."""
    file = _File(identifier)
    struct.pack_into('<I', file.data, 0, file.table(root))
    return bytes(file.data)


def archive(files, method=zipfile.ZIP_STORED):
    """The bytes of a ZIP archive of a dict from names to bytes."""
    memory = io.BytesIO()
    with zipfile.ZipFile(memory, 'w', method) as packed:
        for name, data in files.items():
            info = zipfile.ZipInfo(name)
            info.compress_type = method
            packed.writestr(info, data)
    return memory.getvalue()
