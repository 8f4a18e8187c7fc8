// SPDX-License-Identifier: Apache-2.0
// The method Metrics of a real daemon: its sums equal what clients did, exactly, and its text keeps
// every rule of the Prometheus text format that a strict parser can check.
#include <criterion/criterion.h>
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "proto/wire/frame.h"
#include "tests/support/daemon/fixture.h"
#include "tests/support/daemon/metrics_text.h"

static struct inf_fixture fixture;

static void start_server(void)
{
    inf_fixture_start(&fixture, NULL);
}

static void stop_server(void)
{
    inf_fixture_stop(&fixture);
}

TestSuite(serving_metrics, .init = start_server, .fini = stop_server, .timeout = 120);

// --- reading metrics ---

static char text[1 << 20];

// Asks for the metrics in a format, and copies the answer to `text`.
static void read_metrics(struct inf_raw *raw, const char *format)
{
    const union inf_message message = {.metrics_request = {.format = format}};
    inf_raw_call(raw, INF_METHOD_METRICS, INF_MESSAGE_METRICS_REQUEST, &message,
                 (struct inf_span){0});
    cr_assert_eq(raw->frame.header.flags, INF_FRAME_FINAL);
    cr_assert_lt(raw->frame.header.data_bytes, sizeof text);
    memcpy(text, raw->frame.data, raw->frame.header.data_bytes);
    text[raw->frame.header.data_bytes] = '\0';
    inf_raw_decode(raw, INF_MESSAGE_METRICS_REPLY);
}

static double sum_samples(const char *name, const char *part)
{
    return inf_metrics_text_sum(text, name, part);
}

// --- a strict parser of the text format 0.0.4 ---

// Returns the end of a name [a-zA-Z_][a-zA-Z0-9_]*, which must not be empty.
static const char *skip_name(const char *at)
{
    const char *start = at;
    while (isalpha((unsigned char)*at) || *at == '_' || (at > start && isdigit((unsigned char)*at)))
        at++;
    cr_assert_gt(at, start, "no name at: %.80s", start);
    return at;
}

static const char *skip_labels(const char *at)
{
    const char *start = at;
    while (*at != '}') {
        at = skip_name(at + 1);
        cr_assert_eq(strncmp(at, "=\"", 2), 0, "%.200s", start);
        for (at += 2; *at != '"'; at++) {
            cr_assert(*at != '\n' && *at != '\0', "%.200s", start);
            at += *at == '\\';
        }
        at++;
        cr_assert(*at == ',' || *at == '}', "%.200s", start);
    }
    return at + 1;
}

// The family whose samples are being read.
struct family {
    char name[128], type[16];
    double below; // value of the last bucket; negative: none
};

static bool is_in_family(const struct family *family, const char *name, size_t length)
{
    static const char *const suffixes[] = {"_bucket", "_sum", "_count"};
    size_t base = strlen(family->name);
    if (strncmp(name, family->name, base) != 0)
        return false;
    if (strcmp(family->type, "histogram") != 0)
        return length == base;
    for (size_t i = 0; i < 3; i++)
        if (length == base + strlen(suffixes[i]) &&
            strncmp(name + base, suffixes[i], strlen(suffixes[i])) == 0)
            return true;
    return false;
}

static void check_sample(struct family *family, const char *line)
{
    const char *at = skip_name(line);
    cr_assert(is_in_family(family, line, (size_t)(at - line)), "%.80s is not in family %s", line,
              family->name);
    bool bucket = strncmp(at - strlen("_bucket"), "_bucket", strlen("_bucket")) == 0;
    if (*at == '{')
        at = skip_labels(at);
    cr_assert_eq(*at, ' ', "%.200s", line);
    char *end;
    double value = strtod(at + 1, &end);
    cr_assert_eq(*end, '\n', "%.200s", line);
    cr_assert_geq(value, 0, "%.200s", line);
    if (bucket)
        cr_assert_geq(value, family->below, "the buckets shrink: %.200s", line);
    family->below = bucket ? value : -1;
}

// Copies the line that begins at `at`, with its end, and returns the beginning of the next one.
// Parsers see the copy only, because a sanitizer reads all of a string that they are given.
static const char *take_line(const char *at, char line[4096])
{
    const char *next = inf_metrics_text_next(at);
    size_t length = (size_t)(next - at);
    cr_assert(length > 0 && next[-1] == '\n', "the last line has no end");
    cr_assert_lt(length, 4096);
    memcpy(line, at, length);
    line[length] = '\0';
    return next;
}

