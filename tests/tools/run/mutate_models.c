// SPDX-License-Identifier: Apache-2.0
// mutate_models --backend NAME --folder DIR [--count N] [--from N] [--texts] [--save FILE] SEED...
//
// Breaks model files in many ways. Each mutant goes through import, passes, plan, compilation, and
// a run if that is cheap, until a step refuses it. Variant N is always the same mutant; its seed is
// SEED number N modulo the number of seeds. If the seed is a TF.js model, some mutants have changed
// weights in place of a changed model.json. DIR is an empty folder for the mutants, best in memory.
//
// A mutant must be served, or refused with a one-line text that names the faulty part of the file.
// Either must take less than TIME_MOST_S of processor time. If a sanitizer counts allocations, a
// mutant may allocate at most INF_LIMIT_LOAD_FACTOR times the size of its files, plus
// INF_LIMIT_ARENA_BYTES and INF_LIMIT_LOAD_EXTRA_BYTES. (With a sanitizer, an arena of that size
// alone takes longer than TIME_MOST_S. max_allocation_size_mb=512:allocator_may_return_null=1 makes
// such arenas fail.)
//
// --texts prints each kind of refusal with its count and one variant. --save writes the mutant
// `--from` to a file and exits. Exit status: 0 all mutants passed, 1 a mutant failed, 2 usage, 3 a
// mutant took too long.
#include <dirent.h>
#include <getopt.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>

#include "backends/base/blob.h"
#include "proto/core/utf8.h"
#include "tests/support/models/mutate.h"
#include "tests/tools/run/engine.h"
#include "tests/tools/run/mutant.h"

#define TIME_MOST_S 2
#define TICK_MS     50
// Runs are cancelled after this time.
#define RUN_MS 250
// Models whose run would need more operations or bytes than this are not run.
#define RUN_WORK_MOST  ((uint64_t)40000000)
#define RUN_BYTES_MOST ((uint64_t)64 << 20)
// The value of unknown dimensions of inputs.
#define OPEN_DIM 17

// A model file to break.
struct seed {
    const char *path;
    char folder[300]; // folder of its mutants and weights
    char name[64];    // name of the model file in that folder
    struct mutant document;
    struct mutant_parts parts;
    const struct mutant_format *format;
    uint64_t file_bytes; // size of the weights next to the model file
    char shard[300];     // path of one of the weight files; "": there is none
};

// A kind of error text with which mutants were refused, and how often it occurred.
struct refusal {
    char *text; // the text without names and numbers
    unsigned count, variant;
};

struct tally {
    unsigned variants, imported, compiled, ran, bad;
    struct refusal *refusals;
    size_t refusal_count;
    uint64_t peak_bytes; // most bytes allocated beyond the limit for the files
    unsigned peak_variant;
    double ratio; // largest ratio of allocated bytes to bytes of the files
};

// --- limits on the cost of a mutant ---

// The time and memory that the current variant has used, for comparison with the limits. The
// handler of SIGPROF reads and writes them.
static struct {
    atomic_uint variant, ticks, run_since;
    atomic_bool cancelled;
    // Bytes allocated at present, and the maximum since the variant began.
    _Atomic int64_t live_bytes, peak_bytes;
} watch;

// Calls the given functions at each malloc() and free(). Defined only in builds with a sanitizer.
__attribute__((weak)) int
__sanitizer_install_malloc_and_free_hooks(void (*on_malloc)(const volatile void *, size_t),
                                          void (*on_free)(const volatile void *));
__attribute__((weak)) size_t __sanitizer_get_allocated_size(const volatile void *memory);

static void count_malloc(const volatile void *memory, size_t size)
{
    (void)memory;
    int64_t live = atomic_fetch_add(&watch.live_bytes, (int64_t)size) + (int64_t)size;
    if (live > atomic_load(&watch.peak_bytes))
        atomic_store(&watch.peak_bytes, live);
}

static void count_free(const volatile void *memory)
{
    if (memory != NULL)
        atomic_fetch_sub(&watch.live_bytes, (int64_t)__sanitizer_get_allocated_size(memory));
}

static void on_tick(int signal)
{
    (void)signal;
    unsigned ticks = atomic_fetch_add(&watch.ticks, 1) + 1;
    unsigned since = atomic_load(&watch.run_since);
    if (since > 0 && ticks >= since + RUN_MS / TICK_MS)
        atomic_store(&watch.cancelled, true);
    if (ticks < TIME_MOST_S * 1000 / TICK_MS)
        return;
    char text[80];
    int length = snprintf(text, sizeof text, "variant %u: takes more than %d s\n",
                          atomic_load(&watch.variant), TIME_MOST_S);
    if (write(STDOUT_FILENO, text, (size_t)length) == length)
        _exit(3);
    abort();
}

