#!/usr/bin/env python3
"""check_ops_doc.py [--update] PRINT_OPS DOC - DOC says of every operator what PRINT_OPS, or
PRINT_ONNX, does.

The matrix of backends is left out: it depends on the machine. --update writes the whole file.
"""
import subprocess
import sys

MATRIX = '## Where they run'


def main(arguments):
    update = arguments[0] == '--update'
    program, path = arguments[-2:]
    text = subprocess.run([program], check=True, capture_output=True, text=True).stdout
    if update:
        with open(path, 'w', encoding='utf-8') as file:
            file.write(text)
        return 0
    with open(path, encoding='utf-8') as file:
        has = file.read().split(MATRIX)[0].splitlines()
    wanted = text.split(MATRIX)[0].splitlines()
    for number, (line, other) in enumerate(zip(has, wanted), 1):
        if line != other:
            print(f"{path}:{number}: is '{line}', wanted '{other}'")
            break
    if has != wanted:
        print('run: meson compile -C BUILD update-ops-doc update-onnx-doc update-tflite-doc')
    return int(has != wanted)


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
