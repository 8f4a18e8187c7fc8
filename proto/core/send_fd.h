// SPDX-License-Identifier: Apache-2.0
// Sends a file descriptor over a Unix socket, as a part of a message for sendmsg().
#ifndef INF_PROTO_CORE_SEND_FD_H
#define INF_PROTO_CORE_SEND_FD_H

#include <string.h>
#include <sys/socket.h>

// Memory for one descriptor in a message, aligned as struct cmsghdr needs it.
union inf_send_fd_control {
    struct cmsghdr align;
    char bytes[CMSG_SPACE(sizeof(int))];
};

// Makes `message` carry `fd`. The message refers to *control, which the caller keeps until the
// message is sent. The caller still owns `fd`; the receiver gets a duplicate.
static inline void inf_send_fd_attach(struct msghdr *message, union inf_send_fd_control *control,
                                      int fd)
{
    memset(control, 0, sizeof *control);
    message->msg_control = control->bytes;
    message->msg_controllen = sizeof control->bytes;
    struct cmsghdr *header = CMSG_FIRSTHDR(message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof fd);
    memcpy(CMSG_DATA(header), &fd, sizeof fd);
}

#endif
