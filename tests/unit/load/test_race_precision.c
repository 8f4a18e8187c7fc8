// SPDX-License-Identifier: Apache-2.0
// Automatic placement on devices that compute in less than fp32: the precision that a race chooses,
// and the result guard, which repeats overflowed runs in fp32.
#include <math.h>

#include "tests/unit/load/race_case.h"

TestSuite(race_precision, .init = start_test, .fini = end_test, .timeout = 120);

// --- races between precisions on one device ---

// In fp32 the device takes 5 ms longer. Expect that the lower precision wins if its answer is
// close.
Test(race_precision, a_lower_precision_wins_if_its_answer_is_close)
{
    OPEN(&inf_half_backend);
    inf_role_enter_loop();
    make_model("m", NULL, 0);
    struct inf_model_store *store = make_store();
    // The reference device `ref`, which computes in fp32 only, is faster than device `half` in
    // fp32. Expect that `half` does not win in fp32.
    struct inf_served *served = load_model(store, "m", true);
    const struct inf_race_entry *half = entry_of(served, "half", INF_PRECISION_FP16);
    const struct inf_race_entry *brain = entry_of(served, "half", INF_PRECISION_BF16);
    cr_expect(half->verdict == INF_RACE_CHOSEN || half->verdict == INF_RACE_SLOWER, "%s",
              half->why);
    // The device rounds every result. The precision check rounds only operands of products, and the
    // model has no product, so it is the comparison with `ref` that finds 8 bits too few.
    cr_expect_eq(brain->verdict, INF_RACE_WRONG, "8 bits are too few: %s", brain->why);
    cr_expect_eq(entry_of(served, "half", INF_PRECISION_FP32)->verdict, INF_RACE_SLOWER);
    inf_served_unref(&served);
    // If the request names the precision, expect that exactly this one is used and reported.
    struct inf_error err = place_model(store, "auto", "", "fp16");
    cr_expect_eq(err.code, INF_OK, "%s", err.text);
    served = find_model(store, "m");
    expect_on(served, "half", INF_PRECISION_FP16, INF_PLACE_RULE);
    cr_expect(strstr(served->precision_reason, "it was named") != NULL, "%s",
              served->precision_reason);
    float y[4];
    cr_expect_eq(run_inference(served, (const float[]){1.0009765625f, 2, 3, 4}, y),
                 INF_PRECISION_FP16);
    cr_expect_eq(y[0], -1.001953125f);
    inf_served_unref(&served);
    // Given the policy `stability`, expect that no lower precision is used.
    err = place_model(store, "auto", "stability", "auto");
    cr_expect_eq(err.code, INF_OK, "%s", err.text);
    served = find_model(store, "m");
    expect_on(served, "half", INF_PRECISION_FP32, INF_PLACE_RULE);
    cr_expect_eq(run_inference(served, (const float[]){1.0009765625f, 2, 3, 4}, y),
                 INF_PRECISION_FP32);
    cr_expect_eq(y[0], -1.0019540786743164f);
    inf_served_unref(&served);
    inf_model_store_destroy(&store);
}

// An intermediate value overflows in fp16, although the final result is in the range of fp16.
// Expect a correct answer.
Test(race_precision, a_model_that_overflows_answers_correctly_and_is_refused_if_fp16_is_named)
{
    OPEN(&inf_half_backend);
    inf_role_enter_loop();
    make_model("m", (const float[]){300, 300, 1e-4f}, 3);
    struct inf_model_store *store = make_store();
    struct inf_served *served = load_model(store, "m", true);
    float y[4];
    run_inference(served, (const float[]){1, 0.5f, 2, 3}, y);
    cr_expect_float_eq(y[0], -9.f, 0.1);
    cr_expect_float_eq(y[3], -81.f, 1);
    const struct inf_race_entry *half = entry_of(served, "half", INF_PRECISION_FP16);
    cr_expect_neq(half->verdict, INF_RACE_WRONG, "what overflows is pinned: %s", half->why);
    inf_served_unref(&served);
    // If fp16 is named, expect a plan with mixed precisions, and a correct answer too.
    struct inf_error err = place_model(store, "half", "", "fp16");
    cr_expect_eq(err.code, INF_OK, "%s", err.text);
    served = find_model(store, "m");
    cr_expect(strstr(served->precision_reason, "would stay fp32") != NULL, "%s",
              served->precision_reason);
    run_inference(served, (const float[]){1, 0.5f, 2, 3}, y);
    cr_expect_float_eq(y[0], -9.f, 0.1);
    cr_expect_float_eq(y[3], -81.f, 1);
    inf_served_unref(&served);
    // Given a device that does not offer fp16, expect an error, and that the model is served as
    // before.
    err = place_model(store, "ref", "", "fp16");
    cr_expect_eq(err.code, INF_PRECONDITION);
    cr_expect(strstr(err.text, "device 'ref' does not compute in it") != NULL, "%s", err.text);
    err = place_model(store, "auto", "", "int8");
    cr_expect_eq(err.code, INF_PRECONDITION);
    cr_expect(strstr(err.text, "no device computes in it") != NULL, "%s", err.text);
    served = find_model(store, "m");
    cr_expect_str_eq(inf_device_info(served->device)->name, "half");
    inf_served_unref(&served);
    inf_model_store_destroy(&store);
}

