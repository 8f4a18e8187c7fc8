// SPDX-License-Identifier: Apache-2.0
// Opens the cpu device: the ISA level, the threads, the packs and the results of kernel timing
// comparisons. The kernels are in native/, quantized/ and xnnpack/.
#include "backends/cpu/cpu.h"

#include <cpuinfo.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/cpu/core/kernel.h"
#include "backends/cpu/native/round_bf16.h"
#include "backends/cpu/program/device.h"
#include "backends/cpu/program/fusion_race.h"
#include "backends/cpu/program/fusion_select.h"
#include "backends/cpu/program/program.h"
#include "backends/cpu/xnnpack/library.h"

#define CPU_PRIORITY 200

static uint32_t cpu_probe(void)
{
    return 1;
}

static void describe_device(struct inf_device_info *info, const struct inf_cpu_device *device)
{
    // cpuinfo is ready here, because XNNPACK has initialised it.
    const struct cpuinfo_package *package = cpuinfo_get_package(0);
    const char *processor = package != NULL && package->name[0] != '\0' ? package->name : "CPU";
    info->kind = INF_DEVICE_CPU;
    info->priority = CPU_PRIORITY;
    info->slots = device->cores.slots;
    info->threads = device->cores.threads;
    info->host_memory = true;
    info->fewer_threads = true;
    if (device->isa->nn->gemm_bf16 != NULL)
        info->precisions = INF_PRECISION_BIT(INF_PRECISION_BF16);
    info->alignment = 64;
    snprintf(info->name, sizeof(info->name), "cpu");
    snprintf(info->backend, sizeof(info->backend), "cpu");
    snprintf(info->description, sizeof(info->description), "%s, XNNPACK, %s", processor,
             device->isa->title);
}

static enum inf_code refuse_isa(const char *name, struct inf_error *err)
{
    char known[96] = "auto";
    for (unsigned level = 0; inf_isa_level(level) != NULL; level++) {
        size_t used = strlen(known);
        snprintf(known + used, sizeof(known) - used, ", %s", inf_isa_level(level)->name);
    }
    return inf_fail(err, INF_INVALID,
                    "cpu: '%s' is no instruction set of this architecture; this processor has %s",
                    name, known);
}

static const struct inf_race_file race_file = {"kernels.db", "inferd-kernels 2",
                                               "memory of kernels"};

static void cpu_close(struct inf_device *base)
{
    struct inf_cpu_device *device = (struct inf_cpu_device *)base;
    inf_race_results_close(&device->race_results);
    inf_cpu_packs_fini(&device->packs);
    inf_cpu_core_set_fini(&device->cores);
    free(device);
}

static enum inf_code cpu_open(struct inf_device **out_device, uint32_t index,
                              const struct inf_device_options *options, struct inf_error *err)
{
    (void)index;
    INF_TRY(inf_xnn_init(err));
    const struct inf_isa *isa = inf_isa_at_most(options->isa_max);
    if (isa == NULL)
        return refuse_isa(options->isa_max, err);
    struct inf_cpu_device *device = calloc(1, sizeof(*device));
    if (device == NULL)
        return inf_fail_reason(err, INF_EXHAUSTED, INF_REASON_HOST_OOM, "cpu: no memory");
    device->isa = isa;
    device->bf16_dot = inf_round_bf16_is_faster(isa->nn);
    enum inf_code code =
        inf_cpu_core_set_init(&device->cores, options->slots, options->threads, err);
    if (code != INF_OK) {
        free(device);
        return code;
    }
    device->wake_ns = inf_cpu_device_measure_wake_ns(device);
    inf_cpu_packs_init(&device->packs, device->isa);
    describe_device(&device->base.info, device);
    if (options->kernel_races)
        code = inf_race_results_open(&device->race_results, options->cache_directory, &race_file,
                                     device->base.info.description, options->log, err);
    if (code != INF_OK) {
        cpu_close(&device->base);
        return code;
    }
    inf_log(options->log, INF_LOG_DEBUG, "cpu device opened slots=%u threads=%u what=\"%s\"",
            device->cores.slots, device->cores.threads, device->base.info.description);
    *out_device = &device->base;
    return INF_OK;
}

static enum inf_code cpu_supports(struct inf_device *device, const struct inf_graph *graph,
                                  uint32_t node, struct inf_error *err)
{
    (void)device;
    const struct inf_cpu_kernel *kernel;
    return inf_cpu_kernel_find(&kernel, graph, &graph->nodes[node], err);
}

static bool cpu_kernel_choices(struct inf_device *base, struct inf_kernel_choices *out_choices)
{
    const struct inf_cpu_device *device = (struct inf_cpu_device *)base;
    if (device->race_results == NULL)
        return false;
    const struct inf_race_results *results = device->race_results;
    *out_choices = (struct inf_kernel_choices){
        .measured = inf_race_results_choices(results, INF_RACE_CHOICE_MEASURED),
        .known = inf_race_results_choices(results, INF_RACE_CHOICE_KNOWN),
        .rule = inf_race_results_choices(results, INF_RACE_CHOICE_RULE),
        .later = inf_race_results_choices(results, INF_RACE_CHOICE_LATER),
        .overturned = inf_race_results_overturned(results),
    };
    return true;
}

static enum inf_code cpu_adopt_form(struct inf_device *base, struct inf_blob *blob,
                                    struct inf_form_record *record, struct inf_blob_form **out_form,
                                    struct inf_error *err)
{
    struct inf_cpu_device *device = (struct inf_cpu_device *)base;
    return inf_cpu_pack_adopt(out_form, &device->packs, base, blob, record, err);
}

const struct inf_backend inf_cpu_backend = {
    .name = "cpu",
    .priority = CPU_PRIORITY,
    .probe = cpu_probe,
    .open = cpu_open,
    .close = cpu_close,
    .supports = cpu_supports,
    .choose_kernels = inf_cpu_fusion_race_segment,
    .fused_into = inf_cpu_fusion_fused_into,
    .compile = inf_cpu_program_compile,
    .program_destroy = inf_cpu_program_destroy,
    .packed = inf_cpu_program_packed,
    .adopt_form = cpu_adopt_form,
    .run = inf_cpu_program_run,
    .profile = inf_cpu_program_profile,
    .kernel_choices = cpu_kernel_choices,
};
