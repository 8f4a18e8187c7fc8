// SPDX-License-Identifier: Apache-2.0
// Tests of the settings `versions` and `labels` and of the versions of a model that they choose.
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "daemon/model/versions.h"

static struct inf_version_list present_list(const char *const *names, uint32_t count)
{
    struct inf_version_list list = {.count = count};
    for (uint32_t i = 0; i < count; i++) {
        unsigned number;
        cr_assert_eq(sscanf(names[i], "%u", &number), 1);
        list.versions[i].number = number;
        snprintf(list.versions[i].name, sizeof list.versions[i].name, "%s", names[i]);
    }
    return list;
}

// Expects that a model with versions 12, 9, 05, 3 and 1 serves the versions `wanted` under these
// settings. `wanted` is a list of versions separated by spaces.
static void expect_chosen(const char *policy, const char *labels, const char *wanted)
{
    static const char *const names[] = {"12", "9", "05", "3", "1"};
    struct inf_version_list present = present_list(names, 5);
    struct inf_model_versions chosen;
    char text[256] = "";
    inf_versions_choose(&chosen, policy, labels, &present);
    cr_expect(chosen.known);
    for (uint32_t i = 0; i < chosen.count; i++)
        snprintf(text + strlen(text), sizeof text - strlen(text), "%s%s", i > 0 ? " " : "",
                 chosen.versions[i]);
    cr_expect_str_eq(text, wanted, "%s | %s: %s", policy, labels, text);
}

Test(versions, policy_chooses_in_descending_order)
{
    expect_chosen("latest 1", "", "12");
    expect_chosen("latest", "", "12");
    expect_chosen("latest 3", "", "12 9 05");
    expect_chosen("latest 99", "", "12 9 05 3 1");
    expect_chosen("all", "", "12 9 05 3 1");
    expect_chosen("3,5", "", "05 3");
    expect_chosen("3; 4 , 9", "", "9 3");
    expect_chosen("4", "", "");
}

Test(versions, labelled_ones_are_served_but_are_not_the_default)
{
    expect_chosen("3", "stable=12, old=1", "3 12 1");
    expect_chosen("latest 2", "stable=9", "12 9");
    expect_chosen("latest 1", "none=4", "12");
}

Test(versions, at_most_eight_are_served)
{
    static const char *const names[] = {"10", "9", "8", "7", "6", "5", "4", "3", "2", "1"};
    struct inf_version_list present = present_list(names, 10);
    struct inf_model_versions chosen;
    inf_versions_choose(&chosen, "all", "old=1", &present);
    cr_expect_eq(chosen.count, 8u);
    cr_expect_str_eq(chosen.versions[7], "3");
}

Test(versions, policy_is_checked)
{
    char wanted[128];
    static const char *const good[] = {"latest", "latest 2", " latest  10", "all",
                                       "3",      "3,5",      "3; 5"};
    static const char *const bad[] = {
        "",    "latest 0", "latest -1",  "latest 2 3",         "newest", "all,3", "3,x",
        "3-5", "latestx2", "latest two", "1234567890123456789"};
    for (size_t i = 0; i < INF_ARRAY_LENGTH(good); i++)
        cr_expect(inf_version_policy_check(good[i], wanted, sizeof wanted), "%s", good[i]);
    for (size_t i = 0; i < INF_ARRAY_LENGTH(bad); i++) {
        wanted[0] = '\0';
        cr_expect_not(inf_version_policy_check(bad[i], wanted, sizeof wanted), "%s", bad[i]);
        cr_expect_str_eq(wanted, "latest N, all, or numbers of versions with commas between");
    }
}

Test(versions, labels_are_checked_and_found)
{
    char text[INF_CONFIG_TEXT], wanted[128], version[INF_VERSION_TEXT] = "?";
    static const char *const bad[] = {"stable",    "stable=", "=3",         "3=3",
                                      "stable=v3", "a b=3",   "stable=3 4", "a=1,b"};
    for (size_t i = 0; i < INF_ARRAY_LENGTH(bad); i++)
        cr_expect_not(inf_version_labels_check(bad[i], wanted, sizeof wanted), "%s", bad[i]);
    const char *labels = "stable=2, canary = 3;old_one-2=2";
    cr_expect(inf_version_labels_check(labels, wanted, sizeof wanted));
    cr_expect(inf_version_labels_check("", wanted, sizeof wanted));
    cr_expect(inf_version_labels_find(labels, "canary", version));
    cr_expect_str_eq(version, "3");
    cr_expect(inf_version_labels_find(labels, "old_one-2", version));
    cr_expect_str_eq(version, "2");
    cr_expect_not(inf_version_labels_find(labels, "can", version));
    cr_expect_not(inf_version_labels_find(labels, "canary2", version));
    inf_version_labels_of(labels, "2", text);
    cr_expect_str_eq(text, "stable,old_one-2");
    inf_version_labels_of(labels, "20", text);
    cr_expect_str_eq(text, "");
    cr_expect(inf_version_is_label("stable") && inf_version_is_label("v1"));
    cr_expect(!inf_version_is_label("17") && !inf_version_is_label(""));
}
