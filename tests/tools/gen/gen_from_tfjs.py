#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""gen_from_tfjs.py MODEL.json FILE - writes a convolutional TensorFlow.js graph model as ONNX.

It knows the operators of FaceMesh and PoseNet only, and ends with an error at any other. Tensors
of four dimensions become NCHW, so the input `x` and outputs of four dimensions are transposed; a
reshape gets its operand in NHWC again, so its result is the original one. Needs numpy.
"""
import base64
import json
import sys
from pathlib import Path

import numpy

from onnx_writer import FLOAT, INT64, Graph, field, port
from tfjs_weights import list_weights


def read_weights(folder, manifest):
    """Returns the weights by their names, as arrays of float32 or int32."""
    weights = {}
    for entry, stored, data in list_weights(folder, manifest):
        array = numpy.frombuffer(data, stored)
        array = array.astype(numpy.int32 if stored == 'int32' else numpy.float32)
        weights[entry['name']] = array.reshape(entry['shape'])
    return weights


def channels_first(array):
    """A vector of channels, [C] or [1, 1, C], as [C, 1, 1]."""
    return array.reshape(-1, 1, 1)


class Converter:
    def __init__(self, weights):
        self.graph, self.weights = Graph(), weights
        self.names = {}  # names of values of the TensorFlow.js model -> names in ONNX

    def const(self, array):
        kind = INT64 if array.dtype == numpy.int64 else FLOAT
        return self.graph.const(kind, list(array.shape), array.tobytes())

    def operand(self, name):
        """A value, or a constant that is added to or multiplied with channels."""
        if name in self.weights:
            return self.const(channels_first(self.weights[name]))
        return self.names[name]

    def window(self, attributes):
        """Attributes of a convolution or of a pooling."""
        padding = base64.b64decode(attributes['padding']['s']).decode()
        return {'strides': [int(i) for i in attributes['strides']['list']['i'][1:3]],
                'auto_pad': {'SAME': 'SAME_UPPER', 'VALID': 'VALID'}[padding]}

    def convolve(self, inputs, attributes, depthwise):
        filters = self.weights[inputs[1]]
        window = self.window(attributes)
        if depthwise:
            height, width, channels, _ = filters.shape
            filters = filters.transpose(2, 3, 0, 1).reshape(-1, 1, height, width)
            window['group'] = channels
        else:
            filters = filters.transpose(3, 2, 0, 1)
        window['dilations'] = [int(i) for i in attributes['dilations']['list']['i'][1:3]]
        fused = [base64.b64decode(s).decode() for s in
                 attributes.get('fused_ops', {}).get('list', {}).get('s', [])]
        operands = [self.names[inputs[0]], self.const(numpy.ascontiguousarray(filters))]
        if fused:
            operands.append(self.const(self.weights[inputs[2]].reshape(-1)))
        y = self.graph.node('Conv', operands, **window)
        if fused[1:] == ['Prelu']:
            return self.graph.node('PRelu', [y, self.operand(inputs[3])])
        if fused[1:] == ['Relu6']:
            limits = [self.graph.const(FLOAT, [], [limit]) for limit in (0.0, 6.0)]
            return self.graph.node('Clip', [y, *limits])
        if fused not in ([], ['BiasAdd']):
            raise SystemExit(f'fused operators {fused}')
        return y

    def reshape(self, inputs):
        nhwc = self.graph.node('Transpose', [self.names[inputs[0]]], perm=[0, 2, 3, 1])
        return self.graph.node('Reshape', [nhwc, self.const(self.weights[inputs[1]].astype('i8'))])

    def pad(self, inputs):
        pads = self.weights[inputs[1]][[0, 3, 1, 2]].T.astype('i8')
        return self.graph.node('Pad', [self.names[inputs[0]], self.const(pads.reshape(-1))])

    def pool(self, inputs, attributes):
        size = [int(i) for i in attributes['ksize']['list']['i'][1:3]]
        window = self.window(attributes)
        return self.graph.node('MaxPool', [self.names[inputs[0]]], kernel_shape=size, **window)

    def convert(self, node):
        inputs = [name.split(':')[0] for name in node.get('input', [])]
        attributes = node.get('attr', {})
        simple = {'AddV2': 'Add', 'Prelu': 'PRelu', 'Sigmoid': 'Sigmoid', 'Identity': 'Identity'}
        op = node['op']
        if op in simple:
            return self.graph.node(simple[op], [self.operand(name) for name in inputs])
        if op in ('_FusedConv2D', 'DepthwiseConv2dNative', 'FusedDepthwiseConv2dNative'):
            return self.convolve(inputs, attributes, 'Depthwise' in op)
        if op in ('Reshape', 'Pad'):
            return (self.reshape if op == 'Reshape' else self.pad)(inputs)
        if op == 'MaxPool':
            return self.pool(inputs, attributes)
        raise SystemExit(f'operator {op} of {node["name"]}')


def main():
    path = Path(sys.argv[1])
    model = json.loads(path.read_text(encoding='utf-8'))
    nodes = model['modelTopology']['node']
    converter = Converter(read_weights(path.parent, model['weightsManifest']))
    read = {name.split(':')[0] for node in nodes for name in node.get('input', [])}
    inputs, outputs = [], []
    pending = [node for node in nodes if node['op'] != 'Const']
    while pending:
        node = next(one for one in pending
                    if all(name.split(':')[0] in converter.names
                           or name.split(':')[0] in converter.weights
                           for name in one.get('input', [])))
        pending.remove(node)
        if node['op'] == 'Placeholder':
            sizes = [int(dim['size']) for dim in node['attr']['shape']['shape']['dim']]
            inputs.append(port('x', [1, sizes[3], sizes[1], sizes[2]]))
            converter.names[node['name']] = 'x'
            continue
        converter.names[node['name']] = converter.convert(node)
        if node['name'] not in read:
            name = f'y{len(outputs)}'
            converter.graph.output(converter.names[node['name']], name)
            # a port without a shape
            outputs.append(field(1, name) + field(2, field(1, field(1, FLOAT))))
    converter.graph.write_ports(sys.argv[2], path.stem, inputs, outputs)


main()
