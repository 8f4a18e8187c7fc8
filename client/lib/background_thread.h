// SPDX-License-Identifier: Apache-2.0
// The thread of the library's that serves a client, where inferd_start_thread() has made one, and how it
// and the caller's threads share the client.
//
// One mutex guards the client and all that comes from it. Whoever is in the library holds it, and lets go of
// it where it waits and while a callback of the caller's runs. The library's thread alone reads
// the socket, looks at the clock and calls callbacks; others put frames in the queue, write what the socket takes,
// and wait until that thread has got them their answer. Clients without such a thread have
// no mutex: all of these functions are fine with that, and do nothing then.
#ifndef INF_CLIENT_LIB_BACKGROUND_THREAD_H
#define INF_CLIENT_LIB_BACKGROUND_THREAD_H

#include "client/lib/client.h"

// Takes the client for the calling thread, which may have it already. Blocks while another one has it.
void inf_service_enter(inferd_client *client);

// Gives back what was taken last, and wakes the library's thread where there is something for it to do.
void inf_service_leave(inferd_client *client);

// Lets go of the client however often it was taken, for something that may take long; inf_service_resume()
// with the number that is returned takes it back.
unsigned inf_service_pause(inferd_client *client);
void inf_service_resume(inferd_client *client, unsigned depth);

// As these two, around a callback of the caller's.
unsigned inf_service_callback_begin(inferd_client *client);
void inf_service_callback_end(inferd_client *client, unsigned depth);

// Whether another thread than the calling one serves the client.
bool inf_service_is_elsewhere(const inferd_client *client);

// There, waits until something has changed, or `until_ns` (0: no limit). False where there is nothing to
// wait for: the time is over, the connection is, or the client is being closed.
bool inf_service_wait(inferd_client *client, uint64_t until_ns);

// Has threads that wait look again.
void inf_service_changed(inferd_client *client);

// As poll() with the client's socket and `timeout_ms`. The library's thread lets go of the client meanwhile,
// and others can wake it.
void inf_service_poll(inferd_client *client, int timeout_ms);

// Whether a callback of the caller's runs now.
bool inf_service_is_calling(const inferd_client *client);

// Closes the client: waits until no other thread is in the library and its own has ended, and destroys the client;
// called from a callback, has the library's thread do that.
void inf_service_close(inferd_client *client);

// Frees it. The thread has ended, or is the calling one.
void inf_service_destroy(struct inf_service **service);

#endif
