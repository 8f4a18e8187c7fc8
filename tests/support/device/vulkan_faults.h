// SPDX-License-Identifier: Apache-2.0
// A Vulkan driver that fails on demand: a layer in front of the real driver (vulkan_fault_layer.c),
// controlled through a file that the test and the process with the layer both map.
#ifndef INF_TESTS_SUPPORT_DEVICE_VULKAN_FAULTS_H
#define INF_TESTS_SUPPORT_DEVICE_VULKAN_FAULTS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

// The environment variable that names the file to the layer.
#define VULKAN_FAULTS_ENV "VULKAN_FAULTS"

// All zero: nothing fails. Results are VkResults that a call returns instead of the driver's.
struct vulkan_faults {
    _Atomic int32_t create_device, submit, wait, allocate, pipeline;
    // Pipelines fail only if this word of their specialisation constants has this value.
    _Atomic uint32_t pipeline_word, pipeline_value;
    // The device has memory of its own that the host cannot see. Set it before the device is
    // opened.
    atomic_bool discrete;
    // Submissions run, but their end is never signalled.
    atomic_bool hang;
    // Set while a device is being created.
    atomic_bool delay_device;
    // The submission with this number sets `raised`; 0: none does.
    _Atomic uint32_t raise_at;
    atomic_bool raised;
    // Number of calls so far.
    _Atomic uint32_t devices, submits, pipelines;
    // Allocations that were not freed.
    _Atomic int32_t allocations;
    // Nanoseconds that the driver spent in submits and waits while `timed` is set: elapsed time,
    // and CPU time of the calling thread.
    atomic_bool timed;
    _Atomic uint64_t submit_ns, submit_cpu_ns, wait_ns, wait_cpu_ns;
};

// Puts the layer in front of the driver, for this process and those that it starts. Call it before
// Vulkan is first used; $VULKAN_FAULT_LAYER is the layer's folder. Returns NULL if that fails.
static inline struct vulkan_faults *vulkan_faults_install(void)
{
    int fd = memfd_create("vulkan-faults", 0); // inherited by child processes
    char path[32];
    const char *folder = getenv("VULKAN_FAULT_LAYER");
    if (folder == NULL || fd < 0 || ftruncate(fd, sizeof(struct vulkan_faults)) != 0)
        return NULL;
    void *memory =
        mmap(NULL, sizeof(struct vulkan_faults), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int)getpid(), fd);
    setenv(VULKAN_FAULTS_ENV, path, 1);
    // Layers that the test runs under stay behind it, so that they see what the driver sees.
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
