// SPDX-License-Identifier: Apache-2.0
// Records in shared memory which frames of a client await an answer and how far each answer is
// sent. The memory outlives the process, so that the next process can end every request exactly
// once, even if this one is killed. send_log.c explains how.
#ifndef INF_DAEMON_OUTPUT_SEND_LOG_H
#define INF_DAEMON_OUTPUT_SEND_LOG_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include "proto/core/limits.h"

// The most frames that one call of inf_send_log_send() sends.
#define INF_SEND_LOG_FRAMES 16u
// A send of at most this many bytes goes to the socket whole or not at all, because the kernel
// copies it into one buffer. Larger sends are made of one frame only.
#define INF_SEND_LOG_WHOLE_BYTES (16u << 10)
// The first entries of a table are for requests whose answer a worker may send.
#define INF_SEND_LOG_DIRECT 4u

enum inf_pending_state {
    INF_PENDING_FREE,  // the entry is not used, or its answer is sent
    INF_PENDING_TAKEN, // the frame was accepted, and its request was not begun
    INF_PENDING_BEGUN, // a worker has begun the request
};

// A frame of the client that awaits its answer. In shared memory.
struct inf_pending {
    uint64_t stream_id;
    // Region that a frame such as MEM_REGISTER names, 0: not known; in a free entry: index of the
    // next one.
    uint64_t value;
    // The read that brought the last byte of the frame, and the end of the frame in it. They tell
    // whether the frame was accepted, see daemon/handover/handover.h.
    uint64_t read_number;
    uint32_t read_end;
    uint16_t method;
    uint8_t type;          // type of the frame
    _Atomic uint8_t state; // enum inf_pending_state
};

// Notes that a worker begins the request of an entry. NULL is allowed. The request may be answered
// already, and its entry free or used again; then it is at worst reported as begun too early.
static inline void inf_pending_begin(struct inf_pending *pending)
{
    uint8_t taken = INF_PENDING_TAKEN;
    if (pending != NULL)
        (void)atomic_compare_exchange_strong_explicit(&pending->state, &taken, INF_PENDING_BEGUN,
                                                      memory_order_relaxed, memory_order_relaxed);
}

enum inf_sent_flag {
    INF_SENT_PARTIAL = 1, // earlier calls have sent a part of the frame
    INF_SENT_FILL = 2,    // the rest of the frame may be replaced by zeros
};

// A frame that is being sent. In shared memory.
struct inf_sent_frame {
    uint64_t stream_id;      // of the entry; set by inf_send_log_send()
    uint32_t bytes;          // bytes of the frame that are not sent yet
    uint16_t pending_plus_1; // the entry that the frame answers, plus 1; 0: none
    uint8_t flags;           // of enum inf_sent_flag
    uint8_t reserved;
};

struct inf_sent_half {
    // The argument of sendmmsg(). The kernel writes msg_len, the number of bytes that were sent,
    // before the call returns. Its pointers are valid in the process that wrote them only.
    struct mmsghdr message;
    uint32_t count; // number of elements of `frames` that are valid
    uint32_t reserved;
    struct inf_sent_frame frames[INF_SEND_LOG_FRAMES];
};

// What is being sent on one connection. In shared memory; all zero: nothing.
struct inf_sent_record {
    struct inf_sent_half halves[2];
    _Atomic uint32_t active; // index of the half that is valid
    uint32_t reserved;
};

// The log of one connection. Only the thread that may write to the socket (reply_writer.h) calls
// inf_send_log_send(); only the loop calls the other functions.
struct inf_send_log {
    struct inf_sent_record *record; // in shared memory
    struct inf_pending *pendings;   // INF_LIMIT_KEPT_PENDINGS entries in shared memory
    uint32_t first_free;            // index of the first free entry, plus 1; 0: none
    uint32_t used;                  // entries from this index on were never used
};

// Initialises the log of a connection. If `fresh` is set, the shared memory is all zero and no
// frame awaits an answer; otherwise entries that another process wrote are kept.
void inf_send_log_init(struct inf_send_log *log, struct inf_sent_record *record,
                       struct inf_pending *pendings, bool fresh);

// Adds an entry with the fields of `frame`, and returns its index plus 1; 0: the table is full. If
// `direct` is set, a worker may send the answer.
uint32_t inf_send_log_add(struct inf_send_log *log, const struct inf_pending *frame, bool direct);

// Frees an entry without an answer. `pending_plus_1` is the result of inf_send_log_add(). Does
// nothing if it is 0.
void inf_send_log_remove(struct inf_send_log *log, uint32_t pending_plus_1);

// Sends the bytes of `count` frames with one system call, as sendmsg() does with these flags, and
// frees the entries of the frames that are sent whole. Returns the number of bytes sent, or -1 and
// sets errno.
ssize_t inf_send_log_send(struct inf_send_log *log, int fd, const struct msghdr *message,
                          const struct inf_sent_frame *frames, uint32_t count, int flags);

// The frame of which another process sent a part.
struct inf_sent_rest {
    uint32_t bytes; // bytes that are missing; 0: there is no such frame
    bool fill;      // the missing bytes may be zeros
};

// Frees the entries of frames that another process sent whole, and finds the frame of which it sent
// a part. Returns false if the record is invalid.
bool inf_send_log_recover(struct inf_send_log *log, struct inf_sent_rest *rest);

#endif
