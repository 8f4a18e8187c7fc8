#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""gen_decoder.py FILE - writes a tiny decoder with a key/value cache as ONNX.

Its tokens are the bytes 32 to 127, minus 32. It has two layers of attention with one head each, and
weights that are computed instead of trained. Layer 1 finds the token before each token: the keys
are positions, as cosines and sines of several frequencies. Layer 2 finds the earlier tokens that
follow a token like the last one. So `logits` [1, n, 96] are large for what followed in the text so
far, and the model continues a text with pieces of it.

Inputs and outputs are named as exporters of language models name them: input_ids [1, n],
past_key_values.L.key and .value [1, 1, past, size], present.L.key and .value [1, 1, past + n,
size].
"""
import math
import sys

from onnx_writer import FLOAT, INT64, Graph, field, port

TOKENS = 96
FREQUENCIES = 11  # positions up to 2 ** 11 are told apart
SHARPNESS = 30.0  # of the softmax


def constants(graph, dtype, *values):
    return graph.const(dtype, [len(values)], list(values))


def attention(graph, layer, query, key, value, hidden):
    """One head: [1, 1, n, size] for query, key and value; the mask `hidden` is added."""
    present = [
        graph.node('Concat', [f'past_key_values.{layer}.{name}', new], axis=2)
        for name, new in (('key', key), ('value', value))
    ]
    for name, joined in zip(('key', 'value'), present):
        graph.output(joined, f'present.{layer}.{name}')
    keys = graph.node('Transpose', [present[0]], perm=[0, 1, 3, 2])
    scores = graph.node('Mul', [graph.node('MatMul', [query, keys]), sharp(graph)])
    scores = graph.node('Add', [scores, hidden])
    return graph.node('MatMul', [graph.node('Softmax', [scores], axis=-1), present[1]])


def sharp(graph):
    return graph.const(FLOAT, [], [SHARPNESS])


def waves(graph, positions):
    """Cosines and sines of positions [n]: [1, 1, n, 2 * FREQUENCIES]."""
    rates = [2 * math.pi / 2**k for k in range(1, FREQUENCIES + 1)]
    turns = expand(graph, positions, 1)
    angles = graph.node('Mul', [turns, constants(graph, FLOAT, *rates)])
    both = [graph.node(op, [angles]) for op in ('Cos', 'Sin')]
    return expand(graph, graph.node('Concat', both, axis=1), 0, 1)


def expand(graph, x, *axes):
    return graph.node('Unsqueeze', [x, constants(graph, INT64, *axes)])


def size(graph, tensor, axis):
    return graph.node(
        'Gather', [graph.node('Shape', [tensor]), graph.const(INT64, [], [axis])], axis=0
    )


def main():
    graph = Graph()
    past = size(graph, 'past_key_values.0.key', 2)
    total = graph.node('Add', [past, size(graph, 'input_ids', 1)])
    one = graph.const(INT64, [], [1])
    places = graph.node('Range', [past, total, one])
    columns = graph.node('Range', [graph.const(INT64, [], [0]), total, one])
    rows = expand(graph, places, 1)

    def hide(op):  # a mask [n, past + n] that hides keys unless they are `op` a query's place
        seen = graph.node(op, [columns, rows])
        return graph.node(
            'Where', [seen, graph.const(FLOAT, [], [0.0]), graph.const(FLOAT, [], [-1e9])]
        )

    identity = [float(i == j) for i in range(TOKENS) for j in range(TOKENS)]
    table = graph.const(FLOAT, [TOKENS, TOKENS], identity)
    x = expand(graph, graph.node('Gather', [table, 'input_ids']), 1)
    numbers = graph.node('Cast', [places], to=FLOAT)
    before = graph.node('Sub', [numbers, graph.const(FLOAT, [], [1.0])])
    hidden = hide('LessOrEqual')
    previous = attention(graph, 0, waves(graph, before), waves(graph, numbers), x, hidden)
    # The first token has no previous one: its key must not be its own.
    later = graph.node('Greater', [places, graph.const(INT64, [], [0])])
    later = expand(graph, graph.node('Cast', [later], to=FLOAT), 1)
    y = attention(graph, 1, x, graph.node('Mul', [previous, later]), x, hidden)
    squeeze = field(1, y) + field(1, constants(graph, INT64, 1))
    graph.nodes.append(field(1, squeeze + field(2, 'logits') + field(4, 'Squeeze')))
    sizes = {'0.key': 2 * FREQUENCIES, '0.value': TOKENS, '1.key': TOKENS, '1.value': TOKENS}
    inputs = [port('input_ids', [1, 'n'], INT64)]
    inputs += [port(f'past_key_values.{name}', [1, 1, 'past', n]) for name, n in sizes.items()]
    outputs = [port('logits', [1, 'n', TOKENS])]
    outputs += [port(f'present.{name}', [1, 1, 'total', n]) for name, n in sizes.items()]
    graph.write_ports(sys.argv[1], 'decoder', inputs, outputs, {'': 17})


if __name__ == '__main__':
    main()
