// SPDX-License-Identifier: Apache-2.0
// Measures round trips that compute nothing: as many bytes as a request and its answer have,
// through a bare socket.
#ifndef INF_CLIENT_INFERCTL_BENCH_COMPARISON_H
#define INF_CLIENT_INFERCTL_BENCH_COMPARISON_H

#include <stddef.h>

// Sends `send_bytes` through a pair of Unix sockets to a thread that reads them and answers with
// `receive_bytes`. Makes `runs` such round trips, and sets total_ms[0 ... runs - 1] to the
// milliseconds that each one took. Returns 0, or -1 if memory, descriptors or threads are
// exhausted.
int beside_socket(size_t send_bytes, size_t receive_bytes, unsigned long runs, double *total_ms);

#endif
