// SPDX-License-Identifier: Apache-2.0
// Orders devices for a model before anything was measured, by the rules of thumb of TensorFlow.js's
// guide on choosing a backend. The rules use properties of the model and the devices, not times.
#ifndef INF_BACKENDS_PLACE_PRIOR_H
#define INF_BACKENDS_PLACE_PRIOR_H

#include "backends/device/device.h"

// Maximum number of devices to choose from.
#define INF_PLACE_DEVICES 16

// A model below both limits is "ultra-lite": the fixed cost of GPU dispatches exceeds the time that
// a GPU saves, so the CPU comes first ("Introducing the WebAssembly backend for TensorFlow.js",
// 2020).
#define INF_PRIOR_LITE_BYTES ((uint64_t)3 << 20)
#define INF_PRIOR_LITE_MACS  ((uint64_t)60000000)

// TensorFlow.js runs an operation on the CPU if all its inputs have fewer elements than this: the
// thresholds of its WebGL (CPU_HANDOFF_SIZE_THRESHOLD) and WebGPU backends. inferd only counts and
// shows such nodes and does not move them, because in a plan that is submitted as a whole, a small
// step costs less than a change of device.
#define INF_PRIOR_HANDOFF_WEBGL  128u
#define INF_PRIOR_HANDOFF_WEBGPU 1000u

// The properties of a model that the rules use.
struct inf_prior_input {
    uint64_t macs;        // multiply-adds of one run
    uint64_t const_bytes; // bytes of weights
};

// The devices that automatic placement may choose, in the order of expected speed for a model.
struct inf_prior {
    uint32_t order[INF_PLACE_DEVICES]; // indices of devices in the caller's list, the best first
    uint32_t count;
    const char *reason; // why the first device is first; static
};

// Orders `count` devices (at most INF_PLACE_DEVICES); `devices` must be sorted by falling priority.
// GPU interfaces that are emulated on the CPU are left out unless there is no other device. Any
// thread.
struct inf_prior inf_prior_choose(const struct inf_device_info *const *devices, uint32_t count,
                                  const struct inf_prior_input *facts);

#endif
