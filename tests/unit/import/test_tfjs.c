// SPDX-License-Identifier: Apache-2.0
// The structure of graph models: signatures, references, order, encodings, and errors in files.
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/support/models/tfjs_case.h"

TestSuite(tfjs, .init = inf_tfjs_case_init, .fini = inf_tfjs_case_fini);

// Asserts that the importer refuses a document. In `json`, ' stands for ".
static void refuse_model(const char *json, enum inf_code code, const char *part)
{
    cr_assert_eq(inf_tfjs_case_import_text(json), code, "%d, wanted %d: %s in %s",
                 inf_tfjs_case.err.code, code, inf_tfjs_case.err.text, json);
    cr_assert_not_null(strstr(inf_tfjs_case.err.text, part), "'%s' is not in: %s", part,
                       inf_tfjs_case.err.text);
    cr_assert_null(inf_tfjs_case.graph);
}

static void accept_model(const char *json)
{
    cr_assert_eq(inf_tfjs_case_import_text(json), INF_OK, "%s: %s", inf_tfjs_case.err.text, json);
}

// Asserts the names of the model's inputs and outputs, separated by commas.
static void check_ports(const char *inputs, const char *outputs)
{
    const struct inf_graph *graph = inf_tfjs_case.graph;
    char text[512] = "";
    for (uint32_t i = 0; i < graph->input_count; i++)
        sprintf(text + strlen(text), "%s%s", i > 0 ? "," : "", graph->inputs[i].name);
    cr_assert_str_eq(text, inputs);
    *text = '\0';
    for (uint32_t i = 0; i < graph->output_count; i++)
        sprintf(text + strlen(text), "%s%s", i > 0 ? "," : "", graph->outputs[i].name);
    cr_assert_str_eq(text, outputs);
}

Test(tfjs, add_model_has_its_ports_and_one_node)
{
    inf_write_add_model(inf_tfjs_case.path);
    cr_assert_eq(inf_tfjs_case_import(), INF_OK, "%s", inf_tfjs_case.err.text);
    check_ports("a,b", "y");
    cr_assert_str_eq(inf_tfjs_case_output(0), "FP32 [?,4]");
    const struct inf_node *node = inf_tfjs_case_node(0, INF_OP_BINARY);
    cr_assert_eq(node->attrs.binary.kind, INF_BINARY_ADD);
    cr_assert_str_eq(node->name, "sum");
    cr_assert_str_eq(node->source, "AddV2");
    cr_assert_eq(inf_tfjs_case.graph->node_count, 1u);
    cr_assert_str_eq(inf_tfjs_case.info.format, "tfjs_graph_model");
    cr_assert_str_eq(inf_tfjs_case.info.producer, "inferd tests");
}

Test(tfjs, conv_model_has_the_operators_it_is_made_of)
{
    inf_write_conv_model(inf_tfjs_case.path);
    cr_assert_eq(inf_tfjs_case_import(), INF_OK, "%s", inf_tfjs_case.err.text);
    cr_assert_str_eq(inf_tfjs_case_output(0), "FP32 [?,2,2,4]");
    inf_tfjs_case_node(0, INF_OP_PAD);
    const struct inf_node *conv = inf_tfjs_case_node(1, INF_OP_CONV2D);
    cr_assert_eq(conv->attrs.conv2d.stride_h, 2);
    cr_assert_eq(conv->attrs.conv2d.stride_w, 2);
    cr_assert_eq(conv->attrs.conv2d.padding, INF_PADDING_VALID);
    cr_assert_eq(conv->attrs.conv2d.groups, 1);
    // The filter element [1][1][2][2], from channel 2 to output 2, is 3.
    const struct inf_value *filter = &inf_tfjs_case.graph->values[conv->inputs[1]];
    cr_assert_eq(((const float *)filter->data->data)[((1 * 3 + 1) * 3 + 2) * 4 + 2], 3.0f);
    cr_assert_eq(inf_tfjs_case_node(2, INF_OP_BINARY)->attrs.binary.kind, INF_BINARY_ADD);
    cr_assert_eq(inf_tfjs_case_node(3, INF_OP_UNARY)->attrs.unary.kind, INF_UNARY_RELU);
    const struct inf_node *pool = inf_tfjs_case_node(4, INF_OP_POOL2D);
    cr_assert_eq(pool->attrs.pool2d.kernel_h, 2);
    cr_assert_eq(pool->attrs.pool2d.kind, INF_POOL_MAX);
    struct stat json, weights;
    fstatat(inf_tfjs_case.fd, "model.json", &json, 0);
    fstatat(inf_tfjs_case.fd, "weights.bin", &weights, 0);
    cr_assert_eq(inf_tfjs_case.info.file_bytes, (uint64_t)(json.st_size + weights.st_size));
}

