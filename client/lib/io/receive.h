// SPDX-License-Identifier: Apache-2.0
// Reading from the socket and cutting the bytes into frames.
#ifndef INF_CLIENT_LIB_IO_RECEIVE_H
#define INF_CLIENT_LIB_IO_RECEIVE_H

#include <stddef.h>
#include <stdint.h>

#include "client/inferd.h"
#include "proto/wire/assembler.h"

struct inf_client_receive_buffer {
    struct inf_assembler assembler;
    size_t begin, end; // the bytes that were read and not handled: [begin, end) of `bytes`
    uint8_t bytes[64u << 10];
};

// Reads what has come, up to 4 MiB, and handles each whole frame. Never blocks. If it fails, the
// connection ends.
void inf_client_receive_frames(inferd_client *client);

#endif
