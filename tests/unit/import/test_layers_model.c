// SPDX-License-Identifier: Apache-2.0
// Layers models: the dialects of Keras, the names of inputs and outputs, and errors in files.
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/models/tfjs_case.h"

TestSuite(layers_model, .init = inf_tfjs_case_init, .fini = inf_tfjs_case_fini);

#define WEIGHT(name, shape) "{'name':'" name "','shape':" shape ",'dtype':'float32'}"
#define DENSE_WEIGHTS       WEIGHT("d/kernel", "[4,3]") "," WEIGHT("d/bias", "[3]")
#define DENSE(rest)         "{'class_name':'Dense','config':{'name':'d','units':3" rest "}"
#define INPUT                                                                                      \
    "{'class_name':'InputLayer','name':'x','config':{'batch_input_shape':[null,4],'name':'x'}}"

// Makes a model.json document from a topology and a list of weights, whose bytes are all zero.
static char *wrap_document(const char *topology, const char *weights)
{
    size_t size = strlen(topology) + strlen(weights) + 256;
    char *text = malloc(size);
    snprintf(text, size,
             "{'modelTopology':%s,'weightsManifest':[{'paths':['w.bin'],'weights':[%s]}]}",
             topology, weights);
    return text;
}

static enum inf_code import_model(const char *topology, const char *weights, size_t floats)
{
    char *text = wrap_document(topology, weights);
    float *zeros = calloc(floats + 1, sizeof *zeros);
    inf_tfjs_case_write("w.bin", zeros, floats * sizeof *zeros);
    enum inf_code code = inf_tfjs_case_import_text(text);
    free(zeros);
    free(text);
    return code;
}

static void accept_model(const char *topology, const char *weights, size_t floats)
{
    cr_assert_eq(import_model(topology, weights, floats), INF_OK, "%s: %s", inf_tfjs_case.err.text,
                 topology);
}

