// SPDX-License-Identifier: Apache-2.0
// Imports a TensorFlow.js model from a temporary folder.
#include "tests/support/models/tfjs_case.h"

#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "backends/storage/file.h"

struct inf_tfjs_case inf_tfjs_case;

// Reports the memory that has leaked so far. Defined only in builds with the address sanitizer.
extern int __lsan_do_recoverable_leak_check(void) __attribute__((weak));

void inf_tfjs_case_init(void)
{
    inf_tfjs_case = (struct inf_tfjs_case){.path = "/tmp/inf-tfjs-XXXXXX"};
    cr_assert_not_null(mkdtemp(inf_tfjs_case.path));
    cr_assert_eq(inf_directory_open(&inf_tfjs_case.fd, inf_tfjs_case.path, NULL), INF_OK);
}

void inf_tfjs_case_fini(void)
{
    char command[64];
    inf_graph_destroy(&inf_tfjs_case.graph);
    close(inf_tfjs_case.fd);
    snprintf(command, sizeof command, "rm -r %s", inf_tfjs_case.path);
    cr_assert_eq(system(command), 0);
    // Check for leaks here and abort, because Criterion ignores assertions in this function, and
    // leaks that are found at exit.
    if (__lsan_do_recoverable_leak_check != NULL && __lsan_do_recoverable_leak_check() != 0)
        abort();
}

void inf_tfjs_case_write(const char *name, const void *data, size_t size)
{
    int fd = openat(inf_tfjs_case.fd, name, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    cr_assert_geq(fd, 0);
    cr_assert_eq(write(fd, data, size), (ssize_t)size);
    close(fd);
}

char *inf_tfjs_case_read(const char *name, size_t *out_size)
{
    char *data = NULL;
    cr_assert_eq(inf_file_read_all(&data, out_size, inf_tfjs_case.fd, name, 1 << 24, NULL), INF_OK);
    return data;
}

enum inf_code inf_tfjs_case_import(void)
{
    inf_graph_destroy(&inf_tfjs_case.graph);
    inf_tfjs_case.err = (struct inf_error){0};
    return inf_model_import(&inf_tfjs_case.graph, &inf_tfjs_case.info, inf_tfjs_case.fd,
                            "model.json", &inf_tfjs_case.err);
}

enum inf_code inf_tfjs_case_import_text(const char *json)
{
    char *text = strdup(json);
    for (char *c = text; *c != '\0'; c++)
        if (*c == '\'')
            *c = '"';
    inf_tfjs_case_write("model.json", text, strlen(text));
    free(text);
    return inf_tfjs_case_import();
}

void inf_tfjs_case_accept(struct inf_tfjs_writer *writer)
{
    inf_tfjs_writer_end(writer);
    cr_assert_eq(inf_tfjs_case_import(), INF_OK, "%s", inf_tfjs_case.err.text);
}

void inf_tfjs_case_refuse(struct inf_tfjs_writer *writer, enum inf_code code, const char *part)
{
    inf_tfjs_writer_end(writer);
    cr_assert_eq(inf_tfjs_case_import(), code, "%d, wanted %d: %s", inf_tfjs_case.err.code, code,
                 inf_tfjs_case.err.text);
    cr_assert_not_null(strstr(inf_tfjs_case.err.text, part), "'%s' is not in: %s", part,
                       inf_tfjs_case.err.text);
    cr_assert_null(inf_tfjs_case.graph);
}

const struct inf_node *inf_tfjs_case_node(uint32_t index, enum inf_op op)
{
    const struct inf_graph *graph = inf_tfjs_case.graph;
    cr_assert_lt(index, graph->node_count);
    cr_assert_eq(graph->nodes[index].op, op, "node %u is %s, wanted %s", index,
                 inf_op_info(graph->nodes[index].op)->name, inf_op_info(op)->name);
    return &graph->nodes[index];
}

const char *inf_tfjs_case_output(uint32_t index)
{
    static char text[INF_SHAPE_TEXT_SIZE + 16];
    char shape[INF_SHAPE_TEXT_SIZE];
    const struct inf_graph *graph = inf_tfjs_case.graph;
    cr_assert_lt(index, graph->output_count);
    const struct inf_value *value = &graph->values[graph->outputs[index].value];
    snprintf(text, sizeof text, "%s %s", inf_dtype_name(value->dtype),
             inf_shape_print(&value->shape, shape));
    return text;
}
