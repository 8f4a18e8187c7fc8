// SPDX-License-Identifier: Apache-2.0
// Measures the speed of a device by small graphs, and keeps the result in a file for later starts.
#include "backends/place/speed.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "backends/exec/static_executable.h"
#include "backends/exec/trial_run.h"
#include "backends/graph/shape/infer.h"
#include "backends/storage/file.h"
#include "backends/storage/record.h"
#include "proto/core/span.h"

// Each test graph runs RUNS times, and the shortest run counts.
#define RUNS 3
// Two chains of additions are timed: one with a single addition, and one with CHAIN additions. The
// difference of their times gives the cost of one step.
#define CHAIN 33

// The sizes of the test tensors. Slow devices get smaller tensors, so that measuring them does not
// take longer than measuring fast devices.
struct sizes {
    int32_t rows, depth, columns; // sizes of the matrix product that is timed
    int32_t elements;             // number of elements of the addition that is timed
};
static const struct sizes fast = {128, 512, 512, 1 << 20};
static const struct sizes slow = {64, 64, 64, 1 << 14};
// A device is slow if the product of the sizes `fast` would take longer than this, in seconds.
#define FAST_S_MAX 0.005

// --- building the test graphs ---

// Creates a graph with one input x of the given shape.
static enum inf_code begin_graph(struct inf_graph **graph, const struct inf_shape *shape,
                                 uint32_t *x, struct inf_error *err)
{
    INF_TRY(inf_graph_create(graph, err));
    INF_TRY(inf_graph_add_value(*graph, "x", INF_DTYPE_F32, shape, x, err));
    return inf_graph_add_input(*graph, "x", *x, err);
}

// Builds the matrix product y = x W, where W is a constant.
static enum inf_code build_product(struct inf_graph **graph, const struct sizes *sizes,
                                   struct inf_error *err)
{
    const struct inf_shape x_shape = INF_SHAPE(sizes->rows, sizes->depth);
    const struct inf_shape w_shape = INF_SHAPE(sizes->depth, sizes->columns);
    uint32_t x, w, node;
    INF_TRY(begin_graph(graph, &x_shape, &x, err));
    struct inf_blob *weights =
        inf_blob_create((size_t)sizes->depth * (size_t)sizes->columns * sizeof(float));
    if (weights == NULL)
        return inf_fail_reason(err, INF_EXHAUSTED, INF_REASON_HOST_OOM, "no memory to measure");
    INF_TRY(inf_graph_add_const(*graph, "w", INF_DTYPE_F32, &w_shape, weights, &w, err));
    INF_TRY(inf_graph_add_node(*graph, INF_OP_MATMUL, "product", "", (uint32_t[]){x, w}, 2, 1,
                               &node, err));
    return inf_graph_add_output(*graph, "y", (*graph)->nodes[node].outputs[0], err);
}

// Builds y = x + x + ... + x with `steps` additions.
static enum inf_code build_chain(struct inf_graph **graph, int32_t elements, uint32_t steps,
                                 struct inf_error *err)
{
    const struct inf_shape shape = INF_SHAPE(elements);
    uint32_t x, node, last;
    INF_TRY(begin_graph(graph, &shape, &x, err));
    last = x;
    for (uint32_t i = 0; i < steps; i++) {
        char name[16];
        snprintf(name, sizeof name, "sum%u", i);
        INF_TRY(inf_graph_add_node(*graph, INF_OP_BINARY, name, "", (uint32_t[]){last, x}, 2, 1,
                                   &node, err));
        last = (*graph)->nodes[node].outputs[0];
    }
    return inf_graph_add_output(*graph, "y", last, err);
}

// --- timing the test graphs ---

// Compiles and times `graph`, and takes ownership of it. *out_ns is the time of the shortest run.
static enum inf_code time_graph(struct inf_graph **graph, struct inf_device *device,
                                struct inf_device *host, uint64_t *out_ns,
                                struct inf_error *err) INF_MAY_BLOCK
{
    struct inf_device *const devices[] = {device, host};
    struct inf_executable *executable = NULL;
    struct inf_trial_run trial = {0};
    INF_TRY(inf_shape_infer(*graph, err));
    INF_TRY(inf_static_executable_create(&executable, graph, devices, device == host ? 1 : 2, NULL,
                                         err));
    enum inf_code code = inf_trial_run_init(&trial, inf_executable_graph(executable), err);
    *out_ns = UINT64_MAX;
    for (int i = 0; i <= RUNS && code == INF_OK; i++) {
        uint64_t took_ns = UINT64_MAX;
        code = inf_trial_run_execute(&trial, executable, &took_ns, err);
        if (i > 0) // the first run only warms up
            *out_ns = INF_MIN(*out_ns, took_ns);
    }
    inf_trial_run_fini(&trial);
    inf_executable_destroy(&executable);
    return code;
}

static enum inf_code time_product(const struct sizes *sizes, struct inf_device *device,
                                  struct inf_device *host, uint64_t *out_ns,
                                  struct inf_error *err) INF_MAY_BLOCK
{
    INF_CLEANUP(inf_graph_destroy) struct inf_graph *graph = NULL;
    INF_TRY(build_product(&graph, sizes, err));
    return time_graph(&graph, device, host, out_ns, err);
}

static enum inf_code time_chain(int32_t elements, uint32_t steps, struct inf_device *device,
                                struct inf_device *host, uint64_t *out_ns,
                                struct inf_error *err) INF_MAY_BLOCK
{
    INF_CLEANUP(inf_graph_destroy) struct inf_graph *graph = NULL;
    INF_TRY(build_chain(&graph, elements, steps, err));
    return time_graph(&graph, device, host, out_ns, err);
}

