// SPDX-License-Identifier: Apache-2.0
// Runs small graphs on a device beside the reference device `ref`, for tests that compare the two.
#ifndef INF_TESTS_SUPPORT_DEVICE_REF_KIT_H
#define INF_TESTS_SUPPORT_DEVICE_REF_KIT_H

#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "backends/exec/static_executable.h"
#include "backends/ref/ref.h"

// The most steps of a run whose kernels are listed.
#define REF_KIT_STEPS 64

static inline struct inf_device *open_ref(void)
{
    struct inf_device *ref = NULL;
    cr_assert_eq(inf_device_open(&ref, &inf_ref_backend, 0, &(struct inf_device_options){0}, NULL),
                 INF_OK);
    return ref;
}

// What a run did.
struct graph_run {
    uint32_t steps;
    char kernels[1024]; // the kernels of the steps, each followed by a space; cut off if too long
};

// Runs the graph once on `device`, and on `ref` what the device declines; on `ref` alone if
// `device` is NULL. Destroys the graph. Asserts that nothing fails.
static inline struct graph_run run_beside_ref(struct inf_graph *graph, struct inf_device *device,
                                              enum inf_precision precision,
                                              const void *const *inputs, void *const *outputs)
{
    struct inf_device *ref = open_ref(), *devices[] = {device != NULL ? device : ref, ref};
    struct inf_executable *executable = NULL;
    struct inf_error err = {0};
    cr_assert_eq(inf_static_executable_create(&executable, &graph, devices, device != NULL ? 2 : 1,
                                              &(struct inf_run_options){.precision = precision},
                                              &err),
                 INF_OK, "%s", err.text);
    struct inf_execution execution = {.inputs = inputs, .outputs = outputs, .profile = true};
    cr_assert_eq(inf_executable_run(executable, &execution, &err), INF_OK, "%s", err.text);
    struct inf_node_profile steps[REF_KIT_STEPS];
    struct graph_run run = {.steps = inf_executable_profile(executable, 0, steps, REF_KIT_STEPS)};
    for (uint32_t i = 0; i < run.steps && i < REF_KIT_STEPS; i++) {
        size_t used = strlen(run.kernels);
        if (steps[i].kernel != NULL)
            snprintf(run.kernels + used, sizeof run.kernels - used, "%s ", steps[i].kernel);
    }
    inf_executable_destroy(&executable);
    inf_device_unref(&ref);
    return run;
}

// Asserts that each element of `got` differs from `wanted` by at most `tolerance`, in proportion to
// the wanted element if that is larger than 1. `what` begins the message.
static inline void expect_near(const float *got, const float *wanted, size_t count, float tolerance,
                               const char *what)
{
    for (size_t i = 0; i < count; i++)
        cr_assert_leq(fabsf(got[i] - wanted[i]), tolerance * fmaxf(1, fabsf(wanted[i])),
                      "%s: element %zu is %g, ref has %g", what, i, (double)got[i],
                      (double)wanted[i]);
}

#endif
