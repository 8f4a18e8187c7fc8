// SPDX-License-Identifier: Apache-2.0
// print_tflite - writes docs/reference/tflite-operators.md from the tables of the TFLite importer:
// each operator of the schema, whether it is supported, the numbers on which it computes if its
// tensors are quantised, and which devices run it.
#include <stdio.h>
#include <stdlib.h>

#include "backends/import/tflite/op_table.h"
#include "tests/tools/gen/print_tflite_matrix.h"

// The largest number of a builtin operator.
#define BUILTINS_MAX 209

static void print_range(uint32_t least, uint32_t most)
{
    if (most >= INF_LIMIT_TENSORS && most > least)
        printf("%u or more", least);
    else if (least >= most)
        printf("%u", most);
    else
        printf("%u to %u", least, most);
}

static const char *describe_mode(enum inf_tflite_mode mode)
{
    switch (mode) {
    case INF_TFLITE_MODE_TABLE:
        return "8 bits: a table";
    case INF_TFLITE_MODE_MOVE:
        return "stored integers, if all scales are equal";
    case INF_TFLITE_MODE_STORED:
        return "no scales";
    default:
        return "real numbers";
    }
}

static void print_row(const char *name, const struct inf_tflite_op *op)
{
    printf("| %s | ", name);
    if (op == NULL) {
        printf("refused | | |\n");
        return;
    }
    print_range(op->inputs_min, op->inputs_max);
    printf(" | ");
    print_range(op->outputs_max > 0, op->outputs_max);
    printf(" | %s |\n", describe_mode(op->mode));
}

int main(void)
{
    unsigned supported = 0, known = 0;
    for (int32_t code = 0; code <= BUILTINS_MAX; code++) {
        const struct inf_tflite_code row = {.builtin = code, .custom = ""};
        known += inf_tflite_builtin_name(code) != NULL;
        supported += inf_tflite_op_find(&row) != NULL;
    }
    printf(
        "# TFLite operators\n\n"
        "Each operator of LiteRT's schema, as the importer's tables have it; generated, do not "
        "edit\n(`meson compile update-tflite-doc`). What is refused of them, and why, is in "
        "[tflite.md](tflite.md).\n\n"
        "%u of %u builtin operators are supported. The last column says what a quantised "
        "operator\ncomputes on.\n\n"
        "| operator | inputs | outputs | quantised |\n|---|---|---|---|\n",
        supported, known);
    for (int32_t code = 0; code <= BUILTINS_MAX; code++) {
        const struct inf_tflite_code row = {.builtin = code, .custom = ""};
        const char *name = inf_tflite_builtin_name(code);
        if (name != NULL && code != INF_TFLITE_CUSTOM)
            print_row(name, inf_tflite_op_find(&row));
    }
    const struct inf_tflite_op *op;
    for (size_t i = 0; (op = inf_tflite_op_at(i)) != NULL; i++) {
        char name[96];
        if (op->builtin != INF_TFLITE_CUSTOM)
            continue;
        snprintf(name, sizeof name, "custom %s", op->custom);
        print_row(name, op);
    }
    print_tflite_matrix(TFLITE_OPS_FOLDER);
    return 0;
}
