// SPDX-License-Identifier: Apache-2.0
// Trials of joined decoding steps while a model is served: requests that arrive during a trial, the
// ways in which it ends, and its outcomes. A run on the device "steady" takes 40 ms longer than on
// ref, whatever the number of steps, so that joining steps pays.
#include "backends/base/clock.h"
#include "daemon/load/trial/step_trial.h"
#include "daemon/store/step_trials.h"
#include "tests/unit/load/race_case.h"

TestSuite(step_trials, .init = start_test, .fini = end_test, .timeout = 120);

// Writes a model of x [1, n, 4] and past [1, length, 4]: y = relu(x * weights), and past with the
// rows of y behind it. `past` is no history if it is not an output.
static void make_decoder(const char *name, bool has_history)
{
    float weights[16];
    struct inf_tfjs_writer *writer;
    for (int i = 0; i < 16; i++)
        weights[i] = (float)i / 16 - 0.5f;
    cr_assert_eq(mkdir(path_of(name), 0700), 0);
    writer = inf_tfjs_writer_begin(path_of(name));
    inf_tfjs_writer_placeholder(writer, "x", "DT_FLOAT", (const int64_t[]){1, -1, 4}, 3);
    inf_tfjs_writer_placeholder(writer, "past", "DT_FLOAT", (const int64_t[]){1, -1, 4}, 3);
    inf_tfjs_writer_floats(writer, "weights", weights, (const int64_t[]){4, 4}, 2);
    inf_tfjs_writer_ints(writer, "axis", (const int32_t[]){1}, NULL, 0);
    inf_tfjs_writer_node(writer, "product", "BatchMatMulV2", "x,weights");
    inf_tfjs_writer_node(writer, "y", "Relu", "product");
    inf_tfjs_writer_node(writer, "present", "ConcatV2", "past,y,axis");
    inf_tfjs_writer_output(writer, "y", "y");
    if (has_history)
        inf_tfjs_writer_output(writer, "present", "present");
    inf_tfjs_writer_end(writer);
}

static struct inf_model_store *make_plain_store(uint32_t rows_max)
{
    struct inf_model_store *store = NULL;
    struct inf_error err = {0};
    const struct inf_model_store_options options = {.repository = root,
                                                    .devices = &devices,
                                                    .rules = {.races = INF_PLACE_RACES_NEVER},
                                                    .batch_rows_max = rows_max,
                                                    .cache_directory = root,
                                                    .plan_bytes_max = 1 << 20,
                                                    .log = &sink};
    inf_role_leave();
    cr_assert_eq(inf_model_store_create(&store, &options, &err), INF_OK, "%s", err.text);
    inf_role_enter_loop();
    return store;
}

// Makes a decoder "m", and loads it. Returns a reference.
static struct inf_served *load_decoder(struct inf_model_store **store, bool settle) INF_ON_LOOP
{
    make_decoder("m", true);
    *store = make_plain_store(8);
    return load_model(*store, "m", settle);
}

static struct inf_model_entry *find_entry(struct inf_model_store *store) INF_ON_LOOP
{
    struct inf_model_entry *entry = inf_model_table_find(&store->table, "m", "");
    cr_assert_not_null(entry);
    return entry;
}

static void expect_ladder(const struct inf_served *served, uint32_t rows_max)
{
    cr_expect_not(served->steps_due);
    cr_expect_eq(inf_batch_rows_max(&served->ladder), rows_max);
    for (uint32_t i = 0; i < served->ladder.count; i++) {
        cr_expect_eq(served->ladder.rungs[i].rows, 1u << i);
        cr_expect_gt(served->ladder.rungs[i].run_ns, 0u);
    }
}

Test(step_trials, come_after_the_load)
{
    struct inf_model_store *store;
    OPEN(&inf_steady_backend);
    inf_role_enter_loop();
    struct inf_served *served = load_decoder(&store, false);
    cr_expect_eq(served->ladder.count, 0, "the model serves without joined steps");
    cr_expect(served->steps_due);
    cr_expect_eq(inf_model_store_races(store), 1u);
    cr_expect_eq(wait_until_settled(store).code, INF_OK);
    expect_ladder(served, 8);
    cr_expect_eq(find_entry(store)->trials, 0u, "the model may be unloaded");
    inf_served_unref(&served);
    // The loader works in order, so the plan is saved when another model has been loaded. A loader
    // that stops saves no plan.
    make_decoder("other", false);
    served = load_model(store, "other", true);
    inf_served_unref(&served);
    // The next load takes what the plan has.
    inf_model_store_destroy(&store);
    store = make_plain_store(8);
    served = load_model(store, "m", false);
    cr_expect_eq(inf_model_store_races(store), 0u);
    expect_ladder(served, 8);
    inf_served_unref(&served);
    inf_model_store_destroy(&store);
    // Another limit needs another trial.
    store = make_plain_store(2);
    served = load_model(store, "m", false);
    cr_expect_eq(inf_model_store_races(store), 1u);
    cr_expect_eq(wait_until_settled(store).code, INF_OK);
    expect_ladder(served, 2);
    inf_served_unref(&served);
    inf_model_store_destroy(&store);
}

