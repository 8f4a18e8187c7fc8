// SPDX-License-Identifier: Apache-2.0
// A Layers model with most layer classes is changed in thousands of ways. Each import must end with
// a verified graph or with an error text, and must free its memory. Run under ASan and UBSan.
#include <criterion/criterion.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/graph/shape/verify.h"
#include "tests/support/models/mutate.h"
#include "tests/support/models/tfjs_case.h"

TestSuite(layers_fuzz, .init = inf_tfjs_case_init, .fini = inf_tfjs_case_fini);

static unsigned tried, models;

// Imports a document, and asserts the properties that hold for any input bytes.
static void try_document(const char *text, size_t size)
{
    inf_tfjs_case_write("model.json", text, size);
    enum inf_code code = inf_tfjs_case_import();
    tried++;
    if (code == INF_OK) {
        models++;
        cr_assert_eq(inf_graph_verify(inf_tfjs_case.graph, &inf_tfjs_case.err), INF_OK);
        return;
    }
    cr_assert_null(inf_tfjs_case.graph);
    cr_assert(code == INF_INVALID || code == INF_UNSUPPORTED || code == INF_NOT_FOUND ||
                  code == INF_DENIED || code == INF_EXHAUSTED,
              "%d: %s", code, inf_tfjs_case.err.text);
    cr_assert_neq(inf_tfjs_case.err.text[0], '\0');
    cr_assert_null(strpbrk(inf_tfjs_case.err.text, "\n\r\t\033"), "%s", inf_tfjs_case.err.text);
}

#define CALL(from) "'inbound_nodes':[[['" from "',0,0,{}]]]"
#define LAYER(class, name, config, from)                                                           \
    ",{'class_name':'" class "','name':'" name "','config':{'name':'" name "'" config              \
                             "}," CALL(from) "}"

static const char pictures[] =
    "{'modelTopology':{'class_name':'Functional','config':{'name':'m','layers':["
    "{'class_name':'InputLayer','name':'x','config':{'name':'x','batch_input_shape':[2,8,8,2],"
    "'dtype':'float32'}}"
    LAYER("Rescaling", "r", ",'scale':0.5,'offset':[1,2]", "x")
    LAYER("ZeroPadding2D", "zp", ",'padding':[[0,1],[1,0]]", "r")
    LAYER("Conv2D", "c", ",'filters':2,'kernel_size':[2,2],'strides':[1,1],'padding':'same',"
                         "'activation':'gelu'", "zp")
    LAYER("BatchNormalization", "bn", ",'axis':[3],'scale':false", "c")
    LAYER("ReLU", "re", ",'max_value':6,'negative_slope':0.1,'threshold':0.5", "bn")
    LAYER("PReLU", "pr", ",'shared_axes':[1,2]", "re")
    LAYER("DepthwiseConv2D", "dw", ",'kernel_size':1,'depth_multiplier':1,'use_bias':false", "pr")
    LAYER("MaxPooling2D", "mp", ",'pool_size':[2,2],'strides':null", "dw")
    LAYER("UpSampling2D", "up", ",'size':[2,2],'interpolation':'bilinear'", "mp")
    LAYER("Cropping2D", "cr", ",'cropping':[[1,0],[0,1]]", "up")
    LAYER("Conv2DTranspose", "ct", ",'filters':2,'kernel_size':2,'strides':2,"
                                   "'padding':'valid'", "cr")
    LAYER("CenterCrop", "cc", ",'height':4,'width':3", "ct")
    LAYER("LayerNormalization", "ln", ",'axis':[2,3],'center':false", "cc")
    ",{'class_name':'Concatenate','name':'k','config':{'name':'k','axis':3},"
    "'inbound_nodes':[[['cc',"
    "0,0,{}],['ln',0,0,{}]]]}"
    LAYER("Permute", "pe", ",'dims':[3,1,2]", "k")
    LAYER("Flatten", "fl", "", "pe")
    LAYER("Softmax", "so", ",'axis':-1", "fl")
    "],'input_layers':[['x',0,0]],'output_layers':[['so',0,0],['cc',0,0]]}},"
    "'weightsManifest':[{'paths':['w.bin'],'weights':["
    "{'name':'c/kernel','shape':[2,2,2,2],'dtype':'float32'},{'name':'c/bias','shape':[2],"
    "'dtype':'float32'},"
    "{'name':'bn/beta','shape':[2],'dtype':'float32'},{'name':'bn/moving_mean','shape':[2],"
    "'dtype':'float32'},"
    "{'name':'bn/moving_variance','shape':[2],'dtype':'float32'},{'name':'pr/alpha','shape':[1,"
    "1,2],'dtype':'float32'},"
    "{'name':'dw/depthwise_kernel','shape':[1,1,2,1],'dtype':'float32'},"
    "{'name':'ct/kernel','shape':[2,2,2,2],'dtype':'float32'},{'name':'ct/bias','shape':[2],"
    "'dtype':'float32'},"
    "{'name':'ln/gamma','shape':[3,2],'dtype':'float32'}]}]}";