Test(tfjs, null_model_takes_four_elements_whatever_its_size)
{
    inf_write_null_model(inf_tfjs_case.path, 1 << 20);
    cr_assert_eq(inf_tfjs_case_import(), INF_OK, "%s", inf_tfjs_case.err.text);
    cr_assert_str_eq(inf_tfjs_case_output(0), "FP32 [4]");
    inf_write_null_model(inf_tfjs_case.path, 3);
    cr_assert_eq(inf_tfjs_case_import(), INF_OK);
    cr_assert_str_eq(inf_tfjs_case_output(0), "FP32 [3]");
    inf_write_null_model(inf_tfjs_case.path, 0);
    cr_assert_eq(inf_tfjs_case_import(), INF_OK);
    cr_assert_str_eq(inf_tfjs_case_output(0), "FP32 [?]");
}

Test(tfjs, the_hash_is_of_the_content_and_a_folder_holds_the_shards)
{
    inf_write_add_model(inf_tfjs_case.path);
    cr_assert_eq(inf_tfjs_case_import(), INF_OK);
    uint64_t hash = inf_tfjs_case.info.content_hash;
    cr_assert_eq(inf_tfjs_case_import(), INF_OK);
    cr_assert_eq(inf_tfjs_case.info.content_hash, hash);
    inf_write_null_model(inf_tfjs_case.path, 8);
    cr_assert_eq(inf_tfjs_case_import(), INF_OK);
    cr_assert_neq(inf_tfjs_case.info.content_hash, hash);

    char folder[64];
    snprintf(folder, sizeof folder, "%s/v1", inf_tfjs_case.path);
    cr_assert_eq(mkdir(folder, 0700), 0);
    inf_write_conv_model(folder);
    struct inf_graph *graph = NULL;
    cr_assert_eq(
        inf_model_import(&graph, NULL, inf_tfjs_case.fd, "v1/model.json", &inf_tfjs_case.err),
        INF_OK, "%s", inf_tfjs_case.err.text);
    inf_graph_destroy(&graph);
}

#define X                                                                                          \
    "{'name':'x','op':'Placeholder','attr':{'dtype':{'type':'DT_FLOAT'},"                          \
    "'shape':{'shape':{'dim':[{'size':'2'}]}}}}"
#define NODES(more)           "{'modelTopology':{'node':[" X more "]}}"
#define NODES_AND(more, rest) "{'modelTopology':{'node':[" X more "]}," rest "}"
#define RELU(name, input)     ",{'name':'" name "','op':'Relu','input':['" input "']}"

Test(tfjs, signature_is_at_the_top_or_in_the_metadata_or_made_up)
{
    accept_model(NODES_AND(RELU("r", "x"),
                           "'signature':{'inputs':{'in':{'name':'x:0'}},'outputs':{'b:0':"
                           "{'name':'r:0'},'a':{'name':'r'}}}"));
    check_ports("in", "b:0,a");
    accept_model(NODES_AND(RELU("r", "x"),
                           "'userDefinedMetadata':{'signature':{'inputs':{'x:0':{'name':"
                           "'x:0'}},'outputs':{'r:0':{}}}}"));
    check_ports("x:0", "r:0");
    accept_model(NODES(RELU("r", "x") RELU("s", "x:0")));
    check_ports("x", "r,s");
    accept_model(NODES_AND(RELU("r", "x"), "'signature':null,'userDefinedMetadata':'text'"));
    check_ports("x", "r");
    accept_model(
        NODES_AND(RELU("r", "x"), "'signature':{'inputs':{},'outputs':{'y':{'name':'r'}}}"));
    check_ports("x", "y");
    accept_model(NODES_AND(RELU("r", "x"), "'signature':{'inputs':{'in':{'name':'x'}}}"));
    check_ports("in", "r");
    accept_model(NODES_AND(RELU("r", "x"), "'signature':{}"));
    check_ports("x", "r");
}

