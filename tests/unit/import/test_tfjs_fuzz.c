// SPDX-License-Identifier: Apache-2.0
// A model with many operators is changed in thousands of ways. Each import must end with a verified
// graph or with an error text, and must free its memory. Run under ASan and UBSan.
#include <criterion/criterion.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/graph/shape/verify.h"
#include "tests/support/models/tfjs_case.h"

TestSuite(tfjs_fuzz, .init = inf_tfjs_case_init, .fini = inf_tfjs_case_fini);

#define DIMS(...) (int64_t[]){__VA_ARGS__}, sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)

static void add_convolutions(struct inf_tfjs_writer *w)
{
    static const float zeros[512];
    inf_tfjs_writer_placeholder(w, "x", "DT_FLOAT", DIMS(-1, 8, 8, 4));
    inf_tfjs_writer_floats(w, "f", zeros, DIMS(3, 3, 4, 4));
    inf_tfjs_writer_floats(w, "d", zeros, DIMS(3, 3, 4, 1));
    inf_tfjs_writer_floats(w, "b", zeros, DIMS(4));
    inf_tfjs_writer_node(w, "conv", "_FusedConv2D", "x,f,b,b");
    inf_tfjs_writer_attr_texts(w, "fused_ops", "BiasAdd,Prelu");
    inf_tfjs_writer_attr_int(w, "num_args", 2);
    inf_tfjs_writer_attr_ints(w, "strides", DIMS(1, 2, 2, 1));
    inf_tfjs_writer_attr_ints(w, "dilations", DIMS(1, 1, 1, 1));
    inf_tfjs_writer_attr_text(w, "padding", "EXPLICIT");
    inf_tfjs_writer_attr_ints(w, "explicit_paddings", DIMS(0, 0, 1, 1, 1, 1, 0, 0));
    inf_tfjs_writer_node(w, "dw", "DepthwiseConv2dNative", "conv,d");
    inf_tfjs_writer_attr_ints(w, "strides", DIMS(1, 1, 1, 1));
    inf_tfjs_writer_attr_text(w, "padding", "SAME");
    inf_tfjs_writer_node(w, "pool", "AvgPool", "dw");
    inf_tfjs_writer_attr_ints(w, "ksize", DIMS(1, 2, 2, 1));
    inf_tfjs_writer_attr_ints(w, "strides", DIMS(1, 2, 2, 1));
    inf_tfjs_writer_attr_text(w, "padding", "VALID");
    inf_tfjs_writer_node(w, "bn", "FusedBatchNormV3", "pool,b,b,b,b");
    inf_tfjs_writer_ints(w, "size", (int32_t[]){4, 4}, DIMS(2));
    inf_tfjs_writer_node(w, "up", "ResizeBilinear", "bn:y:0,size");
    inf_tfjs_writer_node(w, "d2s", "DepthToSpace", "up");
    inf_tfjs_writer_attr_int(w, "block_size", 2);
}

static void add_moves(struct inf_tfjs_writer *w)
{
    inf_tfjs_writer_ints(w, "perm", (int32_t[]){0, 3, 1, 2}, DIMS(4));
    inf_tfjs_writer_node(w, "t", "Transpose", "d2s,perm");
    inf_tfjs_writer_ints(w, "axis", (int32_t[]){1}, NULL, 0);
    inf_tfjs_writer_node(w, "q", "Squeeze", "t");
    inf_tfjs_writer_attr_ints(w, "squeeze_dims", DIMS(1));
    inf_tfjs_writer_node(w, "s", "Split", "axis,q,^pool");
    inf_tfjs_writer_attr_int(w, "num_split", 2);
    inf_tfjs_writer_node(w, "u", "Unpack", "s:1");
    inf_tfjs_writer_attr_int(w, "axis", 1);
    inf_tfjs_writer_attr_int(w, "num", 4);
    inf_tfjs_writer_node(w, "p", "Pack", "u,u:3");
    inf_tfjs_writer_attr_int(w, "axis", 1);
    inf_tfjs_writer_node(w, "c", "ConcatV2", "p,s,axis");
    inf_tfjs_writer_ints(w, "begin", (int32_t[]){0, 1, -3}, DIMS(3));
    inf_tfjs_writer_ints(w, "end", (int32_t[]){0, 5, 0}, DIMS(3));
    inf_tfjs_writer_ints(w, "step", (int32_t[]){1, 2, 1}, DIMS(3));
    inf_tfjs_writer_node(w, "cut", "StridedSlice", "c,begin,end,step");
    inf_tfjs_writer_attr_int(w, "begin_mask", 1);
    inf_tfjs_writer_attr_int(w, "end_mask", 5);
    inf_tfjs_writer_ints(w, "paddings", (int32_t[]){0, 0, 1, 1, 0, 2}, DIMS(3, 2));
    inf_tfjs_writer_node(w, "pad", "Pad", "cut,paddings");
    inf_tfjs_writer_node(w, "g", "GatherV2", "pad,size,axis");
    inf_tfjs_writer_ints(w, "points", (int32_t[]){0, 1, 0, 2}, DIMS(2, 2));
    inf_tfjs_writer_node(w, "nd", "GatherNd", "pad,points");
    inf_tfjs_writer_node(w, "sum", "Mean", "pad,axis");
    inf_tfjs_writer_attr_bool(w, "keep_dims", 1);
    inf_tfjs_writer_node(w, "shape", "Shape", "pad");
    inf_tfjs_writer_node(w, "tile", "Tile", "sum,step");
    inf_tfjs_writer_node(w, "like", "Reshape", "pad,shape");
    inf_tfjs_writer_node(w, "cast", "Cast", "like");
    inf_tfjs_writer_attr_type(w, "DstT", "DT_INT32");
}

