// SPDX-License-Identifier: Apache-2.0
// The whole import of TFLite files: a file becomes a verified graph, or is refused with a text.
#include <stdlib.h>

#include "backends/graph/shape/verify.h"
#include "backends/import/common/description.h"
#include "backends/import/tflite/tflite.h"
#include "backends/ref/ref.h"
#include "tests/tools/fuzz/fuzz.h"
#include "tests/tools/fuzz/tflite_seeds.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    char producer[64];
    struct inf_error err = {0};
    struct inf_graph *graph = NULL;
    struct inf_model_description *description = NULL;
    const struct inf_import_options options = {.evaluator = inf_ref_evaluator(),
                                               .description = &description};
    enum inf_code code =
        inf_tflite_import(&graph, producer, (struct inf_span){bytes, size}, NULL, &options, &err);
    if (code == INF_OK && inf_graph_verify(graph, &err) != INF_OK)
        abort();
    if (code != INF_OK && (err.text[0] == '\0' || graph != NULL || description != NULL))
        abort();
    inf_graph_destroy(&graph);
    inf_model_description_unref(&description);
    return 0;
}