Test(tfjs, placeholders_that_the_signature_forgets_are_inputs_where_they_are_needed)
{
    const char *rest =
        ",{'name':'z','op':'Placeholder','attr':{'dtype':{'type':'DT_INT64'},'shape':"
        "{'shape':{'unknownRank':true}}}}";
    char json[2048];
    snprintf(json, sizeof json,
             "{'modelTopology':{'node':[" X "%s,{'name':'u','op':'Abs','input':['z']}" RELU(
                 "r", "x") "]},'signature':{'inputs':{'in':{'name':'x'}},'outputs':{'%s':{}}}}",
             rest, "u");
    accept_model(json);
    check_ports("in,z", "u");
    cr_assert_str_eq(inf_tfjs_case_output(0), "INT32 [*]");
    *strstr(json, "'u':{}") = '\'';
    strstr(json, "'u':{}")[1] = 'r';
    accept_model(json);
    check_ports("in", "r");
}

Test(tfjs, signature_shapes_fill_in_unknown_ranks_only)
{
#define UNKNOWN_RANK                                                                               \
    "{'name':'x','op':'Placeholder','attr':{'dtype':{'type':'DT_HALF'},'shape':{'shape':"          \
    "{'unknownRank':true}}}}"
    accept_model("{'modelTopology':{'node':[" UNKNOWN_RANK RELU(
        "r",
        "x") "]},'signature':{'inputs':{'x':"
             "{'name':'x','tensorShape':{'dim':[{'size':'-1'},{'size':7}]}}},'outputs':{'r':{}}}}");
    cr_assert_str_eq(inf_tfjs_case_output(0), "FP32 [?,7]");
    accept_model(NODES_AND(RELU("r", "x"),
                           "'signature':{'inputs':{'x':{'tensorShape':{'dim':[{'size':'9'}"
                           "]}}},'outputs':{'r':{}}}"));
    cr_assert_str_eq(inf_tfjs_case_output(0), "FP32 [2]");
}

Test(tfjs, signatures_that_name_what_is_not_there_are_refused)
{
#define SIGNED(signature) NODES_AND(RELU("r", "x"), "'signature':" signature)
    refuse_model(SIGNED("{'outputs':{'y':{'name':'nothing:0'}}}"), INF_INVALID,
                 "signature.outputs.y: names 'nothing:0', and there is no such node");
    refuse_model(SIGNED("{'inputs':{'i':{'name':'zz'}},'outputs':{'y':{'name':'r'}}}"), INF_INVALID,
                 "signature.inputs.i: names 'zz'");
    refuse_model(SIGNED("{'inputs':{'i':{'name':'r'}}}"), INF_INVALID,
                 "input 'i' is output 0 of node 'r' (Relu), wanted a Placeholder");
    refuse_model(SIGNED("{'inputs':{'i':{'name':'x:1'}}}"), INF_INVALID, "input 'i' is output 1");
    refuse_model(SIGNED("{'inputs':{'i':{'name':'x'},'j':{'name':'x:0'}}}"), INF_INVALID,
                 "inputs 'i' and 'j' are the same node 'x'");
    refuse_model(SIGNED("{'outputs':{'y':{'name':'r:7'}}}"), INF_INVALID,
                 "output 'y': takes output 7 of node 'r' (Relu), which has 1");
    refuse_model(SIGNED("{'outputs':{'y':{'name':'r:'}}}"), INF_INVALID, "no output number");
    refuse_model(SIGNED("{'outputs':{'y':{'name':'r:-1'}}}"), INF_INVALID, "no output number");
    refuse_model(SIGNED("{'outputs':{'y':{'name':'r:4294967296'}}}"), INF_INVALID,
                 "no output number");
    refuse_model(SIGNED("{'outputs':{'y':{'name':7}}}"), INF_INVALID,
                 "signature.outputs.y.name: has 7, wanted a string");
    refuse_model(SIGNED("{'outputs':{'y':'r:0'}}"), INF_INVALID,
                 "signature.outputs.y: has the string");
    refuse_model(SIGNED("{'outputs':[]}"), INF_INVALID, "signature.outputs: has an array of 0");
    refuse_model(SIGNED("[]"), INF_INVALID, "signature: has an array of 0, wanted an object");
    refuse_model(SIGNED("{'outputs':{'':{'name':'r'}}}"), INF_INVALID, "not empty");
    refuse_model("{'modelTopology':{'node':[" X "]}}", INF_INVALID, "the model has no outputs");
    refuse_model("{'modelTopology':{'node':[]}}", INF_INVALID, "the model has no outputs");
}