// Returns the time `ns` without the fixed cost `less`, in seconds; at least 1 ns.
static double rest_s(uint64_t ns, uint64_t less)
{
    return (double)(ns > less ? ns - less : 1) / 1e9;
}

static double count_macs(const struct sizes *sizes)
{
    return (double)sizes->rows * sizes->depth * sizes->columns;
}

static enum inf_code measure_graphs(struct inf_speed *speed, struct inf_device *device,
                                    struct inf_device *host, struct inf_error *err) INF_MAY_BLOCK
{
    const struct sizes *sizes = &slow;
    uint64_t one_ns, chain_ns, add_ns, product_ns;
    INF_TRY(time_chain(64, 1, device, host, &one_ns, err));
    INF_TRY(time_chain(64, CHAIN, device, host, &chain_ns, err));
    INF_TRY(time_product(&slow, device, host, &product_ns, err));
    double product_s = rest_s(product_ns, one_ns);
    if (product_s / count_macs(&slow) * count_macs(&fast) <= FAST_S_MAX) {
        sizes = &fast;
        INF_TRY(time_product(&fast, device, host, &product_ns, err));
        product_s = rest_s(product_ns, one_ns);
    }
    INF_TRY(time_chain(sizes->elements, 1, device, host, &add_ns, err));
    speed->step_ns = chain_ns > one_ns ? (chain_ns - one_ns) / (CHAIN - 1) : 0;
    speed->submit_ns = one_ns > speed->step_ns ? one_ns - speed->step_ns : 0;
    speed->bytes_per_s = 2.0 * sizeof(float) * sizes->elements / rest_s(add_ns, one_ns);
    speed->macs_per_s = count_macs(sizes) / product_s;
    return INF_OK;
}

enum inf_code inf_speed_measure(struct inf_speed *speed, struct inf_device *device,
                                struct inf_device *host, struct inf_error *err)
{
    inf_role_check_may_block();
    struct inf_speed measured = {0};
    enum inf_code code = measure_graphs(&measured, device, host, err);
    *speed = code == INF_OK ? measured : (struct inf_speed){0};
    return code;
}

uint64_t inf_speed_predict_ns(const struct inf_speed *speed, const struct inf_speed_work *work)
{
    if (speed->macs_per_s <= 0 || speed->bytes_per_s <= 0)
        return 0;
    double arithmetic_ns = (double)work->macs / speed->macs_per_s * 1e9;
    double memory_ns = (double)work->bytes / speed->bytes_per_s * 1e9;
    return (uint64_t)INF_MAX(arithmetic_ns, memory_ns) + speed->submit_ns +
           speed->step_ns * work->steps;
}

// --- storing speeds in a file for later starts ---

#define FILE_NAME "speed.db"

static uint64_t key_of(const struct inf_device *device, const char *version)
{
    const struct inf_device_info *info = inf_device_info(device);
    uint64_t key = inf_record_hash_text(INF_RECORD_HASH_INIT, version);
    key = inf_record_hash_text(inf_record_hash_text(key, info->name), info->description);
    key = inf_record_hash_text(key, info->identity);
    return inf_record_hash(key, &info->threads, sizeof info->threads);
}

// Parses a line of the form: KEY MACS_PER_S BYTES_PER_S SUBMIT_NS STEP_NS CHECKSUM
static bool read_line(char *line, uint64_t key, struct inf_speed *speed)
{
    uint64_t found;
    uint64_t macs, bytes;
    struct inf_speed kept = {0};
    if (!inf_record_open(line) ||
        sscanf(line, "%" SCNx64 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64, &found, &macs,
               &bytes, &kept.submit_ns, &kept.step_ns) != 5 ||
        found != key)
        return false;
    kept.macs_per_s = (double)macs;
    kept.bytes_per_s = (double)bytes;
    *speed = kept;
    return true;
}

bool inf_speed_load(struct inf_speed *speed, const struct inf_device *device, const char *version,
                    const char *directory)
{
    int directory_fd;
    char *text = NULL;
    size_t size;
    bool found = false;
    if (directory == NULL || inf_directory_open(&directory_fd, directory, NULL) != INF_OK)
        return false;
    if (inf_file_read_all(&text, &size, directory_fd, FILE_NAME, INF_SPEED_BYTES_MAX, NULL) !=
        INF_OK)
        text = NULL;
    close(directory_fd);
    char *rest = NULL;
    for (char *line = text != NULL ? strtok_r(text, "\n", &rest) : NULL; line != NULL;
         line = strtok_r(NULL, "\n", &rest))
        found |= read_line(line, key_of(device, version), speed);
    free(text);
    return found;
}

void inf_speed_save(const struct inf_speed *speed, const struct inf_device *device,
                    const char *version, const char *directory)
{
    char line[160];
    int directory_fd;
    if (directory == NULL || inf_directory_open(&directory_fd, directory, NULL) != INF_OK)
        return;
    int length = snprintf(line, sizeof line, "%016" PRIx64 " %.0f %.0f %" PRIu64 " %" PRIu64,
                          key_of(device, version), speed->macs_per_s, speed->bytes_per_s,
                          speed->submit_ns, speed->step_ns);
    size_t size = inf_record_seal(line, (size_t)length, sizeof line);
    // If the file would exceed its maximum size, it is truncated and started again.
    int fd = openat(directory_fd, FILE_NAME, O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_CLOEXEC,
                    0600);
    if (fd >= 0) {
        off_t end = lseek(fd, 0, SEEK_END);
        if (end > (off_t)(INF_SPEED_BYTES_MAX - sizeof line) && ftruncate(fd, 0) != 0)
            size = 0;
        while (size > 0 && write(fd, line, size) < 0 && errno == EINTR)
            ;
        close(fd);
    }
    close(directory_fd);
}