// Checks every line of `text`: HELP, then TYPE, then all samples of one family; no family twice.
static void check_text(void)
{
    struct family family = {.below = -1};
    char names[8192] = " ", line[4096];
    for (const char *at = text; *at != '\0';) {
        at = take_line(at, line);
        if (strncmp(line, "# HELP ", 7) != 0) {
            check_sample(&family, line);
            continue;
        }
        cr_assert_eq(sscanf(line + 7, "%127s", family.name), 1);
        char word[160];
        snprintf(word, sizeof word, " %s ", family.name);
        cr_assert_eq(strstr(names, word), NULL, "%s twice", family.name);
        snprintf(names + strlen(names), sizeof names - strlen(names), "%s ", family.name);
        at = take_line(at, line);
        char name[128];
        cr_assert_eq(sscanf(line, "# TYPE %127s %15s\n", name, family.type), 2, "%.80s", line);
        cr_assert_str_eq(name, family.name);
        cr_assert_neq(strstr(" counter gauge histogram ", family.type), NULL);
    }
}

// Checks that `text` has a family for each metric of the table.
static void check_complete(void)
{
    static const char *const names[] = {
#define INF_METRIC(ID, name, TYPE, unit, labels, help) name,
#include "daemon/observe/metrics.def"
#undef INF_METRIC
    };
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        char line[128];
        snprintf(line, sizeof line, "# TYPE %s ", names[i]);
        cr_expect_not_null(strstr(text, line), "%s is not printed", names[i]);
    }
}

// --- what clients do ---

static const float zeros[24];

// Sends requests for the model add and waits for each.
static void add_some(struct inf_raw *raw, uint32_t count)
{
    union inf_message message;
    const struct inf_span data = {(const uint8_t *)zeros, 96};
    for (uint32_t i = 0; i < count; i++) {
        inf_add_request(&message, 2);
        uint64_t stream =
            inf_raw_request(raw, INF_METHOD_MODEL_INFER, INF_MESSAGE_INFER_REQUEST, &message, data);
        inf_raw_expect_infer(raw, stream);
    }
}

// Sends a request that fails because of its model or its input.
static void fail_one(struct inf_raw *raw, bool no_model)
{
    union inf_message message;
    inf_add_request(&message, 2);
    if (no_model)
        message.infer_request.model_name = "absent";
    else
        message.infer_request.inputs[1].name = "nothing";
    inf_raw_call(raw, INF_METHOD_MODEL_INFER, INF_MESSAGE_INFER_REQUEST, &message,
                 (struct inf_span){(const uint8_t *)zeros, 96});
    inf_raw_check_failure(raw, no_model ? INF_NOT_FOUND : INF_INVALID,
                          no_model ? INF_REASON_MODEL_NOT_FOUND : INF_REASON_TENSOR_UNKNOWN);
}

static uint64_t send_brief(struct inf_raw *raw, uint64_t timeout_ns)
{
    union inf_message message;
    inf_slow_request(&message);
    message.infer_request.model_name = "brief";
    message.infer_request.timeout_ns = timeout_ns;
    return inf_raw_request(raw, INF_METHOD_MODEL_INFER, INF_MESSAGE_INFER_REQUEST, &message,
                           inf_slow_data());
}

// Sends a request that the client cancels while it runs or is queued.
static void cancel_one(struct inf_raw *raw)
{
    uint64_t stream = send_brief(raw, 0);
    const struct inf_frame_header header = {.type = INF_FRAME_CANCEL, .stream_id = stream};
    inf_raw_send(raw, header, INF_MESSAGE_EMPTY, NULL, (struct inf_span){0}, -1);
    inf_raw_expect(raw, INF_FRAME_RESPONSE);
    inf_raw_check_failure(raw, INF_CANCELLED, INF_REASON_BY_CLIENT);
}

static void miss_deadline(struct inf_raw *raw)
{
    send_brief(raw, 1000000);
    inf_raw_expect(raw, INF_FRAME_RESPONSE);
    inf_raw_decode(raw, INF_MESSAGE_STATUS);
    cr_assert_eq(raw->message.status.code, INF_DEADLINE);
}

// Checks the metrics of the process and of its devices. The slots of a device are those that the
// fixture configured.
static void check_machine(struct inf_raw *admin)
{
    struct rlimit limit;
    double fds;
    cr_assert_eq(prlimit(fixture.pid, RLIMIT_NOFILE, NULL, &limit), 0);
    cr_expect_eq(sum_samples("inferd_descriptor_limit", ""), (double)limit.rlim_cur);
    // Kernels before Linux 6.2 do not say how many descriptors are open. A thread of the daemon may
    // still be closing those of a client that is gone.
    for (int i = 0; i < 1000; i++) {
        read_metrics(admin, "");
        fds = sum_samples("inferd_open_descriptors", "");
        if (fds == 0 || fds == inf_fixture_fds(&fixture))
            break;
        nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
    }
    cr_expect(fds == 0 || fds == inf_fixture_fds(&fixture), "%g descriptors", fds);
    cr_expect_geq(sum_samples("inferd_device_slots", "device=\"ref\""), 1);
    cr_expect_eq(sum_samples("inferd_model_races_total", "outcome=\"moved\""), 0);
}