static void start_watch(unsigned variant)
{
    atomic_store(&watch.variant, variant);
    atomic_store(&watch.ticks, 0);
    atomic_store(&watch.run_since, 0);
    atomic_store(&watch.cancelled, false);
    atomic_store(&watch.peak_bytes, atomic_load(&watch.live_bytes));
}

static void install_watch(void)
{
    const struct timeval tick = {.tv_usec = TICK_MS * 1000};
    signal(SIGPROF, on_tick);
    setitimer(ITIMER_PROF, &(struct itimerval){tick, tick}, NULL);
    if (__sanitizer_install_malloc_and_free_hooks != NULL)
        __sanitizer_install_malloc_and_free_hooks(count_malloc, count_free);
}

// --- reading and writing model files ---

static char *read_all(const char *path, size_t *out_size)
{
    FILE *file = fopen(path, "rb");
    struct stat status;
    if (file == NULL || fstat(fileno(file), &status) != 0)
        return file != NULL ? (fclose(file), NULL) : NULL;
    char *data = malloc((size_t)status.st_size + 1);
    *out_size = fread(data, 1, (size_t)status.st_size, file);
    fclose(file);
    return data;
}

static bool write_all(const char *path, const char *data, size_t size)
{
    FILE *file = fopen(path, "wb");
    if (file == NULL)
        return false;
    bool written = fwrite(data, 1, size, file) == size;
    return fclose(file) == 0 && written;
}

// Copies the weights of a TF.js model.
static void copy_weights(struct seed *seed)
{
    char folder[300], from[600], to[600];
    const char *slash = strrchr(seed->path, '/');
    int length = slash != NULL ? (int)(slash - seed->path) : 1;
    snprintf(folder, sizeof folder, "%.*s", length, slash != NULL ? seed->path : ".");
    DIR *listing = opendir(folder);
    for (struct dirent *entry; listing != NULL && (entry = readdir(listing)) != NULL;) {
        size_t size;
        if (entry->d_name[0] == '.' || strstr(entry->d_name, ".json") != NULL)
            continue;
        snprintf(from, sizeof from, "%s/%s", folder, entry->d_name);
        snprintf(to, sizeof to, "%s/%s", seed->folder, entry->d_name);
        char *data = read_all(from, &size);
        if (data != NULL && write_all(to, data, size)) {
            seed->file_bytes += size;
            snprintf(seed->shard, sizeof seed->shard, "%.250s", entry->d_name);
        }
        free(data);
    }
    if (listing != NULL)
        closedir(listing);
}

static bool open_seed(struct seed *seed, const char *path, const char *folder, int index)
{
    *seed = (struct seed){.path = path};
    seed->document.data = read_all(path, &seed->document.size);
    if (seed->document.data == NULL)
        return false;
    bool json = seed->document.size > 0 && seed->document.data[0] == '{';
    bool tflite = seed->document.size >= 8 && memcmp(seed->document.data + 4, "TFL3", 4) == 0;
    seed->format = json ? &mutant_json : tflite ? &mutant_tflite : &mutant_onnx;
    snprintf(seed->name, sizeof seed->name, "model.%s", json ? "json" : tflite ? "tflite" : "onnx");
    snprintf(seed->folder, sizeof seed->folder, "%.250s/%d", folder, index);
    if (mkdir(seed->folder, 0700) != 0)
        return false;
    mutant_parts_cut(&seed->parts, seed->format, &seed->document);
    if (json)
        copy_weights(seed);
    return true;
}

static void close_seed(struct seed *seed)
{
    mutant_parts_free(&seed->parts);
    free(seed->document.data);
}

// --- making mutants ---

// Makes a mutant of the seed's document. Small documents get several changes, and are divided into
// parts again after each.
static void make_mutant(struct mutant *mutant, const struct seed *seed, uint64_t *state)
{
    mutant->size = seed->document.size;
    mutant->data = malloc(mutant->size + 1);
    memcpy(mutant->data, seed->document.data, mutant->size);
    if (inf_mutate_random(state) % 8 == 0) {
        mutant_change_bytes(mutant, state);
        return;
    }
    mutant_change(mutant, seed->format, &seed->parts, state);
    for (unsigned more = inf_mutate_random(state) % 3; more > 0 && mutant->size < 1 << 15; more--) {
        struct mutant_parts parts;
        mutant_parts_cut(&parts, seed->format, mutant);
        mutant_change(mutant, seed->format, &parts, state);
        mutant_parts_free(&parts);
    }
}

