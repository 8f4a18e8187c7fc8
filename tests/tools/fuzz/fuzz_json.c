// SPDX-License-Identifier: Apache-2.0
// Requests in JSON with binary tensors behind them. The first byte of the input, times eight, is
// the size of the JSON text; 255 means that there is no binary part.
#include <stdbool.h>
#include <stdlib.h>

#include "client/gateway/oip/request.h"
#include "tests/tools/fuzz/fuzz.h"

const struct fuzz_seed fuzz_seeds[] = {
    FUZZ_SEED(
        "\xff{\"id\":\"a\",\"parameters\":{\"timeout\":5,\"priority\":1},\"inputs\":[{\"name\":"
        "\"x\",\"shape\":[2,2],\"datatype\":\"FP32\",\"data\":[[1,2.5],[-3e2,4]]}],"
        "\"outputs\":[{\"name\":\"y\",\"parameters\":{\"binary_data\":true}}]}"),
    FUZZ_SEED("\x10{\"inputs\":[{\"name\":\"x\",\"shape\":[2],\"datatype\":\"FP32\",\"parameters\":"
              "{\"binary_data_size\":8}}],\"outputs\":[{\"name\":\"y\"}]}       ABCDEFGH"),
    FUZZ_SEED("\xff{\"inputs\":[{\"name\":\"i\",\"shape\":[3],\"datatype\":\"INT64\",\"data\":"
              "[9223372036854775807,-9223372036854775808,0]},{\"name\":\"b\",\"shape\":[2],"
              "\"datatype\":\"BOOL\",\"data\":[true,false]},{\"name\":\"u\",\"shape\":[1],"
              "\"datatype\":\"UINT8\",\"data\":[255]}]}"),
    FUZZ_SEED("\xff{\"inputs\":[{\"name\":\"s\",\"shape\":[1],\"datatype\":\"BYTES\",\"data\":"
              "[\"text\"]}]}"),
};
const size_t fuzz_seed_count = sizeof fuzz_seeds / sizeof fuzz_seeds[0];
const bool fuzz_has_positions = false;

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    struct inf_span json = {bytes + (size > 0), size - (size > 0)}, binary = {0};
    struct inf_oip_request *request = calloc(1, sizeof *request);
    struct inf_error err;
    if (request == NULL)
        abort();
    if (size > 0 && bytes[0] != 0xff && (size_t)bytes[0] * 8 <= json.size) {
        binary.data = json.data + (size_t)bytes[0] * 8;
        binary.size = json.size - (size_t)bytes[0] * 8;
        json.size = (size_t)bytes[0] * 8;
    }
    if (inf_oip_request_decode(request, json, binary, &err) == INF_OK)
        for (size_t i = 0; i < request->input_count; i++)
            fuzz_read_bytes(request->inputs[i].data, request->inputs[i].size);
    else if (err.text[0] == '\0')
        abort();
    inf_oip_request_fini(request);
    free(request);
    return 0;
}
