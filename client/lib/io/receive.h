// SPDX-License-Identifier: Apache-2.0
// Reads from the socket and splits the bytes into frames.
#ifndef INF_CLIENT_LIB_IO_RECEIVE_H
#define INF_CLIENT_LIB_IO_RECEIVE_H

#include <stddef.h>
#include <stdint.h>

#include "client/inferd.h"
#include "proto/wire/assembler.h"

struct inf_client_receive_buffer {
    struct inf_assembler assembler;
    size_t begin, end; // the bytes [begin, end) of `bytes` were read and not handled yet
    uint8_t bytes[64u << 10];
};

// Reads the bytes that have arrived, up to 4 MiB, and handles each whole frame. Never blocks. If it
// fails, the connection ends.
void inf_client_receive_frames(inferd_client *client);

#endif