Test(tfjs, references_have_outputs_by_number_and_control_inputs_carry_no_data)
{
#define SPLIT                                                                                      \
    ",{'name':'d','op':'Const'},{'name':'s','op':'Split','input':['d','x','^x'],'attr':"           \
    "{'num_split':{'i':'2'}}},{'name':'n','op':'NoOp','input':['^r']}"
#define MANIFEST                                                                                   \
    "'weightsManifest':[{'paths':['w'],'weights':[{'name':'d','shape':[],'dtype':'int32'}]}]"
    inf_tfjs_case_write("w", "\0\0\0\0", 4);
    accept_model(NODES_AND(SPLIT RELU("r", "s:1"), MANIFEST));
    check_ports("x", "r");
    const struct inf_node *split = inf_tfjs_case_node(0, INF_OP_SPLIT);
    const struct inf_node *relu = inf_tfjs_case_node(1, INF_OP_UNARY);
    cr_assert_eq(relu->inputs[0], split->outputs[1]);
    cr_assert_eq(split->input_count, 1u);
    accept_model(NODES_AND(SPLIT RELU("r", "s:output:1"), MANIFEST));
    cr_assert_eq(inf_tfjs_case_node(1, INF_OP_UNARY)->inputs[0],
                 inf_tfjs_case_node(0, INF_OP_SPLIT)->outputs[1]);
    accept_model(NODES_AND(SPLIT RELU("r", "s"), MANIFEST));
    cr_assert_eq(inf_tfjs_case_node(1, INF_OP_UNARY)->inputs[0],
                 inf_tfjs_case_node(0, INF_OP_SPLIT)->outputs[0]);
    refuse_model(NODES_AND(SPLIT RELU("r", "s:2"), MANIFEST), INF_INVALID,
                 "node 'r' (Relu): takes output 2 of node 's' (Split), which has 2");
    refuse_model(NODES_AND(SPLIT RELU("r", "n"), MANIFEST), INF_INVALID,
                 "node 'n' (NoOp), which has 0");
    refuse_model(NODES(RELU("r", "x:7")), INF_INVALID, "takes output 7 of node 'x'");
    refuse_model(NODES(RELU("r", "absent")), INF_INVALID,
                 "node 'r' (Relu): names 'absent', and there is no such node");
    refuse_model(NODES(RELU("r", "^absent")), INF_INVALID, "names 'absent'");
    refuse_model(NODES(RELU("r", "^x")), INF_INVALID, "has 0 inputs, wanted 1 to 1");
    refuse_model(NODES(",{'name':'r','op':'Relu','input':['x','x']}"), INF_INVALID,
                 "node 'r' (Relu): has 2 inputs, wanted 1 to 1");
}

Test(tfjs, nodes_may_stand_in_any_order_but_not_in_a_circle)
{
    accept_model(
        "{'modelTopology':{'node':[{'name':'c','op':'Neg','input':['b']},{'name':'b','op':'Abs',"
        "'input':['a']},{'name':'a','op':'Relu','input':['x']}," X "]}}");
    check_ports("x", "c");
    cr_assert_eq(inf_tfjs_case_node(0, INF_OP_UNARY)->attrs.unary.kind, INF_UNARY_RELU);
    cr_assert_eq(inf_tfjs_case_node(2, INF_OP_UNARY)->attrs.unary.kind, INF_UNARY_NEG);
#define CIRCLE ",{'name':'p','op':'Add','input':['x','q']}" RELU("q", "p")
    refuse_model(NODES_AND(CIRCLE, "'signature':{'outputs':{'q':{}}}"), INF_INVALID,
                 "is part of a cycle");
    refuse_model(NODES_AND(RELU("q", "q"), "'signature':{'outputs':{'q':{}}}"), INF_INVALID,
                 "node 'q' (Relu): is part of a cycle through its input 'q'");
    // A cycle is ignored if no output depends on it.
    accept_model(NODES_AND(CIRCLE RELU("r", "x"), "'signature':{'outputs':{'r':{}}}"));
    refuse_model(NODES(RELU("r", "x") RELU("r", "x")), INF_INVALID, "node 'r': there are two");
}

