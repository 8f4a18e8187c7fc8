// SPDX-License-Identifier: Apache-2.0
// Writes one screen of inferctl top as text.
#ifndef INF_CLIENT_INFERCTL_TOP_VIEW_H
#define INF_CLIENT_INFERCTL_TOP_VIEW_H

#include <stdbool.h>
#include <stdio.h>

#include "client/inferctl/top/sample.h"

// The value by which models and clients are sorted. Requests are always listed oldest first.
enum view_order {
    VIEW_BY_RATE,
    VIEW_BY_MEMORY,
    VIEW_BY_NAME,
    VIEW_ORDERS,
};

struct view {
    unsigned width;  // number of columns; longer lines are cut
    unsigned height; // number of lines; 0: no limit
    bool colour;     // use escape sequences for colours
    // Escape sequence before each newline that clears the line behind the text; "": none.
    const char *line_end;
    enum view_order order;
    const char *filter; // show only rows with this text in a name; "": all rows
};

// Returns the name of an order, such as "rate".
const char *view_order_name(enum view_order order);

// Writes the screen for the sample `now` to `out`, with the rates since the sample `before`.
void view_draw(const struct view *view, const struct sample *before, const struct sample *now,
               FILE *out);

#endif