static const char sequences[] =
    "{'modelTopology':{'model_config':{'class_name':'Model','config':{'name':'m','layers':["
    "{'class_name':'InputLayer','name':'x','config':{'name':'x','batch_input_shape':[null,3]}},"
    "{'class_name':'InputLayer','name':'h','config':{'name':'h','batch_input_shape':[null,2]}}"
    LAYER("Embedding", "em", ",'input_dim':4,'output_dim':2,'mask_zero':true", "x")
    LAYER("Bidirectional", "bi", ",'merge_mode':'sum','layer':{'class_name':'LSTM',"
                                 "'config':{'name':'l',"
          "'units':2,'return_sequences':true}}", "em")
    ",{'class_name':'GRU','name':'g','config':{'name':'g','units':2,'return_sequences':true,"
    "'reset_after':true,'return_state':true},'inbound_nodes':[[['bi',0,0,{}],['h',0,0,{}]]]}"
    LAYER("TimeDistributed", "td", ",'layer':{'class_name':'Sequential','config':{'name':'s',"
                                   "'layers':["
          "{'class_name':'Dense','config':{'name':'d','units':2,'batch_input_shape':[null,"
          "2]}}]}}", "g")
    LAYER("RNN", "rn", ",'return_sequences':true,'cell':{'class_name':'StackedRNNCells',"
                       "'config':{'cells':["
          "{'class_name':'SimpleRNNCell','config':{'name':'sc','units':2,"
          "'use_bias':false}}]}}", "td")
    LAYER("Conv1D", "c1", ",'filters':2,'kernel_size':[2],'padding':'causal',"
                          "'dilation_rate':[2]", "rn")
    ",{'class_name':'Dot','name':'dt','config':{'name':'dt','axes':[2,2],'normalize':true},"
    "'inbound_nodes':[[['c1',0,0,{}],['rn',0,0,{}]]]}"
    LAYER("GlobalAveragePooling1D", "ga", "", "dt")
    LAYER("RepeatVector", "rv", ",'n':2", "ga")
    LAYER("Reshape", "rs", ",'target_shape':[3,-1]", "rv")
    "],'input_layers':[['x',0,0],['h',0,0]],'output_layers':[['rs',0,0],['g',0,1]]}}},"
    "'weightsManifest':[{'paths':['w.bin'],'weights':["
    "{'name':'em/embeddings','shape':[4,2],'dtype':'float32'},"
    "{'name':'bi/forward_l/lstm_cell/kernel','shape':[2,8],'dtype':'float32'},"
    "{'name':'bi/forward_l/lstm_cell/recurrent_kernel','shape':[2,8],'dtype':'float32'},"
    "{'name':'bi/forward_l/lstm_cell/bias','shape':[8],'dtype':'float32'},"
    "{'name':'bi/backward_l/kernel','shape':[2,8],'dtype':'float32'},"
    "{'name':'bi/backward_l/recurrent_kernel','shape':[2,8],'dtype':'float32'},"
    "{'name':'bi/backward_l/bias','shape':[8],'dtype':'float32'},"
    "{'name':'g/kernel','shape':[2,6],'dtype':'float32'},{'name':'g/recurrent_kernel',"
    "'shape':[2,6],'dtype':'float32'},"
    "{'name':'g/bias','shape':[2,6],'dtype':'float32'},"
    "{'name':'d/kernel','shape':[2,2],'dtype':'float32'},{'name':'d/bias','shape':[2],"
    "'dtype':'float32'},"
    "{'name':'rn/RNNCell_0/kernel','shape':[2,2],'dtype':'float32'},"
    "{'name':'rn/RNNCell_0/recurrent_kernel','shape':[2,2],'dtype':'float32'},"
    "{'name':'c1/kernel','shape':[2,2,2],'dtype':'float32'},{'name':'c1/bias','shape':[2],"
    "'dtype':'float32'}]}]}";

// Writes the weights to a file. Returns a copy of the document in which " replaces each ', and
// asserts that the copy can be imported.
static char *write_model(const char *document, size_t *out_size)
{
    static const float zeros[512];
    char *text = strdup(document);
    for (char *c = text; *c != '\0'; c++)
        if (*c == '\'')
            *c = '"';
    *out_size = strlen(text);
    json_t *root = json_loads(text, 0, NULL), *weight;
    cr_assert_not_null(root);
    json_t *group = json_array_get(json_object_get(root, "weightsManifest"), 0);
    size_t index, floats = 0;
    json_array_foreach(json_object_get(group, "weights"), index, weight)
    {
        size_t axis, count = 1;
        json_t *size;
        json_array_foreach(json_object_get(weight, "shape"), axis, size) count *=
            (size_t)json_integer_value(size);
        floats += count;
    }
    json_decref(root);
    inf_tfjs_case_write("w.bin", zeros, floats * sizeof *zeros);
    tried = models = 0;
    try_document(text, *out_size);
    cr_assert_eq(models, 1u, "%s", inf_tfjs_case.err.text);
    return text;
}

static void break_all(const char *document)
{
    size_t size;
    char *text = write_model(document, &size);
    models = 0;
    inf_mutate_truncate(text, size, 7, try_document);
    cr_assert_eq(models, 0u);
    inf_mutate_bytes(text, size, 3000, try_document);
    inf_mutate_digits(text, size, 3000, try_document);
    // Expect some accepted models: if a change only affects a name or a number, the later stages of
    // the importer run too.
    cr_assert_gt(models, 100u);
    cr_assert_gt(inf_mutate_values(text, size, try_document), 250u);
    free(text);
}

Test(layers_fuzz, pictures_broken_in_any_way_never_break_the_importer, .timeout = 300)
{
    break_all(pictures);
    cr_assert_gt(tried, 10000u);
}

Test(layers_fuzz, sequences_broken_in_any_way_never_break_the_importer, .timeout = 300)
{
    break_all(sequences);
    cr_assert_gt(tried, 10000u);
}
