// SPDX-License-Identifier: Apache-2.0
// A served model looked into, on the loader thread: how long each node takes, where a value first
// is no number, where two devices first part.
#ifndef INF_DAEMON_LOAD_INSPECT_H
#define INF_DAEMON_LOAD_INSPECT_H

#include "backends/exec/model/inspect.h"
#include "proto/core/limits.h"
#include "proto/wire/message.h"

enum inf_inspect_mode {
    INF_INSPECT_PROFILE, // times, of the steps as they run
    INF_INSPECT_DEBUG,   // every value looked at
    INF_INSPECT_DIFF,    // every value compared with another device's
    INF_INSPECT_MODES,
};

// Parses "profile", "debug" or "diff"; false for anything else.
bool inf_inspect_mode_parse(const char *text, enum inf_inspect_mode *mode);

// What is to be looked into, and how.
struct inf_inspect_request {
    enum inf_inspect_mode mode;
    struct inf_device *device;    // no references: the device list's
    struct inf_device *against;   // diff
    enum inf_precision precision; // on `device`; AUTO: as the model is placed
    double tolerance;             // diff
    bool given; // inputs are; else they are generated, with 1 for unknown dimensions
    struct inf_shape shapes[INF_LIMIT_TENSORS];
    struct inf_blob *inputs[INF_LIMIT_TENSORS]; // one reference each
};

// Frees the order with its inputs. NULL is fine.
void inf_inspect_request_destroy(struct inf_inspect_request **order);

// Nodes that are reported at once.
#define INF_INSPECT_ROWS 48u

// Some nodes, with the texts that the entries point to.
struct inf_inspect_rows {
    uint32_t count;
    struct inf_node_entry entries[INF_INSPECT_ROWS];
    struct {
        char name[128], shape[96], inputs[256];
    } texts[INF_INSPECT_ROWS];
};

// Who takes rows. Each is from calloc(), and the taker's.
struct inf_inspect_sink {
    void (*take)(void *context, struct inf_inspect_rows *rows, uint32_t percent);
    void *context;
};

// Runs the model as ordered and hands over a row for each node, in order.
//
// INF_INVALID, INF_UNSUPPORTED, INF_EXHAUSTED, INF_UNAVAILABLE  the model cannot be looked into; the
// text says why.
enum inf_code inf_inspect_run(struct inf_model *model, const struct inf_inspect_request *order,
                              const struct inf_inspect_sink *sink,
                              struct inf_error *err) INF_NODISCARD INF_MAY_BLOCK;

#endif
