// SPDX-License-Identifier: Apache-2.0
// print_ops - writes docs/reference/operators.md: every operator of ops.def with its attributes,
// and the element types for which each backend computes it. The element types come from the
// devices: the program queries each device about the nodes that the conformance test
// `ops/agree_with_ref` runs.
#include <stdio.h>
#include <string.h>

#include "tests/conformance/cases.h"
#include "tests/tools/gen/all_devices.h"

// For one operator and element type: about how many nodes a device was queried, and how many of
// these it supports.
struct answers {
    uint32_t asked, taken;
};

static const enum inf_dtype columns[] = {INF_DTYPE_F32, INF_DTYPE_F16, INF_DTYPE_BF16,
                                         INF_DTYPE_F64, INF_DTYPE_I64, INF_DTYPE_I32,
                                         INF_DTYPE_I8,  INF_DTYPE_U8,  INF_DTYPE_BOOL};

// --- printing the list of operators with their attributes ---

static void print_default(const struct inf_attr_info *attr)
{
    switch (attr->type) {
    case INF_ATTR_TYPE_INT:
        printf("%d", attr->default_int);
        break;
    case INF_ATTR_TYPE_BOOL:
        printf("%s", attr->default_int != 0 ? "true" : "false");
        break;
    case INF_ATTR_TYPE_FLOAT:
        printf("%g", (double)attr->default_float);
        break;
    case INF_ATTR_TYPE_ENUM:
        printf("%s", attr->names[attr->default_int]);
        break;
    case INF_ATTR_TYPE_INTS:
        printf("empty");
        break;
    }
}

static void print_values(const struct inf_attr_info *attr)
{
    switch (attr->type) {
    case INF_ATTR_TYPE_INT:
        printf("%d to %d", attr->min, attr->max);
        break;
    case INF_ATTR_TYPE_BOOL:
        printf("true, false");
        break;
    case INF_ATTR_TYPE_FLOAT:
        printf("a number");
        break;
    case INF_ATTR_TYPE_ENUM:
        for (int32_t i = 0; i <= attr->max; i++)
            printf("%s%s", i == 0 ? "" : ", ", attr->names[i]);
        break;
    case INF_ATTR_TYPE_INTS:
        printf("up to %d integers", INF_LIMIT_RANK);
        break;
    }
}

static void print_count(uint32_t least, uint32_t most)
{
    if (most == INF_VARIADIC)
        printf("%u or more", least);
    else if (least == most)
        printf("%u", least);
    else
        printf("%u to %u", least, most);
}

static void print_op(const struct inf_op_info *info)
{
    printf("### %s\n\n%s.\n\nInputs: ", info->name, info->doc);
    print_count(info->inputs_min, info->inputs_max);
    printf(". Outputs: ");
    print_count(info->outputs == INF_VARIADIC ? 1 : info->outputs, info->outputs);
    printf(".\n\n");
    if (info->attr_count == 0)
        return;
    printf("| attribute | values | default | |\n| --- | --- | --- | --- |\n");
    for (size_t i = 0; i < info->attr_count; i++) {
        printf("| %s | ", info->attrs[i].name);
        print_values(&info->attrs[i]);
        printf(" | ");
        print_default(&info->attrs[i]);
        printf(" | %s |\n", info->attrs[i].doc);
    }
    printf("\n");
}

// --- printing which element types each backend supports ---

// Returns the column (element type) of the table to which a node belongs: the type of its first
// input, or for `select` the type of its second input.
static size_t column_of(const struct inf_graph *graph)
{
    const struct inf_node *node = &graph->nodes[0];
    uint32_t main_input = node->op == INF_OP_SELECT ? 1 : 0;
    enum inf_dtype dtype = graph->values[node->inputs[main_input]].dtype;
    for (size_t i = 0; i < INF_ARRAY_LENGTH(columns); i++)
        if (columns[i] == dtype)
            return i;
    return INF_ARRAY_LENGTH(columns);
}

static void ask_devices(enum inf_op op, struct inf_device *device, struct answers *answers)
{
    const struct case_family *family = &case_families[op];
    for (uint32_t number = 0; family->make != NULL && number < family->count; number++) {
        struct random random = {.state = ((uint64_t)op << 32) + number};
        struct one_node one;
        one_node_init(&one, op);
        family->make(&one, &random, number);
        struct inf_graph *graph = NULL;
        if (one_node_graph(&one, &graph, NULL) == INF_OK) {
            size_t column = column_of(graph);
            if (column < INF_ARRAY_LENGTH(columns)) {
                answers[column].asked++;
                answers[column].taken += inf_device_supports(device, graph, 0, NULL) == INF_OK;
            }
        }
        inf_graph_destroy(&graph);
        one_node_fini(&one);
    }
}

static void print_row(enum inf_op op, struct inf_device *device)
{
    struct answers answers[INF_ARRAY_LENGTH(columns)] = {0};
    ask_devices(op, device, answers);
    printf("| %s | %s |", inf_op_info(op)->name, inf_device_info(device)->backend);
    for (size_t i = 0; i < INF_ARRAY_LENGTH(columns); i++) {
        const struct answers *cell = &answers[i];
        const char *text = cell->taken == cell->asked ? "yes" : cell->taken == 0 ? "no" : "some";
        printf(" %s |", cell->asked == 0 ? "" : text);
    }
    printf("\n");
}

static void print_matrix(const struct inf_device_list *devices)
{
    printf("| operator | backend |");
    for (size_t i = 0; i < INF_ARRAY_LENGTH(columns); i++)
        printf(" %s |", inf_dtype_name(columns[i]));
    printf("\n| --- | --- |");
    for (size_t i = 0; i < INF_ARRAY_LENGTH(columns); i++)
        printf(" --- |");
    printf("\n");
    for (int op = 0; op < INF_OP_COUNT; op++)
        for (uint32_t i = 0; case_families[op].make != NULL && i < devices->count; i++)
            print_row((enum inf_op)op, devices->devices[i]);
}

int main(void)
{
    struct inf_device_list devices;
    struct inf_error err = {0};
    if (open_all_devices(&devices, &err) != INF_OK) {
        fprintf(stderr, "print_ops: %s\n", err.text);
        return 1;
    }
    printf(
        "# Operators\n\nMade by `print_ops` from `backends/graph/ops.def`; do not "
        "edit.\n`meson compile -C build/gcc update-ops-doc` writes it again.\n\n"
        "## What they are\n\n");
    for (int op = 0; op < INF_OP_COUNT; op++)
        print_op(inf_op_info((enum inf_op)op));
    printf(
        "## Where they run\n\nBy the type of the first input; empty: the operator is not defined "
        "for it, or no test asks. \"some\": not every\nattribute or shape; what a backend "
        "declines runs on ref. Every cell is what the test `ops/agree_with_ref` runs\n"
        "(tests/conformance); operators that are not here run graphs, or their sizes depend on "
        "values: ref has them.\n\n");
    print_matrix(&devices);
    inf_device_list_close(&devices);
    return 0;
}
