// SPDX-License-Identifier: Apache-2.0
// Each of the 248 operators that TensorFlow.js's converter knows is either supported, or is refused
// by name with a reason.
#include <criterion/criterion.h>
#include <string.h>

#include "tests/support/models/tfjs_case.h"

TestSuite(tfjs_all, .init = inf_tfjs_case_init, .fini = inf_tfjs_case_fini);

// The operators of tfjs-converter 4.22. Each row has the operators of one file of the converter's
// folder python/tensorflowjs/op_list.
static const struct {
    const char *category;
    unsigned count;
    const char *operators;
} lists[] = {
    {"arithmetic", 16,
     "Add AddV2 AddN BiasAdd Sub RealDiv Div DivNoNan FloorDiv Mul Maximum Minimum Pow "
     "SquaredDifference Mod FloorMod"},
    {"basic_math", 44,
     "Abs Acos Asin Atan Atan2 Ceil ClipByValue Complex ComplexAbs Cos Cosh Elu Exp Floor Log Imag "
     "Neg Real Prelu Relu Relu6 Selu Sigmoid Sin Sinh Sqrt Rsqrt Square Tan Tanh Sign Round Expm1 "
     "Log1p Reciprocal Softplus Asinh Acosh Atanh Erf LeakyRelu IsNan IsFinite IsInf"},
    {"control", 35,
     "EmptyTensorList LoopCond Switch Merge Enter Exit NextIteration TensorArrayV3 "
     "TensorArrayWriteV3 TensorArrayReadV3 TensorArrayGatherV3 TensorArrayScatterV3 "
     "TensorArrayConcatV3 TensorArraySplitV3 TensorArraySizeV3 TensorArrayCloseV3 StatelessIf If "
     "StatelessWhile While TensorListScatter TensorListScatterV2 TensorListGather "
     "TensorListGetItem TensorListSetItem TensorListReserve TensorListFromTensor TensorListStack "
     "TensorListSplit TensorListConcat TensorListConcatV2 TensorListPopBack TensorListPushBack "
     "TensorListLength TensorListResize"},
    {"convolution", 14,
     "AvgPool MaxPool MaxPoolWithArgmax AvgPool3D MaxPool3D Conv1D Conv2D _FusedConv2D "
     "Conv2DBackpropInput DepthwiseConv2d DepthwiseConv2dNative FusedDepthwiseConv2dNative Conv3D "
     "Dilation2D"},
    {"creation", 13,
     "Fill LinSpace OneHot Ones OnesLike RandomStandardNormal RandomUniform RandomUniformInt Range "
     "TruncatedNormal Zeros ZerosLike Multinomial"},
    {"dynamic", 6,
     "NonMaxSuppressionV2 NonMaxSuppressionV3 NonMaxSuppressionV4 NonMaxSuppressionV5 Where "
     "ListDiff"},
    {"evaluation", 5, "LowerBound TopKV2 UpperBound Unique UniqueV2"},
    {"graph", 14,
     "PlaceholderWithDefault Placeholder Const Identity IdentityN Snapshot Rank Size Shape ShapeN "
     "Print NoOp StopGradient FakeQuantWithMinMaxVars"},
    {"hash_table", 10,
     "HashTable HashTableV2 LookupTableImport LookupTableImportV2 LookupTableFind "
     "LookupTableFindV2 LookupTableSize LookupTableSizeV2 InitializeTable InitializeTableV2"},
    {"image", 4, "ResizeBilinear ResizeNearestNeighbor CropAndResize ImageProjectiveTransformV3"},
    {"logical", 12,
     "Equal NotEqual Greater GreaterEqual Less LessEqual LogicalAnd LogicalNot LogicalOr Select "
     "SelectV2 BitwiseAnd"},
    {"matrices", 7,
     "_FusedMatMul MatMul BatchMatMul BatchMatMulV2 Transpose Einsum MatrixBandPart"},
    {"normalization", 7,
     "EuclideanNorm FusedBatchNorm FusedBatchNormV2 FusedBatchNormV3 LRN Softmax LogSoftmax"},
    {"ragged", 3, "RaggedGather RaggedRange RaggedTensorToTensor"},
    {"reduction", 13,
     "Bincount DenseBincount Max Mean Min Sum All Any ArgMax ArgMin Prod Cumprod Cumsum"},
    {"slice_join", 17,
     "ConcatV2 Concat GatherV2 Gather Reverse ReverseV2 Slice StridedSlice Pack Unpack Tile Split "
     "SplitV ScatterNd GatherNd SparseToDense TensorScatterUpdate"},
    {"sparse", 4, "SparseFillEmptyRows SparseReshape SparseSegmentMean SparseSegmentSum"},
    {"spectral", 4, "FFT IFFT RFFT IRFFT"},
    {"string", 4, "-StaticRegexReplace StringNGrams StringSplit StringToHashBucketFast"},
    {"tfdf", 3,
     "-SimpleMLCreateModelResource -SimpleMLLoadModelFromPathWithHandle "
     "-SimpleMLInferenceOpWithHandle"},
    {"transformation", 13,
     "Cast ExpandDims MirrorPad Pad PadV2 Reshape EnsureShape Squeeze SpaceToBatchND "
     "BatchToSpaceND DepthToSpace BroadcastTo BroadcastArgs"},
};

