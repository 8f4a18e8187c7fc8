#!/usr/bin/env python3
"""test_session_models.py DAEMON SOURCE_ROOT MODELS VOICE - a recurrent model in a session, against
reference outputs."""
import json
import subprocess
import sys
import unittest
from pathlib import Path

DAEMON, ROOT, MODELS, VOICE = sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3]), sys.argv[4]
sys.path.insert(0, str(ROOT / 'client/python'))
sys.dont_write_bytecode = True
if not (MODELS / 'silero_vad_v5').is_dir():
    print('SKIP: ../shared/models has no silero_vad_v5')
    sys.exit(77)
import numpy
import inferd
from bare_daemon import BareDaemon

STATES, SHAPES = {'stateN': 'state'}, {'state': (2, 1, 128)}


def cases():
    manifest = json.loads((MODELS / 'manifest.json').read_text())
    model = next(model for model in manifest['models'] if model['id'] == 'silero_vad_v5')
    return {case['case']: case for case in model['cases']}


def inputs_of(case):
    return {tensor['name']: numpy.load(MODELS / tensor['file']) for tensor in case['inputs']}


class Silero(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.daemon = BareDaemon(DAEMON)
        cls.addClassCleanup(cls.daemon.end)
        cls.daemon.load('silero_vad', MODELS / 'silero_vad_v5/model/silero_vad_v5.onnx')
        cls.client = inferd.Client(cls.daemon.socket)
        cls.addClassCleanup(cls.client.close)

    def check(self, case, result):
        for wanted in case['outputs']:
            if wanted['name'] in result:
                limits = wanted['tolerance']
                numpy.testing.assert_allclose(
                    result[wanted['name']],
                    numpy.load(MODELS / wanted['file']),
                    rtol=limits['rtol'],
                    atol=limits['atol'],
                )

    def test_two_steps_are_those_of_the_reference(self):
        """The state of the second step is the output of the first; the client does not send it."""
        steps = cases()
        with self.client.session(STATES, SHAPES) as session:
            for name in ('synth', 'synth-step2'):
                inputs = inputs_of(steps[name])
                result = session.infer('silero_vad', {'input': inputs['input'], 'sr': inputs['sr']})
                self.assertEqual(list(result), ['output'])
                self.check(steps[name], result)

    def test_the_state_is_that_of_feeding_it_by_hand(self):
        chunk, rate = inputs_of(cases()['synth'])['input'], numpy.int64(16000)
        state = numpy.zeros((2, 1, 128), numpy.float32)
        with self.client.session(STATES, SHAPES) as session:
            for step in range(20):
                audio = chunk * numpy.float32(1 - step / 25)
                kept = session.infer(
                    'silero_vad', {'input': audio, 'sr': rate}, ['output', 'stateN']
                )
                fed = self.client.infer('silero_vad', {'input': audio, 'sr': rate, 'state': state})
                state = fed['stateN'].copy()
                self.assertEqual(kept['output'].tobytes(), fed['output'].tobytes())
                self.assertEqual(kept['stateN'].tobytes(), state.tobytes())

    def test_streams_do_not_mix(self):
        """Two sequences at once, sent without waiting, are those that each is alone."""
        chunk, rate = inputs_of(cases()['synth'])['input'], numpy.int64(16000)

        def send(session, factor, step):
            return session.submit(
                'silero_vad', {'input': chunk * numpy.float32(factor - step / 50), 'sr': rate}
            )

        def alone(factor):
            with self.client.session(STATES, SHAPES) as session:
                return [send(session, factor, step).result()['output'].item() for step in range(15)]

        with self.client.session(STATES, SHAPES) as first, self.client.session(
            STATES, SHAPES
        ) as second:
            pending = [(send(first, 1.0, step), send(second, 0.3, step)) for step in range(15)]
            both = [[one.result()['output'].item() for one in column] for column in zip(*pending)]
        self.assertEqual(both, [alone(1.0), alone(0.3)])
        self.assertNotEqual(both[0], both[1])

    def test_the_example_says_what_a_session_says(self):
        """Chunks of 512 samples, each behind the last 64 of the one before."""
        audio = (numpy.sin(numpy.arange(10 * 512) / 20) * 20000).astype('<i2')
        lines = (
            subprocess.run(
                [VOICE, '--socket', self.daemon.socket],
                input=audio.tobytes(),
                check=True,
                timeout=60,
                stdout=subprocess.PIPE,
            )
            .stdout.decode()
            .splitlines()
        )
        padded = numpy.concatenate(
            [numpy.zeros(64, numpy.float32), audio.astype(numpy.float32) / 32768]
        )
        with self.client.session(STATES, SHAPES) as session:
            for step, line in enumerate(lines):
                chunk = padded[None, step * 512 : step * 512 + 576]
                result = session.infer('silero_vad', {'input': chunk, 'sr': numpy.int64(16000)})
                self.assertEqual(
                    line.split(), [f'{step * 0.032:.3f}', f"{result['output'].item():.3f}"]
                )
        self.assertEqual(len(lines), 10)


unittest.main(argv=[sys.argv[0], '-v'])
