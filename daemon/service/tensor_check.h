// SPDX-License-Identifier: Apache-2.0
// Checks the tensors of a request against the inputs and outputs of its model.
#ifndef INF_DAEMON_SERVICE_TENSOR_CHECK_H
#define INF_DAEMON_SERVICE_TENSOR_CHECK_H

#include "daemon/service/state.h"

// Buffer size for the text that inf_service_describe_value() writes.
#define INF_SERVICE_VALUE_TEXT (INF_SHAPE_TEXT_SIZE + 16)

// Writes the data type and shape of a value for an error text: "FP32 [1,?,3]". Returns `text`.
const char *inf_service_describe_value(const struct inf_value *value,
                                       char text[INF_SERVICE_VALUE_TEXT]);

// Fails because the model has no tensor called `name`. `what` is "input" or "output".
enum inf_code inf_service_refuse_tensor(const char *what, const char *name,
                                        const struct inf_port *ports, uint32_t count,
                                        struct inf_fault *fault) INF_NODISCARD;

// Fails if the data type or shape of an input does not fit the model.
//
// INF_INVALID  (DTYPE_MISMATCH, SHAPE_MISMATCH)
enum inf_code inf_service_check_input(const struct inf_tensor_entry *entry,
                                      const struct inf_value *value,
                                      struct inf_fault *fault) INF_NODISCARD;

// Fails because a request names an input or output twice, the second time as `name`: once with and
// once without the ":0" that inf_service_find_port() ignores. `what` is "input" or "output".
//
// INF_INVALID  (BAD_PARAMETER)
enum inf_code inf_service_refuse_twice(const char *what, const char *name,
                                       struct inf_fault *fault) INF_NODISCARD;

// Returns the index of the input or output called `name`, or `count` if there is none. The name may
// have or lack a ":0" at its end, as inf_tensor_names_find() allows. Compares the
// port with index `guess` first, because that is likely the right one.
uint32_t inf_service_find_port(const struct inf_port *ports, uint32_t count, const char *name,
                               uint32_t guess);

#endif
