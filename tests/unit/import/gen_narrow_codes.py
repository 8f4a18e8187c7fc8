#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints narrow_codes.h: the number of each code of ONNX's narrow float types, from the definition
of the formats (sign, exponent, mantissa, bias, special codes) in ONNX's documents "Float stored in
8 bits" and "Float stored in 4 bits"."""
from fractions import Fraction

# name, exponent bits, mantissa bits, bias, infinite codes, NaN codes (codes without a sign, but for
# "minus zero": the sign bit alone)
FORMATS = [
    ("e4m3fn", 4, 3, 7, [], [0x7F], False),
    ("e4m3fnuz", 4, 3, 8, [], [], True),
    ("e5m2", 5, 2, 15, [0x7C], [0x7D, 0x7E, 0x7F], False),
    ("e5m2fnuz", 5, 2, 16, [], [], True),
    ("e2m1", 2, 1, 1, [], [], False),
]


def number(code, exponent_bits, mantissa_bits, bias, infinite, nans, minus_zero_is_nan):
    width = exponent_bits + mantissa_bits
    code &= (1 << (width + 1)) - 1
    sign, size = code >> width, code & ((1 << width) - 1)
    if size in nans or (minus_zero_is_nan and code == 1 << width):
        return "NAN"
    if size in infinite:
        return "-INFINITY" if sign else "INFINITY"
    exponent, mantissa = size >> mantissa_bits, size & ((1 << mantissa_bits) - 1)
    value = Fraction(mantissa, 1 << mantissa_bits) + (1 if exponent else 0)
    power = max(exponent, 1) - bias
    value *= Fraction(1 << power) if power >= 0 else Fraction(1, 1 << -power)
    return ("-" if sign else "") + float(value).hex() + "f"


def main():
    print("// SPDX-License-Identifier: Apache-2.0")
    print("// The number of each code of ONNX's narrow float types. Made by gen_narrow_codes.py.")
    print("#ifndef INF_TESTS_UNIT_IMPORT_NARROW_CODES_H")
    print("#define INF_TESTS_UNIT_IMPORT_NARROW_CODES_H\n")
    print("#include <math.h>")
    rows = [(f[0], [number(c, *f[1:]) for c in range(256)]) for f in FORMATS]
    e8m0 = ["NAN" if c == 255 else "0x1p%df" % (c - 127) for c in range(256)]
    for name, numbers in rows + [("e8m0", e8m0)]:
        print("\n// clang-format off")
        print("static const float %s_numbers[256] = {" % name)
        numbers = [n.replace("0.0p+0", "0p+0").replace("000000000p", "p") for n in numbers]
        for i in range(0, 256, 4):
            print("    " + ", ".join(numbers[i : i + 4]) + ",")
        print("};")
        print("// clang-format on")
    print("\n#endif")


main()