Test(tfjs, all_missing_operators_are_named_at_once_but_not_those_nobody_needs)
{
    refuse_model(
        NODES(",{'name':'a','op':'Foo','input':['x']},{'name':'b','op':'Bar','input':['a']},"
              "{'name':'c','op':'Foo','input':['b']},{'name':'d','op':'Foo','input':['c']}" RELU(
                  "r", "d")),
        INF_UNSUPPORTED,
        "operators not supported: Bar (1 node: 'b' with {}): no operator that TensorFlow.js "
        "converts; Foo (3 nodes, first 'a' with {}): no operator");
    cr_assert_eq(inf_tfjs_case.err.reason, INF_REASON_OPERATOR);
    accept_model(NODES_AND(",{'name':'a','op':'Foo','input':['x']}" RELU("r", "x"),
                           "'signature':{'outputs':{'r':{}}}"));

    // The model lacks more names than fit in an error text, so the text ends with the number of the
    // remaining names.
    char *json = malloc(1 << 20);
    strcpy(json, "{'modelTopology':{'node':[" X);
    for (int i = 0; i < 300; i++)
        sprintf(json + strlen(json), ",{'name':'n%d','op':'Missing%03d','input':['x']}", i, i);
    strcat(json, ",{'name':'s','op':'AddN','input':['x'");
    for (int i = 0; i < 300; i++)
        sprintf(json + strlen(json), ",'n%d'", i);
    strcat(json, "]}]}}");
    refuse_model(json, INF_UNSUPPORTED,
                 "operators not supported: Missing000 (1 node: 'n0' with {})");
    const char *more = strstr(inf_tfjs_case.err.text, "; and ");
    cr_assert_not_null(more, "%s", inf_tfjs_case.err.text);
    size_t named = 0;
    for (const char *c = inf_tfjs_case.err.text; (c = strstr(c, "(1 node:")) != NULL; c++)
        named++;
    cr_assert_eq(named + (size_t)atoi(more + 6), 300u, "%s", inf_tfjs_case.err.text);
    free(json);

    // The report lists all of the names.
    char *report = NULL;
    size_t size, lines = 0;
    FILE *file = open_memstream(&report, &size);
    const struct inf_import_options options = {.report = file};
    struct inf_graph *graph = NULL;
    cr_assert_eq(
        inf_model_import_with(&graph, NULL, inf_tfjs_case.fd, "model.json", &options, NULL),
        INF_UNSUPPORTED);
    fclose(file);
    for (const char *c = report; (c = strchr(c, '\n')) != NULL; c++)
        lines++;
    cr_assert_eq(lines, 300u);
    cr_assert_not_null(strstr(report, "Missing299 (1 node: 'n299' with {}): no operator that"));
    free(report);
}

Test(tfjs, constants_need_a_weight_of_a_type_that_can_be_computed_with)
{
#define CONST ",{'name':'d','op':'Const'},{'name':'r','op':'AddV2','input':['x','d']}"
#define WEIGHT(name, type)                                                                         \
    "'weightsManifest':[{'paths':['w'],'weights':[{'name':'" name "','shape':[1],'dtype':'" type   \
    "'}]}]"
    inf_tfjs_case_write("w", "\0\0\x80\x3f", 4);
    accept_model(NODES_AND(CONST, WEIGHT("d", "float32")));
    cr_assert_str_eq(inf_tfjs_case_output(0), "FP32 [2]");
    refuse_model(NODES_AND(CONST, WEIGHT("e", "float32")), INF_INVALID,
                 "node 'd' (Const): weightsManifest has no weight of its name");
    refuse_model(NODES(CONST), INF_INVALID, "weightsManifest has no weight of its name");
    refuse_model(NODES_AND(CONST, WEIGHT("d", "int32")), INF_INVALID, "'r'");
    inf_tfjs_case_write("w", "\0\0\0\0", 4);
    refuse_model(NODES_AND(CONST, WEIGHT("d", "string")), INF_INVALID,
                 "node 'r' (binary): input 1 is BYTES, wanted FP32");
    accept_model(NODES_AND(RELU("r", "x"), WEIGHT("d", "string")));
    unlinkat(inf_tfjs_case.fd, "w", 0);
    refuse_model(NODES_AND(CONST, WEIGHT("d", "float32")), INF_NOT_FOUND, "'w': does not exist");
    refuse_model(NODES_AND(CONST, "'weightsManifest':[{'paths':['../w'],'weights':[]}]"),
                 INF_DENIED, "shard '../w': leaves the model's folder");
}

