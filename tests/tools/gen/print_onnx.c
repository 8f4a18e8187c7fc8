// SPDX-License-Identifier: Apache-2.0
// print_onnx - writes docs/reference/onnx-operators.md from the tables of the ONNX importer.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/import/onnx/op_table.h"

#define OPS_MAX 1024

static int by_name(const void *a, const void *b)
{
    return strcmp((*(const struct inf_onnx_op *const *)a)->name,
                  (*(const struct inf_onnx_op *const *)b)->name);
}

static void print_range(uint32_t least, uint32_t most)
{
    if (most == INF_LIMIT_NODE_INPUTS)
        printf("%u or more", least);
    else if (least == most)
        printf("%u", least);
    else
        printf("%u to %u", least, most);
}

int main(void)
{
    static const struct inf_onnx_op *ops[OPS_MAX];
    size_t count = 0;
    for (const struct inf_onnx_op *op; count < OPS_MAX && (op = inf_onnx_op_at(count)) != NULL;)
        ops[count++] = op;
    qsort(ops, count, sizeof ops[0], by_name);
    printf(
        "# ONNX operators\n\n"
        "Which ones a model may have, as the importer's tables have them; generated, do not edit\n"
        "(`meson compile update-onnx-doc`). What is refused of them, and why, is in "
        "[onnx.md](onnx.md).\n\n"
        "%zu operators of ai.onnx, and those of other domains with it in front. A model's own\n"
        "functions may have any name.\n\n"
        "| operator | inputs | outputs |\n|---|---|---|\n",
        count);
    for (size_t i = 0; i < count; i++) {
        printf("| %s | ", ops[i]->name);
        print_range(ops[i]->inputs_min, ops[i]->inputs_max);
        printf(" | ");
        print_range(1, ops[i]->outputs_max);
        printf(" |\n");
    }
    return 0;
}
