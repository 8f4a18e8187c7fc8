// SPDX-License-Identifier: Apache-2.0
// A Vulkan driver that fails when told to: a layer before the real one (vulkan_fault_layer.c), told
// through a file that the test and the process with the layer both map.
#ifndef INF_TESTS_SUPPORT_DEVICE_VULKAN_FAULTS_H
#define INF_TESTS_SUPPORT_DEVICE_VULKAN_FAULTS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

// Names the file to the layer.
#define VULKAN_FAULTS_ENV "VULKAN_FAULTS"

// All zero: nothing fails. Results are VkResults that a call gives in place of the driver's.
struct vulkan_faults {
    _Atomic int32_t create_device, submit, wait, allocate, pipeline;
    // Pipelines fail only where this word of their specialisation constants has this value.
    _Atomic uint32_t pipeline_word, pipeline_value;
    // The device is one with memory of its own, which the host does not see. Before it is opened.
    atomic_bool discrete;
    // Submits go on, but nobody hears that they are done.
    atomic_bool hang;
    // A device is being made while this is set.
    atomic_bool delay_device;
    // `raised` is set by the submit of this number; 0: by none.
    _Atomic uint32_t raise_at;
    atomic_bool raised;
    // Calls so far.
    _Atomic uint32_t devices, submits, pipelines;
    // Allocations that were not freed.
    _Atomic int32_t allocations;
    // Nanoseconds that the driver took of callers of submits and waits while `timed`: of the clock, and of the
    // calling thread's processor.
    atomic_bool timed;
    _Atomic uint64_t submit_ns, submit_cpu_ns, wait_ns, wait_cpu_ns;
};

// Puts the layer before the driver of this process and those it starts. Call it before Vulkan is first
// used; $VULKAN_FAULT_LAYER is the layer's folder. NULL where that cannot be done.
static inline struct vulkan_faults *vulkan_faults_install(void)
{
    int fd = memfd_create("vulkan-faults", 0); // inherited
    char path[32];
    const char *folder = getenv("VULKAN_FAULT_LAYER");
    if (folder == NULL || fd < 0 || ftruncate(fd, sizeof(struct vulkan_faults)) != 0)
        return NULL;
    void *memory =
        mmap(NULL, sizeof(struct vulkan_faults), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int)getpid(), fd);
    setenv(VULKAN_FAULTS_ENV, path, 1);
    // Layers that the test is run under lie behind it, so that they see what the driver sees.
    const char *others = getenv("VK_INSTANCE_LAYERS");
    char paths[4096], layers[256];
    snprintf(paths, sizeof(paths), "%s:/usr/share/vulkan/explicit_layer.d", folder);
    snprintf(layers, sizeof(layers), "VK_LAYER_INFERD_faults%s%s", others != NULL ? ":" : "",
             others != NULL ? others : "");
    setenv("VK_LAYER_PATH", paths, 1);
    setenv("VK_INSTANCE_LAYERS", layers, 1);
    return memory == MAP_FAILED ? NULL : memory;
}

#endif