Test(tfjs, outputs_are_made_by_nodes_even_where_the_model_only_hands_on)
{
    inf_tfjs_case_write("w", "\0\0\x80\x3f", 4);
    accept_model(
        NODES_AND(",{'name':'d','op':'Const'},{'name':'i','op':'Identity','input':['x']}",
                  WEIGHT("d", "float32") ",'signature':{'inputs':{'x':{}},'outputs':{'same':"
                                         "{'name':'i'},'const':{'name':'d'},'in':{'name':'x'}}}"));
    check_ports("x", "same,const,in");
    for (uint32_t i = 0; i < 3; i++) {
        uint32_t value = inf_tfjs_case.graph->outputs[i].value;
        cr_assert_neq(inf_tfjs_case.graph->values[value].producer, INF_NODE_NONE);
    }
}

Test(tfjs, placeholder_types_are_narrowed_as_tensorflow_js_does)
{
    static const struct {
        const char *spelled, *shown;
    } types[] = {
        {"'DT_FLOAT'", "FP32 [2]"},  {"'DT_DOUBLE'", "FP32 [2]"}, {"'DT_HALF'", "FP32 [2]"},
        {"'DT_INT32'", "INT32 [2]"}, {"'DT_INT64'", "INT32 [2]"}, {"'DT_UINT8'", "INT32 [2]"},
        {"'DT_INT8'", "INT32 [2]"},  {"'DT_BOOL'", "BOOL [2]"},   {"1", "FP32 [2]"},
        {"9", "INT32 [2]"},          {"10", "BOOL [2]"},          {"'4'", "INT32 [2]"}};
    for (size_t i = 0; i < INF_ARRAY_LENGTH(types); i++) {
        char json[512];
        snprintf(json, sizeof json,
                 "{'modelTopology':{'node':[{'name':'x','op':'Placeholder','attr':{'dtype':{'type':"
                 "%s},'shape':{'shape':{'dim':[{'size':2}]}}}},{'name':'i','op':'Identity','input':"
                 "['x']}]}}",
                 types[i].spelled);
        accept_model(json);
        cr_assert_str_eq(inf_tfjs_case_output(0), types[i].shown, "%s", types[i].spelled);
    }
#define TYPED(type)                                                                                \
    "{'modelTopology':{'node':[{'name':'x','op':'Placeholder','attr':{'dtype':{'type':" type       \
    "}}},{'name':'i','op':'Identity','input':['x']}]}}"
    refuse_model(TYPED("'DT_COMPLEX64'"), INF_UNSUPPORTED,
                 "node 'x' (Placeholder): dtype is DT_COMPLEX64");
    refuse_model(TYPED("8"), INF_UNSUPPORTED, "DT_COMPLEX64");
    refuse_model(TYPED("'DT_WHAT'"), INF_UNSUPPORTED, "DT_WHAT");
    refuse_model(TYPED("99"), INF_UNSUPPORTED, "99");
    refuse_model(TYPED("-1"), INF_INVALID, "node[0 'x'].attr.dtype.type: has -1");
    refuse_model(TYPED("[]"), INF_INVALID, "node[0 'x'].attr.dtype.type");
}

