// SPDX-License-Identifier: Apache-2.0
// Inspects a served model node by node: how long each node takes, which node produces the first
// non-finite value, and where two devices first differ. Used on the loader thread.
#ifndef INF_DAEMON_LOAD_INSPECT_H
#define INF_DAEMON_LOAD_INSPECT_H

#include "backends/exec/model/inspection.h"
#include "proto/core/limits.h"
#include "proto/wire/message.h"

enum inf_inspect_mode {
    INF_INSPECT_PROFILE, // the time of each step
    INF_INSPECT_DEBUG,   // the value range of each node, and NaN and infinite values
    INF_INSPECT_DIFF,    // each value compared with the same value on another device
    INF_INSPECT_MODES,
};

// Parses "profile", "debug" or "diff" into *mode. Returns false for any other text.
bool inf_inspect_mode_parse(const char *text, enum inf_inspect_mode *mode);

// A request to inspect a model.
struct inf_inspect_request {
    enum inf_inspect_mode mode;
    struct inf_device *device;    // borrowed from the device list
    struct inf_device *against;   // the device to compare with; only for diff
    enum inf_precision precision; // precision on `device`; AUTO: as the model is placed
    double tolerance;             // allowed difference; only for diff
    // True: the client gave `inputs`; false: the daemon generates inputs, with 1 for open
    // dimensions.
    bool given;
    struct inf_shape shapes[INF_LIMIT_TENSORS];
    struct inf_blob *inputs[INF_LIMIT_TENSORS]; // one reference each
};

// Frees the request with its inputs. NULL is allowed.
void inf_inspect_request_destroy(struct inf_inspect_request **order);

// The most nodes in one report; a larger model is described by several reports.
#define INF_INSPECT_ROWS 48u

// A report about up to INF_INSPECT_ROWS nodes. Also contains the texts that its entries point to.
struct inf_inspect_rows {
    uint32_t count;
    struct inf_node_entry entries[INF_INSPECT_ROWS];
    struct {
        char name[128], shape[96], inputs[256];
    } texts[INF_INSPECT_ROWS];
};

// A callback and its context. The callback receives each report, which is from calloc(), and frees
// it.
struct inf_inspect_sink {
    void (*take)(void *context, struct inf_inspect_rows *rows, uint32_t percent);
    void *context;
};

// Runs the model as requested, and passes a row for each node to the sink, in order.
//
// INF_INVALID, INF_UNSUPPORTED, INF_EXHAUSTED, INF_UNAVAILABLE  the model cannot be inspected; the
//              text says why.
enum inf_code inf_inspect_run(struct inf_model *model, const struct inf_inspect_request *order,
                              const struct inf_inspect_sink *sink,
                              struct inf_error *err) INF_NODISCARD INF_MAY_BLOCK;

#endif
