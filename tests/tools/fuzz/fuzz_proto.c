// SPDX-License-Identifier: Apache-2.0
// Requests in protobuf: ModelInferRequest, and messages with the name of a model.
#include <stdlib.h>
#include <string.h>

#include "client/gateway/oip/request_proto.h"
#include "tests/tools/fuzz/fuzz.h"

const struct fuzz_seed fuzz_seeds[] = {
    // model_name, id, an input with shape and type, a requested output, raw contents
    FUZZ_SEED("\x0a\x01m\x12\x01"
              "1\x1a\x02id\x2a\x0b\x0a\x01x\x12\x04"
              "FP32\x18\x02\x32\x03\x0a\x01y\x3a\x08"
              "ABCDEFGH"),
    // an input with typed contents: packed numbers of fp32_contents
    FUZZ_SEED("\x0a\x01m\x2a\x17\x0a\x01x\x12\x04"
              "FP32\x18\x02\x2a\x0a\x32\x08"
              "ABCDEFGH"),
    // parameters: timeout and priority as int64
    FUZZ_SEED("\x0a\x01m\x22\x0d\x0a\x07timeout\x12\x02\x10\x05\x22\x0e\x0a\x08priority\x12\x02"
              "\x10\x01\x2a\x10\x0a\x01x\x12\x05INT32\x1a\x04\x01\x02\x03\x04\x3a\x04"
              "ABCD"),
};
const size_t fuzz_seed_count = sizeof fuzz_seeds / sizeof fuzz_seeds[0];
const bool fuzz_has_positions = false;

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    struct inf_oip_request *request = calloc(1, sizeof *request);
    struct inf_span message = {bytes, size};
    struct inf_error err;
    char model[INF_LIMIT_MODEL_NAME + 1], version[24];
    if (request == NULL)
        abort();
    if (inf_oip_request_decode_proto(request, message, &err) == INF_OK) {
        for (size_t i = 0; i < request->input_count; i++)
            fuzz_read_bytes(request->inputs[i].data, request->inputs[i].size);
    } else if (err.text[0] == '\0') {
        abort();
    }
    inf_oip_request_fini(request);
    free(request);
    if (inf_oip_name_decode_proto(message, model, version, &err) == INF_OK &&
        (memchr(model, '\0', sizeof model) == NULL ||
         memchr(version, '\0', sizeof version) == NULL))
        abort();
    return 0;
}
