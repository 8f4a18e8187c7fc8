// SPDX-License-Identifier: Apache-2.0
// Many clients cancel, miss deadlines, send invalid bytes, disconnect and are killed, at random.
// Expect that every accepted request gets exactly one final reply, according to the counts on both
// sides (ledger_case.h). Meanwhile an admin loads the model again and again.
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/daemon/serving/ledger_case.h"

TestSuite(serving_ledger, .init = start_server, .fini = stop_server, .timeout = 3600);

// --- client processes that are killed ---

#define VICTIMS 4

// A process that sends requests until the test kills it. Its records are in shared memory. If it
// receives a wrong reply, it exits by itself.
struct victim {
    pid_t pid;
    struct victim_books {
        uint64_t sent, answered, failed, pieces;
    } * books; // records in memory shared with the process
};

static void ask_for_ever(struct victim_books *books)
{
    static struct client client;
    total_sent = total_answered = total_failed = total_pieces = 0;
    open_client(&client, false);
    for (;;) {
        while (client.sent < STREAMS) {
            send_one(&client);
            if (roll_dice(4) == 0)
                cancel_one(&client);
            read_until(&client, WINDOW);
            *books = (struct victim_books){total_sent, total_answered, total_failed, total_pieces};
        }
        inf_raw_close(&client.raw);
        open_client(&client, false);
    }
}

static void start_victim(struct victim *victim)
{
    if (victim->books == NULL)
        victim->books = mmap(NULL, sizeof *victim->books, PROT_READ | PROT_WRITE,
                             MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    cr_assert_neq(victim->books, MAP_FAILED);
    memset(victim->books, 0, sizeof *victim->books);
    seed++;
    victim->pid = fork();
    cr_assert_geq(victim->pid, 0);
    if (victim->pid == 0)
        ask_for_ever(victim->books);
}

// Kills the process at an arbitrary point, and reads its records.
static void kill_victim(struct victim *victim)
{
    int status;
    cr_assert_eq(kill(victim->pid, SIGKILL), 0);
    cr_assert_eq(waitpid(victim->pid, &status, 0), victim->pid);
    cr_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL,
              "a client ended by itself: an answer was not what it should be");
    total_sent += victim->books->sent;
    total_answered += victim->books->answered;
    total_failed += victim->books->failed;
    total_pieces += victim->books->pieces;
}

Test(serving_ledger, every_accepted_request_has_one_final_reply)
{
    static struct client clients[CLIENTS];
    static struct victim victims[VICTIMS];
    uint64_t wanted = count_wanted(100000);
    unsigned killed = VICTIMS;
    for (int i = 0; i < VICTIMS; i++)
        start_victim(&victims[i]);
    open_clients(clients);
    // The victims send most requests, so that the test's own clients may have few answers when the
    // wanted number is reached.
    while (total_sent < wanted || ledger[ADD][OK] <= wanted / 100) {
        run_step(&clients[roll_dice(CLIENTS)]);
        if (roll_dice(20) == 0)
            load_model(names[ADD], NULL);
        if (roll_dice(100) != 0)
            continue;
        struct victim *victim = &victims[killed++ % VICTIMS];
        kill_victim(victim);
        start_victim(victim);
    }
    end_clients(clients);
    for (int i = 0; i < VICTIMS; i++)
        kill_victim(&victims[i]);
    check_books(total_answered);
    fprintf(stderr,
            "%llu sent, %llu answered (%llu with an error), %llu pieces of answers, %u clients "
            "killed\n",
            (unsigned long long)total_sent, (unsigned long long)total_answered,
            (unsigned long long)total_failed, (unsigned long long)total_pieces, killed);
    // Make sure that each kind of event occurred often enough.
    cr_assert_gt(total_pieces, wanted / 10);
    cr_assert_gt(total_failed, wanted / 20);
    cr_assert_gt(total_answered - total_failed, wanted / 4);
    cr_assert_gt(killed, VICTIMS);
    cr_assert_gt(loads, 2);
    for (int outcome = 0; outcome < OUTCOMES; outcome++)
        cr_assert_gt(ledger[ADD][outcome], 0, "%s", outcome_names[outcome]);
}

// Workers write replies themselves if a connection has only one request in flight. Meanwhile the
// loop handles cancels, deadlines and disconnects. Expect exactly one final reply per request.
Test(serving_ledger, answers_of_workers_are_the_only_ones)
{
    static struct client clients[CLIENTS];
    uint64_t wanted = count_wanted(100000) / 10;
    open_clients(clients);
    while (total_sent < wanted) {
        struct client *client = &clients[roll_dice(CLIENTS)];
        bool vanish = !client->drains && roll_dice(100) == 0;
        if (!vanish)
            read_until(client, 0);
        if (vanish || client->sent == client->limit) {
            inf_raw_close(&client->raw);
            open_client(client, client->drains);
        }
        send_one(client);
        if (roll_dice(4) == 0)
            cancel_one(client);
    }
    end_clients(clients);
    check_books(total_answered);
    cr_assert_gt(total_failed, wanted / 20);
    cr_assert_gt(total_answered - total_failed, wanted / 4);
}

Test(serving_ledger, clients_that_are_killed_leave_nothing_behind)
{
    static struct victim victims[VICTIMS];
    uint32_t fds = inf_fixture_fds(&fixture);
    for (int round = 0; round < 10; round++) {
        for (int i = 0; i < VICTIMS; i++)
            start_victim(&victims[i]);
        usleep(20000 + roll_dice(60000));
        for (int i = 0; i < VICTIMS; i++)
            kill_victim(&victims[i]);
    }
    check_books(total_answered);
    inf_fixture_expect_fds(&fixture, fds + 1);
}