// Writes the model's weights to a file and returns its document.
static char *write_zoo(size_t *out_size)
{
    struct inf_tfjs_writer *w = inf_tfjs_writer_begin(inf_tfjs_case.path);
    add_convolutions(w);
    add_moves(w);
    inf_tfjs_writer_output(w, "gathered", "g:0");
    inf_tfjs_writer_output(w, "points", "nd");
    inf_tfjs_writer_output(w, "tiled", "tile");
    inf_tfjs_writer_output(w, "cast", "cast");
    inf_tfjs_writer_end(w);
    cr_assert_eq(inf_tfjs_case_import(), INF_OK, "%s", inf_tfjs_case.err.text);
    return inf_tfjs_case_read("model.json", out_size);
}

// Imports the model and asserts the properties that hold for any input bytes. Returns true if the
// model was accepted.
static bool import_anything(void)
{
    enum inf_code code = inf_tfjs_case_import();
    if (code == INF_OK) {
        cr_assert_eq(inf_graph_verify(inf_tfjs_case.graph, &inf_tfjs_case.err), INF_OK);
        return true;
    }
    cr_assert_null(inf_tfjs_case.graph);
    cr_assert(code == INF_INVALID || code == INF_UNSUPPORTED || code == INF_NOT_FOUND ||
                  code == INF_DENIED || code == INF_EXHAUSTED,
              "%d: %s", code, inf_tfjs_case.err.text);
    cr_assert_neq(inf_tfjs_case.err.text[0], '\0');
    cr_assert_null(strpbrk(inf_tfjs_case.err.text, "\n\r\t\033"), "%s", inf_tfjs_case.err.text);
    return false;
}

// A small random number generator that gives the same numbers on every machine.
static uint32_t next_random(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(*state >> 33);
}

Test(tfjs_fuzz, every_truncation_is_refused)
{
    size_t size;
    char *text = write_zoo(&size);
    for (size_t length = 0; length < size; length += 7) {
        inf_tfjs_case_write("model.json", text, length);
        cr_assert_not(import_anything(), "%zu", length);
    }
    free(text);
}

Test(tfjs_fuzz, changed_bytes_never_break_the_importer)
{
    static const char bytes[] = "\"{}[]:,0123456789-.eE\\u truefalsnil^:\0\xff\x80/";
    size_t size;
    char *text = write_zoo(&size);
    char *mutant = malloc(size);
    uint64_t state = 1;
    unsigned models = 0;
    for (unsigned round = 0; round < 6000; round++) {
        memcpy(mutant, text, size);
        for (unsigned n = next_random(&state) % 3 + 1; n > 0; n--) {
            char byte = (char)next_random(&state);
            if (next_random(&state) % 4 > 0)
                byte = bytes[next_random(&state) % (sizeof bytes - 1)];
            mutant[next_random(&state) % size] = byte;
        }
        inf_tfjs_case_write("model.json", mutant, size);
        models += import_anything();
    }
    // Expect some accepted models: if a change only affects a name or a number, the later stages of
    // the importer run too.
    cr_assert_gt(models, 100u);
    free(mutant);
    free(text);
}

