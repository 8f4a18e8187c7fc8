// SPDX-License-Identifier: Apache-2.0
// A table of backends for a daemon under test, which includes faulty backends. --backends selects
// them by name.
#include <stddef.h>

#include "backends/ref/ref.h"
#include "backends/registry_table.h"
#include "tests/support/device/odd_devices.h"

const struct inf_backend *const inf_registry_table[] = {&inf_absent_backend,
                                                        &inf_half_backend,
                                                        &inf_refusing_backend,
                                                        &inf_turning_backend,
                                                        &inf_wrong_backend,
                                                        &inf_slow_backend,
                                                        &inf_steady_backend,
                                                        &inf_lazy_backend,
                                                        &inf_telling_backend,
                                                        &inf_ref_backend,
                                                        NULL};
