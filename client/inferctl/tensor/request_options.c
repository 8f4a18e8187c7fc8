// SPDX-License-Identifier: Apache-2.0
// The options that choose inputs, device, version and precision of a request.
#include "client/inferctl/tensor/request_options.h"

#include "client/inferctl/tensor/description.h"

static int add_input(struct request_options *options, const char *assignment)
{
    if (options->input_count == TENSOR_INPUTS_MAX)
        return command_say(EXIT_USAGE, "more than %d inputs", TENSOR_INPUTS_MAX);
    options->inputs[options->input_count++] = assignment;
    return EXIT_OK;
}

bool request_options_take(struct request_options *options, const struct option_given *given,
                          int *code)
{
    *code = EXIT_OK;
    switch (given->option) {
    case 'i':
        *code = add_input(options, given->value);
        return true;
    case 'v':
        options->version = given->value;
        return true;
    case 'd':
        options->device = given->value;
        return true;
    case 'P':
        options->precision = given->value;
        return true;
    case 'r':
        *code = picture_options_range(&options->picture, given->value) ? EXIT_OK : EXIT_USAGE;
        return true;
    case 'b':
        options->picture.bgr = true;
        return true;
    case 'x':
        options->picture.letterbox = true;
        return true;
    default:
        return false;
    }
}

int request_options_apply(const struct request_options *options, inferd_client *client,
                          const char *mode)
{
    struct inferd_error err;
    return inferd_set_run_options(client, options->precision, mode, &err) == 0
               ? EXIT_OK
               : command_failed(&err);
}

int request_options_load(struct tensor_inputs *inputs, const struct request_options *options,
                         inferd_client *client, const char *model, const inferd_model_info *info)
{
    struct description description = {0};
    struct picture_options picture = options->picture;
    int code = EXIT_OK;
    if (options->input_count > 0 && !picture.has_range && picture.description == NULL) {
        description_load(&description, client, model, options->version);
        picture.description = &description;
    }
    for (size_t i = 0; i < options->input_count && code == EXIT_OK; i++)
        code = tensor_inputs_add(inputs, options->inputs[i], info, &picture);
    description_fini(&description);
    return code;
}