Test(tfjs_fuzz, changed_digits_never_break_the_importer)
{
    size_t size;
    char *text = write_zoo(&size);
    uint64_t state = 2;
    char *mutant = malloc(size);
    for (unsigned round = 0; round < 4000; round++) {
        memcpy(mutant, text, size);
        for (unsigned n = next_random(&state) % 4 + 1; n > 0;) {
            size_t at = next_random(&state) % size;
            if (mutant[at] < '0' || mutant[at] > '9')
                continue;
            mutant[at] = (char)("0123456789-"[next_random(&state) % 11]);
            n--;
        }
        inf_tfjs_case_write("model.json", mutant, size);
        import_anything();
    }
    free(mutant);
    free(text);
}

Test(tfjs_fuzz, changed_weights_never_break_the_importer)
{
    size_t size;
    free(write_zoo(&size));
    char *weights = inf_tfjs_case_read("weights.bin", &size);
    char *mutant = malloc(size);
    uint64_t state = 3;
    for (unsigned round = 0; round < 4000; round++) {
        memcpy(mutant, weights, size);
        // Most weight bytes are zeros of filters. The integers that operators read are at the end
        // of the file.
        for (unsigned n = 0; n < 4; n++)
            mutant[size - 1 - next_random(&state) % 160] =
                (char)("\0\1\2\3\4\5\7\10\20\177\200\376\377\377"[next_random(&state) % 14]);
        inf_tfjs_case_write("weights.bin", mutant, size);
        import_anything();
    }
    free(mutant);
    free(weights);
}

// The place of a JSON value that is to be replaced. The value is found by its position in a walk of
// the document.
struct place {
    json_t *parent;
    const char *key; // the key if the parent is an object
    size_t index;    // the index if the parent is an array
};

static bool find_place(json_t *value, size_t *index, struct place *place)
{
    const char *key;
    size_t i;
    json_t *child;
    json_object_foreach(value, key, child)
    {
        *place = (struct place){.parent = value, .key = key};
        if ((*index)-- == 0 || find_place(child, index, place))
            return true;
    }
    json_array_foreach(value, i, child)
    {
        *place = (struct place){.parent = value, .index = i};
        if ((*index)-- == 0 || find_place(child, index, place))
            return true;
    }
    return false;
}

Test(tfjs_fuzz, a_value_of_another_type_anywhere_never_breaks_the_importer)
{
    static const char *const others[] = {"null",  "true", "0",     "-1",      "9223372036854775807",
                                         "1e308", "\"\"", "\"x\"", "\"x:3\"", "\"-1\"",
                                         "[]",    "{}",   "[[]]",  "[-1]",    "{\"a\":1}"};
    size_t size, count = 0;
    char *text = write_zoo(&size);
    for (;; count++) {
        json_t *root = json_loadb(text, size, 0, NULL);
        size_t index = count;
        struct place place = {0};
        bool found = find_place(root, &index, &place);
        for (size_t i = 0; found && i < INF_ARRAY_LENGTH(others); i++) {
            json_t *other = json_loads(others[i], JSON_DECODE_ANY, NULL);
            cr_assert_not_null(other);
            if (place.key != NULL)
                json_object_set_new_nocheck(place.parent, place.key, other);
            else
                json_array_set_new(place.parent, place.index, other);
            char *mutant = json_dumps(root, JSON_COMPACT);
            inf_tfjs_case_write("model.json", mutant, strlen(mutant));
            free(mutant);
            import_anything();
        }
        json_decref(root);
        if (!found)
            break;
    }
    // The document has several hundred JSON values. A count above 400 shows that each of them was
    // replaced at least once.
    cr_assert_gt(count, 400u);
    free(text);
}

Test(tfjs_fuzz, a_node_without_any_of_its_attributes_or_inputs_never_breaks_the_importer)
{
    size_t size;
    char *text = write_zoo(&size);
    for (size_t count = 0;; count++) {
        json_t *root = json_loadb(text, size, 0, NULL);
        size_t index = count;
        struct place place = {0};
        bool found = find_place(root, &index, &place);
        if (found && place.key != NULL)
            json_object_del(place.parent, place.key);
        else if (found)
            json_array_remove(place.parent, place.index);
        char *mutant = json_dumps(root, JSON_COMPACT);
        inf_tfjs_case_write("model.json", mutant, strlen(mutant));
        free(mutant);
        json_decref(root);
        import_anything();
        if (!found)
            break;
    }
    free(text);
}
