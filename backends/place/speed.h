// SPDX-License-Identifier: Apache-2.0
// Measures the speed of a device by running small graphs on it. The estimates are used for models
// that were not measured yet.
#ifndef INF_BACKENDS_PLACE_SPEED_H
#define INF_BACKENDS_PLACE_SPEED_H

#include "backends/device/device.h"
#include "backends/graph/graph.h"

// The measured speed of a device. All members are 0 if the device was not measured.
struct inf_speed {
    double macs_per_s;  // multiply-adds per second in a large matrix product
    double bytes_per_s; // bytes that an addition of large tensors reads and writes per second
    uint64_t submit_ns; // fixed cost of submitting one run, without the cost of its steps
    uint64_t step_ns;   // fixed cost of one step, without its arithmetic and memory time
};

// Measures `device` with executables that are compiled for this purpose; `host` is the fallback
// device, which supports every node. Takes about 20 ms, plus the time to compile four small graphs
// for the device.
//
// INF_UNSUPPORTED, INF_EXHAUSTED, INF_UNAVAILABLE  the device failed; *speed is all 0 then.
enum inf_code inf_speed_measure(struct inf_speed *speed, struct inf_device *device,
                                struct inf_device *host,
                                struct inf_error *err) INF_NODISCARD INF_MAY_BLOCK;

// The amount of work in one run of a model on a device, from which the run time is estimated.
struct inf_speed_work {
    uint64_t macs, bytes; // bytes of weights; a run reads each once
    uint32_t steps;
};

// Estimates the time of a run: the larger of arithmetic time and memory time, and the fixed costs
// of the run and its steps. Returns 0 if the speed is not known.
uint64_t inf_speed_predict_ns(const struct inf_speed *speed, const struct inf_speed_work *work);

// --- measurements that an earlier start stored ---

// Maximum size of the file of speeds, DIRECTORY/speed.db, which is keyed by device name.
#define INF_SPEED_BYTES_MAX 65536u

// Reads the speed that an earlier start of this version stored for this device and driver. Returns
// false if there is no valid entry. If `directory` is NULL, no file is used.
bool inf_speed_load(struct inf_speed *speed, const struct inf_device *device, const char *version,
                    const char *directory) INF_MAY_BLOCK;

// Appends a speed to the file. If that fails, the next start measures again.
void inf_speed_save(const struct inf_speed *speed, const struct inf_device *device,
                    const char *version, const char *directory) INF_MAY_BLOCK;

#endif
