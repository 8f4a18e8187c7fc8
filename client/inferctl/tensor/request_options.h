// SPDX-License-Identifier: Apache-2.0
// The options that are common to all verbs that send requests.
#ifndef INF_CLIENT_INFERCTL_TENSOR_REQUEST_OPTIONS_H
#define INF_CLIENT_INFERCTL_TENSOR_REQUEST_OPTIONS_H

#include "client/inferctl/cli/command.h"
#include "client/inferctl/tensor/input.h"

// The values of -i, -v, -d, -P, -r, --bgr and --letterbox.
struct request_options {
    const char *inputs[TENSOR_INPUTS_MAX]; // the assignments "NAME=FILE" or "FILE" of -i
    size_t input_count;
    const char *version, *device, *precision;
    struct picture_options picture;
};

// Entries of the options in struct request_options, for the long and short options of a verb.
#define REQUEST_LONG_OPTIONS                                                                       \
    {"input", required_argument, NULL, 'i'}, {"version", required_argument, NULL, 'v'},            \
        {"device", required_argument, NULL, 'd'}, {"precision", required_argument, NULL, 'P'},     \
        {"range", required_argument, NULL, 'r'}, {"bgr", no_argument, NULL, 'b'},                  \
    {                                                                                              \
        "letterbox", no_argument, NULL, 'x'                                                        \
    }
#define REQUEST_SHORT_OPTIONS "i:v:d:P:r:"

// The help text for the options in struct request_options.
#define REQUEST_HELP                                                                               \
    "  -i, --input NAME=FILE  an input from a .npy, JPEG or PNG file; NAME= is optional if\n"      \
    "                         the model has one input. Pictures are resized to the\n"              \
    "                         model's input. An input of strings takes NAME=TEXT, or\n"            \
    "                         NAME=@FILE for the lines of a file\n"                                \
    "  -r, --range LOW:HIGH   the values of black and white (default: as the model says, else\n"   \
    "                         0:1, for bytes 0:255)\n"                                             \
    "      --bgr              channels in the order blue, green, red\n"                            \
    "      --letterbox        keep a picture's aspect ratio, with black around it\n"               \
    "  -v, --version V        this version of the model (default: the newest)\n"                   \
    "  -d, --device NAME      run on this device (inferctl devices lists them)\n"                  \
    "  -P, --precision P      compute in fp32, fp16, bf16 or int8 if the device supports it\n"

// Handles one option and sets *code: EXIT_OK, or EXIT_USAGE after a message. Returns false if the
// option is none of those in struct request_options.
bool request_options_take(struct request_options *options, const struct option_given *given,
                          int *code);

// Sets the run options of the client; `mode` may be NULL. Returns an exit code, and prints a
// message on failure.
int request_options_apply(const struct request_options *options, inferd_client *client,
                          const char *mode);

// Loads the inputs that the options name, for `model`, whose tensors `info` describes. If the
// options have no range, pictures are normalised as the description in the model's file says. If
// options->picture.description is not set, asks the daemon for this description. Returns an exit
// code, and prints a message on failure. The caller calls tensor_inputs_fini() after success and
// after failure.
int request_options_load(struct tensor_inputs *inputs, const struct request_options *options,
                         inferd_client *client, const char *model, const inferd_model_info *info);

#endif
