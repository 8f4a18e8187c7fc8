// SPDX-License-Identifier: Apache-2.0
// Passes messages from the loader thread to the loop, in a list. An eventfd is readable while the
// list is not empty. The last message of a job says how the job ended. Its memory is a part of the
// job, so the message can be sent even if memory is exhausted.
#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include "daemon/load/loader_state.h"

void inf_loader_post(struct inf_loader *from, struct inf_load_message *message)
{
    struct inf_loader *loader = from->options.reports_to != NULL ? from->options.reports_to : from;
    inf_mutex_lock(&loader->mutex);
    *loader->messages_tail = message;
    loader->messages_tail = &message->next;
    inf_mutex_unlock(&loader->mutex);
    const uint64_t one = 1;
    while (write(loader->fd, &one, sizeof one) < 0 && errno == EINTR)
        ;
}

struct inf_load_message *inf_loader_receive(struct inf_loader *loader)
{
    // Clear the eventfd before reading the list of messages. If a message is posted in between, the
    // only effect is one superfluous wake-up.
    uint64_t count;
    while (read(loader->fd, &count, sizeof count) < 0 && errno == EINTR)
        ;
    inf_mutex_lock(&loader->mutex);
    struct inf_load_message *message = loader->messages;
    if (message != NULL)
        loader->messages = message->next;
    if (loader->messages == NULL)
        loader->messages_tail = &loader->messages;
    inf_mutex_unlock(&loader->mutex);
    return message;
}

int inf_loader_fd(const struct inf_loader *loader)
{
    return loader->fd;
}

void inf_loader_post_outcome(struct inf_loader *loader, struct inf_load_job *job)
{
    struct inf_load_event *event = &job->message.event;
    event->token = job->token;
    event->final = true;
    snprintf(event->name, sizeof event->name, "%s", job->name);
    snprintf(event->pin, sizeof event->pin, "%s", job->pin);
    snprintf(event->version, sizeof event->version, "%s", job->version);
    job->message.job = job;
    inf_loader_post(loader, &job->message);
}
