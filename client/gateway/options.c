// SPDX-License-Identifier: Apache-2.0
// Parses the command line. Every member of struct inf_http_limits has an option, with a default
// that suits one machine with a few hundred clients.
#include "client/gateway/options.h"

#include <errno.h>
#include <getopt.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct number {
    const char *name;
    size_t offset;            // of the field in struct inf_gateway_options
    unsigned bytes;           // size of the field
    uint64_t min, max, value; // `value` is the default
} numbers[] = {
#define LIMIT(name, field, min, max, value)                                                        \
    {                                                                                              \
        name, offsetof(struct inf_gateway_options, limits.field),                                  \
            sizeof(((struct inf_http_limits *)0)->field), min, max, value                          \
    }
    LIMIT("connections-max", connections_max, 1, 100000, 1024),
    LIMIT("body-max-bytes", body_bytes_max, 1024, (uint64_t)4 << 30, (uint64_t)64 << 20),
    LIMIT("bodies-max-bytes", total_body_bytes_max, 1024, (uint64_t)1 << 40, (uint64_t)512 << 20),
    LIMIT("head-timeout-ms", head_ms, 1, 3600000, 10000),
    LIMIT("body-timeout-ms", body_ms, 1, 3600000, 60000),
    LIMIT("idle-timeout-ms", idle_ms, 1, 3600000, 75000),
    LIMIT("write-timeout-ms", write_ms, 1, 3600000, 30000),
#undef LIMIT
    {"sequences-max", offsetof(struct inf_gateway_options, sequences_max), 8, 0, 65536, 128},
    {"sequence-idle-ms", offsetof(struct inf_gateway_options, sequence_idle_ms), 8, 1, 86400000,
     60000},
    {"timeout-ms", offsetof(struct inf_gateway_options, timeout_ms), 8, 1, 86400000, 60000},
};

#define OPTION_NUMBER 256 // value of the option numbers[0]; numbers[i] has OPTION_NUMBER + i

static int print_usage(FILE *out, int status)
{
    fputs(
        "usage: inferd-gateway [OPTION]...\n"
        "Serves the Open Inference Protocol over HTTP and gRPC, and passes requests to inferd.\n\n"
        "  --listen ADDRESS        accept clients on HOST:PORT, [HOST]:PORT or unix:PATH\n"
        "  --listen-admin ADDRESS  the same, for clients that may also load and unload models\n"
        "  --socket PATH           the daemon's socket (default: $INFERD_SOCKET, else\n"
        "                          /run/inferd/inferd.sock)\n"
        "  --admin-socket PATH     the daemon's admin socket (default: /run/inferd/admin.sock)\n"
        "  --tokens FILE           serve only clients with a bearer token of this file\n",
        out);
    for (size_t i = 0; i < INF_ARRAY_LENGTH(numbers); i++)
        fprintf(out, "  --%-21s (default: %llu)\n", numbers[i].name,
                (unsigned long long)numbers[i].value);
    fputs(
        "  --version, --help\n\n"
        "Sockets that systemd passes are used as well. inferd-gateway(8) explains the options.\n",
        out);
    return status;
}

static void store_number(struct inf_gateway_options *options, const struct number *number,
                         uint64_t value)
{
    // Little-endian: the low bytes come first.
    memcpy((char *)options + number->offset, &value, number->bytes);
}

static bool parse_number(struct inf_gateway_options *options, const struct number *number,
                         const char *text)
{
    char *end;
    errno = 0;
    unsigned long long value = strtoull(text, &end, 10);
    if (text[0] < '0' || text[0] > '9' || *end != '\0' || errno != 0 || value < number->min ||
        value > number->max) {
        fprintf(stderr, "inferd-gateway: --%s is '%s', wanted %llu to %llu\n", number->name, text,
                (unsigned long long)number->min, (unsigned long long)number->max);
        return false;
    }
    store_number(options, number, value);
    return true;
}

static bool add_address(struct inf_gateway_options *options, const char *text, bool admin)
{
    if (options->address_count == INF_GATEWAY_ADDRESSES) {
        fprintf(stderr, "inferd-gateway: more than %u addresses\n", INF_GATEWAY_ADDRESSES);
        return false;
    }
    options->addresses[options->address_count].text = text;
    options->addresses[options->address_count++].admin = admin;
    return true;
}

int inf_gateway_options_parse(struct inf_gateway_options *options, int argc, char **argv)
{
    struct option longs[INF_ARRAY_LENGTH(numbers) + 8] = {
        {"listen", required_argument, NULL, 'l'}, {"listen-admin", required_argument, NULL, 'a'},
        {"socket", required_argument, NULL, 's'}, {"admin-socket", required_argument, NULL, 'A'},
        {"tokens", required_argument, NULL, 't'}, {"version", no_argument, NULL, 'V'},
        {"help", no_argument, NULL, 'h'},
    };
    *options = (struct inf_gateway_options){.admin_socket = "/run/inferd/admin.sock"};
    for (size_t i = 0; i < INF_ARRAY_LENGTH(numbers); i++) {
        longs[7 + i] =
            (struct option){numbers[i].name, required_argument, NULL, OPTION_NUMBER + (int)i};
        store_number(options, &numbers[i], numbers[i].value);
    }
    for (int c; (c = getopt_long(argc, argv, "h", longs, NULL)) != -1;) {
        bool ok = true;
        if (c == 'l' || c == 'a')
            ok = add_address(options, optarg, c == 'a');
        else if (c == 's')
            options->socket = optarg;
        else if (c == 'A')
            options->admin_socket = optarg;
        else if (c == 't')
            options->tokens = optarg;
        else if (c == 'V')
            return printf("inferd-gateway " INFERD_GATEWAY_VERSION "\n") < 0;
        else if (c >= OPTION_NUMBER)
            ok = parse_number(options, &numbers[c - OPTION_NUMBER], optarg);
        else
            return print_usage(c == 'h' ? stdout : stderr, c == 'h' ? 0 : 2);
        if (!ok)
            return 2;
    }
    return optind == argc ? -1 : print_usage(stderr, 2);
}
