// SPDX-License-Identifier: Apache-2.0
// What a round trip costs where nobody computes: the same bytes through a bare socket.
#ifndef INF_CLIENT_INFERCTL_BENCH_COMPARISON_H
#define INF_CLIENT_INFERCTL_BENCH_COMPARISON_H

#include <stddef.h>

// Sends `send_bytes` through a pair of Unix sockets to a thread that only reads them and answers with
// `receive_bytes`, `runs` times one after the other, and fills total_ms[0 ... runs - 1]. 0, or -1 where
// memory, descriptors or threads are short.
int beside_socket(size_t send_bytes, size_t receive_bytes, unsigned long runs, double *total_ms);

#endif
