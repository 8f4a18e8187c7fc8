#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""khr_matrix.py IN.spv OUT.spv - turns the instructions of SPV_NV_cooperative_matrix in a module
into those of SPV_KHR_cooperative_matrix, which most drivers have, but compilers before 2023 do not
know.

The KHR extension has other opcodes and another capability. Its types of matrices also say which
operand of a product a matrix is: first factor, second factor or sum. Its loads and stores name the
order in memory by an integer, 0 by row and 1 by column, where NVIDIA's have a boolean that is true
by column. In the module, each of the three operands must have a type of its own."""
import struct
import sys
from pathlib import Path

OP_EXTENSION, OP_CAPABILITY, OP_TYPE_INT, OP_CONSTANT = 10, 17, 21, 43
OP_CONSTANT_TRUE, OP_CONSTANT_FALSE, OP_LOAD = 41, 42, 61
CAPABILITY_NV, CAPABILITY_KHR = 5357, 6022
TYPE_NV, LOAD_NV, STORE_NV, MULTIPLY_ADD_NV = 5358, 5359, 5360, 5361
TYPE_KHR, LOAD_KHR, STORE_KHR, MULTIPLY_ADD_KHR = 4456, 4457, 4458, 4459
USES = range(3)  # the first factor, the second factor, the sum
HEADER_WORDS, BOUND = 5, 3


def split(words):
    """Yields each instruction as its opcode and its operands."""
    at = HEADER_WORDS
    while at < len(words):
        count = words[at] >> 16
        yield words[at] & 0xFFFF, list(words[at + 1 : at + count])
        at += count


def join(op, operands):
    return [len(operands) + 1 << 16 | op, *operands]


def text_words(text):
    data = text.encode() + b'\0'
    data += b'\0' * (-len(data) % 4)
    return list(struct.unpack(f'<{len(data) // 4}I', data))


def find_uses(instructions):
    """Returns which operand of products each type of matrices is."""
    types, uses = {}, {}
    for op, operands in instructions:
        if op in (LOAD_NV, OP_LOAD):
            types[operands[1]] = operands[0]
        elif op == MULTIPLY_ADD_NV:
            kinds = [types[operands[2]], types[operands[3]], operands[0]]
            assert len(set(kinds)) == len(kinds), 'two operands have the same type'
            uses.update(zip(kinds, USES))
    return uses


def convert(words):
    instructions = list(split(words))
    uses = find_uses(instructions)
    nv = text_words('SPV_NV_cooperative_matrix')
    khr = text_words('SPV_KHR_cooperative_matrix')
    bound = words[BOUND]
    numbers = [bound + use for use in USES]  # ids of the constants 0, 1 and 2
    order = {}  # for each boolean constant: id of the number that says the same
    uint, defined = None, False
    result = []
    for op, operands in instructions:
        if op == OP_CAPABILITY and operands == [CAPABILITY_NV]:
            operands = [CAPABILITY_KHR]
        elif op == OP_EXTENSION and operands == nv:
            operands = khr
        elif op == OP_TYPE_INT and operands[1:] == [32, 0]:
            uint = operands[0]
        elif op in (OP_CONSTANT_TRUE, OP_CONSTANT_FALSE):
            order[operands[1]] = numbers[op == OP_CONSTANT_TRUE]
        elif op == TYPE_NV:
            if not defined:
                for use in USES:
                    result += join(OP_CONSTANT, [uint, numbers[use], use])
                defined = True
            op, operands = TYPE_KHR, [*operands, numbers[uses[operands[0]]]]
        elif op == LOAD_NV:
            kind, value, pointer, stride, by_column, *rest = operands
            op, operands = LOAD_KHR, [kind, value, pointer, order[by_column], stride, *rest]
        elif op == STORE_NV:
            pointer, value, stride, by_column, *rest = operands
            op, operands = STORE_KHR, [pointer, value, order[by_column], stride, *rest]
        elif op == MULTIPLY_ADD_NV:
            op = MULTIPLY_ADD_KHR
        result += join(op, operands)
    head = list(words[:HEADER_WORDS])
    head[BOUND] = bound + len(USES)
    return head + result


def main(source, target):
    data = Path(source).read_bytes()
    words = convert(struct.unpack(f'<{len(data) // 4}I', data))
    Path(target).write_bytes(struct.pack(f'<{len(words)}I', *words))


if __name__ == '__main__':
    main(*sys.argv[1:])
