// SPDX-License-Identifier: Apache-2.0
// The weights of a TensorFlow.js model: the groups of shards of a manifest, read into blobs.
// Quantised weights are decoded to f32 or i32, because this format quantises storage, not
// computation.
#ifndef INF_BACKENDS_IMPORT_COMMON_WEIGHTS_H
#define INF_BACKENDS_IMPORT_COMMON_WEIGHTS_H

#include <stdint.h>

#include "backends/base/blob.h"
#include "backends/base/role.h"
#include "backends/import/common/json.h"
#include "backends/import/common/shards.h"
#include "proto/core/shape.h"

// One weight. Complex numbers are not supported; such weights have the dtype INF_DTYPE_NONE and
// NULL data.
struct inf_weight {
    const char *name;      // owned by the manifest
    const char *type_name; // name of the type in the manifest; owned by the manifest
    enum inf_dtype dtype;  // f32, i32, bool, BYTES, or NONE
    struct inf_shape shape;
    // Row-major elements; for BYTES, the strings as in a message (proto/core/bytes_tensor.h). The
    // weight holds one reference.
    struct inf_blob *data;
};

struct inf_weights {
    struct inf_weight *items; // sorted by name after reading
    size_t count;
};

// Reads all weights of `manifest` (model.json's weightsManifest), whose shards are at `place`. An
// absent manifest has no weights. The caller destroys *out_weights; its names are valid as long as
// the JSON document.
//
// INF_NOT_FOUND    a shard is missing.
// INF_DENIED       a shard's name is not a plain file name, or the shard is a link.
// INF_INVALID      wrong types, a duplicate weight or shard, or sizes that do not match; the text
// names weight and shard.
// INF_UNSUPPORTED  an unknown dtype or quantisation.
// INF_EXHAUSTED    a limit of limits.h, or memory.
//
// Blocks (reads files).
enum inf_code inf_weights_read(struct inf_weights **out_weights, const struct inf_json *manifest,
                               const struct inf_shard_place *place, struct inf_tally *tally,
                               struct inf_error *err) INF_NODISCARD INF_MAY_BLOCK;

// Frees the weights and their references. NULL is allowed.
void inf_weights_destroy(struct inf_weights **weights);

// Returns the weight named `name`; NULL if there is none.
const struct inf_weight *inf_weights_find(const struct inf_weights *weights, const char *name);

#endif
