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
    struct inf_device *device;    // device that runs the inspected model; borrowed
    struct inf_device *against;   // device to compare with; only for INF_INSPECT_DIFF
    enum inf_precision precision; // precision of the run; AUTO: that of the model's placement
    double tolerance;             // allowed difference of values; only for INF_INSPECT_DIFF
    // True: the client gave `inputs`; false: the daemon generates inputs, in which dimensions of
    // open size have size 1.
    bool given;
    struct inf_shape shapes[INF_LIMIT_TENSORS];
    struct inf_blob *inputs[INF_LIMIT_TENSORS]; // tensors from the client; one reference to each
};

// Frees the request with its inputs. NULL is allowed.
void inf_inspect_request_destroy(struct inf_inspect_request **order);

// The most nodes in one report; a larger model is described by several reports.
#define INF_INSPECT_ROWS 48u

// A report about up to INF_INSPECT_ROWS nodes, one entry each. `texts` holds the strings that the
// entries point to.
struct inf_inspect_rows {
    uint32_t count;
    struct inf_node_entry entries[INF_INSPECT_ROWS];
    struct {
        char name[128], shape[96], inputs[256];
    } texts[INF_INSPECT_ROWS];
};

// Receives the reports of one inspection. The callback must release each report with free().
struct inf_inspect_sink {
    void (*take)(void *context, struct inf_inspect_rows *rows, uint32_t percent);
    void *context;
};

// Runs the model as requested, and passes reports with one entry per node to the sink, in the order
// of the nodes.
//
// INF_INVALID, INF_UNSUPPORTED, INF_EXHAUSTED, INF_UNAVAILABLE  the model cannot be inspected; the
//              text says why.
enum inf_code inf_inspect_run(struct inf_model *model, const struct inf_inspect_request *order,
                              const struct inf_inspect_sink *sink,
                              struct inf_error *err) INF_NODISCARD INF_MAY_BLOCK;

#endif
