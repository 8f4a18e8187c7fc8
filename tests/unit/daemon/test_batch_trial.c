// SPDX-License-Identifier: Apache-2.0
// Which models may be batched. The tests load models on the reference device `ref`, which measures
// them.
#include <criterion/criterion.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "daemon/store/store.h"
#include "tests/support/models/tfjs_writer.h"

static char root[] = "/tmp/inferd-batch-XXXXXX";
static struct inf_device_list devices;

static void start_test(void)
{
    struct inf_error err;
    const struct inf_device_options options = {.slots = 1, .threads = 1};
    cr_assert_not_null(mkdtemp(root));
    cr_assert_eq(inf_device_list_open(&devices, "ref", &options, &err), INF_OK);
}

static void end_test(void)
{
    char command[64];
    inf_role_leave();
    inf_device_list_close(&devices);
    snprintf(command, sizeof command, "rm -rf '%s'", root);
    cr_assert_eq(system(command), 0);
}

TestSuite(batch_trial, .init = start_test, .fini = end_test, .timeout = 60);

static const char *make_directory(const char *model)
{
    static char path[256];
    snprintf(path, sizeof path, "%s/%s", root, model);
    cr_assert_eq(mkdir(path, 0755), 0);
    snprintf(path, sizeof path, "%s/%s/1", root, model);
    cr_assert_eq(mkdir(path, 0755), 0);
    return path;
}

// Writes a model of y = x - the mean of x over `axis`, for x FP32 [rows,8].
static void write_centred(const char *model, int64_t rows, int32_t axis)
{
    struct inf_tfjs_writer *writer = inf_tfjs_writer_begin(make_directory(model));
    inf_tfjs_writer_placeholder(writer, "x", "DT_FLOAT", (int64_t[]){rows, 8}, 2);
    inf_tfjs_writer_ints(writer, "axis", &axis, (int64_t[]){1}, 1);
    inf_tfjs_writer_node(writer, "mean", "Mean", "x,axis");
    inf_tfjs_writer_attr_bool(writer, "keep_dims", 1);
    inf_tfjs_writer_attr_type(writer, "T", "DT_FLOAT");
    inf_tfjs_writer_attr_type(writer, "Tidx", "DT_INT32");
    inf_tfjs_writer_node(writer, "y", "Sub", "x,mean");
    inf_tfjs_writer_attr_type(writer, "T", "DT_FLOAT");
    inf_tfjs_writer_output(writer, "y", "y");
    inf_tfjs_writer_end(writer);
}

// Loads the model and returns a copy of its batch ladder, that is, the row counts that are worth
// batching.
static struct inf_batch_ladder ladder_of(const char *model, uint32_t rows_max)
    INF_ATTR(no_thread_safety_analysis)
{
    struct inf_model_store *store = NULL;
    struct inf_served *served = NULL;
    struct inf_load_event event;
    struct inf_error err;
    const struct inf_model_store_options options = {
        .repository = root, .devices = &devices, .batch_rows_max = rows_max};
    inf_role_enter_loop();
    cr_assert_eq(inf_model_store_create(&store, &options, &err), INF_OK);
    const struct inf_load_request request = {.name = model};
    cr_assert_eq(inf_model_store_load(store, &request, &err), INF_OK);
    do {
        struct pollfd poller = {.fd = inf_model_store_fd(store), .events = POLLIN};
        cr_assert_gt(poll(&poller, 1, 20000), 0);
        event.final = false;
        while (inf_model_store_next_event(store, &event) && !event.final)
            ;
    } while (!event.final);
    cr_assert_eq(event.err.code, INF_OK, "%s", event.err.text);
    cr_assert_eq(inf_model_store_find(store, NULL, model, "", &served, &err), INF_OK);
    struct inf_batch_ladder ladder = served->ladder;
    inf_served_unref(&served);
    inf_role_leave();
    inf_model_store_destroy(&store);
    return ladder;
}

Test(batch_trial, a_model_with_independent_rows_gets_a_ladder)
{
    write_centred("rows", -1, 1);
    struct inf_batch_ladder ladder = {0};
    // A disturbance during the measurement can end the ladder early, so try again.
    for (int tries = 0; tries < 10 && ladder.count < 2; tries++)
        ladder = ladder_of("rows", 16);
    // A run of this model is nearly all overhead, so at least one row count above 1 must be worth
    // batching.
    cr_assert_geq(ladder.count, 2);
    cr_assert_leq(inf_batch_rows_max(&ladder), 16);
    for (uint32_t i = 0; i < ladder.count; i++) {
        cr_expect_eq(ladder.rungs[i].rows, 1u << i);
        cr_expect_gt(ladder.rungs[i].run_ns, 0);
    }
    // A row has eight floats of input and eight of output, which is 64 bytes.
    cr_expect_eq(ladder.bytes, 64 * inf_batch_rows_max(&ladder));
}

Test(batch_trial, a_model_that_mixes_rows_gets_none)
{
    write_centred("columns", -1, 0);
    cr_expect_eq(ladder_of("columns", 16).count, 0);
}

Test(batch_trial, a_model_with_a_fixed_row_count_gets_none)
{
    write_centred("fixed", 1, 1);
    cr_expect_eq(ladder_of("fixed", 16).count, 0);
}

Test(batch_trial, is_off_if_the_limit_is_one_row)
{
    write_centred("rows", -1, 1);
    cr_expect_eq(ladder_of("rows", 1).count, 0);
}
