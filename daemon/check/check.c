// SPDX-License-Identifier: Apache-2.0
// inferd-check [--json] [--inspect] [--time RUNS ...] FILE: shows how the daemon would run a model
// file, without a daemon. The report says whether the file imports, which operators it contains,
// and for each device which steps run there and how much memory they take. --inspect adds the graph
// after the passes and the plan of each device, step by step. --time runs the model instead and
// prints the time of each run as JSON. `inferctl check`, `inspect` and `bench --direct` start this
// program with the rights of their user.
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "backends/exec/model/model.h"
#include "backends/import/import.h"
#include "backends/registry.h"
#include "daemon/check/inspect.h"
#include "daemon/check/time_runs.h"
#include "daemon/model/repository.h"
#include "proto/core/utf8.h"

// Exit codes, the same as those of inferctl.
enum {
    EXIT_FINE = 0,
    EXIT_REFUSED = 1,
    EXIT_WRONG_ARGUMENTS = 2,
    EXIT_NO_FILE = 4,
};

// The model file that inferd-check examines, the options of the program, and what it found so far.
struct check {
    bool inspect;
    struct inf_time_wanted timing;
    struct inf_device_list devices;
    struct inf_model_location location;
    struct inf_model_info info;
    struct inf_graph *graph;
    struct inf_model *model;
    struct inf_shape *shapes; // one shape per input; open dimensions are 1
    json_t *report;
    char *lacks; // operators that the model needs and that are not built in, one per line
    size_t lacks_size;
    struct inf_file_contents contents;
    char *operators; // the operator of each node of the file, one per line
    size_t operators_size;
};

static json_t *describe_ports(const struct inf_graph *graph, const struct inf_port *ports,
                              uint32_t count)
{
    json_t *list = json_array();
    for (uint32_t i = 0; i < count; i++) {
        char shape[INF_SHAPE_TEXT_SIZE];
        const struct inf_value *value = &graph->values[ports[i].value];
        json_array_append_new(list, json_pack("{s:s,s:s,s:s}", "name", ports[i].name, "datatype",
                                              inf_dtype_name(value->dtype), "shape",
                                              inf_shape_print(&value->shape, shape)));
    }
    return list;
}

// Lists the steps of a plan that run on another device than the one that the plan was made for,
// grouped by device and operator.
static json_t *describe_elsewhere(const struct inf_executable *executable)
{
    const struct inf_graph *graph = inf_executable_planned_graph(executable);
    const struct inf_plan *plan = inf_executable_plan(executable);
    json_t *elsewhere = json_object();
    for (uint32_t s = 0; s < plan->segment_count; s++) {
        const struct inf_plan_segment *segment = &plan->segments[s];
        for (uint32_t i = 0; segment->device > 0 && i < segment->count; i++) {
            char key[96];
            const struct inf_node *node = &graph->nodes[plan->steps[segment->first + i]];
            snprintf(key, sizeof key, "%s on %s", inf_op_info(node->op)->name,
                     inf_executable_device(executable, segment->device)->name);
            json_int_t count = json_integer_value(json_object_get(elsewhere, key));
            json_object_set_new(elsewhere, key, json_integer(count + 1));
        }
    }
    return elsewhere;
}

static json_t *describe_executable(struct check *check, const struct inf_executable *executable)
{
    const struct inf_graph *graph = inf_executable_graph(executable);
    const struct inf_plan *plan = inf_executable_plan(executable);
    struct inf_graph_cost cost = inf_graph_cost(graph);
    json_object_set_new(check->report, "macs", json_integer((json_int_t)cost.macs));
    // Only the first device prints the graph, because the graph is the same for all devices.
    if (check->inspect)
        json_object_set_new(check->report, "graph", inf_inspect_graph(graph));
    struct inf_executable_memory memory = {0};
    if (inf_executable_memory(executable, &memory, NULL) != INF_OK)
        return NULL;
    json_t *row =
        json_pack("{s:b,s:I,s:o,s:I,s:I,s:I,s:I,s:I,s:I,s:I}", "loads", 1, "steps",
                  (json_int_t)plan->step_count, "elsewhere", describe_elsewhere(executable),
                  "const_bytes", (json_int_t)memory.const_bytes, "weight_bytes",
                  (json_int_t)(memory.weight_bytes + memory.shared_bytes), "packing_us",
                  (json_int_t)(memory.packing_ns / 1000), "arena_bytes",
                  (json_int_t)plan->arena_bytes, "live_max_bytes", (json_int_t)plan->live_max_bytes,
                  "buffer_bytes", (json_int_t)memory.buffer_bytes, "interpreted",
                  (json_int_t)inf_executable_interpreted_nodes(executable));
    if (check->inspect)
        json_object_set_new(row, "plan", inf_inspect_plan(executable));
    return row;
}