Test(step_trials, are_not_made_where_no_steps_can_be_joined)
{
    OPEN(&inf_steady_backend);
    inf_role_enter_loop();
    make_decoder("m", false);
    make_decoder("history", true);
    struct inf_model_store *store = make_plain_store(8);
    struct inf_served *served = load_model(store, "m", false);
    cr_expect_not(served->steps_due);
    cr_expect_eq(inf_model_store_races(store), 0u);
    inf_served_unref(&served);
    inf_model_store_destroy(&store);
    store = make_plain_store(1);
    served = load_model(store, "history", false);
    cr_expect_not(served->steps_due, "one run has one row");
    cr_expect_eq(inf_model_store_races(store), 0u);
    inf_served_unref(&served);
    inf_model_store_destroy(&store);
}

Test(step_trials, give_way_to_requests)
{
    struct inf_model_store *store;
    OPEN(&inf_steady_backend);
    inf_role_enter_loop();
    make_decoder("m", true);
    store = make_plain_store(8);
    struct inf_idle_gate *idle_gate = inf_model_store_idle_gate(store);
    inf_idle_gate_begin_request(idle_gate); // imitates a running request
    struct inf_served *served = load_model(store, "m", false);
    (void)poll(NULL, 0, 300);
    struct inf_model_memory memory = inf_model_memory(served->model);
    cr_expect_eq(memory.executables, 1u, "nothing was compiled for the trial");
    // A request every 20 ms cancels each run, which takes 40 ms.
    for (int i = 0; i < 5; i++) {
        inf_idle_gate_end_request(idle_gate);
        (void)poll(NULL, 0, 20);
        inf_idle_gate_begin_request(idle_gate);
    }
    cr_expect(served->steps_due);
    inf_idle_gate_end_request(idle_gate);
    cr_expect_eq(wait_until_settled(store).code, INF_OK);
    expect_ladder(served, 8);
    inf_served_unref(&served);
    inf_model_store_destroy(&store);
}

Test(step_trials, end_when_the_model_is_unloaded)
{
    struct inf_model_store *store;
    OPEN(&inf_steady_backend);
    inf_role_enter_loop();
    struct inf_served *served = load_decoder(&store, false);
    (void)poll(NULL, 0, 100);
    struct inf_error err;
    cr_assert_eq(inf_model_store_unload(store, "m", "", &err), INF_OK);
    uint64_t begin_ns = inf_clock_ns();
    (void)wait_until_settled(store);
    cr_expect_lt(inf_clock_ns() - begin_ns, UINT64_C(20) * INF_NS_PER_S);
    cr_expect(served->steps_due, "nothing was found out");
    cr_expect_eq(served->ladder.count, 0);
    inf_served_unref(&served);
    // The model can be loaded again.
    served = load_model(store, "m", true);
    expect_ladder(served, 8);
    inf_served_unref(&served);
    inf_model_store_destroy(&store);
}

Test(step_trials, end_with_the_daemon)
{
    struct inf_model_store *store;
    OPEN(&inf_steady_backend);
    inf_role_enter_loop();
    struct inf_served *served = load_decoder(&store, false);
    inf_served_unref(&served);
    (void)poll(NULL, 0, 100);
    inf_model_store_destroy(&store);
    // The end of the store also ends a trial that has not begun.
    store = make_plain_store(8);
    served = load_model(store, "m", false);
    inf_served_unref(&served);
    inf_model_store_destroy(&store);
}

Test(step_trials, of_a_model_that_was_loaded_again_say_nothing_about_the_new_one)
{
    struct inf_model_store *store;
    OPEN(&inf_steady_backend);
    inf_role_enter_loop();
    struct inf_served *old = load_decoder(&store, false);
    struct inf_served *served = load_model(store, "m", true);
    cr_expect_neq(served, old);
    cr_expect_eq(old->ladder.count, 0);
    expect_ladder(served, 8);
    inf_served_unref(&old);
    inf_served_unref(&served);
    inf_model_store_destroy(&store);
}

