// SPDX-License-Identifier: Apache-2.0
// A Vulkan driver that fails on demand: a layer between the application and the real driver
// (vulkan_fault_layer.c). The test controls the layer through a file that the test and the process
// with the layer both map.
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

// The state that the test and the layer share. If all members are 0, nothing fails. If
// create_device, submit, wait, allocate or pipeline is not 0, that call returns this VkResult in
// place of the driver's result.
struct vulkan_faults {
    _Atomic int32_t create_device, submit, wait, allocate, pipeline;
    // `pipeline` applies only to pipelines in whose specialisation constants the word with the
    // number pipeline_word has the value pipeline_value.
    _Atomic uint32_t pipeline_word, pipeline_value;
    // Shaders compute wrongly: if wrong_word is not 0, pipelines in whose specialisation constants
    // the word with this number has the value wrong_value are built with the value wrong_instead.
    _Atomic uint32_t wrong_word, wrong_value, wrong_instead;
    // The device has its own memory that the host cannot access. Set this before the device is
    // opened.
    atomic_bool discrete;
    // The device has a family of queues that only copy. Set this before the device is opened.
    atomic_bool copies;
    // Submissions run, but their completion is never signalled.
    atomic_bool hang;
    // While this is set, creating a device blocks.
    atomic_bool delay_device;
    // The layer sets `raised` at the submission with this number; 0: never.
    _Atomic uint32_t raise_at;
    atomic_bool raised;
    // Number of calls so far that create a device, submit work, or create pipelines.
    _Atomic uint32_t devices, submits, pipelines;
    // Number of command pools so far for the family of queues that only copy.
    _Atomic uint32_t copy_pools;
    // Number of allocations that were not freed yet.
    _Atomic int32_t allocations;
    // While `timed` is set, adds up the nanoseconds that the driver spends in submits and waits:
    // elapsed time, and CPU time of the calling thread.
    atomic_bool timed;
    _Atomic uint64_t submit_ns, submit_cpu_ns, wait_ns, wait_cpu_ns;
};

// Installs the layer for this process and its children. Call it before Vulkan is first used.
// $VULKAN_FAULT_LAYER is the layer's folder. Returns NULL if the layer cannot be installed.
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
    // Keep the layers that the test already uses after this one, so that they see the calls that
    // reach the driver.
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
