// SPDX-License-Identifier: Apache-2.0
// Tests of the setting sequence_lengths.
#include <criterion/criterion.h>
#include <string.h>

#include "daemon/model/sequence_lengths.h"

Test(sequence_lengths, are_names_and_counts)
{
    struct inf_sequence_lengths lengths;
    cr_assert(inf_sequence_lengths_parse("", &lengths));
    cr_expect_eq(lengths.count, 0);
    cr_assert(inf_sequence_lengths_parse(" x = 3 ,a=b=0; y=64", &lengths));
    cr_assert_eq(lengths.count, 3);
    cr_expect_str_eq(lengths.names[0], "x");
    cr_expect_str_eq(lengths.names[1], "a=b", "the last equals sign is before the count");
    cr_expect_str_eq(lengths.names[2], "y");
    cr_expect_eq(lengths.counts[0], 3);
    cr_expect_eq(lengths.counts[1], 0);
    cr_expect_eq(lengths.counts[2], 64);
}

Test(sequence_lengths, refuse_what_is_no_length)
{
    static const char *const wrong[] = {"x",
                                        "=3",
                                        "x=",
                                        "x=-1",
                                        "x= +2",
                                        "x=65",
                                        "x=3a",
                                        "x=3,,y=2",
                                        ",x=3",
                                        "x=3,y",
                                        "x=99999999999999999999"};
    char wanted[128] = "", text[INF_CONFIG_TEXT + 8];
    struct inf_sequence_lengths lengths;
    for (size_t i = 0; i < INF_ARRAY_LENGTH(wrong); i++)
        cr_expect_not(inf_sequence_lengths_check(wrong[i], wanted, sizeof wanted), "%s", wrong[i]);
    cr_expect_not_null(strstr(wanted, "INPUT=COUNT"), "%s", wanted);
    memset(text, 'a', sizeof text);
    snprintf(text + sizeof text - 8, 8, "=1");
    cr_expect_not(inf_sequence_lengths_parse(text, &lengths), "a text that does not fit");
    char *at = text;
    for (int i = 0; i < 65; i++)
        at += snprintf(at, 8, "a=1,");
    cr_expect_not(inf_sequence_lengths_parse(text, &lengths), "65 names");
}