Test(step_trials, are_kept_when_the_model_is_placed_again_on_its_device)
{
    struct inf_model_store *store;
    OPEN(&inf_steady_backend);
    inf_role_enter_loop();
    struct inf_served *old = load_decoder(&store, false);
    struct inf_error err = place_model(store, "steady", "", "");
    cr_assert_eq(err.code, INF_OK, "%s", err.text);
    struct inf_served *served = find_model(store, "m");
    cr_expect_neq(served, old, "placed while the trial ran");
    expect_ladder(served, 8);
    const struct inf_batch_ladder ladder = served->ladder;
    inf_served_unref(&old);
    inf_served_unref(&served);
    err = place_model(store, "steady", "", "");
    cr_assert_eq(err.code, INF_OK, "%s", err.text);
    served = find_model(store, "m");
    expect_ladder(served, 8);
    for (uint32_t i = 0; i < ladder.count; i++)
        cr_expect_eq(served->ladder.rungs[i].run_ns, ladder.rungs[i].run_ns, "measured again");
    inf_served_unref(&served);
    // On another device, a step takes another time.
    err = place_model(store, "ref", "", "");
    cr_assert_eq(err.code, INF_OK, "%s", err.text);
    served = find_model(store, "m");
    cr_expect(served->ladder.count == 0 ||
              served->ladder.rungs[0].run_ns < ladder.rungs[0].run_ns / 2);
    inf_served_unref(&served);
    inf_model_store_destroy(&store);
}

// --- trials that fail ---

static const struct inf_backend *trial_backend;
static enum inf_code compile_code;

static enum inf_code fail_to_compile(struct inf_program **out_program, struct inf_device *device,
                                     const struct inf_segment *segment, uint32_t flags,
                                     struct inf_error *err)
{
    (void)out_program;
    (void)device;
    (void)segment;
    (void)flags;
    return inf_fail(err, compile_code, "a program for tests");
}

// Reports that a helper thread was assigned to the run for an hour, so that the run counts as
// interrupted.
static enum inf_code run_disturbed(struct inf_program *program, const struct inf_run *run,
                                   struct inf_ticket *ticket, struct inf_error *err)
{
    if (run->core_use != NULL)
        *run->core_use = (struct inf_core_use){.helper_ns = 3600 * INF_NS_PER_S, .threads = 2};
    return trial_backend->run(program, run, ticket, err);
}

// Runs a trial of a model, and gives its device this backend for that time.
static enum inf_code try_with(struct inf_served *served, const struct inf_backend *backend,
                              struct inf_step_findings *findings)
{
    const struct inf_step_trial trial = {.served = served, .log = &sink};
    struct inf_error err = {0};
    served->device->backend = backend;
    inf_role_leave();
    inf_role_enter_worker();
    enum inf_code code = inf_step_trial_run(&trial, findings, &err);
    inf_role_leave();
    inf_role_enter_loop();
    served->device->backend = trial_backend;
    return code;
}

Test(step_trials, are_made_again_if_their_failure_may_pass)
{
    struct inf_model_store *store;
    OPEN(&inf_steady_backend);
    inf_role_enter_loop();
    struct inf_served *served = load_decoder(&store, true);
    struct inf_step_findings findings;
    trial_backend = served->device->backend;
    struct inf_backend backend = *trial_backend;
    backend.run = run_disturbed;
    cr_expect_eq(try_with(served, &backend, &findings), INF_UNAVAILABLE);
    cr_expect_eq(findings.ladder.count, 0);
    cr_expect_str_eq(findings.why, "");
    backend.run = trial_backend->run;
    backend.compile = fail_to_compile;
    compile_code = INF_EXHAUSTED;
    cr_expect_eq(try_with(served, &backend, &findings), INF_EXHAUSTED);
    cr_expect_eq(findings.ladder.count, 0);
    cr_expect_str_eq(findings.why, "");
    compile_code = INF_INVALID;
    cr_expect_eq(try_with(served, &backend, &findings), INF_OK);
    cr_expect_eq(findings.ladder.count, 0);
    cr_expect_neq(findings.why[0], '\0', "it would fail again");
    inf_served_unref(&served);
    inf_model_store_destroy(&store);
}

// Reports to the store that a trial of `served` has ended with this code.
static void finish_trial(struct inf_model_store *store, struct inf_model_entry *entry,
                         struct inf_served *served, enum inf_code code) INF_ON_LOOP
{
    struct inf_load_job *job = inf_load_job_create(INF_LOAD_JOB_STEPS);
    struct inf_load_event event = {.final = true};
    cr_assert_not_null(job);
    job->base = inf_served_ref(served);
    job->steps.findings = (struct inf_step_findings){.refused = 2, .refused_permille = 1100};
    event.err.code = code;
    if (entry != NULL)
        entry->trials++;
    inf_store_finish_step_trial(store, entry, job, &event);
    inf_load_job_destroy(&job);
}

