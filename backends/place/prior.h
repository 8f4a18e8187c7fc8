// SPDX-License-Identifier: Apache-2.0
// Where a model runs before anything was measured: the rules of thumb of TensorFlow.js's guide on
// choosing a backend, as an order of devices. Knows no time, only facts.
#ifndef INF_BACKENDS_PLACE_PRIOR_H
#define INF_BACKENDS_PLACE_PRIOR_H

#include "backends/device/device.h"

// Devices that a choice is made from.
#define INF_PLACE_DEVICES 16

// A model below both is "ultra-lite": the fixed cost of a GPU's dispatches is more than what the
// GPU gains, so that the CPU goes first ("Introducing the WebAssembly backend for TensorFlow.js",
// 2020).
#define INF_PRIOR_LITE_BYTES ((uint64_t)3 << 20)
#define INF_PRIOR_LITE_MACS  ((uint64_t)60000000)

// Operations whose inputs are all smaller go to the CPU there: the thresholds of TensorFlow.js's
// WebGL (CPU_HANDOFF_SIZE_THRESHOLD) and WebGPU backends, in elements. Counted and shown, not acted
// on: in a plan that is submitted whole a small step costs less than a change of device.
#define INF_PRIOR_HANDOFF_WEBGL  128u
#define INF_PRIOR_HANDOFF_WEBGPU 1000u

// What the rules go by.
struct inf_prior_input {
    uint64_t macs;        // multiply-adds of one run
    uint64_t const_bytes; // weights
};

// An order, best first, of the devices that automatic choice may take.
struct inf_prior {
    uint32_t order[INF_PLACE_DEVICES]; // indices in the list
    uint32_t count;
    const char *reason; // why the first is first; static
};

// Orders `count` devices (at most INF_PLACE_DEVICES), which come by falling priority. GPU
// interfaces that the CPU computes are left out, unless there is nothing else. Any thread.
struct inf_prior inf_prior_choose(const struct inf_device_info *const *devices, uint32_t count,
                                  const struct inf_prior_input *facts);

#endif