Test(tfjs, both_encodings_of_text_and_numbers_mean_the_same)
{
#define POOL(same, nhwc, four)                                                                     \
    "{'modelTopology':{'node':[{'name':'x','op':'Placeholder','attr':{'dtype':{'type':1},'shape':" \
    "{'shape':{'dim':[{'size':'1'},{'size':5},{'size':'5'},{'size':2}]}}}},{'name':'p','op':"      \
    "'MaxPool','input':['x'],'attr':{'padding':{'s':" same "},'data_format':{'s':" nhwc            \
    "},'ksize':{'list':{'s':[],'i':" four "}},'strides':{'list':{'i':" four "}}}}]}}"
    accept_model(POOL("'U0FNRQ=='", "'TkhXQw=='", "['1','3','2','1']"));
    cr_assert_str_eq(inf_tfjs_case_output(0), "FP32 [1,2,3,2]");
    accept_model(POOL("[83,65,77,69]", "[78,72,87,67]", "[1,3,2,1]"));
    cr_assert_str_eq(inf_tfjs_case_output(0), "FP32 [1,2,3,2]");
    cr_assert_eq(inf_tfjs_case_node(0, INF_OP_POOL2D)->attrs.pool2d.kernel_h, 3);
    cr_assert_eq(inf_tfjs_case_node(0, INF_OP_POOL2D)->attrs.pool2d.kernel_w, 2);
    refuse_model(POOL("'U0FN!Q=='", "'TkhXQw=='", "[1,3,2,1]"), INF_INVALID, "base64");
    refuse_model(POOL("[83,65,77,300]", "'TkhXQw=='", "[1,3,2,1]"), INF_INVALID, "from 1 to 255");
    accept_model(POOL("'U0FNRQ=='", "'TkNIVw=='", "[1,1,3,2]")); // the layout is channels first
    cr_assert_str_eq(inf_tfjs_case_output(0), "FP32 [1,5,2,1]");
    refuse_model(POOL("'U0FNRQ=='", "'TkNIVw=='", "[1,3,2,1]"), INF_UNSUPPORTED,
                 "node 'p' (MaxPool): ksize is [1,3,2,1], wanted 1 for batch and channels");
    refuse_model(POOL("'U0FNRQ=='", "'TkNIVzE2'", "[1,1,3,2]"), INF_UNSUPPORTED,
                 "node 'p' (MaxPool): data_format 'nchw16', wanted NHWC");
    refuse_model(POOL("'Qk9USA=='", "'TkhXQw=='", "[1,3,2,1]"), INF_INVALID, "padding is 'both'");
    refuse_model(POOL("'U0FNRQ=='", "'TkhXQw=='", "[1,0,2,1]"), INF_INVALID, "wanted 1 to 65535");
    refuse_model(POOL("'U0FNRQ=='", "'TkhXQw=='", "[1,-1,2,1]"), INF_INVALID, "wanted 1 to 65535");
    refuse_model(POOL("'U0FNRQ=='", "'TkhXQw=='", "[2,3,2,1]"), INF_UNSUPPORTED,
                 "batch and channels");
    refuse_model(POOL("'U0FNRQ=='", "'TkhXQw=='", "[1,3,2]"), INF_INVALID, "3 elements, wanted 4");
    refuse_model(POOL("'U0FNRQ=='", "'TkhXQw=='", "[1,3,2,1,1]"), INF_INVALID, "fewer elements");
    refuse_model(POOL("'U0FNRQ=='", "'TkhXQw=='", "[1,2147483648,2,1]"), INF_INVALID, "2147483648");
}

Test(tfjs, negative_and_too_large_dimensions_are_refused)
{
#define SHAPED(dims)                                                                               \
    "{'modelTopology':{'node':[{'name':'x','op':'Placeholder','attr':{'dtype':{'type':1},'shape':" \
    "{'shape':{'dim':[" dims "]}}}},{'name':'r','op':'Relu','input':['x']}]}}"
    accept_model(SHAPED("{'size':'-1'},{'size':'0'}"));
    refuse_model(SHAPED("{'size':'-2'}"), INF_INVALID,
                 "shape.shape.dim[0].size: has the string \"-2\"");
    refuse_model(SHAPED("{'size':2147483648}"), INF_INVALID, "dim[0].size");
    refuse_model(SHAPED("{}"), INF_INVALID, "dim[0].size: is missing");
    refuse_model(SHAPED("7"), INF_INVALID, "dim[0]: has 7, wanted an object");
    refuse_model(
        SHAPED("{'size':1},{'size':1},{'size':1},{'size':1},{'size':1},{'size':1},{'size':1},"
               "{'size':1},{'size':1}"),
        INF_INVALID, "at most 8 dimensions");
}