Test(serving_metrics, equal_the_ledger_of_the_requests)
{
    struct inf_raw raw, gone, admin;
    inf_raw_open(&raw, fixture.socket);
    add_some(&raw, 37);
    for (int i = 0; i < 5; i++)
        fail_one(&raw, true);
    for (int i = 0; i < 3; i++)
        fail_one(&raw, false);
    for (int i = 0; i < 4; i++)
        cancel_one(&raw);
    for (int i = 0; i < 2; i++)
        miss_deadline(&raw);
    inf_raw_open(&gone, fixture.socket);
    send_brief(&gone, 0);
    inf_raw_wait_for(&raw, 1, 0);
    inf_raw_close(&gone);
    inf_raw_wait_for(&raw, 0, 0);

    inf_raw_open(&admin, fixture.admin_socket);
    read_metrics(&admin, "");
    cr_expect_str_eq(admin.message.metrics_reply.media_type,
                     "text/plain; version=0.0.4; charset=utf-8");
    check_text();
    check_complete();
    const char *const all = "inferd_inferences_total";
    cr_expect_eq(sum_samples(all, ""), 37 + 5 + 3 + 4 + 2 + 1, "%g", sum_samples(all, ""));
    cr_expect_eq(sum_samples(all, "model=\"add\",version=\"1\""), 37 + 3);
    cr_expect_eq(sum_samples(all, "outcome=\"ok\",reason=\"\""), 37);
    cr_expect_eq(sum_samples(all,
                             "model=\"\",version=\"\",device=\"\",outcome=\"failed\","
                             "reason=\"MODEL_NOT_FOUND\""),
                 5);
    cr_expect_eq(sum_samples(all, "outcome=\"failed\",reason=\"TENSOR_UNKNOWN\""), 3);
    cr_expect_eq(sum_samples(all, "outcome=\"cancelled\",reason=\"BY_CLIENT\""), 4);
    cr_expect_eq(sum_samples(all, "outcome=\"cancelled\",reason=\"DISCONNECT\""), 1);
    cr_expect_eq(sum_samples(all, "outcome=\"deadline\""), 2);
    // Two inputs and one output of 2 rows with 4 numbers of 4 bytes each.
    cr_expect_eq(sum_samples("inferd_inference_input_bytes_total", ""), 37 * 2 * 32);
    cr_expect_eq(sum_samples("inferd_inference_output_bytes_total", ""), 37 * 32);
    cr_expect_eq(sum_samples("inferd_inference_duration_seconds_count", ""), 37);
    cr_expect_eq(sum_samples("inferd_inference_input_seconds_count", ""), 37);
    cr_expect_eq(sum_samples("inferd_inference_output_seconds_count", ""), 37);
    // The phases of a request follow each other without a gap.
    double phases = sum_samples("inferd_inference_queue_seconds_sum", "") +
                    sum_samples("inferd_inference_input_seconds_sum", "") +
                    sum_samples("inferd_inference_compute_seconds_sum", "") +
                    sum_samples("inferd_inference_output_seconds_sum", "");
    cr_expect_float_eq(sum_samples("inferd_inference_duration_seconds_sum", ""), phases, 1e-8);
    // Requests that were refused at once have no time.
    cr_expect_eq(sum_samples("inferd_inference_failure_seconds_count", "\"failed\""), 0);
    cr_expect_eq(sum_samples("inferd_inference_failure_seconds_count", "\"cancelled\""), 4 + 1);
    cr_expect_eq(sum_samples("inferd_inference_failure_seconds_count", "\"deadline\""), 2);
    cr_expect_geq(sum_samples("inferd_inference_failure_seconds_sum", "\"deadline\""), 2 * 0.001);
    cr_expect_eq(sum_samples("inferd_loop_delay_seconds_count", ""), 37);
    cr_expect_gt(sum_samples("inferd_loop_turn_seconds_count", ""), 37);
    // The loop sleeps most of the time.
    cr_expect_lt(sum_samples("inferd_loop_turn_seconds_sum", ""),
                 sum_samples("inferd_uptime_seconds", "") / 2);
    cr_expect_eq(sum_samples("inferd_inference_batch_rows_count", "model=\"add\""), 37);
    char uid[64];
    snprintf(uid, sizeof uid, "uid=\"%u\",outcome=\"ok\"", (unsigned)getuid());
    cr_expect_eq(sum_samples("inferd_user_inferences_total", uid), 37);
    cr_expect_eq(sum_samples("inferd_user_inferences_total", "outcome=\"failed\""), 8);
    cr_expect_eq(sum_samples("inferd_model_loads_total", "outcome=\"ok\""), 4);
    cr_expect_eq(sum_samples("inferd_models", "state=\"ready\""), 4);
    cr_expect_eq(sum_samples("inferd_model_loads_pending", ""), 0);
    check_machine(&admin);

    struct inf_server_status status = inf_raw_server_status(&admin);
    read_metrics(&admin, "");
    // The status request has been answered meanwhile; the request for the metrics is in flight.
    cr_expect_eq(sum_samples("inferd_calls_total", "outcome=\"ok\""),
                 (double)status.requests_ok + 1);
    cr_expect_eq(sum_samples("inferd_calls_total", "outcome=\"failed\""),
                 (double)status.requests_failed);
    cr_expect_eq(sum_samples("inferd_calls_in_flight", ""), 1);
    inf_raw_close(&admin);
    inf_raw_close(&raw);
}

