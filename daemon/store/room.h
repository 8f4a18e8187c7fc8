// SPDX-License-Identifier: Apache-2.0
// Makes room in the budget of memory before a model is loaded. Only for the files of this folder.
#ifndef INF_DAEMON_STORE_ROOM_H
#define INF_DAEMON_STORE_ROOM_H

#include "backends/base/role.h"
#include "daemon/store/state.h"

// Answers the loader's question of `event` whether a model fits. Unloads models that nothing uses
// if that makes room. Gives no answer if room can be made later, when models in use are idle; the
// loader then asks again.
void inf_store_answer_room(struct inf_model_store *store,
                           const struct inf_load_event *event) INF_ON_LOOP;

// Gives back the room of a load that has ended.
void inf_store_release_room(struct inf_model_store *store) INF_ON_LOOP;

#endif