static void check_device(struct check *check, struct inf_device *device)
{
    struct inf_executable *executable = NULL;
    struct inf_error err = {0};
    json_t *row;
    if (inf_model_acquire(check->model, device, check->shapes, &executable, &err) == INF_OK)
        row = describe_executable(check, executable);
    else
        row = json_pack("{s:b,s:s}", "loads", 0, "reason", err.text);
    inf_model_release(check->model, &executable);
    json_object_set_new(row, "device", json_string(inf_device_info(device)->name));
    json_array_append_new(json_object_get(check->report, "devices"), row);
}

// Chooses a shape for every input of the model. Open dimensions, whose size the model leaves to the
// request, become 1.
static enum inf_code choose_shapes(struct check *check, struct inf_error *err)
{
    const struct inf_graph *graph = inf_model_graph(check->model);
    json_t *list = json_array();
    json_object_set_new(check->report, "shapes", list);
    check->shapes = calloc((size_t)graph->input_count + 1, sizeof *check->shapes);
    if (check->shapes == NULL)
        return inf_fail(err, INF_EXHAUSTED, "no memory for %u inputs", graph->input_count);
    for (uint32_t i = 0; i < graph->input_count; i++) {
        char text[INF_SHAPE_TEXT_SIZE];
        check->shapes[i] = graph->values[graph->inputs[i].value].shape;
        check->shapes[i].rank = INF_MAX(check->shapes[i].rank, 0);
        for (int32_t d = 0; d < check->shapes[i].rank; d++)
            if (check->shapes[i].dims[d] == INF_DIM_UNKNOWN)
                check->shapes[i].dims[d] = 1;
        json_array_append_new(list, json_string(inf_shape_print(&check->shapes[i], text)));
    }
    return INF_OK;
}

static enum inf_code import_model(struct check *check, const char *path, struct inf_error *err)
{
    char absolute[4096];
    struct inf_import_options import = {.evaluator = inf_registry_evaluator()};
    const struct inf_pass_options passes = {.evaluator = inf_registry_evaluator()};
    if (realpath(path, absolute) == NULL)
        return inf_fail(err, INF_NOT_FOUND, "'%s': %s", path, strerror(errno));
    INF_TRY(inf_model_locate_path(&check->location, absolute, err));
    import.report = open_memstream(&check->lacks, &check->lacks_size);
    import.contents = &check->contents;
    check->contents.operators = open_memstream(&check->operators, &check->operators_size);
    enum inf_code code =
        inf_model_import_with(&check->graph, &check->info, check->location.directory_fd,
                              check->location.file, &import, err);
    if (import.report != NULL)
        fclose(import.report);
    if (check->contents.operators != NULL)
        fclose(check->contents.operators);
    INF_TRY(code);
    struct inf_device *hosts[INF_MODEL_HOSTS];
    uint32_t host_count = inf_device_list_hosts(&check->devices, hosts, INF_MODEL_HOSTS);
    return inf_model_create(&check->model, &check->graph, hosts, host_count, &passes, err);
}

// Returns an object with the number of nodes of each operator of the file.
static json_t *count_operators(const struct check *check)
{
    json_t *counts = json_object();
    char *rest = check->operators, *name;
    while (rest != NULL && (name = strsep(&rest, "\n")) != NULL) {
        inf_text_clean(name);
        json_int_t count = json_integer_value(json_object_get(counts, name));
        if (*name != '\0')
            json_object_set_new(counts, name, json_integer(count + 1));
    }
    return counts;
}

static enum inf_code run_check(struct check *check, const char *path, struct inf_error *err)
{
    const struct inf_device_options options = {.slots = 1};
    INF_TRY(inf_device_list_open(&check->devices, NULL, &options, err));
    INF_TRY(import_model(check, path, err));
    if (check->timing.runs > 0) {
        check->report = json_object();
        return inf_check_time(check->report, check->model, &check->devices, &check->timing, err);
    }
    const struct inf_graph *graph = inf_model_graph(check->model);
    struct inf_graph_cost cost = inf_graph_cost(graph);
    inf_text_clean(check->contents.version);
    check->report =
        json_pack("{s:s,s:s,s:s,s:s,s:o,s:s,s:I,s:o,s:o,s:I,s:I,s:I,s:[]}", "file", path, "format",
                  check->info.format, "version", check->contents.version, "producer",
                  check->info.producer, "operators", count_operators(check), "quantization",
                  check->contents.quantization, "file_bytes", (json_int_t)check->info.file_bytes,
                  "inputs", describe_ports(graph, graph->inputs, graph->input_count), "outputs",
                  describe_ports(graph, graph->outputs, graph->output_count), "nodes",
                  (json_int_t)graph->node_count, "parameters", (json_int_t)cost.parameters,
                  "constant_bytes", (json_int_t)cost.const_bytes, "devices");
    if (check->report == NULL)
        return inf_fail(err, INF_EXHAUSTED, "no memory for the report");
    INF_TRY(choose_shapes(check, err));
    for (uint32_t i = 0; i < check->devices.count; i++)
        check_device(check, check->devices.devices[i]);
    return INF_OK;
}

