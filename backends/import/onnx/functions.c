// SPDX-License-Identifier: Apache-2.0
// Sorts the functions of a model by name, domain and overload, and finds them by binary search. A
// model may have many functions and many nodes, and comparing each node with each function would
// take minutes. A hash table is not used, because a model could choose names that collide.
#include "backends/import/onnx/functions.h"

#include <stdlib.h>
#include <string.h>

// Compares a function with a name, domain and overload. The result has the sign of strcmp().
static int compare_names(const struct inf_onnx_function *function, const char *domain,
                         const char *name, const char *overload)
{
    int order = strcmp(function->name, name);
    order = order != 0 ? order : strcmp(function->domain, domain);
    return order != 0 ? order : strcmp(function->overload, overload);
}

static int compare_functions(const void *a, const void *b)
{
    const struct inf_onnx_function *right = b;
    return compare_names(a, right->domain, right->name, right->overload);
}

enum inf_code inf_onnx_functions_sort(struct inf_onnx_model *model, struct inf_error *err)
{
    if (model->function_count == 0)
        return INF_OK;
    qsort(model->functions, model->function_count, sizeof *model->functions, compare_functions);
    for (uint32_t i = 1; i < model->function_count; i++) {
        const struct inf_onnx_function *function = &model->functions[i];
        if (compare_functions(function - 1, function) == 0)
            return inf_fail(err, INF_INVALID,
                            "function '%.80s::%.200s' is there twice, wanted once",
                            function->domain, function->name);
    }
    return INF_OK;
}

const struct inf_onnx_function *inf_onnx_function_find(const struct inf_onnx_model *model,
                                                       const char *domain, const char *name,
                                                       const char *overload)
{
    // If any overload is accepted, search for the empty overload, because it sorts first among
    // functions of the same name.
    const char *wanted = overload != NULL ? overload : "";
    uint32_t begin = 0;
    uint32_t end = model->function_count;
    while (begin < end) {
        uint32_t middle = begin + (end - begin) / 2;
        if (compare_names(&model->functions[middle], domain, name, wanted) < 0)
            begin = middle + 1;
        else
            end = middle;
    }
    const struct inf_onnx_function *found = &model->functions[begin];
    if (begin == model->function_count || strcmp(found->name, name) != 0 ||
        strcmp(found->domain, domain) != 0)
        return NULL;
    return overload == NULL || strcmp(found->overload, overload) == 0 ? found : NULL;
}
