#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""gen_quantised.py ssd|keyword|face FILE: writes a network as quantised ONNX.

Such networks are usually TFLite files. The form is that of gen_mobilenet_v2.py: QuantizeLinear and
DequantizeLinear around each operator, and random weights. ssd is SSD-MobileNet v1 (300 x 300, 91
classes) up to the boxes and classes of all anchors. keyword is the depthwise-separable network of
MLPerf Tiny. face is the backbone of BlazeFace (128 x 128) with the heads of both scales.
"""
import sys

from gen_mobilenet_v2 import CUT, SUM, Network
from onnx_writer import INT64, port

ANCHORS, CLASSES = (3, 6, 6, 6, 6, 6), 91


def flatten(graph, x, size):
    """[1, anchors, size], from a head's picture."""
    x = graph.node('Transpose', [x], perm=[0, 2, 3, 1])
    return graph.node('Reshape', [x, graph.const(INT64, [3], [1, -1, size])])


def separable(graph, x, channels, filters, stride, x_is):
    x = graph.conv(x, [channels, 1, 3, 3], x_is, CUT, stride, channels)
    return graph.conv(x, [filters, channels, 1, 1], CUT, CUT)


def build_ssd(graph):
    x = graph.conv(graph.requantize('x', CUT), [32, 3, 3, 3], CUT, CUT, 2)
    channels, levels = 32, []
    for filters, stride in (
        [(64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2)]
        + [(512, 1)] * 5
        + [(1024, 2), (1024, 1)]
    ):
        if filters > 512 and stride == 2:
            levels.append((x, channels))
        x = separable(graph, x, channels, filters, stride, CUT)
        channels = filters
    levels.append((x, channels))
    for inner, filters in ((256, 512), (128, 256), (128, 256), (64, 128)):
        x = graph.conv(x, [inner, channels, 1, 1], CUT, CUT)
        x = graph.conv(x, [filters, inner, 3, 3], CUT, CUT, 2)
        channels = filters
        levels.append((x, channels))
    outputs = []
    for size in (4, CLASSES):
        parts = [
            flatten(graph, graph.conv(y, [count * size, depth, 1, 1], CUT, SUM), size)
            for (y, depth), count in zip(levels, ANCHORS)
        ]
        y = graph.requantize(graph.node('Concat', parts, axis=1), SUM)
        outputs.append(y)
    return [1, 3, 300, 300], list(zip(outputs, ([1, 1917, 4], [1, 1917, CLASSES])))


def build_keyword(graph):
    x = graph.requantize('x', CUT)
    y = graph.node(
        'Conv',
        [x] + graph.weight([64, 1, 10, 4], CUT[0]),
        kernel_shape=[10, 4],
        strides=[2, 2],
        pads=[4, 1, 5, 1],
    )
    x = graph.requantize(graph.node('Relu', [y]), CUT)
    for _ in range(4):
        x = separable(graph, x, 64, 64, 1, CUT)
    x = graph.requantize(graph.node('GlobalAveragePool', [x]), CUT)
    x = graph.node('Flatten', [x], axis=1)
    x = graph.requantize(
        graph.node('Gemm', [x] + graph.weight([12, 64], CUT[0]), transB=1), SUM
    )
    return [1, 1, 49, 10], [(graph.node('Softmax', [x], axis=1), [1, 12])]


def blaze_block(graph, x, channels, filters, stride):
    """A depthwise and a 1x1 convolution, added to x, whose channels are padded with zeros."""
    y = graph.conv(x, [channels, 1, 3, 3], CUT, SUM, stride, channels)
    y = graph.conv(y, [filters, channels, 1, 1], SUM, SUM)
    if stride == 2:
        x = graph.node('MaxPool', [x], kernel_shape=[2, 2], strides=[2, 2])
        x = graph.requantize(x, CUT)
    if filters > channels:
        pads = graph.const(INT64, [8], [0, 0, 0, 0, 0, filters - channels, 0, 0])
        x = graph.requantize(graph.node('Pad', [x, pads]), CUT)
    y = graph.node('Relu', [graph.node('Add', [x, y])])
    return graph.requantize(y, CUT)


def build_face(graph):
    x = graph.conv(graph.requantize('x', CUT), [24, 3, 5, 5], CUT, CUT, 2)
    channels, levels = 24, []
    blocks = [(24, 1), (28, 1), (32, 2), (36, 1), (42, 1), (48, 2), (56, 1), (64, 1), (72, 1)]
    for filters, stride in blocks + [(80, 1), (88, 1), (96, 2)] + [(96, 1)] * 4:
        if filters == 96 and stride == 2:
            levels.append((x, channels, 2))
        x = blaze_block(graph, x, channels, filters, stride)
        channels = filters
    levels.append((x, channels, 6))
    outputs = []
    for size in (16, 1):
        parts = [
            flatten(graph, graph.conv(y, [count * size, depth, 1, 1], CUT, SUM), size)
            for y, depth, count in levels
        ]
        outputs.append(graph.requantize(graph.node('Concat', parts, axis=1), SUM))
    return [1, 3, 128, 128], list(zip(outputs, ([1, 896, 16], [1, 896, 1])))


def main():
    graph = Network(True)
    build = {'ssd': build_ssd, 'keyword': build_keyword, 'face': build_face}[sys.argv[1]]
    shape, outputs = build(graph)
    ports = [port(value, dims) for value, dims in outputs]
    graph.write_ports(sys.argv[2], sys.argv[1], [port('x', shape)], ports)


if __name__ == '__main__':
    main()
