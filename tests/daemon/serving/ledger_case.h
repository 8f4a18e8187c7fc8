// SPDX-License-Identifier: Apache-2.0
// A server and clients that keep a ledger: each client records every request as sent and then as
// answered. The daemon's count of accepted requests must equal its count of final replies, and be
// at least the number of answers that clients received.
//
// Clients that read all their answers ask the models add and brief; those that disconnect or are
// killed ask the same models by other names, because the test does not know how many of their
// requests the daemon has read. The metrics of add and brief must exactly equal the records of the
// clients that read all their answers. $INF_LEDGER_REQUESTS is the number of requests of a test.
#ifndef INF_TESTS_DAEMON_SERVING_LEDGER_CASE_H
#define INF_TESTS_DAEMON_SERVING_LEDGER_CASE_H

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "proto/wire/frame.h"
#include "tests/support/daemon/fixture.h"
#include "tests/support/daemon/metrics_text.h"

#define CLIENTS 8
// The highest number of requests that a client sends over one connection before it closes the
// connection.
#define STREAMS 2000
// Most requests in flight on one connection. The sum over all connections, including requests of
// killed clients, stays below the limit of a user, so that the daemon refuses only on purpose.
#define WINDOW 50

static struct inf_fixture fixture;

// --- the metrics of the daemon ---

// Reads the metrics of all models into `metrics_text`.
static char metrics_text[1 << 20];

static inline void read_metrics(void)
{
    static const union inf_message message = {.metrics_request = {.format = ""}};
    struct inf_raw raw;
    inf_raw_open(&raw, fixture.admin_socket);
    inf_raw_call(&raw, INF_METHOD_METRICS, INF_MESSAGE_METRICS_REQUEST, &message,
                 (struct inf_span){0});
    cr_assert_lt(raw.frame.header.data_bytes, sizeof metrics_text);
    memcpy(metrics_text, raw.frame.data, raw.frame.header.data_bytes);
    metrics_text[raw.frame.header.data_bytes] = '\0';
    inf_raw_close(&raw);
}

static inline uint64_t sum_samples(const char *name, const char *part)
{
    return (uint64_t)inf_metrics_text_sum(metrics_text, name, part);
}

// Returns how many requests that are no inferences have ended, according to the metrics.
static inline uint64_t count_questions(void)
{
    return sum_samples("inferd_calls_total", "") - sum_samples("inferd_inferences_total", "");
}

// Result of count_questions() before the first request of the test.
static uint64_t questions_at_start;

// --- loading models ---

// The models, and further names of the same models. Clients that may end before their answers use
// the further names.
enum target {
    ADD,
    BRIEF,
    TARGETS,
    ABSENT = TARGETS // no model has this name
};
static const char *const names[TARGETS] = {"add", "brief"};
static const char *const guest_names[TARGETS] = {"guest_add", "guest_brief"};

static uint64_t loads;   // number of loads of all models by load_model()
static uint64_t changes; // number of requests that a test has sent to change limits

// Loads a model; `path` is a directory in the repository, or NULL for the model's own.
static inline void load_model(const char *name, const char *path)
{
    char whole[128] = "";
    if (path != NULL)
        snprintf(whole, sizeof whole, "%s/%s", fixture.repository, path);
    const union inf_message message = {.model = {.name = name, .path = whole, .version = ""}};
    struct inf_raw admin;
    inf_raw_open(&admin, fixture.admin_socket);
    inf_raw_call(&admin, INF_METHOD_REPOSITORY_MODEL_LOAD, INF_MESSAGE_MODEL_LOAD_REQUEST, &message,
                 (struct inf_span){0});
    cr_assert_eq(admin.frame.header.flags & INF_FRAME_FLAG_ERROR, 0, "%s is not loaded", name);
    inf_raw_close(&admin);
    loads++;
}

// Returns the number of requests that a test sends; `usual` is the default.
static inline uint64_t count_wanted(uint64_t usual)
{
    const char *text = getenv("INF_LEDGER_REQUESTS");
    return text != NULL ? strtoull(text, NULL, 10) : usual;
}

