#!/usr/bin/env python3
"""test_model_described.py DAEMON INFERCTL SOURCE_ROOT [TEST...] - what the settings of a model say
about it: description, license, labels_file, input_mean and input_deviation."""
import json
import struct
import sys
import unittest
import zlib
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
sys.dont_write_bytecode = True
# It reads the same arguments.
from life_case import Server, inferd, numpy, write_model


def write_png(path, pixels):
    """Writes an array of [height, width, 3] bytes as a PNG file."""

    def chunk(kind, data):
        body = kind + data
        return struct.pack('>I', len(data)) + body + struct.pack('>I', zlib.crc32(body))

    height, width, _ = pixels.shape
    rows = b''.join(b'\0' + row.tobytes() for row in pixels)
    header = struct.pack('>IIBBBBB', width, height, 8, 2, 0, 0, 0)
    path.write_bytes(
        b'\x89PNG\r\n\x1a\n'
        + chunk(b'IHDR', header)
        + chunk(b'IDAT', zlib.compress(rows))
        + chunk(b'IEND', b'')
    )


def write_negation(folder):
    """Writes a model that gives the negative of a picture of 2 x 2 pixels."""
    folder.mkdir()
    dims = {'shape': {'dim': [{'size': str(size)} for size in (1, 2, 2, 3)]}}
    dtype = {'type': 'DT_FLOAT'}
    nodes = [
        {'name': 'x', 'op': 'Placeholder', 'attr': {'dtype': dtype, 'shape': dims}},
        {'name': 'y', 'op': 'Neg', 'input': ['x'], 'attr': {'T': dtype}},
    ]
    model = {'format': 'graph-model', 'modelTopology': {'node': nodes}, 'weightsManifest': []}
    (folder / 'model.json').write_text(json.dumps(model))


