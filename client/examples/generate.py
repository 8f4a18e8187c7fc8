#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""generate.py TEXT [--socket PATH] [--model NAME] [--length N] - continues a text.

The model is a decoder with a key/value cache, served by inferd, whose tokens are the characters
from 32 to 127. The cache stays in the session: each request sends one token and gets the scores of
the next one. tests/tools/gen/gen_decoder.py writes such a model.
"""
import argparse

import numpy
import inferd

FIRST, TOKENS = 32, 96  # code of the first token, and number of tokens


def encode(text):
    """The tokens of a text, as an array [1, n]."""
    tokens = [ord(character) - FIRST for character in text]
    if any(not 0 <= token < TOKENS for token in tokens):
        raise SystemExit('generate.py: a character is none of ASCII')
    return numpy.array([tokens], numpy.int64)


def generate(session, model, text, length):
    """Yields the characters that continue `text`: the most probable one each time."""
    tokens = encode(text)
    for _ in range(length):
        scores = session.infer(model, {'input_ids': tokens})['logits'][0, -1]
        tokens = numpy.array([[scores.argmax()]], numpy.int64)
        yield chr(FIRST + int(tokens[0, 0]))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('text')
    parser.add_argument('--socket')
    parser.add_argument('--model', default='decoder')
    parser.add_argument('--length', type=int, default=40, help='characters to add')
    options = parser.parse_args()
    with inferd.Client(options.socket) as client:
        with client.session(model=options.model) as session:
            print(options.text, end='')
            for character in generate(session, options.model, options.text, options.length):
                print(character, end='', flush=True)
            print()


if __name__ == '__main__':
    main()
