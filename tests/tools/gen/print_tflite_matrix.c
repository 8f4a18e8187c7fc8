// SPDX-License-Identifier: Apache-2.0
// Which device runs which operator for which element type: imports the files of one operator each
// that gen_tflite_ops.py writes, runs the passes on them, and asks each device about every node.
#include "tests/tools/gen/print_tflite_matrix.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "tests/tools/gen/all_devices.h"
#include "tests/tools/run/engine.h"

#define ROWS_MAX    256
#define DEVICES_MAX 16

static const char *const columns[] = {"f32", "i64", "i32", "i16", "i8", "u8", "bool"};
#define COLUMNS (sizeof columns / sizeof columns[0])

// For one operator, device and element type: the nodes that the device was asked about, and those
// that it runs.
struct answers {
    unsigned asked, taken;
};

struct row {
    const char *operator;
    struct answers answers[DEVICES_MAX][COLUMNS];
};

static size_t column_of(const char *type)
{
    size_t i = 0;
    while (i < COLUMNS && strcmp(columns[i], type) != 0)
        i++;
    return i;
}

static void ask_devices(const struct inf_device_list *devices, const struct inf_graph *graph,
                        struct row *row, size_t column)
{
    for (uint32_t d = 0; d < devices->count && d < DEVICES_MAX; d++)
        for (uint32_t n = 0; n < graph->node_count; n++) {
            row->answers[d][column].asked++;
            row->answers[d][column].taken +=
                inf_device_supports(devices->devices[d], graph, n, NULL) == INF_OK;
        }
}

static struct row *find_row(struct row *rows, size_t *count, const char *operator)
{
    for (size_t i = 0; i < *count; i++)
        if (strcmp(rows[i].operator, operator) == 0)
            return &rows[i];
    if (*count == ROWS_MAX)
        return NULL;
    rows[*count].operator= operator;
    return &rows[(*count)++];
}

static void ask_case(const struct inf_device_list *devices, const char *folder, const json_t *entry,
                     struct row *rows, size_t *count)
{
    char path[4096];
    const struct tool_engine engine = {0};
    const struct inf_pass_options passes = {.evaluator = inf_registry_evaluator()};
    struct inf_graph *graph = NULL;
    const char *operator= json_string_value(json_object_get(entry, "operator"));
    size_t column = column_of(json_string_value(json_object_get(entry, "type")));
    struct row *row = find_row(rows, count, operator);
    snprintf(path, sizeof path, "%s/%s", folder,
             json_string_value(json_object_get(entry, "model")));
    if (row != NULL && column < COLUMNS &&
        tool_engine_import(&engine, path, &graph, NULL) == INF_OK &&
        inf_passes_run(graph, &passes, NULL) == INF_OK)
        ask_devices(devices, graph, row, column);
    inf_graph_destroy(&graph);
}

static void print_row(const struct inf_device_list *devices, const struct row *row)
{
    for (uint32_t d = 0; d < devices->count && d < DEVICES_MAX; d++) {
        printf("| %s | %s |", row->operator, inf_device_info(devices->devices[d])->backend);
        for (size_t i = 0; i < COLUMNS; i++) {
            const struct answers *cell = &row->answers[d][i];
            const char *text = cell->taken == cell->asked ? "yes"
                               : cell->taken == 0         ? "no"
                                                          : "some";
            printf(" %s |", cell->asked == 0 ? "" : text);
        }
        printf("\n");
    }
}

void print_tflite_matrix(const char *folder)
{
    static struct row rows[ROWS_MAX];
    size_t count = 0, index;
    char path[4096];
    struct inf_device_list devices;
    snprintf(path, sizeof path, "%s/manifest.json", folder);
    json_t *manifest = json_load_file(path, 0, NULL), *entry;
    if (manifest == NULL)
        return;
    if (open_all_devices(&devices, NULL) == INF_OK) {
        json_array_foreach(json_object_get(manifest, "models"), index, entry)
        {
            ask_case(&devices, folder, entry, rows, &count);
        }
        printf(
            "\n## Where they run\n\nBy the type of the first input, for the files of one operator "
            "each that `tests/tools/gen/gen_tflite_ops.py` writes.\n\"some\": a device runs a part "
            "of the graph operators that the operator becomes; others run on cpu, or on ref.\n"
            "Empty: no file asks. [operators.md](operators.md) says the same of every graph "
            "operator.\n\n"
            "| operator | backend |");
        for (size_t i = 0; i < COLUMNS; i++)
            printf(" %s |", columns[i]);
        printf("\n| --- | --- |");
        for (size_t i = 0; i < COLUMNS; i++)
            printf(" --- |");
        printf("\n");
        for (size_t i = 0; i < count; i++)
            print_row(&devices, &rows[i]);
        inf_device_list_close(&devices);
    }
    json_decref(manifest);
}
