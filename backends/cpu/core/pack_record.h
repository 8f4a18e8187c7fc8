// SPDX-License-Identifier: Apache-2.0
// Descriptions of packs for files (struct inf_form_record).
#ifndef INF_BACKENDS_CPU_CORE_PACK_RECORD_H
#define INF_BACKENDS_CPU_CORE_PACK_RECORD_H

#include "backends/cpu/core/pack.h"

// Describes a pack; the parts of the record are borrowed from it. Any thread.
void inf_cpu_pack_record_write(const struct inf_blob_form *form, struct inf_form_record *record);

// Checks that a record is of a pack for the kernels of `isa`.
//
// INF_UNSUPPORTED  it is of a pack for other kernels.
enum inf_code inf_cpu_pack_record_check_isa(const struct inf_form_record *record,
                                            const struct inf_isa *isa,
                                            struct inf_error *err) INF_NODISCARD;

// Sets the matrix of a pack, whose blob is set, to the one that a record describes. Returns false
// if the blob has no such matrix. The sizes of the parts are not compared.
bool inf_cpu_pack_record_read(struct inf_cpu_pack *pack,
                              const struct inf_form_record *record) INF_NODISCARD;

#endif
