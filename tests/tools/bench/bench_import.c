// SPDX-License-Identifier: Apache-2.0
// bench_import MODEL.onnx... [-- DATA...]
//
// Compares the cost of importing a model with the cost of reading and hashing its file, and those
// of its external data: DATA are names in the folder of the model, one file after the other. The
// bound is 1.3 times the latter plus 50 ms. Prints the shortest of several elapsed and CPU times,
// measured alternately, and the peak memory of a process that does nothing else. Every measurement
// runs in a separate process.
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "backends/import/common/shards.h"
#include "backends/import/import.h"
#include "backends/registry.h"
#include "backends/storage/file.h"

#define ROUNDS 7

struct cost {
    double ms, processor_ms;
    long peak_kib, before_kib;
};

// Returns the peak memory of this process (VmHWM).
static long peak_kib(void)
{
    FILE *status = fopen("/proc/self/status", "re");
    char line[256];
    long kib = 0;
    while (status != NULL && fgets(line, sizeof line, status) != NULL)
        if (sscanf(line, "VmHWM: %ld", &kib) == 1)
            break;
    if (status != NULL)
        fclose(status);
    return kib;
}

static double now_ms(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

static enum inf_code read_and_hash(int directory_fd, const char *name, struct inf_error *err)
{
    struct inf_tally tally = INF_TALLY_INIT;
    char *data = NULL;
    size_t size;
    INF_TRY(inf_file_read_all(&data, &size, directory_fd, name, (uint64_t)4 << 30, err));
    inf_tally_add(&tally, data, size);
    free(data);
    return INF_OK;
}

// Reads and hashes the file of a model, and then each file of its external data. `external` ends
// with NULL.
static enum inf_code read_and_hash_all(int directory_fd, const char *name,
                                       const char *const *external, struct inf_error *err)
{
    INF_TRY(read_and_hash(directory_fd, name, err));
    for (; *external != NULL; external++)
        INF_TRY(read_and_hash(directory_fd, *external, err));
    return INF_OK;
}

// Adds the sizes of the external data to *size_bytes.
static bool add_sizes(const char *path, const char *const *external, off_t *size_bytes)
{
    char folder[4096];
    struct stat status;
    snprintf(folder, sizeof folder, "%s", path);
    int directory_fd = open(dirname(folder), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    bool good = directory_fd >= 0;
    for (; good && *external != NULL; external++) {
        good = fstatat(directory_fd, *external, &status, 0) == 0;
        *size_bytes += good ? status.st_size : 0;
    }
    if (directory_fd >= 0)
        close(directory_fd);
    return good;
}

static enum inf_code import_file(int directory_fd, const char *name, struct inf_error *err)
{
    const struct inf_import_options options = {.evaluator = inf_registry_evaluator()};
    struct inf_model_info info;
    struct inf_graph *graph = NULL;
    return inf_model_import_with(&graph, &info, directory_fd, name, &options, err);
}

// Imports the model, or only reads and hashes it, in a child process. Returns false if the child
// failed; the child has printed the reason then.
static bool measure_child(const char *path, const char *const *external, bool imports,
                          struct cost *cost)
{
    char folder[4096], name[4096];
    int ends[2];
    snprintf(folder, sizeof folder, "%s", path);
    snprintf(name, sizeof name, "%s", path);
    if (pipe(ends) != 0)
        return false;
    pid_t child = fork();
    if (child == 0) {
        struct inf_error err = {0};
        struct cost own = {.before_kib = peak_kib()};
        int directory_fd = open(dirname(folder), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        double start = now_ms(CLOCK_MONOTONIC);
        enum inf_code code = imports
                                 ? import_file(directory_fd, basename(name), &err)
                                 : read_and_hash_all(directory_fd, basename(name), external, &err);
        own.ms = now_ms(CLOCK_MONOTONIC) - start;
        own.processor_ms = now_ms(CLOCK_PROCESS_CPUTIME_ID);
        own.peak_kib = peak_kib();
        if (code != INF_OK)
            fprintf(stderr, "bench_import: %s\n", err.text);
        _exit(code != INF_OK || write(ends[1], &own, sizeof own) != sizeof own);
    }
    close(ends[1]);
    bool done = child > 0 && read(ends[0], cost, sizeof *cost) == sizeof *cost;
    close(ends[0]);
    if (child > 0)
        waitpid(child, NULL, 0);
    return done;
}

static void keep_best(struct cost *best, const struct cost *cost, bool first)
{
    best->ms = first ? cost->ms : INF_MIN(best->ms, cost->ms);
    best->processor_ms =
        first ? cost->processor_ms : INF_MIN(best->processor_ms, cost->processor_ms);
    best->before_kib = cost->before_kib;
    best->peak_kib = first ? cost->peak_kib : INF_MAX(best->peak_kib, cost->peak_kib);
}

// Measure import and reading alternately, so that other work on the machine affects both.
static bool measure_best(const char *path, const char *const *external, struct cost *reading,
                         struct cost *importing)
{
    for (int i = 0; i < ROUNDS; i++) {
        struct cost cost;
        if (!measure_child(path, external, false, &cost))
            return false;
        keep_best(reading, &cost, i == 0);
        if (!measure_child(path, external, true, &cost))
            return false;
        keep_best(importing, &cost, i == 0);
    }
    return true;
}

static bool bench_file(const char *path, const char *const *external)
{
    struct cost reading, importing;
    struct stat status;
    if (stat(path, &status) != 0 || !add_sizes(path, external, &status.st_size)) {
        fprintf(stderr, "bench_import: %s: %s\n", path, strerror(errno));
        return false;
    }
    if (!measure_best(path, external, &reading, &importing))
        return false;
    double file_kib = (double)status.st_size / 1024;
    double own_kib = (double)(importing.peak_kib - importing.before_kib);
    printf(
        "%s: %.1f MiB; read and hash %.1f ms; import %.1f ms (%.2f of the limit), of the processor "
        "%.1f and %.1f ms (%.2f); peak %.1f MiB above the start (%.2f times the files)\n",
        path, file_kib / 1024, reading.ms, importing.ms, importing.ms / (1.3 * reading.ms + 50),
        reading.processor_ms, importing.processor_ms,
        importing.processor_ms / (1.3 * reading.processor_ms + 50), own_kib / 1024,
        own_kib / file_kib);
    return true;
}

int main(int argc, char **argv)
{
    int models = 1;
    while (models < argc && strcmp(argv[models], "--") != 0)
        models++;
    int failed = models < 2 ? 2 : 0;
    if (models < 2)
        fputs("usage: bench_import MODEL.onnx... [-- DATA...]\n", stderr);
    const char *const *external =
        (const char *const *)(models < argc ? argv + models + 1 : argv + argc);
    for (int i = 1; i < models; i++)
        failed |= !bench_file(argv[i], external);
    return failed;
}