static inline void start_server(void)
{
    inf_fixture_start(&fixture, NULL);
    for (int i = 0; i < TARGETS; i++)
        load_model(guest_names[i], names[i]);
    loads = changes = 0;
    read_metrics();
    questions_at_start = count_questions();
}

static inline void stop_server(void)
{
    inf_fixture_stop(&fixture);
}

// --- clients ---

// The state of one request.
enum entry {
    NOT_SENT,
    SENT,
    ANSWERED
};

struct client {
    struct inf_raw raw;
    bool drains; // the client reads all its answers before it ends
    // Stream id of the request in entries[0]; the next entries belong to the following stream ids.
    uint64_t first;
    uint32_t sent, answered, limit;
    enum entry entries[STREAMS];
    uint8_t targets[STREAMS]; // enum target of each request
};

// What clients that read all their answers have received, by model and outcome. Refused requests
// are not compared by model, because the daemon refuses most of them before it knows their model.
enum outcome {
    OK,
    FAILED,
    CANCELLED,
    DEADLINE,
    OUTCOMES,
    REFUSED = OUTCOMES
};
static const char *const outcome_names[OUTCOMES] = {"ok", "failed", "cancelled", "deadline"};
static uint64_t ledger[TARGETS][OUTCOMES + 1];

static unsigned seed = 20260101;
static uint64_t total_sent, total_answered, total_failed, total_pieces, total_refused;
static bool limits_change; // true: the test changes limits, so requests may be refused

static inline uint32_t roll_dice(uint32_t sides)
{
    return (uint32_t)rand_r(&seed) % sides;
}

static inline void open_client(struct client *client, bool drains)
{
    // Limit replies to 16 bytes of data per frame, so that larger replies come in several frames.
    const struct inf_hello hello = {.major = INF_PROTOCOL_MAJOR,
                                    .limits = {.streams = INF_LIMIT_STREAMS, .data_bytes = 16},
                                    .feature_count = 1,
                                    .features = {"inferd.data"}};
    if (roll_dice(2) == 0)
        inf_raw_open(&client->raw, fixture.socket);
    else
        inf_raw_open_as(&client->raw, fixture.socket, &hello);
    memset(client->entries, 0, sizeof client->entries);
    client->first = client->raw.last_stream + 1;
    client->sent = client->answered = 0;
    client->limit = 1 + roll_dice(STREAMS);
    client->drains = drains;
}

// Opens the clients of a test, of which every other one reads all its answers.
static inline void open_clients(struct client clients[CLIENTS])
{
    for (int i = 0; i < CLIENTS; i++)
        open_client(&clients[i], i % 2 == 0);
}

// Returns the outcome that the failure in the last frame stands for.
static inline enum outcome read_failure(struct client *client)
{
    inf_raw_decode(&client->raw, INF_MESSAGE_STATUS);
    enum inf_code code = client->raw.message.status.code;
    if (limits_change && code == INF_EXHAUSTED) {
        total_refused++;
        return REFUSED;
    }
    cr_assert(code == INF_CANCELLED || code == INF_DEADLINE || code == INF_NOT_FOUND ||
                  code == INF_INVALID,
              "code %d: %s", (int)code, client->raw.message.status.message);
    return code == INF_CANCELLED ? CANCELLED : code == INF_DEADLINE ? DEADLINE : FAILED;
}

// Records a final reply. Fails the test if the request is unknown or already has a reply.
static inline void note_reply(struct client *client)
{
    const struct inf_frame_header *header = &client->raw.frame.header;
    if (header->type == INF_FRAME_DATA) {
        uint64_t of = header->stream_id - client->first;
        cr_assert(of < client->sent && client->entries[of] == SENT, "data behind the answer");
        total_pieces++;
        return;
    }
    if (header->type == INF_FRAME_CREDIT && limits_change)
        return;
    cr_assert_eq(header->type, INF_FRAME_RESPONSE);
    cr_assert_neq(header->flags & INF_FRAME_FINAL, 0);
    uint64_t index = header->stream_id - client->first;
    cr_assert_lt(index, client->sent, "an answer to a request that never was");
    cr_assert_eq(client->entries[index], SENT, "a second answer");
    client->entries[index] = ANSWERED;
    client->answered++;
    total_answered++;
    enum outcome outcome = OK;
    if ((header->flags & INF_FRAME_FLAG_ERROR) != 0) {
        total_failed++;
        outcome = read_failure(client);
    }
    if (client->drains && client->targets[index] < TARGETS)
        ledger[client->targets[index]][outcome]++;
}

