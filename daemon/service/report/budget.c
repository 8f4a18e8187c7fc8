// SPDX-License-Identifier: Apache-2.0
// Prints the topic "memory": how much memory the daemon may use, where the limit comes from, what
// the memory is used for, and how often models were loaded again and unloaded for it.
#include "daemon/service/report/report.h"

void inf_service_print_budget(struct inf_service *service, struct inf_report_text *report)
{
    static const struct inf_memory_budget none;
    const struct inf_memory_budget *budget =
        service->options.memory_budget != NULL ? service->options.memory_budget : &none;
    const struct inf_model_store_counts counts = inf_model_store_counts(service->options.store);
    inf_service_update_memory(service);
    inf_report_open(report, NULL, '{');
    inf_report_add_number(report, "limit_bytes", budget->limit_bytes);
    inf_report_add_text(report, "limit_source", budget->source);
    inf_report_add_number(report, "used_bytes", inf_memory_budget_used(budget));
    inf_report_open(report, "uses", '{');
    for (enum inf_memory_use use = 0; use < INF_MEMORY_USES; use++)
        inf_report_add_number(report, inf_memory_use_name(use), budget->used[use]);
    inf_report_close(report, '}');
    inf_report_add_number(report, "unloaded_idle", counts.unloaded_idle);
    inf_report_add_number(report, "unloaded_memory", counts.unloaded_memory);
    inf_report_add_number(report, "unloaded_pressure", counts.unloaded_pressure);
    inf_report_add_number(report, "loads_deferred", counts.loads_deferred);
    inf_report_add_number(report, "loads_refused", counts.loads_refused);
    inf_report_close(report, '}');
}
