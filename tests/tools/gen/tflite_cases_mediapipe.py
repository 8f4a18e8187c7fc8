# SPDX-License-Identifier: Apache-2.0
"""Cases of MediaPipe's custom operators. Their definitions are those of MediaPipe's CPU kernels."""
import math
import struct

from tflite_case import Case, Tensor, at, flexbuffer, noise, places

SAME, VALID = 1, 2
LEAST_FLOAT = -3.4028234663852886e38


def pooling(padding, stride, window):
    """The options of both pooling operators; sizes are (height, width)."""
    return struct.pack('<6i', padding, stride[1], stride[0], window[1], window[0], 0)


def before(size, windows, window, stride):
    return max((windows - 1) * stride + window - size, 0) // 2


def pooled_size(size, window, stride, padding):
    return -(-size // stride) if padding == SAME else (size - window) // stride + 1


def pools():
    for name, shape, padding, stride, window in (
        ('valid', (2, 6, 5, 3), VALID, (2, 1), (2, 3)),
        ('same', (1, 5, 7, 2), SAME, (2, 2), (3, 2)),
        ('wide', (1, 4, 4, 1), SAME, (3, 1), (2, 4)),
    ):
        x = Tensor('f32', shape, noise(math.prod(shape)))
        # Of equal elements the first counts.
        x.data[0] = x.data[1] = 2.0
        sizes = [pooled_size(shape[1 + i], window[i], stride[i], padding) for i in (0, 1)]
        pads = [
            before(shape[1 + i], sizes[i], window[i], stride[i]) if padding == SAME else 0
            for i in (0, 1)
        ]
        y_shape = (shape[0], *sizes, shape[3])
        most, where = [], []
        for n, row, column, channel in places(y_shape):
            best, tap = LEAST_FLOAT, 0
            for i in range(window[0]):
                for j in range(window[1]):
                    r, c = row * stride[0] - pads[0] + i, column * stride[1] - pads[1] + j
                    if not (0 <= r < shape[1] and 0 <= c < shape[2]):
                        continue
                    value = x.data[at(shape, (n, r, c, channel))]
                    if value > best:
                        best, tap = value, i * window[1] + j
            most.append(best)
            where.append(tap + 0.1)
        y = Tensor('f32', y_shape, [0] * len(most))
        yield Case(
            f'mp-max_pool-{name}',
            'MaxPoolingWithArgmax2D',
            [x],
            [y.stored(most), y.stored(where)],
            custom=pooling(padding, stride, window),
        )


def unpools():
    for name, shape, padding, stride, window in (
        ('valid', (2, 2, 3, 2), VALID, (2, 2), (2, 2)),
        ('same', (1, 3, 2, 1), SAME, (3, 2), (3, 2)),
    ):
        total = math.prod(shape)
        x = Tensor('f32', shape, noise(total))
        taps = [i * 5 % (window[0] * window[1]) for i in range(total)]
        taps[-1] = 1000  # outside of the result
        where = Tensor('f32', shape, [0] * total).stored([tap + 0.1 for tap in taps])
        y_shape = (shape[0], shape[1] * window[0], shape[2] * window[1], shape[3])
        pads = [
            before(y_shape[1 + i], shape[1 + i], window[i], stride[i]) if padding == SAME else 0
            for i in (0, 1)
        ]
        data = [0.0] * math.prod(y_shape)
        for n, row, column, channel in places(shape):
            tap = taps[at(shape, (n, row, column, channel))]
            r = row * stride[0] - pads[0] + tap // window[1]
            c = column * stride[1] - pads[1] + tap % window[1]
            if r < y_shape[1] and c < y_shape[2]:
                data[at(y_shape, (n, r, c, channel))] = x.data[at(shape, (n, row, column, channel))]
        yield Case(
            f'mp-max_unpool-{name}',
            'MaxUnpooling2D',
            [x, where],
            [Tensor('f32', y_shape, data)],
            custom=pooling(padding, stride, window),
        )


MATRIX = [0.5, -0.25, 0.0, 1.5, 0.125, 0.75, 0.0, -0.5, 0, 0, 1, 0, 0, 0, 0, 1]


def landmarks():
    matrix = Tensor('f32', (1, 4, 4), MATRIX)
    for size in (2, 3):
        x = Tensor('f32', (1, 7, size), noise(7 * size))
        data = []
        for i in range(7):
            u, v, *rest = x.data[size * i : size * (i + 1)]
            data += [
                MATRIX[0] * u + MATRIX[1] * v + MATRIX[3],
                MATRIX[4] * u + MATRIX[5] * v + MATRIX[7],
                *rest,
            ]
        yield Case(
            f'mp-transform_landmarks-{size}',
            'TransformLandmarks',
            [x, matrix],
            [x.stored(data)],
            custom=b'',
            version=2,
        )


def pictures():
    height, width, rows, columns = 4, 6, 5, 7
    x = Tensor('f32', (1, rows, columns, 2), noise(rows * columns * 2))
    a = [MATRIX[0], MATRIX[1], MATRIX[3] + (MATRIX[0] + MATRIX[1]) * 0.5 - 0.5]
    b = [MATRIX[4], MATRIX[5], MATRIX[7] + (MATRIX[4] + MATRIX[5]) * 0.5 - 0.5]
    shape, data = (1, height, width, 2), []

    def pixel(r, c, channel):
        inside = 0 <= r < rows and 0 <= c < columns
        return x.data[at(x.shape, (0, r, c, channel))] if inside else 0

    for _, i, j, channel in places(shape):
        u, v = a[0] * j + a[1] * i + a[2], b[0] * j + b[1] * i + b[2]
        if not (0 <= u <= columns - 1 and 0 <= v <= rows - 1):
            data.append(0)
            continue
        c, r = math.floor(u), math.floor(v)
        right, lower = u - c, v - r
        up = (1 - right) * pixel(r, c, channel) + right * pixel(r, c + 1, channel)
        down = (1 - right) * pixel(r + 1, c, channel) + right * pixel(r + 1, c + 1, channel)
        data.append(lower * down + (1 - lower) * up)
    yield Case(
        'mp-transform_tensor',
        'TransformTensorBilinear',
        [x, Tensor('f32', (1, 4, 4), MATRIX)],
        [Tensor('f32', shape, [0] * len(data)).stored(data)],
        custom=flexbuffer({'output_height': height, 'output_width': width}),
        version=2,
    )


def multiply(a, b):
    return [
        [sum(a[i][k] * b[k][j] for k in range(4)) for j in range(4)] for i in range(4)
    ]


def shifted(x, y):
    return [[1, 0, 0, x], [0, 1, 0, y], [0, 0, 1, 0], [0, 0, 0, 1]]


def turned(r):
    c, s = math.cos(r), math.sin(r)
    return [[c, -s, 0, 0], [s, c, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]]


def matrices():
    subset = [0, 3, 2, 6, 5]
    for name, angle, left, right in (('level', 0.0, 1, 4), ('turned', 0.7, 6, 2)):
        x = Tensor('f32', (1, 8, 3), [100 * v for v in noise(24, 5)])
        options = {
            'left_rotation_idx': left,
            'right_rotation_idx': right,
            'output_width': 16,
            'output_height': 12,
            'scale_x': 1.5,
            'scale_y': 1.25,
            'subset_idxs': subset,
        }
        if angle:
            options['target_rotation_radians'] = angle
        x = x.stored(x.data)
        point = [x.data[3 * i : 3 * i + 2] for i in range(8)]
        r = angle - math.atan2(point[right][1] - point[left][1], point[right][0] - point[left][0])
        c, s = math.cos(r), math.sin(r)
        u = [c * point[i][0] - s * point[i][1] for i in subset]
        v = [s * point[i][0] + c * point[i][1] for i in subset]
        middle = (max(u) + min(u)) / 2, (max(v) + min(v)) / 2
        middle = c * middle[0] + s * middle[1], c * middle[1] - s * middle[0]
        scale_x = 1.5 * (max(u) - min(u)) / 16
        scale_y = 1.25 * (max(v) - min(v)) / 12
        scale = [[scale_x, 0, 0, 0], [0, scale_y, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]]
        matrix = multiply(shifted(*middle), turned(-r))
        matrix = multiply(multiply(matrix, scale), shifted(-8, -6))
        data = [number for row in matrix for number in row]
        yield Case(
            f'mp-landmarks_to_matrix-{name}',
            'Landmarks2TransformMatrix',
            [x],
            [Tensor('f32', (1, 4, 4), [0] * 16).stored(data)],
            custom=flexbuffer(options),
            version=2,
            tolerance={'rtol': 1e-4, 'atol': 1e-3},
        )


def cases():
    for family in (pools, unpools, landmarks, pictures, matrices):
        yield from family()
