// SPDX-License-Identifier: Apache-2.0
// A table of operators that exporters and optimisers write but that are not supported, with advice
// how to avoid them. A row matches the operators of its domain whose names begin with the name in
// the row; an empty name matches the whole domain. The first row that matches counts.
#include "backends/import/onnx/hint.h"

#include <assert.h>
#include <stddef.h>
#include <string.h>

#include "proto/core/attributes.h"

const char *inf_onnx_find_hint(const char *domain, const char *name)
{
    static const char search[] = "export the network alone: the search for tokens is the client's",
                      masked[] = "export with GroupQueryAttention or MultiHeadAttention",
                      packed[] = "leave out the removal of padding, which is for CUDA",
                      qdq[] = "quantise with quant_format=QDQ",
                      layout[] =
                          "save the optimised model with graph optimisation level 'extended' "
                          "or less: layouts are chosen at load",
                      extensions[] =
                          "these are operators of onnxruntime-extensions: do in the client what "
                          "they do, such as to tokenise texts",
                      pictures[] =
                          "the daemon has no picture decoder: decode in the client, as "
                          "'inferctl infer' does, and make its output an input of the model",
                      map[] = "export the step behind it, whose input is a tensor",
                      training[] = "export the model for inference";
    static const struct {
        const char *domain, *name, *hint;
    } rows[] = {
        {"", "ImageDecoder", pictures},
        {"com.microsoft", "BeamSearch", search},
        {"com.microsoft", "GreedySearch", search},
        {"com.microsoft", "Sampling", search},
        {"com.microsoft", "WhisperBeamSearch", search},
        {"com.microsoft", "DecoderMasked", masked},
        {"com.microsoft", "DecoderAttention", masked},
        {"com.microsoft", "SparseAttention", masked},
        {"com.microsoft", "PagedAttention", masked},
        {"com.microsoft", "Packed", packed},
        {"com.microsoft", "RemovePadding", packed},
        {"com.microsoft", "RestorePadding", packed},
        {"com.microsoft", "QOrdered", qdq},
        {"com.microsoft.nchwc", "", layout},
        {"com.ms.internal.nhwc", "", layout},
        {"ai.onnx.contrib", "", extensions},
        {"ai.onnx.ml", "DictVectorizer", map},
        {"ai.onnx.ml", "CastMap", map},
        {"ai.onnx.preview.training", "", training},
        {"ai.onnx.training", "", training},
    };
    assert(domain != NULL && name != NULL);
    for (size_t i = 0; i < INF_ARRAY_LENGTH(rows); i++)
        if (strcmp(rows[i].domain, domain) == 0 &&
            strncmp(rows[i].name, name, strlen(rows[i].name)) == 0)
            return rows[i].hint;
    return NULL;
}