// Changes a weight file of a TF.js model. The caller restores the file.
static bool change_weights(const struct seed *seed, char *path, size_t path_size,
                           struct mutant *original, uint64_t *state)
{
    snprintf(path, path_size, "%s/%s", seed->folder, seed->shard);
    original->data = read_all(path, &original->size);
    if (original->data == NULL)
        return false;
    struct mutant mutant = {malloc(original->size + 1), original->size};
    memcpy(mutant.data, original->data, original->size);
    mutant_change_bytes(&mutant, state);
    bool written = write_all(path, mutant.data, mutant.size);
    free(mutant.data);
    return written;
}

// --- checking that a mutant is served or refused properly ---

static void choose_shapes(const struct inf_graph *graph, struct inf_shape *shapes)
{
    for (uint32_t i = 0; i < graph->input_count; i++) {
        shapes[i] = graph->values[graph->inputs[i].value].shape;
        if (shapes[i].rank < 0)
            shapes[i] = INF_SHAPE(1, OPEN_DIM);
        for (int32_t axis = 0; axis < shapes[i].rank; axis++)
            if (shapes[i].dims[axis] == INF_DIM_UNKNOWN)
                shapes[i].dims[axis] = axis == 0 ? 1 : OPEN_DIM;
    }
}

// Returns true if the estimated work of a run is small.
static bool is_cheap(const struct inf_executable *executable)
{
    const struct inf_graph *graph = inf_executable_graph(executable);
    uint64_t bytes = inf_executable_plan(executable)->arena_bytes;
    size_t size;
    for (uint32_t i = 0; i < graph->value_count; i++)
        if (inf_shape_bytes(&graph->values[i].shape, graph->values[i].dtype, &size))
            bytes += INF_MIN(size, RUN_BYTES_MOST + 1);
    uint64_t work = 0;
    for (uint32_t i = 0; i < graph->node_count; i++)
        work += INF_MIN(inf_node_work(graph, &graph->nodes[i]), RUN_WORK_MOST + 1);
    return bytes <= RUN_BYTES_MOST && work <= RUN_WORK_MOST;
}

// Runs the model on zeros and ignores the outputs.
static enum inf_code run_executable(struct inf_executable *executable, struct inf_error *err)
{
    const struct inf_graph *graph = inf_executable_graph(executable);
    struct inf_blob *blobs[2 * INF_LIMIT_TENSORS] = {NULL};
    const void *inputs[INF_LIMIT_TENSORS];
    void *outputs[INF_LIMIT_TENSORS];
    size_t size;
    for (uint32_t i = 0; i < graph->input_count; i++) {
        const struct inf_value *value = &graph->values[graph->inputs[i].value];
        if (inf_shape_bytes(&value->shape, value->dtype, &size))
            blobs[i] = inf_blob_create(size);
        inputs[i] = blobs[i] != NULL ? blobs[i]->data : NULL;
    }
    for (uint32_t i = 0; i < graph->output_count; i++) {
        const struct inf_value *value = &graph->values[graph->outputs[i].value];
        struct inf_blob **blob = &blobs[INF_LIMIT_TENSORS + i];
        if (inf_shape_bytes(&value->shape, value->dtype, &size))
            *blob = inf_blob_create(size);
        outputs[i] = *blob != NULL ? (*blob)->data : NULL;
    }
    atomic_store(&watch.run_since, atomic_load(&watch.ticks) + 1);
    struct inf_execution execution = {
        .inputs = inputs, .outputs = outputs, .cancelled = &watch.cancelled};
    enum inf_code code = inf_executable_run(executable, &execution, err);
    inf_executable_drop_results(executable, 0);
    for (size_t i = 0; i < INF_ARRAY_LENGTH(blobs); i++)
        inf_blob_unref(&blobs[i]);
    return code;
}

