# SPDX-License-Identifier: Apache-2.0
"""Reads the weights of TensorFlow.js models, for the gen_*.py of this folder."""
import math

SIZES = {"float16": 2, "float32": 4, "int32": 4}  # bytes of an element by its type in the file


def list_weights(folder, manifest):
    """Yields the entry of each weight in the manifest, its type in the file, and its bytes."""
    for group in manifest:
        data = b"".join((folder / path).read_bytes() for path in group["paths"])
        offset = 0
        for entry in group["weights"]:
            stored = entry.get("quantization", entry)["dtype"]
            if stored not in SIZES:
                raise SystemExit(f'{entry["name"]} is stored as {stored}')
            size = SIZES[stored] * math.prod(entry["shape"])
            yield entry, stored, data[offset : offset + size]
            offset += size