class Described(unittest.TestCase):
    def start(self, conf, labels='cat\r\ndog\nb\u00e4r\n\n', **settings):
        server = self.server = Server(**settings)
        write_model(server.models / 'm', 1)
        if labels is not None:
            (server.models / 'm/labels.txt').write_bytes(labels.encode())
        (server.models / 'm/model.conf').write_text(conf)
        write_negation(server.models / 'n')
        (server.models / 'n/model.conf').write_text(
            'input_mean = 0, 127.5,100\ninput_deviation=255, -127.5 ,1e2\n'
        )
        server.start()
        self.addCleanup(server.stop)
        return server

    def describe(self, name='m'):
        with inferd.Client(self.server.socket) as client:
            return client.describe(name)

    def set_conf(self, conf):
        new = self.server.models / '.conf'
        new.write_text(conf)
        new.rename(self.server.models / 'm/model.conf')

    def test_clients_get_what_the_settings_say(self):
        conf = 'description = adds up\nlicense = MIT\nlabels_file = labels.txt\n'
        server = self.start(conf)
        told = self.describe()
        self.assertEqual((told['description'], told['license']), ('adds up', 'MIT'))
        [output] = told['outputs']
        self.assertEqual(output['labels'], ['cat', 'dog', 'b\u00e4r'])
        self.assertEqual((output['labels_of'], output['labels_file']), ('classes', 'labels.txt'))
        self.assertEqual(told['inputs'], [])
        shown = server.ctl('models', 'm').stdout
        for text in ('adds up', 'MIT', '3 labels of classes in labels.txt: cat, dog, b\u00e4r'):
            self.assertIn(text, shown)
        numpy.save(server.folder / 'x.npy', numpy.ones((1, 4), numpy.float32))
        shown = server.ctl('infer', 'm', '-i', str(server.folder / 'x.npy')).stdout
        self.assertIn('dog', shown)
        # It stays if the model is placed again, and goes with the setting.
        self.assertEqual(server.ctl('place', 'm', 'ref').returncode, 0)
        self.assertEqual(self.describe(), told)
        self.set_conf('license = BSD\n')
        server.wait_until(lambda: self.describe().get('license') == 'BSD')
        self.assertNotIn('description', self.describe())
        self.assertEqual(self.describe()['outputs'], [])

    def test_a_picture_becomes_the_input_without_flags(self):
        server = self.start('')
        rows = [[[0, 0, 0], [255, 255, 255]], [[51, 102, 153], [9, 8, 7]]]
        pixels = numpy.array(rows, numpy.uint8)
        write_png(server.folder / 'cat.png', pixels)
        done = server.ctl('infer', 'n', '-i', str(server.folder / 'cat.png'), '-o',
                          str(server.folder))
        self.assertEqual(done.returncode, 0, done)
        [path] = server.folder.glob('*.npy')
        wanted = -(pixels - numpy.array([0, 127.5, 100])) / numpy.array([255, -127.5, 100])
        numpy.testing.assert_allclose(numpy.load(path)[0], wanted, rtol=1e-6, atol=1e-6)
        [told] = self.describe('n')['inputs']
        self.assertEqual((told['mean'], told['deviation']), ([0, 127.5, 100], [255, -127.5, 100]))

    def test_what_does_not_fit_is_refused(self):
        server = self.start('labels_file = labels.txt\n', 'one\ntwo\n')
        row = server.row('m')
        self.assertEqual(row['state'], 'UNAVAILABLE')
        self.assertIn("has 2 labels, and output 'd' has 3 elements", row['reason'])
        (server.models / 'm/labels.txt').write_text('a\nb\nc\n')
        server.wait_until(lambda: server.row('m')['state'] == 'READY')
        told = self.describe()
        for conf, text in (
            ('labels_file = absent.txt\n', 'absent.txt'),
            ('labels_file = ../n/model.json\n', 'model.json'),
            ('labels_file = empty.txt\n', 'has 0 labels'),
            ('labels_file = binary.txt\n', 'no UTF-8'),
            ('labels_file = nul.txt\n', 'no UTF-8'),
            ('labels_file = more.txt\n', 'has 4 labels'),
            ('input_mean = 1\n', 'wanted as many numbers each'),
            ('input_deviation = 1\n', 'wanted as many numbers each'),
            ('input_mean = 1,2\ninput_deviation = 1\n', 'wanted as many numbers each'),
            ('input_mean = 1,2\ninput_deviation = 1,0\n', 'no deviation of 0'),
            ('input_mean = 1,,2\ninput_deviation = 1,2,3\n', 'wanted as many'),
            ('input_mean = nan\ninput_deviation = 1\n', 'wanted as many'),
            ('input_mean = 1x\ninput_deviation = 1\n', 'wanted as many'),
            (f'input_mean = {"1," * 16}1\ninput_deviation = {"1," * 16}1\n', 'wanted as many'),
        ):
            (server.models / 'm/empty.txt').write_text('\n\n')
            (server.models / 'm/binary.txt').write_bytes(b'a\nb\n\xff\n')
            (server.models / 'm/nul.txt').write_bytes(b'a\nb\0\nc\n')
            (server.models / 'm/more.txt').write_text('a\nb\nc\nd\n')
            self.set_conf(conf)
            server.wait_until(lambda: text in server.row('m').get('reason', ''))
            self.assertEqual((server.ask('m'), self.describe()), (4, told))
        self.set_conf(f'input_mean = {"1," * 15}1\ninput_deviation = {"1," * 15}1\n')
        server.wait_until(lambda: len(self.describe()['inputs']) == 1)

    def test_a_plan_does_not_keep_what_the_settings_say(self):
        server = self.start('labels_file = labels.txt\n')
        cache = server.folder / 'cache'
        cache.mkdir()
        server.settings['cache_dir'] = cache
        for conf, labels in (
            ('labels_file = labels.txt\n', 1),
            ('', 0),
            ('labels_file = labels.txt\n', 1),
        ):
            server.process.terminate()
            server.process.wait()
            (server.models / 'm/model.conf').write_text(conf)
            server.start()
            self.assertEqual(len(self.describe().get('outputs', [])), labels)
            # The plans of both models, which the next start reads.
            server.wait_until(lambda: len(list(cache.glob('plan-*'))) == 2)


if __name__ == '__main__':
    unittest.main(argv=[sys.argv[0], *sys.argv[4:]], verbosity=2)