// Imports, compiles and runs a model file, as far as it is accepted.
static enum inf_code try_model(const struct tool_engine *engine, const char *path,
                               struct tally *tally, struct inf_error *err)
{
    struct inf_shape shapes[INF_LIMIT_TENSORS];
    INF_CLEANUP(inf_model_unref) struct inf_model *model = NULL;
    struct inf_executable *executable = NULL;
    INF_TRY(tool_engine_load(engine, path, &model, err));
    tally->imported++;
    choose_shapes(inf_model_graph(model), shapes);
    INF_TRY(inf_model_acquire(model, engine->device, shapes, &executable, err));
    tally->compiled++;
    enum inf_code code = INF_OK;
    if (is_cheap(executable)) {
        code = run_executable(executable, err);
        tally->ran += code == INF_OK;
    }
    inf_model_release(model, &executable);
    return code;
}

// Removes quoted names and numbers, which differ between mutants, from a text.
static void generalise_text(const char *text, char *out, size_t size)
{
    size_t used = 0;
    for (bool quoted = false; *text != '\0' && used + 2 < size; text++) {
        bool digit = *text >= '0' && *text <= '9';
        if (*text == '\'') {
            quoted = !quoted;
            out[used++] = '\'';
        } else if (!quoted && !(digit && used > 0 && out[used - 1] == 'N')) {
            out[used++] = digit ? 'N' : *text;
        }
    }
    out[used] = '\0';
}

static void note_refusal(struct tally *tally, const char *text, unsigned variant)
{
    char general[sizeof((struct inf_error *)0)->text];
    generalise_text(text, general, sizeof general);
    size_t i = 0;
    while (i < tally->refusal_count && strcmp(tally->refusals[i].text, general) != 0)
        i++;
    if (i == tally->refusal_count) {
        tally->refusals = realloc(tally->refusals, (i + 1) * sizeof *tally->refusals);
        tally->refusals[tally->refusal_count++] =
            (struct refusal){.text = strdup(general), .variant = variant};
    }
    tally->refusals[i].count++;
}

// Returns true if a text names the object of the failure: by name, by path in the document, or as
// operators.
static bool names_something(const char *text)
{
    static const char *const wholes[] = {
        "modelTopology",       "weightsManifest",         "signature",
        "userDefinedMetadata", "operators not supported", "layers not supported"};
    for (size_t i = 0; i < INF_ARRAY_LENGTH(wholes); i++)
        if (strncmp(text, wholes[i], strlen(wholes[i])) == 0)
            return true;
    return strchr(text, '\'') != NULL;
}

// Returns a text that says what is wrong with a refusal; NULL if it is as required.
static const char *judge_refusal(enum inf_code code, const char *text)
{
    if (code == INF_INTERNAL)
        return "is refused as an internal error";
    for (const char *c = text; *c != '\0'; c++)
        if ((unsigned char)*c < ' ' || *c == 127)
            return "is refused with more than a line of text";
    if (!inf_utf8_valid((struct inf_span){(const uint8_t *)text, strlen(text)}))
        return "is refused with text that is no UTF-8";
    if (code == INF_EXHAUSTED && strncmp(text, "no memory", 9) == 0)
        return NULL;
    return names_something(text) ? NULL : "is refused without naming an object";
}

static void record_outcome(struct tally *tally, const struct seed *seed, unsigned variant,
                           enum inf_code code, const char *text, uint64_t document_bytes)
{
    const char *wrong = code != INF_OK ? judge_refusal(code, text) : NULL;
    int64_t peak = atomic_load(&watch.peak_bytes);
    uint64_t allowed = INF_LIMIT_LOAD_FACTOR * (seed->file_bytes + document_bytes);
    uint64_t beyond = (uint64_t)peak > allowed ? (uint64_t)peak - allowed : 0;
    if (beyond > tally->peak_bytes) {
        tally->peak_bytes = beyond;
        tally->peak_variant = variant;
    }
    tally->ratio =
        INF_MAX(tally->ratio, (double)peak / (double)(allowed / INF_LIMIT_LOAD_FACTOR + 65536));
    if (beyond > INF_LIMIT_LOAD_EXTRA_BYTES + INF_LIMIT_ARENA_BYTES)
        wrong = "takes more memory than it may";
    tally->variants++;
    tally->bad += wrong != NULL;
    if (wrong != NULL)
        printf("variant %u of %s: %s: %s\n", variant, seed->path, wrong, text);
    if (code != INF_OK)
        note_refusal(tally, text, variant);
}