Test(step_trials, that_were_disturbed_are_made_again_ever_later)
{
    struct inf_model_store *store;
    OPEN(&inf_steady_backend);
    inf_role_enter_loop();
    struct inf_served *served = load_decoder(&store, true);
    struct inf_model_entry *entry = find_entry(store);
    served->ladder.count = 0;
    served->steps_due = true;
    for (uint32_t i = 0; i < INF_RETRY_DOUBLINGS + 2; i++) {
        uint64_t now_ns = inf_clock_ns();
        finish_trial(store, entry, served, INF_UNAVAILABLE);
        cr_expect(served->steps_due);
        uint64_t next_ns = inf_store_start_step_trial(store, now_ns);
        cr_expect_geq(next_ns, now_ns);
        cr_expect_eq((next_ns - now_ns) / INF_STORE_STEPS_RETRY_NS,
                     UINT64_C(1) << INF_MIN(i, INF_RETRY_DOUBLINGS), "attempt %u", i);
        cr_expect_eq(inf_model_store_races(store), 0u);
    }
    // A trial that was cancelled, and trials of other models, change nothing.
    const uint64_t after_ns = entry->steps_retry.after_ns;
    finish_trial(store, entry, served, INF_CANCELLED);
    finish_trial(store, NULL, served, INF_OK);
    cr_expect(served->steps_due);
    cr_expect_eq(entry->steps_retry.after_ns, after_ns);
    (void)inf_store_start_step_trial(store, after_ns);
    cr_expect_eq(inf_model_store_races(store), 1u);
    cr_expect_eq(wait_until_settled(store).code, INF_OK);
    expect_ladder(served, 8);
    cr_expect_eq(entry->steps_retry.after_ns, 0u);
    cr_expect_eq(inf_store_start_step_trial(store, inf_clock_ns()), UINT64_MAX);
    inf_served_unref(&served);
    inf_model_store_destroy(&store);
}

Test(step_trials, wait_for_races_of_kernels_unless_requests_disturb_them)
{
    struct inf_model_store *store;
    OPEN(&inf_steady_backend);
    inf_role_enter_loop();
    struct inf_served *served = load_decoder(&store, true);
    struct inf_model_entry *entry = find_entry(store);
    served->ladder.count = 0;
    served->steps_due = true;
    served->kernels_due = true;
    entry->kernels_retry.after_ns = UINT64_MAX;
    cr_expect_eq(inf_store_start_step_trial(store, inf_clock_ns()), UINT64_MAX);
    cr_expect_eq(inf_model_store_races(store), 0u);
    entry->kernels_retry.gave_up = 1;
    cr_expect_neq(inf_store_start_step_trial(store, inf_clock_ns()), UINT64_MAX);
    cr_expect_eq(inf_model_store_races(store), 1u);
    (void)inf_store_start_step_trial(store, inf_clock_ns());
    cr_expect_eq(inf_model_store_races(store), 1u, "one after the other");
    cr_expect_eq(wait_until_settled(store).code, INF_OK);
    expect_ladder(served, 8);
    inf_served_unref(&served);
    inf_model_store_destroy(&store);
}

// --- the text about joined steps in the output of `inferctl explain` ---

static void expect_text(const struct inf_served *served, const char *wanted)
{
    char text[INF_STEPS_TEXT];
    cr_expect_str_eq(inf_served_explain_steps(served, text), wanted);
}

Test(step_trials, are_explained)
{
    struct inf_model_store *store;
    OPEN(&inf_steady_backend);
    inf_role_enter_loop();
    struct inf_served *served = load_decoder(&store, false);
    expect_text(served, "not yet: this is measured while no request is served");
    cr_expect_eq(wait_until_settled(store).code, INF_OK);
    char text[INF_STEPS_TEXT];
    const char *joined = inf_served_explain_steps(served, text);
    cr_expect(strncmp(joined, "up to 8 steps in a run: a step takes 0.", 39) == 0, "%s", joined);
    served->ladder =
        (struct inf_batch_ladder){.count = 3, .rungs = {{1, 1000}, {2, 1400}, {4, 2000}}};
    served->step_findings = (struct inf_step_findings){.refused = 8, .refused_permille = 941};
    snprintf(served->join_failure, sizeof served->join_failure, "4 steps with 512 rows: no memory");
    expect_text(served,
                "up to 4 steps in a run: a step takes 0.50 of its time alone; in a run of "
                "8, a step takes 0.94 of its time in one of 4, wanted 0.90; not made: 4 "
                "steps with 512 rows: no memory");
    served->ladder.count = 0;
    served->join_failure[0] = '\0';
    served->step_findings = (struct inf_step_findings){.why = "rows are mixed"};
    expect_text(served, "no; rows are mixed");
    served->rows_max = 1;
    expect_text(served, "no: batch_rows_max allows one step in a run");
    served->rows_max = 0;
    expect_text(served, "no: nothing was measured, because the model was not warmed up");
    inf_served_unref(&served);
    inf_model_store_destroy(&store);
    // A model without a history.
    make_decoder("other", false);
    store = make_plain_store(8);
    served = load_model(store, "other", false);
    expect_text(served, "");
    inf_served_unref(&served);
    inf_model_store_destroy(&store);
}