// --- printing the report as text instead of JSON ---

static double read_mega(const json_t *object, const char *key)
{
    return (double)json_integer_value(json_object_get(object, key)) / 1e6;
}

// Prints a text from the model file. Control characters are replaced by "?", because they could
// control the terminal.
static void print_text(const char *text)
{
    for (; *text != '\0'; text++)
        putchar((unsigned char)*text < ' ' || *text == 127 ? '?' : *text);
}

static void print_ports(const char *what, const json_t *ports)
{
    size_t i;
    json_t *port;
    json_array_foreach(ports, i, port)
    {
        printf("%-10s ", i == 0 ? what : "");
        print_text(json_string_value(json_object_get(port, "name")));
        printf(" %s %s\n", json_string_value(json_object_get(port, "datatype")),
               json_string_value(json_object_get(port, "shape")));
    }
}

static void print_device(json_t *row)
{
    const char *name = json_string_value(json_object_get(row, "device")), *key;
    json_t *count;
    if (!json_is_true(json_object_get(row, "loads"))) {
        printf("%-10s does not load: %s\n", name,
               json_string_value(json_object_get(row, "reason")));
        return;
    }
    printf(
        "%-10s loads: %lld steps, %.2f MB of packed weights (packed in %.1f ms), "
        "%.2f MB as they are, "
        "arena %.2f MB (at least %.2f MB live at once)\n",
        name, (long long)json_integer_value(json_object_get(row, "steps")),
        read_mega(row, "weight_bytes"),
        (double)json_integer_value(json_object_get(row, "packing_us")) / 1e3,
        read_mega(row, "const_bytes"), read_mega(row, "arena_bytes"),
        read_mega(row, "live_max_bytes"));
    json_object_foreach(json_object_get(row, "elsewhere"), key, count)
        printf("%-10s not here: %s, %lld times\n", "", key, (long long)json_integer_value(count));
    if (json_integer_value(json_object_get(row, "interpreted")) > 0)
        printf("%-10s in no plan, because sizes or branches depend on values: %lld nodes\n", "",
               (long long)json_integer_value(json_object_get(row, "interpreted")));
    inf_inspect_print_plan(json_object_get(row, "plan"));
}

// Orders iterators of an object by falling count, then by name.
static int compare_counts(const void *a, const void *b)
{
    void *row = *(void *const *)a, *other = *(void *const *)b;
    json_int_t x = json_integer_value(json_object_iter_value(row));
    json_int_t y = json_integer_value(json_object_iter_value(other));
    return x != y ? (y > x) - (y < x)
                  : strcmp(json_object_iter_key(row), json_object_iter_key(other));
}

// Prints the operators of the file with their numbers of nodes, the most frequent one first.
static void print_operators(json_t *operators)
{
    size_t count = json_object_size(operators), used = 0;
    void **rows = calloc(count + 1, sizeof *rows);
    if (rows == NULL || count == 0) {
        free(rows);
        return;
    }
    for (void *row = json_object_iter(operators); row != NULL;
         row = json_object_iter_next(operators, row))
        rows[used++] = row;
    qsort(rows, used, sizeof *rows, compare_counts);
    printf("%-10s", "operators");
    for (size_t i = 0; i < used; i++) {
        printf("%s ", i > 0 ? "," : "");
        print_text(json_object_iter_key(rows[i]));
        printf(" %lld", (long long)json_integer_value(json_object_iter_value(rows[i])));
    }
    putchar('\n');
    free(rows);
}

