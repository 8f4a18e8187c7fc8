// SPDX-License-Identifier: Apache-2.0
// Defines the functions of libcriterion that Criterion's macros need in addition to plain_runner.c.
// Used for architectures on which only the headers of Criterion are installed.
#include <criterion/criterion.h>
#include <criterion/options.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

struct criterion_options criterion_options;

int cr_asprintf(char **out_text, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    int length = vasprintf(out_text, format, arguments);
    va_end(arguments);
    if (length < 0)
        abort();
    return length;
}

void cr_asprintf_free(char *text)
{
    free(text);
}

// The library's messages have placeholders for the operands. This runner does not fill them in, so
// only the test's own text is shown.
char *cr_translate_assert_msg(int index, ...)
{
    (void)index;
    return NULL;
}