// Imports a model whose output depends on one node 'n' of the operator. The node has no inputs.
static enum inf_code import_operator(const char *operator)
{
    struct inf_tfjs_writer *w = inf_tfjs_writer_begin(inf_tfjs_case.path);
    inf_tfjs_writer_placeholder(w, "x", "DT_FLOAT", (int64_t[]){2}, 1);
    inf_tfjs_writer_node(w, "n", operator, "x");
    inf_tfjs_writer_attr_float(w, "factor", 0.5);
    inf_tfjs_writer_node(w, "y", "Identity", "n");
    inf_tfjs_writer_output(w, "y", "y");
    inf_tfjs_writer_end(w);
    return inf_tfjs_case_import();
}

// Asserts that the operator is supported: if the import fails, the error is about this node and not
// about the operator.
static void check_built(const char *operator)
{
    enum inf_code code = import_operator(operator);
    cr_assert(code == INF_OK || inf_tfjs_case.err.reason != INF_REASON_OPERATOR, "%s: %s", operator,
              inf_tfjs_case.err.text);
    cr_assert(code == INF_OK || strstr(inf_tfjs_case.err.text, "not supported:") == NULL,
              "%s: %s", operator, inf_tfjs_case.err.text);
}

static void check_refused(const char *operator)
{
    char wanted[160];
    cr_assert_eq(import_operator(operator), INF_UNSUPPORTED, "%s", operator);
    cr_assert_eq(inf_tfjs_case.err.reason, INF_REASON_OPERATOR, "%s", operator);
    snprintf(wanted, sizeof wanted,
             "operators not supported: %s (1 node: 'n' with {\"factor\":{\"f\":0.5}}): ", operator);
    cr_assert_eq(strncmp(inf_tfjs_case.err.text, wanted, strlen(wanted)), 0, "%s",
                 inf_tfjs_case.err.text);
    // The reason must not be that the operator is unknown.
    cr_assert_null(strstr(inf_tfjs_case.err.text, "no operator that"), "%s",
                   inf_tfjs_case.err.text);
}

Test(tfjs_all, every_operator_of_the_converter_is_built_or_refused_by_name)
{
    unsigned total = 0, refused = 0;
    for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++) {
        char text[1024], *rest = text;
        unsigned count = 0;
        strcpy(text, lists[i].operators);
        for (char *name; (name = strtok_r(rest, " ", &rest)) != NULL; count++) {
            if (*name == '-')
                check_refused(name + 1);
            else
                check_built(name);
            refused += *name == '-';
        }
        cr_assert_eq(count, lists[i].count, "%s", lists[i].category);
        total += count;
    }
    cr_assert_eq(total, 248u);
    cr_assert_eq(refused, 4u);
}

Test(tfjs_all, long_attributes_are_cut)
{
    struct inf_tfjs_writer *w = inf_tfjs_writer_begin(inf_tfjs_case.path);
    char text[100];
    memset(text, 'a', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    inf_tfjs_writer_placeholder(w, "x", "DT_FLOAT", (int64_t[]){2}, 1);
    inf_tfjs_writer_node(w, "n", "StaticRegexReplace", "x");
    inf_tfjs_writer_attr_text(w, "pattern", text);
    inf_tfjs_writer_output(w, "y", "n");
    inf_tfjs_case_refuse(w, INF_UNSUPPORTED,
                         "(1 node: 'n' with {\"pattern\":{\"s\":\"...): its regular");
}
