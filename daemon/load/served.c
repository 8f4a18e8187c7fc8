// SPDX-License-Identifier: Apache-2.0
// Reference counting of served models. Any thread may drop the last reference, but freeing a model
// blocks. Therefore the model is passed to the loader, which frees it on its own thread.
#include "daemon/load/served.h"

#include <assert.h>
#include <stdlib.h>

struct inf_served *inf_served_ref(struct inf_served *served)
{
    // Relaxed memory order is enough, because the caller already holds a reference and so the model
    // cannot be freed meanwhile.
    uint32_t before = atomic_fetch_add_explicit(&served->references, 1, memory_order_relaxed);
    assert(before > 0);
    (void)before;
    return served;
}

void inf_served_unref(struct inf_served **served)
{
    struct inf_served *self = *served;
    *served = NULL;
    if (self == NULL)
        return;
    // Acquire-release order makes all writes of the threads that held a reference visible to the
    // thread that frees the model.
    uint32_t before = atomic_fetch_sub_explicit(&self->references, 1, memory_order_acq_rel);
    assert(before > 0);
    if (before == 1)
        self->retire(self);
}

void inf_served_destroy(struct inf_served **served)
{
    struct inf_served *self = *served;
    if (self == NULL)
        return;
    inf_model_unref(&self->model);
    inf_device_unref(&self->device);
    inf_model_description_unref(&self->description);
    free(self->first_shapes);
    free(self);
    *served = NULL;
}
