// SPDX-License-Identifier: Apache-2.0
// The storage for the texts of a graph: copies, lifetimes and long texts.
#include <string.h>

#include <criterion/criterion.h>

#include "backends/graph/graph.h"
#include "backends/graph/texts.h"

Test(texts, copies_keep_texts_in_any_order_of_destruction)
{
    struct inf_texts *first = inf_texts_create(NULL);
    const char *a = inf_texts_add(first, "a long name of a node/in a model");
    struct inf_texts *second = inf_texts_create(first);
    struct inf_texts *third = inf_texts_create(second);
    const char *b = inf_texts_add(second, "another");
    inf_texts_unref(&first);
    cr_assert_null(first);
    inf_texts_unref(&second);
    cr_assert_str_eq(a, "a long name of a node/in a model");
    cr_assert_str_eq(b, "another");
    inf_texts_unref(&third);
    inf_texts_unref(&third);
}

Test(texts, of_any_length_lie_apart)
{
    struct inf_texts *texts = inf_texts_create(NULL);
    char longest[2000];
    const char *kept[600];
    memset(longest, 'x', sizeof longest - 1);
    longest[sizeof longest - 1] = '\0';
    for (size_t i = 0; i < INF_ARRAY_LENGTH(kept); i++) {
        kept[i] = inf_texts_add(texts, longest + sizeof longest - 1 - i);
        cr_assert_not_null(kept[i]);
    }
    for (size_t i = 0; i < INF_ARRAY_LENGTH(kept); i++)
        cr_assert_eq(strlen(kept[i]), i);
    inf_texts_unref(&texts);
}

Test(texts, of_a_graph_outlive_it_in_its_copy)
{
    struct inf_graph *graph = NULL, *copy = NULL;
    uint32_t value;
    cr_assert_eq(inf_graph_create(&graph, NULL), INF_OK);
    cr_assert_eq(inf_graph_add_value(graph, "input", INF_DTYPE_F32, &INF_SHAPE(1), &value, NULL),
                 INF_OK);
    cr_assert_eq(inf_graph_clone(&copy, graph, NULL), INF_OK);
    cr_assert_eq(copy->values[value].name, graph->values[value].name);
    inf_graph_destroy(&graph);
    cr_assert_str_eq(copy->values[value].name, "input");
    inf_graph_destroy(&copy);
}
