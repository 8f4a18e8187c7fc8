#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""test_decoding_operators.py DAEMON SOURCE_ROOT [TEST...] - operators that append keys and values
themselves, in decoding sessions: the rows are written in place, and the results are those of an
attention that this test computes with NumPy."""
import math
import os
import re
import sys
import unittest

DAEMON, ROOT = map(os.path.abspath, sys.argv[1:3])
sys.path.insert(0, ROOT + '/client/python')
sys.path.insert(0, ROOT + '/tests/tools/gen')
sys.dont_write_bytecode = True
import numpy
import inferd
from bare_daemon import BareDaemon
from onnx_writer import FLOAT, INT32, INT64, Graph, port

HEADS, SIZE = 4, 8
ROOM_LEAST = 256
STEPS = (5, 1, 1, 3) + (1,) * 10
CACHE = 32 # rows of a cache whose size stays the same
PAIRS = {'present.key': 'past.key', 'present.value': 'past.value'}


def split(x, heads):
    """[rows, heads * size] to [heads, rows, size]."""
    return x.reshape(len(x), heads, -1).transpose(1, 0, 2)


def rotate(x):
    """Turns pairs of channels of x [heads, rows, size] by the position of the row."""
    rates = 100.0 ** (-numpy.arange(SIZE // 2) / 4)
    angles = numpy.outer(numpy.arange(x.shape[1]), rates)
    a, b = x[..., : SIZE // 2], x[..., SIZE // 2 :]
    c, s = numpy.cos(angles), numpy.sin(angles)
    return numpy.concatenate([a * c - b * s, a * s + b * c], axis=-1)


def attend(q, k, v, heads, rotary):
    """The attention of each row to those up to itself: [rows, heads of q * size]."""
    q, k, v = split(q, HEADS), split(k, heads), split(v, heads)
    if rotary:
        q, k = rotate(q), rotate(k)
    k, v = (numpy.repeat(x, HEADS // heads, axis=0) for x in (k, v))
    scores = q @ k.transpose(0, 2, 1) / math.sqrt(SIZE)
    scores[:, numpy.triu_indices(len(q[0]), 1)[0], numpy.triu_indices(len(q[0]), 1)[1]] = -numpy.inf
    weights = numpy.exp(scores - scores.max(axis=-1, keepdims=True))
    y = weights / weights.sum(axis=-1, keepdims=True) @ v
    return y.transpose(1, 0, 2).reshape(len(q[0]), -1)


def add_multi_head(graph):
    operands = ['q', 'k', 'v', '', '', '', 'past.key', 'past.value']
    return graph.add('MultiHeadAttention', operands, 3, 'com.microsoft', num_heads=HEADS,
                     unidirectional=1)


def add_packed(graph):
    """com.microsoft's Attention, whose cache has keys and values. It projects by the identity."""
    width = 3 * HEADS * SIZE
    identity = [float(i == k) for i in range(width) for k in range(width)]
    operands = [graph.node('Concat', ['q', 'k', 'v'], axis=2),
                graph.const(FLOAT, [width, width], identity),
                graph.const(FLOAT, [width], [0.0] * width), '', 'past.both']
    return graph.add('Attention', operands, 2, 'com.microsoft', num_heads=HEADS, unidirectional=1)


def add_scattered(graph, heads):
    """Keys and values in caches of a fixed size; `at` tells how many rows are used."""
    caches = [graph.node('TensorScatter', [f'past.{name}', x, 'at'], axis=1)
              for name, x in (('key', 'k'), ('value', 'v'))]
    rows = graph.node('Gather', [graph.node('Shape', ['q']), graph.const(INT64, [1], [1])], axis=0)
    operands = ['q', *caches, '', '', '', graph.node('Add', ['at', rows])]
    y = graph.node('Attention', operands, q_num_heads=HEADS, kv_num_heads=heads, is_causal=1)
    return [y, *caches]


def add_attention(graph, heads):
    operands = ['q', 'k', 'v', '', 'past.key', 'past.value']
    return graph.add('Attention', operands, 3, q_num_heads=HEADS, kv_num_heads=heads, is_causal=1)