Test(tfjs, a_chain_of_many_nodes_needs_no_deep_stack)
{
    enum {
        COUNT = 50000
    };
    char *json = malloc((size_t)COUNT * 80 + 1024), *end = json;
    end += sprintf(end, "{'modelTopology':{'node':[" X);
    // The nodes are listed in reverse order, so that the importer's search goes through the whole
    // chain at once, to a depth of COUNT nodes.
    for (int i = COUNT; i > 1; i--)
        end += sprintf(end, ",{'name':'n%d','op':'Relu','input':['n%d']}", i, i - 1);
    sprintf(end, RELU("n1", "x") "]}}");
    accept_model(json);
    cr_assert_eq(inf_tfjs_case.graph->node_count, (uint32_t)COUNT);
    check_ports("x", "n50000");
    free(json);
}

Test(tfjs, other_formats_are_told_apart_by_content)
{
    static const struct {
        const char *bytes;
        size_t size;
        const char *part;
    } files[] = {
        {"", 0, "is an empty file"},
        {"\x0a\x07graph_d", 9, "perhaps a frozen TensorFlow graph"},
        {"GGUF\3\0\0\0", 8, "is a GGUF model"},
        {"PK\3\4....", 8, "is a zip archive"},
        {"\x89HDF\r\n\x1a\n", 8, "is an HDF5"},
        {"[1,2,3]", 7, "no format that is known"},
        {"\x18\0\0\0TFL", 7, "no format that is known"},
        {"{}", 2, "a JSON document without modelTopology"},
        {"{\"modelTopology\":null}", 22, "a JSON document without modelTopology"},
    };
    for (size_t i = 0; i < INF_ARRAY_LENGTH(files); i++) {
        inf_tfjs_case_write("model.json", files[i].bytes, files[i].size);
        cr_assert_eq(inf_tfjs_case_import(), INF_UNSUPPORTED, "%zu", i);
        cr_assert_not_null(strstr(inf_tfjs_case.err.text, files[i].part), "%s",
                           inf_tfjs_case.err.text);
        cr_assert_not_null(strstr(inf_tfjs_case.err.text, "known formats: "));
    }
    unlinkat(inf_tfjs_case.fd, "model.json", 0);
    cr_assert_eq(inf_tfjs_case_import(), INF_NOT_FOUND);
    cr_assert_eq(symlinkat("/etc/passwd", inf_tfjs_case.fd, "model.json"), 0);
    cr_assert_eq(inf_tfjs_case_import(), INF_DENIED);
}

Test(tfjs, counts_beyond_the_limits_are_refused)
{
    char *json = malloc(8u << 20), *end = json;
    cr_assert_not_null(json);
    end += sprintf(end, "{'modelTopology':{'node':[");
    for (unsigned i = 0; i <= INF_LIMIT_GRAPH_NODES; i++)
        end += sprintf(end, i > 0 ? ",{}" : "{}");
    sprintf(end, "]}}");
    refuse_model(json, INF_EXHAUSTED, "the model has 1048577 nodes, at most 1048576 are allowed");

    for (int count = 64; count <= 65; count++) {
        end = json + sprintf(json, "{'modelTopology':{'node':[" X);
        for (int i = 0; i < count; i++)
            end += sprintf(end, ",{'name':'n%d','op':'Relu','input':['x']}", i);
        sprintf(end, "]}}");
        if (count == 64)
            accept_model(json);
        else
            refuse_model(json, INF_EXHAUSTED, "signature: more than 64 outputs");
    }
    for (int count = 4096; count <= 4097; count++) {
        end = json + sprintf(json, "{'modelTopology':{'node':[" X
                                   ",{'name':'s','op':'AddN','input':["
                                   "'x'");
        for (int i = 1; i < count; i++)
            end += sprintf(end, ",'x'");
        sprintf(end, "]}]}}");
        if (count == 4096)
            accept_model(json);
        else
            refuse_model(json, INF_INVALID, "node 's' (AddN): has 4097 inputs, wanted 1 to 4096");
    }
    char name[300];
    memset(name, 'k', 257);
    name[257] = '\0';
    sprintf(json, "{'modelTopology':{'node':[" X RELU("r", "x") "]},'signature':{'outputs':{'%s':"
                  "{'name':'r'}}}}", name);
    refuse_model(json, INF_EXHAUSTED, "in outputs is longer than 256 bytes");
    free(json);
}