// Loads the model add under another name, asks it once, and unloads it.
static void load_ask_unload(struct inf_raw *admin, const char *name)
{
    char path[128];
    union inf_message message;
    snprintf(path, sizeof path, "%s/add", fixture.repository);
    const union inf_message load = {.model = {.name = name, .path = path, .version = ""}};
    inf_raw_call(admin, INF_METHOD_REPOSITORY_MODEL_LOAD, INF_MESSAGE_MODEL_LOAD_REQUEST, &load,
                 (struct inf_span){0});
    cr_assert_eq(admin->frame.header.flags & INF_FRAME_FLAG_ERROR, 0, "%s is not loaded", name);
    inf_add_request(&message, 2);
    message.infer_request.model_name = name;
    uint64_t stream = inf_raw_request(admin, INF_METHOD_MODEL_INFER, INF_MESSAGE_INFER_REQUEST,
                                      &message, (struct inf_span){(const uint8_t *)zeros, 96});
    inf_raw_expect_infer(admin, stream);
    const union inf_message unload = {.model = {.name = name, .version = ""}};
    inf_raw_call(admin, INF_METHOD_REPOSITORY_MODEL_UNLOAD, INF_MESSAGE_MODEL_UNLOAD_REQUEST,
                 &unload, (struct inf_span){0});
    cr_assert_eq(admin->frame.header.flags & INF_FRAME_FLAG_ERROR, 0, "%s stays", name);
}

// Loads and unloads more models than may have metric series of their own. The unit test does this
// with 10,000.
Test(serving_metrics, of_many_models_are_bounded_and_none_is_lost)
{
    enum {
        MODELS = 80
    };
    struct inf_raw admin;
    inf_raw_open(&admin, fixture.admin_socket);
    for (int i = 0; i < MODELS; i++) {
        char name[16];
        snprintf(name, sizeof name, "guest%d", i);
        load_ask_unload(&admin, name);
    }
    read_metrics(&admin, "");
    check_text();
    cr_expect_eq(sum_samples("inferd_inferences_total", ""), MODELS);
    cr_expect_eq(sum_samples("inferd_inferences_total", "model=\"guest0\""), 1);
    // 64 models have metric series of their own. All further models share the series "other".
    cr_expect_eq(sum_samples("inferd_inferences_total", "model=\"other\""), MODELS - 64);
    cr_expect_eq(sum_samples("inferd_inference_duration_seconds_count", ""), MODELS);
    cr_expect_eq(sum_samples("inferd_model_unloads_total", "cause=\"admin\""), MODELS);
    cr_expect_eq(sum_samples("inferd_models", "state=\"ready\""), 4);
    inf_raw_close(&admin);
}

Test(serving_metrics, of_others_models_are_not_shown_on_the_data_socket)
{
    struct inf_raw raw;
    inf_raw_open(&raw, fixture.socket);
    fail_one(&raw, true);
    read_metrics(&raw, "openmetrics");
    cr_expect_eq(sum_samples("inferd_inferences_total", ""), 0,
                 "refusals without a model are an admin's");
    cr_expect_neq(strstr(text, "\n# EOF\n"), NULL);
    add_some(&raw, 2);
    read_metrics(&raw, "json");
    cr_expect_str_eq(raw.message.metrics_reply.media_type, "application/json");
    cr_expect_eq(strncmp(text, "[\n{\"name\":", 10), 0);
    read_metrics(&raw, "prometheus");
    cr_expect_eq(sum_samples("inferd_inferences_total", ""), 2);
    const union inf_message message = {.metrics_request = {.format = "xml"}};
    inf_raw_call(&raw, INF_METHOD_METRICS, INF_MESSAGE_METRICS_REQUEST, &message,
                 (struct inf_span){0});
    inf_raw_check_failure(&raw, INF_INVALID, INF_REASON_BAD_PARAMETER);
    inf_raw_close(&raw);
}
