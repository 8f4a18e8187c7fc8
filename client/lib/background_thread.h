// SPDX-License-Identifier: Apache-2.0
// The background thread of a client: starting it (inferd_start_thread()) and ending it.
#ifndef INF_CLIENT_LIB_BACKGROUND_THREAD_H
#define INF_CLIENT_LIB_BACKGROUND_THREAD_H

#include "client/inferd.h"

// Closes a client that has a background thread. Waits until no other thread is in the library and
// the background thread has ended, and destroys the client. If a callback calls it, the background
// thread destroys the client later.
void inf_client_background_thread_close(inferd_client *client);

#endif