static void refuse_model(const char *topology, enum inf_code code, const char *part)
{
    cr_assert_eq(import_model(topology, DENSE_WEIGHTS, 15), code, "%d, wanted %d: %s in %s",
                 inf_tfjs_case.err.code, code, inf_tfjs_case.err.text, topology);
    cr_assert_not_null(strstr(inf_tfjs_case.err.text, part), "'%s' is not in: %s", part,
                       inf_tfjs_case.err.text);
    cr_assert_null(inf_tfjs_case.graph);
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

// Asserts that the graph is the network that all dialects below describe: matmul, bias, relu.
static void check_dense(const char *input, const char *output)
{
    check_ports(input, output);
    cr_assert_str_eq(inf_tfjs_case_output(0), "FP32 [?,3]");
    cr_assert_eq(inf_tfjs_case.graph->node_count, 2u);
    const struct inf_node *node = inf_tfjs_case_node(0, INF_OP_MATMUL);
    cr_assert_eq(node->input_count, 3u);
    cr_assert_str_eq(node->name, "d");
    cr_assert_str_eq(node->source, "Dense");
    cr_assert_eq(inf_tfjs_case_node(1, INF_OP_UNARY)->attrs.unary.kind, INF_UNARY_RELU);
    cr_assert_str_eq(inf_tfjs_case.info.format, "tfjs_layers_model");
}

Test(layers_model, sequential_models_of_all_times_are_the_same)
{
    // Keras 2.2 writes only a list of layers. The first layer has the input shape.
    accept_model("{'class_name':'Sequential','config':[" DENSE(
                     ",'activation':'relu','batch_input_shape':[null,4]}") "]}",
                 DENSE_WEIGHTS, 15);
    check_dense("d_input", "d");
    // The list of layers is in an object inside model_config.
    accept_model(
        "{'keras_version':'2.10.0','model_config':{'class_name':'Sequential','config':{'name':"
        "'s','layers':[" INPUT "," DENSE(",'activation':'relu'}") "]}}}",
        DENSE_WEIGHTS, 15);
    check_dense("x", "d");
    // The format of Keras 3, in which the dtype is an object.
    accept_model(
        "{'class_name':'Sequential','config':{'name':'s','layers':[{'module':'keras.layers',"
        "'class_name':'InputLayer','config':{'batch_shape':[null,4],'dtype':'float32','name':"
        "'x'}},{'module':'keras.layers',"
        "'class_name':'Dense','config':{'name':'d','dtype':"
        "{'class_name':'DTypePolicy','config':{'name':'float32'}},'units':3,'activation':"
        "{'class_name':'function','config':'relu'}},'registered_name':null}]}}",
        DENSE_WEIGHTS, 15);
    check_dense("x", "d");
    // The first layer has no input shape; only the model's build_input_shape has it.
    accept_model("{'class_name':'Sequential','config':{'layers':[" DENSE(
                     ",'activation':'relu'}") "],'build_input_shape':[null,4]}}",
                 DENSE_WEIGHTS, 15);
    check_dense("d_input", "d");
}

#define FUNCTIONAL(layers, ends)                                                                   \
    "{'class_name':'Functional','config':{'name':'m','layers':[" layers "]," ends "}}"
#define ENDS "'input_layers':[['x',0,0]],'output_layers':[['d',0,0]]"
#define DENSE_ON(inbound)                                                                          \
    "{'class_name':'Dense','name':'d','config':{'name':'d','units':3,'activation':'relu'},"        \
    "'inbound_nodes':" inbound "}"

Test(layers_model, functional_models_of_all_times_are_the_same)
{
    static const char *const models[] = {
        FUNCTIONAL(INPUT "," DENSE_ON("[[['x',0,0,{}]]]"), ENDS),
        FUNCTIONAL(INPUT "," DENSE_ON("[[['x',0,0]]]"), ENDS),
        FUNCTIONAL(INPUT "," DENSE_ON("[['x',0,0,{}]]"), ENDS),
        FUNCTIONAL(DENSE_ON("[[['x',0,0,{'training':false}]]]") "," INPUT, ENDS),
        FUNCTIONAL(INPUT
                   "," DENSE_ON("[{'args':[{'class_name':'__keras_tensor__','config':{'shape':"
                                "[null,4],'keras_history':['x',0,0]}}],'kwargs':{}}]"),
                   "'input_layers':['x',0,0],'output_layers':['d',0,0]"),
        FUNCTIONAL(INPUT
                   "," DENSE_ON("[{'args':[],'kwargs':{'inputs':{'class_name':"
                                "'__keras_tensor__','config':{'keras_history':['x',0,0]}}}}]"),
                   "'input_layers':['x',0,0],'output_layers':['d',0,0]"),
        FUNCTIONAL(INPUT "," DENSE_ON("[[['x',0,0,{}]]]"),
                   "'input_layers':{'a':['x',0,0]},'output_layers':{'b':['d',0,0]}"),
    };
    for (size_t i = 0; i < INF_ARRAY_LENGTH(models); i++) {
        accept_model(models[i], DENSE_WEIGHTS, 15);
        check_dense("x", "d");
    }
}

Test(layers_model, weights_may_be_called_by_their_cells_and_outputs)
{
    const char *model =
        "{'class_name':'Sequential','config':[{'class_name':'LSTM','config':{'name':'l',"
        "'units':2,'batch_input_shape':[null,3,5]}}]}";
    accept_model(model,
                 WEIGHT("l/kernel", "[5,8]") "," WEIGHT("l/recurrent_kernel",
                                                        "[2,8]") "," WEIGHT("l/bias", "[8]"),
                 64);
    accept_model(model,
                 WEIGHT("l/lstm_cell_3/kernel",
                        "[5,8]") "," WEIGHT("l/lstm_cell_3/recurrent_kernel",
                                            "[2,8]") "," WEIGHT("l/lstm_cell_3/bias:0", "[8]"),
                 64);
    cr_assert_str_eq(inf_tfjs_case_output(0), "FP32 [?,2]");
}

Test(layers_model, outputs_of_one_layer_have_names_of_their_own)
{
    accept_model(
        "{'class_name':'Model','config':{'layers':[{'class_name':'InputLayer','config':"
        "{'name':'x','batch_input_shape':[1,2,5]}},{'class_name':'LSTM','name':'l','config':"
        "{'name':'l','units':2,'return_state':true},'inbound_nodes':[[['x',0,0,{}]]]}],"
        "'input_layers':[['x',0,0]],'output_layers':[['l',0,0],['l',0,1],['l',0,2]]}}",
        WEIGHT("l/kernel", "[5,8]") "," WEIGHT("l/recurrent_kernel", "[2,8]") "," WEIGHT("l/bias",
                                                                                         "[8]"),
        64);
    check_ports("x", "l,l:1,l:2");
    cr_assert_str_eq(inf_tfjs_case_output(2), "FP32 [1,2]");
}

Test(layers_model, an_input_that_is_an_output_is_copied)
{
    accept_model(FUNCTIONAL(INPUT, "'input_layers':[['x',0,0]],'output_layers':[['x',0,0]]"), "",
                 0);
    check_ports("x", "x");
    inf_tfjs_case_node(0, INF_OP_IDENTITY);
}

Test(layers_model, inputs_have_the_types_of_tensorflow_js)
{
    static const char *const types[][2] = {{"float32", "FP32 [?,4]"}, {"float16", "FP32 [?,4]"},
                                           {"int32", "INT32 [?,4]"},  {"int64", "INT32 [?,4]"},
                                           {"uint8", "INT32 [?,4]"},  {"bool", "BOOL [?,4]"}};
    for (size_t i = 0; i < INF_ARRAY_LENGTH(types); i++) {
        char model[512];
        snprintf(
            model, sizeof model,
            "{'class_name':'Sequential','config':[{'class_name':'Dropout','config':{'name':'d',"
            "'dtype':'%s','batch_input_shape':[null,4]}}]}",
            types[i][0]);
        accept_model(model, "", 0);
        cr_assert_str_eq(inf_tfjs_case_output(0), types[i][1]);
    }
}

Test(layers_model, every_class_that_is_not_built_is_named_once)
{
    refuse_model(
        "{'class_name':'Sequential','config':[" INPUT
        ",{'class_name':'Conv9D','config':{'name':'a'}},{'class_name':'Lambda','config':{'name':"
        "'b'}},{'class_name':'Conv9D','config':{'name':'c'}},{'class_name':'TimeDistributed',"
        "'config':{'name':'t','layer':{'class_name':'MyLayer','config':{'name':'i'}}}},"
        "{'class_name':'Sequential','config':{'name':'n','layers':[{'class_name':'Deep',"
        "'config':{'name':'z'}}]}}]}",
        INF_UNSUPPORTED,
        "layers not supported: Conv9D (2 layers), Deep (1 layer), Lambda (1 layer), MyLayer (1 "
        "layer)");
    cr_assert_eq(inf_tfjs_case.err.reason, INF_REASON_OPERATOR);
}

Test(layers_model, references_that_lead_nowhere_are_refused)
{
    refuse_model(FUNCTIONAL(INPUT "," DENSE_ON("[[['y',0,0,{}]]]"), ENDS), INF_INVALID,
                 "wanted the name of a layer");
    refuse_model(FUNCTIONAL(INPUT "," DENSE_ON("[[['x',1,0,{}]]]"), ENDS), INF_INVALID,
                 "layer 'x' (InputLayer): is referred to by its call 1, but has 1 calls");
    refuse_model(FUNCTIONAL(INPUT "," DENSE_ON("[[['x',0,1,{}]]]"), ENDS), INF_INVALID,
                 "layer 'd' (Dense): takes output 1 of layer 'x' (InputLayer), which has 1");
    refuse_model(FUNCTIONAL(INPUT "," DENSE_ON("[[['x',0]]]"), ENDS), INF_INVALID, "inbound_nodes");
    refuse_model(FUNCTIONAL(INPUT "," DENSE_ON("[[['x',-1,0]]]"), ENDS), INF_INVALID,
                 "inbound_nodes");
    refuse_model(FUNCTIONAL(INPUT "," DENSE_ON("[[]]"), ENDS), INF_INVALID,
                 "layer 'd' (Dense): has 0 inputs, wanted 1 to 1");
    refuse_model(FUNCTIONAL(INPUT "," DENSE_ON("[[['x',0,0],['x',0,0]]]"), ENDS), INF_INVALID,
                 "has 2 inputs");
    refuse_model(FUNCTIONAL(INPUT "," DENSE_ON("[]"), ENDS), INF_INVALID, "'d' (Dense)");
    refuse_model(FUNCTIONAL(INPUT "," DENSE_ON("[[['d',0,0,{}]]]"), ENDS), INF_INVALID,
                 "layer 'd' (Dense): is part of a cycle through its input 'd'");
    refuse_model(
        FUNCTIONAL(INPUT "," DENSE_ON("[[['x',0,0,{}]]]") "," DENSE_ON("[[['x',0,0,{}]]]"), ENDS),
        INF_INVALID, "layer 'd': is there twice");
    refuse_model(FUNCTIONAL(INPUT, "'input_layers':[['x',0,0]],'output_layers':[]"), INF_INVALID,
                 "output_layers");
    refuse_model(FUNCTIONAL(INPUT "," DENSE_ON("[[['x',0,0]]]"),
                            "'input_layers':[['d',0,0]],'output_layers':[['d',0,0]]"),
                 INF_INVALID, "layer 'd' (Dense): is an input of the model, wanted an InputLayer");
    refuse_model(FUNCTIONAL(INPUT ",{'class_name':'InputLayer','name':'y','config':{'name':'y',"
                                  "'batch_input_shape':[null,4]}}," DENSE_ON("[[['y',0,0]]]"),
                            ENDS),
                 INF_INVALID, "layer 'y' (InputLayer): is no input of the model it stands in");
}

Test(layers_model, a_long_cycle_is_found)
{
    refuse_model(FUNCTIONAL(INPUT
                            ",{'class_name':'Add','name':'a','config':{'name':'a'},'inbound_nodes':"
                            "[[['x',0,0],['b',0,0]]]},{'class_name':'Dropout','name':'b','config':"
                            "{'name':'b'},'inbound_nodes':[[['a',0,0]]]}",
                            "'input_layers':[['x',0,0]],'output_layers':[['b',0,0]]"),
                 INF_INVALID, "is part of a cycle");
}

#define SEQUENTIAL(layer) "{'class_name':'Sequential','config':[" INPUT "," layer "]}"

Test(layers_model, weights_that_do_not_fit_are_refused)
{
    refuse_model(SEQUENTIAL("{'class_name':'Dense','config':{'name':'e','units':3}}"), INF_INVALID,
                 "layer 'e' (Dense): the weight 'e/kernel' is missing");
    refuse_model(SEQUENTIAL("{'class_name':'Dense','config':{'name':'d','units':5}}"), INF_INVALID,
                 "layer 'd' (Dense): the weight 'd/kernel' is [4,3], wanted [4,5]");
    refuse_model(SEQUENTIAL("{'class_name':'Dense','config':{'name':'d'}}"), INF_INVALID, "units");
    refuse_model(SEQUENTIAL("{'class_name':'Dense','config':{'name':'d','units':-3}}"), INF_INVALID,
                 "config.units");
    refuse_model(
        SEQUENTIAL("{'class_name':'Dense','config':{'name':'d','units':9223372036854775807}}"),
        INF_INVALID, "config.units");
    refuse_model(
        SEQUENTIAL("{'class_name':'Dense','config':{'name':'d','units':3,'activation':'warp'}}"),
        INF_UNSUPPORTED, "activation 'warp' is not known");
    cr_assert_eq(
        import_model(SEQUENTIAL(DENSE("}")),
                     "{'name':'d/kernel','shape':[4,3],'dtype':'int32'}," WEIGHT("d/bias", "[3]"),
                     15),
        INF_UNSUPPORTED, "%s", inf_tfjs_case.err.text);
    cr_assert_eq(import_model(SEQUENTIAL(DENSE("}")), DENSE_WEIGHTS, 14), INF_INVALID);
}

Test(layers_model, numbers_out_of_range_are_refused)
{
    static const char *const layers[] = {
        "{'class_name':'RepeatVector','config':{'name':'r','n':0}}",
        "{'class_name':'RepeatVector','config':{'name':'r','n':2147483648}}",
        "{'class_name':'Reshape','config':{'name':'r','target_shape':[3]}}",
        "{'class_name':'Reshape','config':{'name':'r','target_shape':[-2]}}",
        "{'class_name':'Reshape','config':{'name':'r','target_shape':[-1,-1]}}",
        "{'class_name':'Reshape','config':{'name':'r','target_shape':[1,1,1,1,1,1,1,4]}}",
        "{'class_name':'Reshape','config':{'name':'r'}}",
        "{'class_name':'Reshape','config':{'name':'r','target_shape':[2147483647,2147483647]}}",
        "{'class_name':'Permute','config':{'name':'r','dims':[2]}}",
        "{'class_name':'Permute','config':{'name':'r','dims':[0]}}",
        "{'class_name':'Permute','config':{'name':'r','dims':[1,2]}}",
        "{'class_name':'Softmax','config':{'name':'r','axis':2}}",
        "{'class_name':'Softmax','config':{'name':'r','axis':[-3]}}",
        "{'class_name':'Concatenate','config':{'name':'r','axis':7}}",
        "{'class_name':'BatchNormalization','config':{'name':'d','axis':[]}}",
        "{'class_name':'LayerNormalization','config':{'name':'d','axis':[]}}",
        "{'class_name':'ReLU','config':{'name':'r','max_value':1e300}}",
        "{'class_name':'ReLU','config':{'name':'r','max_value':'six'}}",
        "{'class_name':'Conv2D','config':{'name':'d','filters':3,'kernel_size':[1,1]}}",
        "{'class_name':'MaxPooling1D','config':{'name':'d'}}",
        "{'class_name':'LSTM','config':{'name':'d','units':3}}",
        "{'class_name':'CategoryEncoding','config':{'name':'d'}}",
        "{'class_name':'Resizing','config':{'name':'d','height':3,'width':3}}",
        "{'class_name':'LSTMCell','config':{'name':'d','units':3}}",
        "{'class_name':'Bidirectional','config':{'name':'d'}}",
        "{'class_name':'RNN','config':{'name':'d','cell':{'class_name':'Dense','config':{}}}}",
        ("{'class_name':'TimeDistributed','config':{'name':'d',"
         "'layer':{'class_name':'Dropout','config':{}}}}"),
    };
    for (size_t i = 0; i < INF_ARRAY_LENGTH(layers); i++) {
        char model[1024];
        snprintf(model, sizeof model, "{'class_name':'Sequential','config':[" INPUT ",%s]}",
                 layers[i]);
        cr_assert_neq(import_model(model, DENSE_WEIGHTS, 15), INF_OK, "%s", layers[i]);
        cr_assert_neq(inf_tfjs_case.err.text[0], '\0');
    }
}

Test(layers_model, shapes_of_inputs_are_checked)
{
    static const char *const shapes[] = {"[null,-2]", "[null,2147483648]", "[1,2,3,4,5,6,7,8,9]",
                                         "'four'",    "[null,'x']",        "{}",
                                         "[null,1.5]"};
    for (size_t i = 0; i < INF_ARRAY_LENGTH(shapes); i++) {
        char model[512];
        snprintf(
            model, sizeof model,
            "{'class_name':'Sequential','config':[{'class_name':'Dropout','config':{'name':'d',"
            "'batch_input_shape':%s}}]}",
            shapes[i]);
        refuse_model(model, INF_INVALID, "batch_input_shape");
    }
    refuse_model(
        "{'class_name':'Sequential','config':[{'class_name':'Dropout','config':{'name':'d'}}]}",
        INF_INVALID, "does not say its batch_input_shape");
}

Test(layers_model, tensors_given_by_names_that_are_not_built_are_refused)
{
    refuse_model(FUNCTIONAL(INPUT "," DENSE_ON("[[['x',0,0,{'mask':['x',0,0]}]]]"), ENDS),
                 INF_INVALID, "layer 'd' (Dense): has 2 inputs");
    refuse_model(
        FUNCTIONAL(INPUT "," DENSE_ON(
                       "[[['x',0,0,{}]]]") ",{'class_name':'Add','name':'a',"
                                           "'config':{'name':'a'},'inbound_nodes':[[['x',0,0,"
                                           "{'mask':['d',0,0]}]]]}",
                   "'input_layers':[['x',0,0]],'output_layers':[['a',0,0]]"),
        INF_UNSUPPORTED, "layer 'a' (Add): is given a tensor as 'mask', which is not built");
    refuse_model(FUNCTIONAL(INPUT
                            ",{'class_name':'MultiHeadAttention','name':'a','config':{'name':'a',"
                            "'key_dim':2},'inbound_nodes':[[['x',0,0,{'key':['x',0,0]}]]]}",
                            "'input_layers':[['x',0,0]],'output_layers':[['a',0,0]]"),
                 INF_UNSUPPORTED, "input 0 has rank 2, wanted [batch,time,features]");
}

Test(layers_model, recurrent_layers_say_what_they_cannot_do)
{
    static const struct {
        const char *config, *part;
    } cases[] = {
        {"'units':2,'stateful':true,'batch_input_shape':[1,3,5]", "is stateful"},
        {"'units':2,'time_major':true,'batch_input_shape':[1,3,5]", "is time_major"},
    };
    for (size_t i = 0; i < INF_ARRAY_LENGTH(cases); i++) {
        char model[512];
        snprintf(
            model, sizeof model,
            "{'class_name':'Sequential','config':[{'class_name':'LSTM','config':{'name':'l',%s}}]}",
            cases[i].config);
        refuse_model(model, INF_UNSUPPORTED, cases[i].part);
    }
    refuse_model(
        "{'class_name':'Sequential','config':[{'class_name':'ConvLSTM2D','config':{'name':'l',"
        "'filters':2,'kernel_size':2,'stateful':true,'batch_input_shape':[1,3,5,5,1]}}]}",
        INF_UNSUPPORTED, "layer 'l' (ConvLSTM2D): is stateful");
    refuse_model(
        "{'class_name':'Sequential','config':[{'class_name':'RNN','config':{'name':'r',"
        "'batch_input_shape':[1,3,5],'cell':{'class_name':'ConvLSTM2DCell','config':{'name':'c',"
        "'filters':2,'kernel_size':2}}}}]}",
        INF_UNSUPPORTED, "layer 'c' (ConvLSTM2DCell): is no cell that is known");
    static const char *const times[] = {"null", "1025"};
    static const char *const parts[] = {"has -1 time steps", "has 1025 time steps"};
    for (int i = 0; i < 2; i++) {
        char model[512];
        snprintf(
            model, sizeof model,
            "{'class_name':'Sequential','config':[{'class_name':'Masking','config':{'name':'m',"
            "'batch_input_shape':[null,%s,5]}},{'class_name':'LSTM','config':{'name':'l',"
            "'units':2}}]}",
            times[i]);
        refuse_model(model, INF_UNSUPPORTED, parts[i]);
    }
}

// Returns the topology of `levels` Sequential models, each nested in the next one. The innermost
// model has one Dropout layer, which adds no node.
static char *write_tower(unsigned levels)
{
    char *text = malloc(1 << 16);
    size_t used = 0;
    for (unsigned i = levels; i > 0; i--)
        used += (size_t)sprintf(text + used,
                                "{'class_name':'Sequential','config':{'name':'m%u','layers':["
                                "{'class_name':'InputLayer','config':{'name':'x%u',"
                                "'batch_input_shape':[null,4]}},",
                                i, i);
    used += (size_t)sprintf(text + used, "{'class_name':'Dropout','config':{'name':'d'}}");
    for (unsigned i = 1; i <= levels; i++)
        used += (size_t)sprintf(text + used, "]}}");
    return text;
}

Test(layers_model, models_within_models_are_bounded_in_depth)
{
    char *text = write_tower(10);
    accept_model(text, "", 0);
    check_ports("x10", "m9");
    free(text);
    text = write_tower(40);
    refuse_model(text, INF_EXHAUSTED, "nested deeper");
    free(text);
}

Test(layers_model, models_that_multiply_are_bounded)
{
    // Each level calls the next inner level 16 times, which makes 16^8 layers without a single
    // node.
    char *text = malloc(1 << 16);
    size_t used = 0;
    for (unsigned i = 8; i > 0; i--)
        used +=
            (size_t)sprintf(text + used,
                            "{'class_name':'Functional','name':'m%u','config':{'name':'m%u',"
                            "'layers':[{'class_name':'InputLayer','name':'x','config':{'name':'x',"
                            "'batch_input_shape':[null,4]}},",
                            i, i);
    used +=
        (size_t)sprintf(text + used, "{'class_name':'Dropout','name':'m0','config':{'name':'m0'}");
    for (unsigned i = 1; i <= 8; i++) {
        unsigned first = i > 1;
        used += (size_t)sprintf(text + used, ",'inbound_nodes':[[['x',0,0]]");
        for (unsigned k = 0; k < 15; k++)
            used += (size_t)sprintf(text + used, ",[['m%u',%u,0]]", i - 1, first + k);
        used += (size_t)sprintf(text + used,
                                "]}],'input_layers':[['x',0,0]],'output_layers':[['m%u',%u,0]]}",
                                i - 1, first + 15);
    }
    strcpy(text + used, "}");
    refuse_model(text, INF_EXHAUSTED, "more than 65536 layers and time steps");
    free(text);
}

// Softmax is not an element-wise function, so layers with it are unrolled into nodes.
Test(layers_model, recurrent_layers_are_bounded_together)
{
    char *text = malloc(1 << 16);
    size_t used = (size_t)sprintf(text,
                                  "{'class_name':'Sequential','config':[{'class_name':"
                                  "'InputLayer','config':{'name':'x','batch_input_shape':"
                                  "[1,1024,1]}}");
    for (unsigned i = 0; i < 70; i++)
        used +=
            (size_t)sprintf(text + used,
                            ",{'class_name':'Bidirectional','config':{'name':'b%u','merge_mode':"
                            "'sum','layer':{'class_name':'SimpleRNN','config':{'name':'l','units':"
                            "1,'activation':'softmax','return_sequences':true}}}}",
                            i);
    strcpy(text + used, "]}");
    // clang-format off
    char *document = wrap_document(text,
        WEIGHT("forward_l/kernel", "[1,1]") ","
        WEIGHT("forward_l/recurrent_kernel", "[1,1]") ","
        WEIGHT("forward_l/bias", "[1]") ","
        WEIGHT("backward_l/kernel", "[1,1]") ","
        WEIGHT("backward_l/recurrent_kernel", "[1,1]") ","
        WEIGHT("backward_l/bias", "[1]"));
    // clang-format on
    inf_tfjs_case_write("w.bin", (float[6]){0}, 24);
    cr_assert_eq(inf_tfjs_case_import_text(document), INF_EXHAUSTED, "%s", inf_tfjs_case.err.text);
    cr_assert_not_null(strstr(inf_tfjs_case.err.text, "layers and time steps"));
    free(document);
    free(text);
}

Test(layers_model, topologies_of_other_shapes_are_refused)
{
    refuse_model("{'model_config':{}}", INF_INVALID, "class_name");
    refuse_model("{'class_name':'Sequential'}", INF_INVALID, "config");
    refuse_model("{'class_name':'Sequential','config':[]}", INF_INVALID, "at least one layer");
    refuse_model("{'class_name':'Sequential','config':{'layers':{}}}", INF_INVALID, "layers");
    refuse_model("{'class_name':'Sequential','config':'x'}", INF_INVALID, "config");
    refuse_model("{'class_name':'Sequential','config':[null]}", INF_INVALID, "config[0]");
    refuse_model("{'class_name':'Dense','config':{'name':'d'}}", INF_UNSUPPORTED,
                 "wanted Sequential");
    refuse_model("{'class_name':'Functional','config':{'layers':[" INPUT "]}}", INF_INVALID,
                 "input_layers");
    refuse_model("{'class_name':'Sequential','config':[" INPUT "," INPUT "]}", INF_INVALID, "'x'");
    refuse_model("{'class_name':7,'config':[]}", INF_INVALID, "class_name");
}
