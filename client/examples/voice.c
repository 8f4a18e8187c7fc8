// SPDX-License-Identifier: Apache-2.0
// Detects speech with Silero VAD, served by inferd. Shows how a recurrent model keeps its state in
// a session, so that only audio is sent to the daemon.
//
//   ffmpeg -i talk.mp3 -f s16le -ac 1 -ar 16000 - | voice
#include <getopt.h>
#include <stdio.h>
#include <string.h>

#include <inferd.h>

#define RATE    16000
#define CHUNK   512 // samples in a chunk, 32 ms
#define CONTEXT 64  // samples before a chunk that are also part of the input

static int print_usage(FILE *out, int code)
{
    fputs(
        "usage: voice [--socket PATH] [--model NAME] <AUDIO\n"
        "Prints time and probability of speech for every 32 ms of AUDIO: 16-bit little-endian\n"
        "samples, one channel, 16 kHz.\n"
        "  --socket PATH   the daemon's socket (default: $INFERD_SOCKET, /run/inferd/inferd.sock)\n"
        "  --model NAME    what Silero VAD v5 is served as (default: silero_vad)\n",
        out);
    return code;
}

static int report_failure(const struct inferd_error *err)
{
    fprintf(stderr, "voice: %s\n", err->text);
    return 1;
}

// Moves the last samples to the context and reads the next chunk from standard input. Returns false
// at the end of the input.
static bool read_chunk(float audio[CONTEXT + CHUNK])
{
    unsigned char bytes[2 * CHUNK];
    if (fread(bytes, sizeof bytes, 1, stdin) != 1)
        return false;
    memmove(audio, audio + CHUNK, CONTEXT * sizeof audio[0]);
    for (int i = 0; i < CHUNK; i++) {
        int sample = bytes[2 * i] | bytes[2 * i + 1] << 8;
        audio[CONTEXT + i] = (float)(sample - (sample > 32767 ? 65536 : 0)) / 32768.0f;
    }
    return true;
}

static int process_audio(inferd_client *client, inferd_session *session, const char *model)
{
    static float audio[CONTEXT + CHUNK];
    int64_t rate = RATE;
    const inferd_tensor inputs[] = {
        {.name = "input",
         .dtype = INFERD_FP32,
         .rank = 2,
         .shape = {1, CONTEXT + CHUNK},
         .data = audio,
         .size = sizeof audio},
        {.name = "sr", .dtype = INFERD_INT64, .data = &rate, .size = sizeof rate}};
    const inferd_request request = {
        .model = model, .inputs = inputs, .input_count = 2, .session = session};
    struct inferd_error err;
    for (int chunk = 0; read_chunk(audio); chunk++) {
        inferd_result *result;
        if (inferd_infer(client, &request, &result, &err) != INFERD_OK)
            return report_failure(&err);
        const inferd_tensor *speech = inferd_result_find(result, "output");
        if (speech != NULL && speech->dtype == INFERD_FP32 && speech->size >= sizeof(float))
            printf("%8.3f %.3f\n", (double)chunk * CHUNK / RATE,
                   (double)*(const float *)speech->data);
        inferd_result_free(result);
    }
    return 0;
}

int main(int argc, char **argv)
{
    static const struct option options[] = {{"socket", required_argument, NULL, 's'},
                                            {"model", required_argument, NULL, 'm'},
                                            {"help", no_argument, NULL, 'h'},
                                            {0}};
    const char *socket = NULL;
    const char *model = "silero_vad";
    int option;
    while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
        if (option == 's')
            socket = optarg;
        else if (option == 'm')
            model = optarg;
        else
            return print_usage(option == 'h' ? stdout : stderr, option == 'h' ? 0 : 2);
    }
    const inferd_session_state state = {
        .output = "stateN", .input = "state", .rank = 3, .shape = {2, 1, 128}};
    struct inferd_error err;
    inferd_client *client;
    inferd_session *session;
    if (inferd_connect(&client, socket, &err) != INFERD_OK)
        return report_failure(&err);
    int code = inferd_session_open(client, &state, 1, &session, &err) == INFERD_OK
                   ? process_audio(client, session, model)
                   : report_failure(&err);
    inferd_close(client); // closes the session, too
    return code;
}