static void try_variant(const struct tool_engine *engine, const struct seed *seed, unsigned variant,
                        const char *save, struct tally *tally)
{
    char path[600], shard[600];
    struct mutant mutant = {0}, weights = {0};
    struct inf_error err = {0};
    uint64_t state = (variant + 1) * 0x9e3779b97f4a7c15u;
    bool of_weights = seed->shard[0] != '\0' && inf_mutate_random(&state) % 8 == 0 &&
                      change_weights(seed, shard, sizeof shard, &weights, &state);
    if (of_weights)
        mutant = (struct mutant){seed->document.data, seed->document.size};
    else
        make_mutant(&mutant, seed, &state);
    snprintf(path, sizeof path, "%s/%s", seed->folder, seed->name);
    if (!write_all(save != NULL ? save : path, mutant.data, mutant.size))
        perror(path);
    uint64_t document_bytes = mutant.size;
    if (!of_weights)
        free(mutant.data);
    if (save == NULL) {
        start_watch(variant);
        enum inf_code code = try_model(engine, path, tally, &err);
        record_outcome(tally, seed, variant, code, err.text, document_bytes);
    }
    if (of_weights && !write_all(shard, weights.data, weights.size))
        perror(shard);
    free(weights.data);
}

static int compare_refusals(const void *a, const void *b)
{
    const struct refusal *left = a, *right = b;
    return (left->count < right->count) - (left->count > right->count);
}

static void print_report(struct tally *tally, bool texts)
{
    if (tally->refusal_count > 0)
        qsort(tally->refusals, tally->refusal_count, sizeof *tally->refusals, compare_refusals);
    for (size_t i = 0; i < tally->refusal_count; i++) {
        if (texts)
            printf("%6u %6u %s\n", tally->refusals[i].count, tally->refusals[i].variant,
                   tally->refusals[i].text);
        free(tally->refusals[i].text);
    }
    free(tally->refusals);
    printf(
        "%u mutants: %u imported, %u compiled, %u ran, %zu kinds of refusal, %u bad; most memory "
        "beyond the files %.1f MB (variant %u), %.1f times their bytes\n",
        tally->variants, tally->imported, tally->compiled, tally->ran, tally->refusal_count,
        tally->bad, (double)tally->peak_bytes / 1e6, tally->peak_variant, tally->ratio);
}

struct choice {
    const char *backend, *folder, *save;
    unsigned from, count;
    bool texts;
};

static int run_all(const struct choice *choice, char **paths, int path_count)
{
    struct tool_engine engine;
    struct inf_error err = {0};
    struct tally tally = {0};
    struct seed *seeds = calloc((size_t)path_count, sizeof *seeds);
    if (tool_engine_open(&engine, choice->backend, 1, &err) != INF_OK) {
        fprintf(stderr, "mutate_models: %s\n", err.text);
        free(seeds);
        return 2;
    }
    for (int i = 0; i < path_count; i++) {
        if (!open_seed(&seeds[i], paths[i], choice->folder, i)) {
            perror(paths[i]);
            return 2;
        }
    }
    install_watch();
    for (unsigned variant = choice->from; variant < choice->from + choice->count; variant++)
        try_variant(&engine, &seeds[variant % (unsigned)path_count], variant, choice->save, &tally);
    for (int i = 0; i < path_count; i++)
        close_seed(&seeds[i]);
    free(seeds);
    tool_engine_close(&engine);
    print_report(&tally, choice->texts);
    return tally.bad > 0;
}

int main(int argc, char **argv)
{
    static const struct option options[] = {
        {"backend", required_argument, NULL, 'b'},
        {"folder", required_argument, NULL, 'd'},
        {"count", required_argument, NULL, 'c'},
        {"from", required_argument, NULL, 'f'},
        {"texts", no_argument, NULL, 't'},
        {"save", required_argument, NULL, 's'},
        {0},
    };
    struct choice choice = {.count = 1000};
    int option;
    while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
        if (option == 'b')
            choice.backend = optarg;
        else if (option == 'd')
            choice.folder = optarg;
        else if (option == 'c')
            choice.count = (unsigned)strtoul(optarg, NULL, 10);
        else if (option == 'f')
            choice.from = (unsigned)strtoul(optarg, NULL, 10);
        else if (option == 't')
            choice.texts = true;
        else if (option == 's')
            choice.save = optarg;
        else
            return 2;
    }
    if (choice.save != NULL)
        choice.count = 1;
    if (choice.backend == NULL || choice.folder == NULL || optind == argc) {
        fputs(
            "usage: mutate_models --backend NAME --folder DIR [--count N] [--from N] [--texts]\n"
            "                     [--save FILE] SEED...\n",
            stderr);
        return 2;
    }
    return run_all(&choice, argv + optind, argc - optind);
}
