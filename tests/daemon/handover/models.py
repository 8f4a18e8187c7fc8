"""Models for the tests of restarts."""
import json
import struct


def write_dense(folder, shapes, values, names='abcdefgh'):
    """Writes a Keras model of Dense layers with these kernel shapes, filled with these values."""
    folder.mkdir(parents=True, exist_ok=True)
    layers, weights, data = [], [], b''
    for i, ((rows, columns), value) in enumerate(zip(shapes, values)):
        config = {'name': names[i], 'units': columns, 'activation': 'linear', 'use_bias': False}
        if i == 0:
            config['batch_input_shape'] = [None, rows]
        layers.append({'class_name': 'Dense', 'config': config})
        weights.append({'name': f'{names[i]}/kernel', 'shape': [rows, columns], 'dtype': 'float32'})
        data += struct.pack('<f', value) * (rows * columns)
    topology = {'class_name': 'Sequential', 'config': {'name': 'm', 'layers': layers}}
    manifest = [{'paths': ['w.bin'], 'weights': weights}]
    (folder / 'w.bin').write_bytes(data)
    (folder / 'model.json').write_text(
        json.dumps({'modelTopology': topology, 'weightsManifest': manifest})
    )


def write_sum(folder):
    """A model of 4 inputs and 3 outputs, each of which is 3 times the sum of the inputs."""
    write_dense(folder, [(4, 3)], [3.0])


def write_chain(folder):
    """A model that takes about a second for 256 rows on the reference device."""
    write_dense(folder, [(4, 1200), (1200, 1200), (1200, 3)], [0.001, 0.001, 0.001])


def write_state_model(folder):
    """A model whose output fits its input: each element is half the sum of the inputs."""
    write_dense(folder, [(4, 4)], [0.5])


def write_check(folder, rows, value=1.0):
    """Gives a model of 4 inputs and 3 outputs a check of so many rows of ones. It fails in the end
    if `value` is not what the model answers."""
    (folder / 'check').mkdir()
    for name, columns, element in (('input', 4, 1.0), ('output', 3, value)):
        header = f"{{'descr': '<f4', 'fortran_order': False, 'shape': ({rows}, {columns}), }}"
        header = header.ljust(117) + '\n'
        data = struct.pack('<f', element) * (rows * columns)
        (folder / f'check/{name}.0.npy').write_bytes(
            b'\x93NUMPY\x01\x00' + struct.pack('<H', len(header)) + header.encode() + data
        )
