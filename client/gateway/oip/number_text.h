// SPDX-License-Identifier: Apache-2.0
// Converts numbers between text and binary. The texts are numbers of JSON (RFC 8259).
#ifndef INF_GATEWAY_OIP_NUMBER_TEXT_H
#define INF_GATEWAY_OIP_NUMBER_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// Maximum size of the text of one number in bytes. The exact decimal text of a double has at most
// 767 digits.
#define INF_NUMBER_TEXT_MAX 1024u
// Room that the printing functions need, in bytes. They write no NUL.
#define INF_NUMBER_PRINT_BYTES 32u

// A number in text form, which inf_number_scan() has found.
struct inf_number {
    const char *text; // begins with the sign, if there is one
    size_t size;
    bool negative;
    bool real;       // the text has a fraction or an exponent
    bool truncated;  // there are more than 19 significant digits, so that `digits` is not valid
    uint64_t digits; // the number without its sign is digits * 10^exponent
    int exponent;
};

// Finds the number at the start of `text`. The byte at `end` - 1 must be no part of a number.
// Returns false if the text does not begin with a number of JSON of at most INF_NUMBER_TEXT_MAX
// bytes.
bool inf_number_scan(const char *text, const char *end, struct inf_number *number);

// Sets *magnitude to the number without its sign. Returns false if the number is real or does not
// fit.
bool inf_number_magnitude(const struct inf_number *number, uint64_t *magnitude);

// Return the float or double that is nearest to the number, or infinity if the number is too large
// for the type. A number halfway between two values becomes the one whose last bit is 0. The
// results therefore equal those of strtof() and strtod() in the C locale.
float inf_number_float(const struct inf_number *number);
double inf_number_double(const struct inf_number *number);

// Print a value to `to`, and return the number of bytes. Finite values become the shortest text
// that reads back as the same value, with a fraction or an exponent. The others become NaN,
// Infinity and -Infinity, which JSON lacks, but which Triton and Python read and write.
size_t inf_number_print_float(char to[INF_NUMBER_PRINT_BYTES], float value);
size_t inf_number_print_double(char to[INF_NUMBER_PRINT_BYTES], double value);

// Print an integer to `to`, and return the number of bytes.
size_t inf_number_print_unsigned(char to[INF_NUMBER_PRINT_BYTES], uint64_t value);
size_t inf_number_print_signed(char to[INF_NUMBER_PRINT_BYTES], int64_t value);

#endif