static void print_report(const json_t *report)
{
    size_t i;
    json_t *row;
    const char *version = json_string_value(json_object_get(report, "version"));
    const char *quantization = json_string_value(json_object_get(report, "quantization"));
    printf("%-10s %s%s", "format", json_string_value(json_object_get(report, "format")),
           *version != '\0' ? " " : "");
    print_text(version);
    printf(", %.2f MB read\n", read_mega(report, "file_bytes"));
    print_operators(json_object_get(report, "operators"));
    if (*quantization != '\0')
        printf("%-10s %s\n", "quantised", quantization);
    print_ports("inputs", json_object_get(report, "inputs"));
    print_ports("outputs", json_object_get(report, "outputs"));
    printf("%-10s %lld nodes, %.3f M parameters, %.2f MB of constants\n", "contents",
           (long long)json_integer_value(json_object_get(report, "nodes")),
           read_mega(report, "parameters"), read_mega(report, "constant_bytes"));
    printf("%-10s %.3f M multiply-adds for inputs of", "cost", read_mega(report, "macs"));
    json_array_foreach(json_object_get(report, "shapes"), i, row)
        printf("%s %s", i > 0 ? "," : "", json_string_value(row));
    putchar('\n');
    if (json_object_get(report, "graph") != NULL)
        printf("graph after the passes:\n%s", json_string_value(json_object_get(report, "graph")));
    json_array_foreach(json_object_get(report, "devices"), i, row) print_device(row);
}

// Prints why the model does not load. If operators are missing and the error text is too short to
// name all of them, prints `check->lacks`, which lists every missing operator.
static void print_refusal(const struct check *check, const struct inf_error *err)
{
    const char *line = check->lacks;
    bool complete = true;
    fprintf(stderr, "inferctl: %s\n", err->text);
    while (line != NULL && *line != '\0' && complete) {
        size_t length = strcspn(line, "\n");
        complete = memmem(err->text, strlen(err->text), line, length) != NULL;
        line += length + 1;
    }
    if (!complete)
        fprintf(stderr, "all that is missing:\n%s", check->lacks);
}

static void free_check(struct check *check)
{
    free(check->lacks);
    free(check->operators);
    json_decref(check->report);
    free(check->shapes);
    inf_model_unref(&check->model);
    inf_graph_destroy(&check->graph);
    inf_model_location_fini(&check->location);
    inf_device_list_close(&check->devices);
}

// Parses one option into `timing`: --time, or an option that only changes how --time measures.
// Returns false if `name` is neither, or if the value is wrong.
static bool parse_timing(struct inf_time_wanted *timing, const char *name, const char *value)
{
    char *end = NULL;
    if (strcmp(name, "--device") == 0)
        timing->device = value;
    else if (strcmp(name, "--shapes") == 0)
        timing->shapes = value;
    else if (strcmp(name, "--precision") == 0)
        return inf_precision_parse(value, &timing->options.precision);
    else if (strcmp(name, "--threads") == 0)
        timing->options.threads = (uint32_t)strtoul(value, &end, 10);
    else if (strcmp(name, "--time") == 0)
        timing->runs = (uint32_t)strtoul(value, &end, 10);
    else
        return false;
    return end == NULL || (*end == '\0' && end != value);
}

// Parses the options into `check` and stores the file name. Returns false if an option is wrong.
static bool parse_arguments(int argc, char **argv, struct check *check, bool *as_json)
{
    int i = 1;
    for (; i < argc && argv[i][0] == '-' && argv[i][1] == '-'; i++) {
        if (strcmp(argv[i], "--json") == 0)
            *as_json = true;
        else if (strcmp(argv[i], "--inspect") == 0)
            check->inspect = true;
        else if (i + 1 == argc || !parse_timing(&check->timing, argv[i], argv[i + 1]))
            return false;
        else
            i++;
    }
    return i == argc - 1;
}

int main(int argc, char **argv)
{
    bool as_json = false;
    struct check check = {.location = INF_MODEL_LOCATION_NONE};
    struct inf_error err = {0};
    if (!parse_arguments(argc, argv, &check, &as_json)) {
        fputs(
            "usage: inferd-check [--json] [--inspect] FILE\n"
            "       inferd-check --time RUNS [--device NAME] [--precision NAME] [--threads N] "
            "[--shapes SHAPES] FILE\n",
            stderr);
        return EXIT_WRONG_ARGUMENTS;
    }
    enum inf_code code = run_check(&check, argv[argc - 1], &err);
    if (code != INF_OK)
        print_refusal(&check, &err);
    else if (as_json || check.timing.runs > 0)
        json_dumpf(check.report, stdout, JSON_INDENT(2));
    else
        print_report(check.report);
    if (code == INF_OK && as_json)
        putchar('\n');
    free_check(&check);
    return code == INF_OK ? EXIT_FINE : code == INF_NOT_FOUND ? EXIT_NO_FILE : EXIT_REFUSED;
}