static inline void read_until(struct client *client, uint32_t in_flight)
{
    while (client->sent - client->answered > in_flight) {
        cr_assert(inf_raw_next(&client->raw, 20000), "no answer, %u in flight",
                  client->sent - client->answered);
        note_reply(client);
    }
}

// Sends a part of the next request's data in DATA frames, before its REQUEST.
static inline void send_ahead(struct client *client, struct inf_span *data)
{
    const union inf_message message = {.data = {.total_bytes = data->size}};
    struct inf_frame_header header = {.type = INF_FRAME_DATA,
                                      .stream_id = client->raw.last_stream + 1};
    struct inf_span piece = {data->data, roll_dice((uint32_t)data->size) + 1};
    inf_raw_send(&client->raw, header, INF_MESSAGE_DATA, &message, piece, -1);
    *data = (struct inf_span){data->data + piece.size, data->size - piece.size};
}

static inline void send_one(struct client *client)
{
    static const float zeros[64];
    union inf_message message;
    struct inf_span data = {(const uint8_t *)zeros, 96};
    const char *const *models = client->drains ? names : guest_names;
    enum target target = ADD;
    inf_add_request(&message, 2);
    message.infer_request.model_name = models[ADD];
    if (roll_dice(500) == 0) {
        inf_slow_request(&message); // this request keeps a device busy, so that later ones wait
        target = BRIEF;
        message.infer_request.model_name = models[BRIEF];
        message.infer_request.timeout_ns = 1000000 + roll_dice(20000000);
        data = inf_slow_data();
    } else if (roll_dice(50) == 0) {
        target = ABSENT;
        message.infer_request.model_name = "absent";
    } else if (roll_dice(50) == 0) {
        message.infer_request.inputs[1].name = "nothing";
    } else if (roll_dice(5) == 0) {
        message.infer_request.timeout_ns = 1 + roll_dice(300000);
    }
    if (roll_dice(10) == 0)
        message.infer_request.queue_timeout_ns = 1 + roll_dice(100000);
    message.infer_request.priority = (enum inf_wire_priority)roll_dice(INF_WIRE_PRIORITY_COUNT);
    message.infer_request.device = roll_dice(2) == 0 ? "ref" : "";
    if (roll_dice(8) == 0)
        send_ahead(client, &data);
    const struct inf_frame_header header = {.type = INF_FRAME_REQUEST,
                                            .stream_id = ++client->raw.last_stream,
                                            .method = INF_METHOD_MODEL_INFER};
    uint64_t stream = header.stream_id;
    inf_raw_send(&client->raw, header, INF_MESSAGE_INFER_REQUEST, &message, data, -1);
    client->entries[stream - client->first] = SENT;
    client->targets[stream - client->first] = (uint8_t)target;
    client->sent++;
    total_sent++;
}

// Cancels one of the most recent streams of a connection. The request on that stream may be
// answered or not, or may never have been sent.
static inline void cancel_one(struct client *client)
{
    uint64_t stream = client->first + client->sent;
    const struct inf_frame_header header = {
        .type = INF_FRAME_CANCEL, .stream_id = stream - roll_dice((uint32_t)INF_MIN(stream, 20))};
    inf_raw_send(&client->raw, header, INF_MESSAGE_EMPTY, NULL, (struct inf_span){0}, -1);
}

// Ends a connection. A client that drains reads all its answers first; another client ends earlier.
static inline void end_client(struct client *client)
{
    if (client->drains) {
        read_until(client, 0);
        while (inf_raw_next(&client->raw, 5))
            cr_assert(limits_change && client->raw.frame.header.type == INF_FRAME_CREDIT,
                      "an answer too many");
    }
    inf_raw_close(&client->raw);
}

static inline void end_clients(struct client clients[CLIENTS])
{
    for (int i = 0; i < CLIENTS; i++)
        end_client(&clients[i]);
}

