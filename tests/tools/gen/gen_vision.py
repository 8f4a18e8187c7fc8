#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""gen_vision.py FOLDER NAME...: writes networks that process pictures, for measurements.

NAME is mobilenet_v3 (large), efficientnet_lite0, squeezenet (1.1), unet or yolox_nano. Each network
becomes two files. NAME.onnx has floats and channels first, as PyTorch exports it after batch
normalisation was folded, and random weights. NAME.param is for ncnn and has no weights: ncnn_bench
of the benchmarks' harness takes zeros as weights.
"""
import sys
from pathlib import Path

import gen_yolox_nano
from onnx_writer import FLOAT, INT64, Graph, port

OPSET = 14  # the first with HardSwish


class Network(Graph):
    """Adds each operator to both files. A value is (name, size, channels)."""

    def __init__(self, size):
        super().__init__()
        self.size = size
        self.x = "x", size, 3
        self.layers = [("Input", [], "x", f"0={size} 1={size} 2=3")]
        self.sigmoids = {}  # result: operand

    def layer(self, kind, inputs, output, parameters=""):
        self.layers.append((kind, [value[0] for value in inputs], output[0], parameters))
        return output

    def conv(self, x, channels, kernel=1, stride=1, is_depthwise=False, pad=None):
        groups = x[2] if is_depthwise else 1
        pad = (kernel - 1) // 2 if pad is None else pad
        y = self.node(
            "Conv",
            [x[0], self.noise(channels, x[2] // groups, kernel, kernel), self.noise(channels)],
            kernel_shape=[kernel] * 2,
            strides=[stride] * 2,
            pads=[pad] * 4,
            group=groups,
        )
        kind = "ConvolutionDepthWise" if is_depthwise else "Convolution"
        count = channels * x[2] // groups * kernel * kernel
        parameters = f"0={channels} 1={kernel} 3={stride} 4={pad} 5=1 6={count}"
        parameters += f" 7={groups}" if is_depthwise else ""
        y = y, (x[1] + 2 * pad - kernel) // stride + 1, channels
        return self.layer(kind, [x], y, parameters)

    def activate(self, x, kind):
        """Applies Relu, HardSwish, or Clip from 0 to 6."""
        ends = [self.const(FLOAT, [], [0]), self.const(FLOAT, [], [6])] if kind == "Clip" else []
        y = self.node(kind, [x[0]] + ends), x[1], x[2]
        layers = {
            "Relu": ("ReLU", ""),
            "Clip": ("Clip", "0=0.0 1=6.0"),
            "HardSwish": ("HardSwish", "0=0.166667 1=0.5"),
        }
        return self.layer(layers[kind][0], [x], y, layers[kind][1])

    def hard_sigmoid(self, x):
        """Uses the slope of PyTorch, 1/6, which is not the default of ONNX."""
        y = self.node("HardSigmoid", [x[0]], alpha=1 / 6), x[1], x[2]
        return self.layer("HardSigmoid", [x], y, "0=0.166667 1=0.5")

    def sigmoid(self, x):
        y = self.node("Sigmoid", [x[0]]), x[1], x[2]
        self.sigmoids[y[0]] = x
        return self.layer("Sigmoid", [x], y)

    def mul(self, a, b):
        y = self.node("Mul", [a[0], b[0]]), a[1], a[2]
        if self.sigmoids.get(b[0]) == a:
            return self.layer("Swish", [a], y)
        return self.layer("BinaryOp", [a, b], y, "0=2")

    def plus(self, a, b):
        return self.layer("BinaryOp", [a, b], (self.node("Add", [a[0], b[0]]), a[1], a[2]), "0=0")

    def concat(self, *parts):
        y = self.node("Concat", [part[0] for part in parts], axis=1)
        y = y, parts[0][1], sum(part[2] for part in parts)
        return self.layer("Concat", parts, y, "0=0")

    def max_pool(self, x, kernel, stride=1, pad=None):
        pad = kernel // 2 if pad is None else pad
        y = self.node(
            "MaxPool", [x[0]], kernel_shape=[kernel] * 2, strides=[stride] * 2, pads=[pad] * 4
        )
        y = y, (x[1] + 2 * pad - kernel) // stride + 1, x[2]
        return self.layer("Pooling", [x], y, f"0=0 1={kernel} 2={stride} 3={pad} 5=1")

    def mean(self, x):
        y = self.node("GlobalAveragePool", [x[0]]), 1, x[2]
        return self.layer("Pooling", [x], y, "0=1 4=1")

    def dense(self, x, channels):
        flat = self.node("Flatten", [x[0]], axis=1) if x[1] else x[0]
        weights = [self.noise(channels, x[2]), self.noise(channels)]
        y = self.node("Gemm", [flat, *weights], transB=1), 0, channels
        return self.layer("InnerProduct", [x], y, f"0={channels} 1=1 2={channels * x[2]}")

    def upsample(self, x):
        scales = self.const(FLOAT, [4], [1.0, 1.0, 2.0, 2.0])
        y = self.node("Resize", [x[0], "", scales], mode="nearest"), 2 * x[1], x[2]
        return self.layer("Interp", [x], y, "0=1 1=2.0 2=2.0")

    def focus(self, x):
        y = self.node("SpaceToDepth", [x[0]], blocksize=2), x[1] // 2, 4 * x[2]
        return self.layer("Reorg", [x], y, "0=2")

    def finish(self, path, outputs):
        """Writes both files, which compute these values. The ONNX file concatenates them to one
        output."""
        names = []
        for name, size, channels in outputs:
            dims = self.const(INT64, [3], [1, channels, size * size or 1])
            names.append(self.node("Reshape", [name, dims]))
        y = names[0] if len(names) == 1 else self.node("Concat", names, axis=2)
        count = sum(size * size or 1 for _, size, _ in outputs)
        name = Path(path).name
        ports = port("x", [1, 3, self.size, self.size]), port(y, [1, outputs[0][2], count])
        self.write_ports(f"{path}.onnx", name, ports[:1], ports[1:], {"": OPSET})
        Path(f"{path}.param").write_text(self.ncnn([y[0] for y in outputs]), encoding="ascii")

    def ncnn(self, outputs):
        """Returns the text of ncnn's file. In such a file each value has one reader. If a value has
        several in the network, a layer Split makes a copy with a name of its own for each."""
        wanted, kept = set(outputs), []
        for layer in reversed(self.layers):
            if layer[2] in wanted:
                wanted.update(layer[1])
                kept.append(layer)
        readers, lines, blobs = {}, [], 0
        for layer in kept:
            for name in layer[1]:
                readers[name] = readers.get(name, 0) + 1
        names = {}
        for kind, inputs, output, parameters in reversed(kept):
            inputs = [names[name].pop() if name in names else name for name in inputs]
            rows = [(kind, inputs, [output], parameters)]
            if readers.get(output, 0) > 1:
                names[output] = [f"{output}.{i}" for i in range(readers[output])]
                rows.append(("Split", [output], list(names[output]), ""))
            for row in rows:
                ports = " ".join(row[1] + row[2])
                lines.append(
                    f"{row[0]} l{len(lines)} {len(row[1])} {len(row[2])} {ports} {row[3]}"
                )
                blobs += len(row[2])
        return "\n".join(["7767517", f"{len(lines)} {blobs}", *lines, ""])


def squeeze(graph, x):
    """Multiplies each channel by a factor that is computed from the means of all channels."""
    channels = (x[2] // 4 + 7) // 8 * 8
    y = graph.activate(graph.conv(graph.mean(x), channels), "Relu")
    return graph.mul(x, graph.hard_sigmoid(graph.conv(y, x[2])))


def inverted(graph, x, row, kinds):
    """Adds an inverted bottleneck: expand by a 1x1 convolution, filter each channel, project."""
    kernel, inner, channels, stride, squeezes, kind = row
    y = x
    if inner != x[2]:
        y = graph.activate(graph.conv(y, inner), kinds[kind])
    y = graph.activate(graph.conv(y, inner, kernel, stride, True), kinds[kind])
    y = graph.conv(squeeze(graph, y) if squeezes else y, channels)
    return graph.plus(x, y) if stride == 1 and channels == x[2] else y


def mobilenet_v3(path):
    graph = Network(224)
    rows = (
        (3, 16, 16, 1, 0, 0), (3, 64, 24, 2, 0, 0), (3, 72, 24, 1, 0, 0), (5, 72, 40, 2, 1, 0),
        (5, 120, 40, 1, 1, 0), (5, 120, 40, 1, 1, 0), (3, 240, 80, 2, 0, 1), (3, 200, 80, 1, 0, 1),
        (3, 184, 80, 1, 0, 1), (3, 184, 80, 1, 0, 1), (3, 480, 112, 1, 1, 1),
        (3, 672, 112, 1, 1, 1), (5, 672, 160, 2, 1, 1), (5, 960, 160, 1, 1, 1),
        (5, 960, 160, 1, 1, 1),
    )  # fmt: skip
    x = graph.activate(graph.conv(graph.x, 16, 3, 2), "HardSwish")
    for row in rows:
        x = inverted(graph, x, row, ("Relu", "HardSwish"))
    x = graph.mean(graph.activate(graph.conv(x, 960), "HardSwish"))
    x = graph.activate(graph.dense(x, 1280), "HardSwish")
    graph.finish(path, [graph.dense(x, 1000)])


def efficientnet_lite0(path):
    graph = Network(224)
    stages = (
        (1, 3, 1, 16, 1), (6, 3, 2, 24, 2), (6, 5, 2, 40, 2), (6, 3, 2, 80, 3), (6, 5, 1, 112, 3),
        (6, 5, 2, 192, 4), (6, 3, 1, 320, 1),
    )  # fmt: skip
    x = graph.activate(graph.conv(graph.x, 32, 3, 2), "Clip")
    for expand, kernel, stride, channels, count in stages:
        for i in range(count):
            row = kernel, expand * x[2], channels, stride if i == 0 else 1, 0, 0
            x = inverted(graph, x, row, ("Clip",))
    x = graph.mean(graph.activate(graph.conv(x, 1280), "Clip"))
    graph.finish(path, [graph.dense(x, 1000)])


def squeezenet(path):
    graph = Network(224)
    x = graph.activate(graph.conv(graph.x, 64, 3, 2, pad=0), "Relu")
    for place, width in enumerate((16, 16, 32, 32, 48, 48, 64, 64)):
        if place in (0, 2, 4):
            x = graph.max_pool(x, 3, 2, 0)
        x = graph.activate(graph.conv(x, width), "Relu")
        parts = [graph.activate(graph.conv(x, 4 * width, kernel), "Relu") for kernel in (1, 3)]
        x = graph.concat(*parts)
    graph.finish(path, [graph.mean(graph.activate(graph.conv(x, 1000), "Relu"))])


def unet(path):
    graph = Network(256)

    def twice(x, channels):
        for _ in range(2):
            x = graph.activate(graph.conv(x, channels, 3), "Relu")
        return x

    x, skips = twice(graph.x, 16), []
    for channels in (32, 64, 128, 256):
        skips.append(x)
        x = twice(graph.max_pool(x, 2, 2, 0), channels)
    for skip in reversed(skips):
        x = twice(graph.concat(skip, graph.conv(graph.upsample(x), skip[2], 3)), skip[2])
    graph.finish(path, [graph.sigmoid(graph.conv(x, 1))])


def yolox_nano(path):
    graph = Network(gen_yolox_nano.SIZE)
    levels = gen_yolox_nano.neck(graph, *gen_yolox_nano.backbone(graph))
    graph.finish(path, [gen_yolox_nano.head(graph, level) for level in levels])


NETWORKS = {
    each.__name__: each for each in (mobilenet_v3, efficientnet_lite0, squeezenet, unet, yolox_nano)
}


def main():
    if len(sys.argv) < 3 or any(name not in NETWORKS for name in sys.argv[2:]):
        sys.exit(__doc__.splitlines()[0])
    for name in sys.argv[2:]:
        NETWORKS[name](str(Path(sys.argv[1]) / name))


if __name__ == "__main__":
    main()
