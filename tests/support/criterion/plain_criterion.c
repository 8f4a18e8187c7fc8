// SPDX-License-Identifier: Apache-2.0
// What of libcriterion the macros want beside plain_runner.c, for an architecture that it is not
// installed for: Criterion's headers suffice then.
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

// The library's texts have placeholders for the operands. Without them, only the test's own text is
// shown.
char *cr_translate_assert_msg(int index, ...)
{
    (void)index;
    return NULL;
}