static inline void run_step(struct client *client)
{
    for (uint32_t i = roll_dice(20); i > 0 && client->sent < client->limit; i--) {
        send_one(client);
        if (roll_dice(4) == 0)
            cancel_one(client);
    }
    read_until(client, roll_dice(WINDOW - 20));
    if (client->sent == client->limit) {
        end_client(client);
        open_client(client, roll_dice(2) == 0);
    }
}

// Checks that the metrics of the models that only clients that read all their answers use equal the
// records of these clients. A successful request for add has two inputs of 32 bytes and one such
// output.
static inline void check_ledger(void)
{
    static const char *const histograms[] = {
        "inferd_inference_duration_seconds_count", "inferd_inference_queue_seconds_count",
        "inferd_inference_input_seconds_count",    "inferd_inference_compute_seconds_count",
        "inferd_inference_output_seconds_count",   "inferd_inference_batch_rows_count"};
    for (int target = 0; target < TARGETS; target++) {
        char part[64];
        for (int outcome = 0; outcome < OUTCOMES; outcome++) {
            uint64_t counted = 0;
            for (int device = 0; device < 2; device++) {
                snprintf(part, sizeof part,
                         "{model=\"%s\",version=\"1\",device=\"%s\",outcome=\"%s\"", names[target],
                         device == 0 ? "ref" : "cpu", outcome_names[outcome]);
                counted += sum_samples("inferd_inferences_total", part);
            }
            cr_expect_eq(counted, ledger[target][outcome], "%s %s: %llu, wanted %llu",
                         names[target], outcome_names[outcome], (unsigned long long)counted,
                         (unsigned long long)ledger[target][outcome]);
        }
        snprintf(part, sizeof part, "{model=\"%s\"", names[target]);
        for (size_t i = 0; i < sizeof histograms / sizeof histograms[0]; i++)
            cr_expect_eq(sum_samples(histograms[i], part), ledger[target][OK], "%s", histograms[i]);
    }
    // A request that runs alone counts as one row; a request that may be batched has two rows.
    uint64_t rows = sum_samples("inferd_inference_rows_total", "\"add\"");
    cr_expect(rows >= ledger[ADD][OK] && rows <= 2 * ledger[ADD][OK]);
    cr_expect_eq(sum_samples("inferd_inference_input_bytes_total", "\"add\""),
                 64 * ledger[ADD][OK]);
    cr_expect_eq(sum_samples("inferd_inference_output_bytes_total", "\"add\""),
                 32 * ledger[ADD][OK]);
}

// Checks that the metrics of all models, and those of all users, count every inference once. All
// other requests since the start of the test are those that this function and load_model() send,
// and those that change limits.
static inline void check_metrics(void)
{
    uint64_t asked = 0;
    do {
        nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
        read_metrics();
        asked++;
    } while (strstr(metrics_text, "\ninferd_calls_in_flight 1\n") == NULL && asked < 1000);
    cr_assert_eq(count_questions(), questions_at_start + asked + loads + changes);
    cr_assert_eq(sum_samples("inferd_inferences_total", ""),
                 sum_samples("inferd_user_inferences_total", ""));
    cr_assert_geq(sum_samples("inferd_inferences_total", ""), total_answered);
    cr_assert_eq(sum_samples("inferd_inferences_total", "outcome=\"ok\""),
                 sum_samples("inferd_inference_duration_seconds_count", ""));
    // Four models of the fixture and two guests were loaded before.
    cr_assert_eq(sum_samples("inferd_model_loads_total", "outcome=\"ok\""), 4 + TARGETS + loads);
    check_ledger();
}

// Waits until no request is in flight, then reads the daemon's counters and compares them with the
// counts of the clients.
static inline void check_books(uint64_t answered_least)
{
    struct inf_raw raw;
    check_metrics();
    inf_raw_open(&raw, fixture.socket);
    inf_raw_wait_for(&raw, 0, 0);
    struct inf_server_status status = inf_raw_server_status(&raw);
    cr_assert_eq(status.requests_accepted, status.requests_ok + status.requests_failed + 1);
    cr_assert_geq(status.requests_accepted, answered_least);
    cr_assert_eq(status.connections, 1);
    inf_raw_close(&raw);
}

#endif
