// SPDX-License-Identifier: Apache-2.0
// Tests of the search for the most similar name.
#include <criterion/criterion.h>
#include <string.h>

#include "client/inferctl/cli/nearest.h"

static const char *find_nearest(const char *name)
{
    static const char *const known[] = {"status", "devices", "models", "load",
                                        "unload", "infer",   "bench"};
    struct nearest nearest = nearest_start(name);
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        nearest_consider(&nearest, known[i]);
    return nearest.found;
}

Test(nearest, finds_misspelled_names)
{
    cr_assert_str_eq(find_nearest("statsu"), "status"); // two letters are exchanged
    cr_assert_str_eq(find_nearest("modles"), "models");
    cr_assert_str_eq(find_nearest("device"), "devices"); // a letter is missing
    cr_assert_str_eq(find_nearest("infeer"), "infer");   // a letter is added
    cr_assert_str_eq(find_nearest("bemch"), "bench");    // a letter is wrong
    cr_assert_str_eq(find_nearest("unloda"), "unload");
    cr_assert_str_eq(find_nearest("load"), "load");
}

Test(nearest, finds_nothing_if_no_name_is_similar)
{
    cr_assert_null(find_nearest("frobnicate"));
    cr_assert_null(find_nearest(""));
    cr_assert_null(find_nearest("x"));
    cr_assert_null(find_nearest("qq"));
}

Test(nearest, accepts_long_names)
{
    char name[1000];
    memset(name, 'a', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    cr_assert_null(find_nearest(name));
    struct nearest nearest = nearest_start("aaaa");
    nearest_consider(&nearest, name);
    cr_assert_null(nearest.found);
    name[64] = '\0';
    nearest = nearest_start(name);
    char known[65];
    memcpy(known, name, sizeof known);
    known[63] = 'b';
    nearest_consider(&nearest, known);
    cr_assert_eq(nearest.found, known);
    cr_assert_eq(nearest.distance, 1u);
}
