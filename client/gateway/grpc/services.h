// SPDX-License-Identifier: Apache-2.0
// Descriptors of the gRPC services of the gateway, as server reflection reports them.
#ifndef INF_GATEWAY_GRPC_SERVICES_H
#define INF_GATEWAY_GRPC_SERVICES_H

#include <stdbool.h>

#include "proto/core/span.h"

// Sets *file to descriptor `index`, a FileDescriptorProto in the encoding of protobuf. Returns
// false if there are not so many. The bytes are constant.
bool inf_grpc_services_file(unsigned index, struct inf_span *file);

// Returns true if the file has this name.
bool inf_grpc_services_file_is(struct inf_span file, struct inf_span name);

// Returns true if the file defines `symbol`, the full name of a service, method, message or enum.
bool inf_grpc_services_file_has(struct inf_span file, struct inf_span symbol);

// Sets *package and *name to the parts of the full name of the service `index` of the file. Returns
// false if there are not so many.
bool inf_grpc_services_name(struct inf_span file, unsigned index, struct inf_span *package,
                            struct inf_span *name);

#endif