Test(race_precision, a_model_that_is_too_inexact_in_fp16_is_refused_with_its_error)
{
    OPEN(&inf_half_backend);
    inf_role_enter_loop();
    make_model("m", (const float[]){1e-8f, 1e8f}, 2); // 1e-8 becomes 0 in half precision
    struct inf_model_store *store = make_store();
    struct inf_served *served = load_model(store, "m", true);
    const struct inf_race_entry *half = entry_of(served, "half", INF_PRECISION_FP16);
    cr_expect_eq(half->verdict, INF_RACE_REFUSED);
    cr_expect(strstr(half->why, "would move by") != NULL, "%s", half->why);
    cr_expect_neq(served->placement.options.precision, INF_PRECISION_FP16);
    inf_served_unref(&served);
    struct inf_error err = place_model(store, "auto", "", "fp16");
    cr_expect_eq(err.code, INF_PRECONDITION);
    cr_expect(strstr(err.text, "would move by") != NULL, "%s", err.text);
    inf_model_store_destroy(&store);
}

// --- the result guard, which repeats overflowed runs in fp32 ---

static void expect_guarded(const struct inf_backend *backend)
{
    OPEN(backend);
    inf_role_enter_loop();
    make_model("m", NULL, 0);
    struct inf_model_store *store = make_store();
    struct inf_served *served = load_model(store, "m", true);
    inf_served_unref(&served);
    struct inf_error err = place_model(store, "auto", "", "fp16");
    cr_assert_eq(err.code, INF_OK, "%s", err.text);
    served = find_model(store, "m");
    float y[4];
    cr_expect_eq(run_inference(served, (const float[]){1, 2, 3, 4}, y), INF_PRECISION_FP16);
    cr_expect_eq(atomic_load(&served->recomputed), 0u);
    // 300 squared overflows in fp16, and the precision check at load used only smaller inputs.
    // Expect that the result guard repeats the run in fp32.
    cr_expect_eq(run_inference(served, (const float[]){300, 2, 3, 4}, y), INF_PRECISION_FP32);
    cr_expect_eq(y[0], -90000.f);
    cr_expect_eq(atomic_load(&served->recomputed), 1u);
    // A NaN in the input makes the output NaN in fp32 too. Expect that this is not counted as a
    // failure of the lower precision.
    cr_expect_eq(run_inference(served, (const float[]){NAN, 2, 3, 4}, y), INF_PRECISION_FP32);
    cr_expect(isnan(y[0]));
    cr_expect_eq(atomic_load(&served->recomputed), 1u);
    inf_model_store_demote(store, served, "it overflowed");
    cr_expect_eq(run_inference(served, (const float[]){1.0009765625f, 2, 3, 4}, y),
                 INF_PRECISION_FP32);
    cr_expect_eq(y[0], -1.0019540786743164f);
    cr_expect_eq(served->placement.options.precision, INF_PRECISION_FP32);
    cr_expect_str_eq(served->precision_reason, "it overflowed");
    inf_served_unref(&served);
    inf_model_store_destroy(&store);
}

Test(race_precision, guard_repairs_answers_that_overflow)
{
    expect_guarded(&inf_half_backend);
}

// y = exp(-(x * x)): the output does not show the overflow inside, but the device reports it.
Test(race_precision, guard_uses_the_overflow_report_of_the_device)
{
    OPEN(&inf_telling_backend);
    inf_role_enter_loop();
    make_model("m", (const float[]){0.1f}, 1);
    struct inf_model_store *store = make_store();
    struct inf_served *served = load_model(store, "m", true);
    inf_served_unref(&served);
    struct inf_error err = place_model(store, "auto", "", "fp16");
    cr_assert_eq(err.code, INF_OK, "%s", err.text);
    served = find_model(store, "m");
    float y[4];
    cr_expect_eq(run_inference(served, (const float[]){300, 0, 0, 0}, y), INF_PRECISION_FP32);
    cr_expect_float_eq(y[0], -9000.f, 1e-2);
    cr_expect_eq(atomic_load(&served->recomputed), 1u);
    inf_served_unref(&served);
    inf_model_store_destroy(&store);
}

// y = -(x * x) / 10000 is nearly 0 for the inputs of the precision check, so every precision looks
// exact and the check proves nothing. Expect fp32.
Test(race_precision, a_model_with_negligible_outputs_stays_in_fp32)
{
    OPEN(&inf_half_backend);
    inf_role_enter_loop();
    make_model("m", (const float[]){1e-4f}, 1);
    struct inf_model_store *store = make_store();
    struct inf_served *served = load_model(store, "m", true);
    inf_served_unref(&served);
    struct inf_error err = place_model(store, "auto", "", "fp16");
    cr_expect_eq(err.code, INF_PRECONDITION);
    cr_expect_not_null(strstr(err.text, "which tells nothing"), "%s", err.text);
    inf_model_store_destroy(&store);
}
