// SPDX-License-Identifier: Apache-2.0
// How many iterations of loops an invocation of a shader makes. llvmpipe counts the iterations of
// all loops of an invocation together, and after 65,535 of them it ends each loop after one
// iteration, without an error. vk_emit_dispatch() therefore takes their number.
//
// llvmpipe counts each time that it runs the body of a loop, for the longest loop among the
// invocations of a vector. So a loop of n iterations counts n + 1: the last time finds that the
// loop ends. Code that no invocation of the vector takes still runs, with all results masked. So a
// loop inside of code that is skipped counts 1, and so do the loops inside of that loop. A loop of
// a constant length that the compiler unrolls counts nothing; it does not unroll a loop around
// another loop.
#ifndef INF_BACKENDS_VULKAN_LOWERING_LOOPS_H
#define INF_BACKENDS_VULKAN_LOWERING_LOOPS_H

#include <stdint.h>

// The iterations of loops in a piece of code: if the code runs, and if it is skipped.
struct vk_loops {
    uint64_t run, skipped;
};

// A piece of code without loops.
#define VK_NO_LOOPS ((struct vk_loops){0, 0})

// The iterations of a shader whose loops are not longer than a tensor has axes, or than a constant
// of the shader says. The limit of a device leaves room for such loops, also beside longer ones.
#define VK_FEW_ITERATIONS 0

// Returns the iterations of a loop that runs `body` `count` times.
static inline struct vk_loops vk_loop(uint64_t count, struct vk_loops body)
{
    return (struct vk_loops){.run = count * (1 + body.run) + 1 + body.skipped,
                             .skipped = 1 + body.skipped};
}

// Returns the iterations of two pieces of code, one after the other.
static inline struct vk_loops vk_join_loops(struct vk_loops first, struct vk_loops second)
{
    return (struct vk_loops){first.run + second.run, first.skipped + second.skipped};
}

#endif
