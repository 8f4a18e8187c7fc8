// SPDX-License-Identifier: Apache-2.0
// Which models are reported as slow because `ref` computes a part of them.
#include <criterion/criterion.h>

#include "backends/device/device.h"
#include "backends/ref/ref.h"
#include "daemon/load/model_profile.h"

Test(model_profile, more_than_a_hundredth_on_ref_is_slow)
{
    struct inf_device *ref;
    const struct inf_device_options options = {.slots = 1};
    cr_assert_eq(inf_device_open(&ref, &inf_ref_backend, 0, &options, NULL), INF_OK);
    struct inf_model_profile facts = {
        .planned_macs = 1000,
        .ref_macs = 10,
        .declined_count = 2,
        .declined = {{.op = "matmul", .nodes = 3, .device = ref, .reason = "cpu: FP64"},
                     {.op = "gather", .nodes = 1, .device = ref, .reason = "cpu: none"}}};
    char text[100] = "";
    cr_assert_not(inf_model_profile_is_slow(&facts, text, sizeof text));
    facts.ref_macs = 11;
    cr_assert(inf_model_profile_is_slow(&facts, text, sizeof text));
    cr_assert_str_eq(text, "3 matmul: cpu: FP64; 1 gather: cpu: none");
    cr_assert(inf_model_profile_is_slow(&facts, text, 9));
    cr_assert_str_eq(text, "3 matmul");
    facts = (struct inf_model_profile){0}; // no node multiplies
    cr_assert_not(inf_model_profile_is_slow(&facts, text, sizeof text));
    inf_device_unref(&ref);
}
