// SPDX-License-Identifier: Apache-2.0
// The list of backends: the order of backends, devices opened from options, and errors in the list.
#include <criterion/criterion.h>
#include <string.h>

#include "backends/registry.h"

Test(registry, knows_ref_last_and_nothing_else_by_accident)
{
    const struct inf_backend *const *backends = inf_registry_backends();
    size_t count = 0;
    while (backends[count] != NULL)
        count++;
    cr_assert_geq(count, 1u);
    cr_assert_str_eq(inf_registry_name(backends[count - 1]), "ref");
    cr_assert_eq(inf_registry_find("ref"), backends[count - 1]);
    const char *unknown[] = {"", "re", "reff", "REF", "ref ", "ref,"};
    for (size_t i = 0; i < sizeof(unknown) / sizeof(*unknown); i++)
        cr_assert_null(inf_registry_find(unknown[i]), "'%s'", unknown[i]);
}

Test(registry, opens_devices_in_order_of_preference)
{
    struct inf_device_list list;
    struct inf_device_options options = {.slots = 3};
    cr_assert_eq(inf_device_list_open(&list, NULL, &options, NULL), INF_OK);
    cr_assert_geq(list.count, 1u);
    for (uint32_t i = 1; i < list.count; i++) {
        const struct inf_device_info *better = inf_device_info(list.devices[i - 1]);
        cr_assert_gt(better->priority, inf_device_info(list.devices[i])->priority);
        cr_assert_str_neq(better->name, inf_device_info(list.devices[i])->name);
    }
    const struct inf_device_info *last = inf_device_info(list.devices[list.count - 1]);
    cr_assert_str_eq(last->name, "ref");
    cr_assert_eq(last->slots, 3u);
    inf_device_list_close(&list);
    cr_assert_eq(list.count, 0u);
}

Test(registry, falls_back_on_devices_in_host_memory_ref_last)
{
    struct inf_device_list list;
    struct inf_device *hosts[INF_REGISTRY_DEVICES];
    cr_assert_eq(inf_device_list_open(&list, NULL, NULL, NULL), INF_OK);
    uint32_t count = inf_device_list_hosts(&list, hosts, INF_REGISTRY_DEVICES);
    cr_assert_geq(count, 1u);
    for (uint32_t i = 0; i < count; i++)
        cr_assert(inf_device_info(hosts[i])->host_memory);
    cr_assert_eq(hosts[count - 1], list.devices[list.count - 1]);
    cr_assert_eq(inf_device_list_hosts(&list, hosts, 1), 1u);
    cr_assert_eq(hosts[0], list.devices[list.count - 1]);
    inf_device_list_close(&list);
}

Test(registry, refuses_options_that_make_no_sense_to_a_backend)
{
    struct inf_device_list list;
    struct inf_error err = {0};
    struct inf_device_options options = {.isa_max = "mmx"};
    if (inf_registry_find("cpu") == NULL)
        cr_skip_test("built without cpu");
    cr_assert_eq(inf_device_list_open(&list, "cpu", &options, &err), INF_INVALID);
    cr_assert_not_null(strstr(err.text, "'mmx'"), "%s", err.text);
    cr_assert_eq(list.count, 0u);
}

Test(registry, opens_ref_whatever_the_list_says)
{
    const char *lists[] = {"ref", " ref\t", "ref,ref"};
    for (size_t i = 0; i < sizeof(lists) / sizeof(*lists); i++) {
        struct inf_device_list list;
        cr_assert_eq(inf_device_list_open(&list, lists[i], NULL, NULL), INF_OK);
        cr_assert_eq(list.count, 1u);
        cr_assert_str_eq(inf_device_info(list.devices[0])->name, "ref");
        inf_device_list_close(&list);
    }
}

Test(registry, names_the_unknown_backend_and_the_known_ones)
{
    static const struct {
        const char *list, *wanted;
    } cases[] = {{"ref,gpu", "unknown backend 'gpu'; known ones: "},
                 {"", "unknown backend ''; known ones: "},
                 {"ref,,", "unknown backend ''; known ones: "},
                 {"re f", "unknown backend 're f'; known ones: "}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct inf_device_list list;
        struct inf_error err = {0};
        cr_assert_eq(inf_device_list_open(&list, cases[i].list, NULL, &err), INF_INVALID);
        cr_assert_eq(err.reason, INF_REASON_BAD_PARAMETER);
        cr_assert_eq(strncmp(err.text, cases[i].wanted, strlen(cases[i].wanted)), 0, "%s",
                     err.text);
        cr_assert_not_null(strstr(err.text, "ref"));
        cr_assert_eq(list.count, 0u);
    }
}
