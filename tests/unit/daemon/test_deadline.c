// SPDX-License-Identifier: Apache-2.0
// The heap of deadlines and its timer.
#include <criterion/criterion.h>
#include <poll.h>
#include <stdlib.h>

#include "backends/base/clock.h"
#include "daemon/policy/deadline.h"

// Creates a heap with room for `capacity` deadlines. Fails the test on an error.
static struct inf_deadlines *make_deadline(uint32_t capacity)
{
    struct inf_deadlines *deadlines = NULL;
    struct inf_error err;
    cr_assert_eq(inf_deadlines_create(&deadlines, capacity, &err), INF_OK);
    return deadlines;
}

static bool is_readable(const struct inf_deadlines *deadlines, int timeout_ms)
{
    struct pollfd wait = {.fd = inf_deadlines_fd(deadlines), .events = POLLIN};
    return poll(&wait, 1, timeout_ms) == 1;
}

Test(deadline, comes_in_order_whatever_the_order_of_adding)
{
    enum {
        COUNT = 1000
    };
    static struct inf_deadline items[COUNT];
    struct inf_deadlines *deadlines = make_deadline(COUNT);
    inf_role_enter_loop();
    unsigned seed = 3;
    uint32_t kept = COUNT;
    for (int i = 0; i < COUNT; i++) {
        items[i].at_ns = 1 + (uint64_t)(rand_r(&seed) % 500);
        inf_deadlines_add(deadlines, &items[i]);
    }
    for (int i = 0; i < COUNT; i += 3, kept--) {
        inf_deadlines_remove(deadlines, &items[i]);
        // Removing a deadline a second time does nothing.
        inf_deadlines_remove(deadlines, &items[i]);
    }
    cr_assert(is_readable(deadlines, 1000));
    uint64_t last_ns = 0;
    struct inf_deadline *next;
    for (; (next = inf_deadlines_next(deadlines)) != NULL; kept--) {
        cr_assert_geq(next->at_ns, last_ns);
        cr_assert_neq((next - items) % 3, 0, "one that was removed");
        last_ns = next->at_ns;
    }
    cr_assert_eq(kept, 0);
    cr_assert_not(is_readable(deadlines, 0), "nothing is left, but the timer still fires");
    inf_deadlines_destroy(&deadlines);
}

Test(deadline, wakes_at_its_time_and_not_earlier)
{
    struct inf_deadlines *deadlines = make_deadline(4);
    struct inf_deadline none = {.at_ns = 0};
    struct inf_deadline far = {.at_ns = inf_clock_ns() + 3600ull * INF_NS_PER_S};
    struct inf_deadline near = {.at_ns = inf_clock_ns() + 50 * INF_NS_PER_MS};
    inf_role_enter_loop();
    inf_deadlines_add(deadlines, &none);
    cr_assert_null(inf_deadlines_next(deadlines));
    inf_deadlines_add(deadlines, &far);
    inf_deadlines_add(deadlines, &near);
    cr_assert_not(is_readable(deadlines, 0));
    cr_assert(is_readable(deadlines, 2000));
    cr_assert_geq(inf_clock_ns(), near.at_ns);
    cr_assert_eq(inf_deadlines_next(deadlines), &near);
    cr_assert_null(inf_deadlines_next(deadlines));
    cr_assert_not(is_readable(deadlines, 0));
    inf_deadlines_remove(deadlines, &far);
    inf_deadlines_destroy(&deadlines);
    cr_assert_null(deadlines);
    inf_deadlines_destroy(&deadlines);
}
