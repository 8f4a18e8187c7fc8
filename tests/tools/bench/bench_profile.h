// SPDX-License-Identifier: Apache-2.0
#ifndef INF_TESTS_TOOLS_BENCH_BENCH_PROFILE_H
#define INF_TESTS_TOOLS_BENCH_BENCH_PROFILE_H

#include "tests/tools/bench/bench_subject.h"

// Prints the shortest time of each step of the model over some runs, and its share of the peak of
// one thread.
//
// INF_EXHAUSTED, and the codes of bench_subject_run().
enum inf_code bench_profile(const struct bench_subject *subject, const struct tool_engine *engine,
                            uint32_t threads, struct inf_error *err) INF_NODISCARD INF_MAY_BLOCK;

#endif