def add_group_query(graph, heads):
    """As exporters do, the lengths are those of a mask over all tokens."""
    one, index = graph.const(INT64, [1], [1]), graph.const(INT64, [], [1])
    ends = graph.node('Sub', [graph.node('ReduceSum', ['mask', one], keepdims=0), index])
    total = graph.node('Gather', [graph.node('Shape', ['mask']), index], axis=0)
    lengths = [graph.node('Cast', [x], to=INT32) for x in (ends, total)]
    angles = [p / 100 ** (i / 4) for p in range(512) for i in range(SIZE // 2)]
    tables = [
        graph.const(FLOAT, [512, SIZE // 2], [turn(x) for x in angles])
        for turn in (math.cos, math.sin)
    ]
    operands = ['q', 'k', 'v', 'past.key', 'past.value', *lengths, *tables]
    return graph.add('GroupQueryAttention', operands, 3, 'com.microsoft', num_heads=HEADS,
                     kv_num_heads=heads, do_rotary=1)


class DecodingOperators(unittest.TestCase):
    def start(self, add, heads, mask=False, caches=None, given=()):
        """Loads the model that `add` makes. `caches` has the shape of each input that a session
        keeps, and `given` the ports of other inputs."""
        self.daemon = BareDaemon(DAEMON)
        self.addCleanup(self.daemon.end)
        graph = Graph()
        self.pairs = {name.replace('past', 'present'): name for name in caches} if caches else PAIRS
        self.caches = caches or dict.fromkeys(PAIRS.values(), [1, heads, 'past', SIZE])
        results = add(graph) if add in (add_multi_head, add_packed) else add(graph, heads)
        for value, name in zip(results, ('y', *self.pairs)):
            graph.output(value, name)
        inputs = [port(x, [1, 'n', (HEADS if x == 'q' else heads) * SIZE]) for x in 'qkv']
        inputs += [port('mask', [1, 'all'], INT64)] * mask + list(given)
        inputs += [port(name, self.caches[name]) for name in self.pairs.values()]
        outputs = [port('y', [1, 'n', HEADS * SIZE])]
        for name in self.pairs.values():
            dims = ['total' if dim == 'past' else dim for dim in self.caches[name]]
            outputs.append(port(name.replace('past', 'present'), dims))
        path = self.daemon.folder + '/model.onnx'
        graph.write_ports(path, 'decoder', inputs, outputs, {'': 24, 'com.microsoft': 1})
        self.daemon.load('decoder', path)
        self.client = inferd.Client(self.daemon.socket)
        self.addCleanup(self.client.close)
        numbers, self.heads = numpy.random.default_rng(1), heads
        shape = (1, sum(STEPS), SIZE)
        self.x = {
            x: numbers.normal(size=(*shape[:2], SIZE * (HEADS if x == 'q' else heads)))
            .astype(numpy.float32) for x in 'qkv'
        }

    def bytes_of_sessions(self):
        text = self.client.metrics()
        return int(re.search(r'^inferd_session_memory_bytes (\d+)', text, re.M).group(1))

    def check_steps(self, rotary=False, mask=False, at=False, past=0):
        """Sends the tokens in several requests. The caches begin with `past` rows of zeros."""
        wanted = attend(*(self.x[x][0] for x in 'qkv'), self.heads, rotary)
        session = self.client.session(self.pairs)
        self.addCleanup(session.close)
        given, end = {}, 0
        for name, dims in self.caches.items():
            dims = [{'past': past, 'batch': 1}.get(dim, dim) for dim in dims]
            given[name] = numpy.zeros(dims, numpy.float32)
        for count in STEPS:
            rows = slice(end, end + count)
            inputs = {name: x[:, rows] for name, x in self.x.items()}
            if at:
                inputs['at'] = numpy.array([end])
            end += count
            if mask:
                inputs['mask'] = numpy.ones((1, end), numpy.int64)
            y = session.infer('decoder', {**inputs, **given}, ['y'])['y']
            numpy.testing.assert_allclose(y[0], wanted[rows], atol=1e-5)
            given = {}
        if past == 0 and not at:
            self.assertEqual(self.bytes_of_sessions(), 2 * self.heads * ROOM_LEAST * SIZE * 4)
        return session

    def test_multi_head_attention(self):
        self.start(add_multi_head, HEADS)
        self.check_steps()

    def test_attention_with_keys_and_values_in_one_cache(self):
        self.start(add_packed, HEADS, caches={'past.both': [2, 'batch', HEADS, 'past', SIZE]})
        session = self.check_steps()
        session.rewind(2)
        inputs = {name: x[:, 2:6] for name, x in self.x.items()}
        y = session.infer('decoder', inputs, ['y'])['y']
        wanted = attend(*(self.x[x][0, :6] for x in 'qkv'), HEADS, False)
        numpy.testing.assert_allclose(y[0], wanted[2:], atol=1e-5)

    def test_tensor_scatter(self):
        caches = dict.fromkeys(PAIRS.values(), [1, CACHE, 2 * SIZE])
        self.start(add_scattered, 2, caches=caches, given=[port('at', [1], INT64)])
        self.check_steps(at=True)

    def test_group_query_attention_with_a_cache_of_fixed_size(self):
        """Exports that let past and present share a buffer: both have the same size."""
        self.start(add_group_query, 2, mask=True)
        session = self.check_steps(rotary=True, mask=True, past=CACHE)
        inputs = {name: x[:, :1] for name, x in self.x.items()}
        inputs['mask'] = numpy.ones((1, sum(STEPS) + 1), numpy.int64)
        keys = session.infer('decoder', inputs, ['present.key'])['present.key']
        self.assertEqual(keys.shape, (1, 2, CACHE, SIZE))
        self.assertFalse(keys[:, :, sum(STEPS) + 1 :].any())
        # The answer had the cache, so that it was copied. It still is no history.
        with self.assertRaisesRegex(inferd.Error, 'no history'):
            session.rewind(2)

    def test_group_query_attention_sets_unused_rows_of_a_cache_to_zero(self):
        """Unused rows of a cache have the weight 0, and 0 * NaN is NaN. A request that sends the
        cache is the reference: it computes the whole graph. The sizes of steps and histories are
        those of a client that goes back, and the token that it takes back is NaN or infinite."""
        self.start(add_group_query, 2, mask=True)
        shape = (1, 2, CACHE, SIZE)
        for value in (numpy.nan, numpy.inf, -numpy.inf, 3e38):
            given = {name: numpy.full(shape, value, numpy.float32) for name in PAIRS.values()}
            cache = {name: array.copy() for name, array in given.items()}
            with self.client.session(self.pairs) as session:
                for at, count, bad in ((0, 3, 0), (3, 1, 0), (4, 2, 1), (4, 1, 0), (5, 1, 0),
                                       (6, 1, 1), (2, 2, 0), (4, 1, 0), (3, 1, 0)):
                    inputs = {name: x[:, at : at + count].copy() for name, x in self.x.items()}
                    if bad:
                        inputs['k'][:, -1] = inputs['v'][:, -1] = value
                    inputs['mask'] = numpy.ones((1, at + count), numpy.int64)
                    wanted = self.client.infer('decoder', {**inputs, **cache})
                    got = session.infer('decoder', {**inputs, **given}, ['y'])
                    numpy.testing.assert_allclose(got['y'], wanted['y'], atol=1e-5)
                    self.assertTrue(bad or numpy.isfinite(got['y']).all())
                    cache = {name: wanted[output] for output, name in self.pairs.items()}
                    given = {}
                inputs['mask'] = numpy.ones((1, 5), numpy.int64)
                wanted = self.client.infer('decoder', {**inputs, **cache})
                got = session.infer('decoder', inputs, list(self.pairs))
                for output in self.pairs:
                    numpy.testing.assert_allclose(got[output], wanted[output], atol=1e-5)

    def test_attention(self):
        self.start(add_attention, 2)
        self.check_steps()

    def test_group_query_attention(self):
        self.start(add_group_query, 2, mask=True)
        self.check_steps(rotary=True, mask=True)

    def test_group_query_attention_with_hidden_tokens(self):
        """The mask says that two tokens do not count, so that the keys begin two rows earlier than
        the history ends. The requests run in the usual way, with the results of requests that send
        the cache."""
        self.start(add_group_query, 2, mask=True)
        session = self.check_steps(rotary=True, mask=True)
        cache = {name: numpy.zeros((1, 2, 0, SIZE), numpy.float32) for name in PAIRS.values()}
        end = sum(STEPS)
        inputs = {**self.x, 'mask': numpy.ones((1, end), numpy.int64)}
        result = self.client.infer('decoder', {**inputs, **cache})
        for _ in range(3):
            cache = {name: result[output] for output, name in PAIRS.items()}
            end += 1
            mask = numpy.ones((1, end), numpy.int64)
            mask[:, :2] = 0
            inputs = {**{name: x[:, :1] for name, x in self.x.items()}, 'mask': mask}
            result = self.client.infer('decoder', {**inputs, **cache})
            y = session.infer('decoder', inputs, ['y'])['y']
            numpy.testing.assert_allclose(y, result['y'], atol=1e-5)
        # Zeros follow the keys: the cache has two rows more than there are keys.
        cache = {name: result[output] for output, name in PAIRS.items()}
        inputs['mask'] = numpy.ones((1, end + 1), numpy.int64)
        inputs['mask'][:, :2] = 0
        result = self.client.infer('decoder', {**inputs, **cache})
        kept = session.infer('decoder', inputs, ['present.key'])['present.key']
        numpy.testing.assert_allclose(kept, result['present.key'], atol=1e-5)
        self.assertFalse(kept[:, :, -2:].any())


if __name__ == '__main__':
    unittest.main(argv=sys.argv[:1] + sys.argv[3:])
