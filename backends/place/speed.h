// SPDX-License-Identifier: Apache-2.0
// How fast a device is, by running three small graphs on it: what a rule of thumb wants to know
// before any model was measured.
#ifndef INF_BACKENDS_PLACE_SPEED_H
#define INF_BACKENDS_PLACE_SPEED_H

#include "backends/device/device.h"
#include "backends/graph/graph.h"

// All 0: not measured.
struct inf_speed {
    double macs_per_s;  // of a large matrix product
    double bytes_per_s; // read and written by an addition of large tensors
    uint64_t submit_ns; // what a run costs beside its steps
    uint64_t step_ns;   // what a step costs beside its work
};

// Measures `device` on an executable of its own; `host` is the device behind it, which runs
// everything. Takes some 20 ms, and as long as the device needs to compile four small graphs.
//
// INF_UNSUPPORTED, INF_EXHAUSTED, INF_UNAVAILABLE  the device cannot; *speed is all 0 then.
enum inf_code inf_speed_measure(struct inf_speed *speed, struct inf_device *device,
                                struct inf_device *host,
                                struct inf_error *err) INF_NODISCARD INF_MAY_BLOCK;

// What a model asks of a device.
struct inf_speed_work {
    uint64_t macs, bytes; // bytes: weights, each of which a run reads once
    uint32_t steps;
};

// How long a run should take: arithmetic or memory, whichever takes longer, and what steps and run
// cost beside. 0 where the speed is not known.
uint64_t inf_speed_predict_ns(const struct inf_speed *speed, const struct inf_speed_work *work);

// --- what was measured at an earlier start ---

// Speeds of devices, by their names; kept in DIRECTORY/speed.db.
#define INF_SPEED_BYTES_MAX 65536u

// Reads what an earlier start of this version measured of this device and driver; false where there
// is nothing, or nothing sound. `directory` NULL: nothing is kept.
bool inf_speed_load(struct inf_speed *speed, const struct inf_device *device, const char *version,
                    const char *directory) INF_MAY_BLOCK;

// Appends a speed to the file; where that fails, the next start measures again.
void inf_speed_save(const struct inf_speed *speed, const struct inf_device *device,
                    const char *version, const char *directory) INF_MAY_BLOCK;

#endif
