// SPDX-License-Identifier: Apache-2.0
// Runs real models with inferctl infer and a real daemon. $INF_MODELS names a folder with a
// manifest that lists models, inputs and expected outputs. If the folder does not exist, the tests
// are skipped.
#include <criterion/criterion.h>
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "proto/npy/npy.h"
#include "tests/support/daemon/fixture.h"
#include "tests/support/daemon/inferctl.h"

static const char *read_text(const json_t *object, const char *key)
{
    const char *value = json_string_value(json_object_get(object, key));
    cr_assert_not_null(value, "the manifest lacks %s", key);
    return value;
}

static void load_npy(struct inf_npy *npy, const char *path)
{
    struct inf_error err;
    cr_assert_eq(inf_npy_load(npy, path, &err), INF_OK, "%s", err.text);
    cr_assert_eq(npy->dtype, INF_DTYPE_F32, "%s", path);
}

// Returns the entry of the manifest with this id.
static const json_t *find_model(const json_t *manifest, const char *id)
{
    size_t index;
    const json_t *model;
    json_array_foreach(json_object_get(manifest, "models"), index,
                       model) if (strcmp(read_text(model, "id"), id) == 0) return model;
    cr_assert_fail("the manifest has no model %s", id);
    return NULL;
}

// Returns the path of the file to which inferctl has written the output called `name`.
static const char *file_of(const json_t *answer, const char *name)
{
    size_t index;
    const json_t *output;
    json_array_foreach(json_object_get(answer, "outputs"), index,
                       output) if (strcmp(read_text(output, "name"), name) ==
                                   0) return read_text(output, "file");
    cr_assert_fail("no output is called %s", name);
    return NULL;
}

// Checks an output against the tolerance in the manifest: |got - wanted| <= atol + rtol |wanted|
// for each element.
static void check_output(const char *models, const json_t *wanted, const char *got_path)
{
    char path[PATH_MAX];
    struct inf_npy reference;
    struct inf_npy got;
    snprintf(path, sizeof path, "%s/%s", models, read_text(wanted, "file"));
    load_npy(&reference, path);
    load_npy(&got, got_path);
    cr_assert(inf_shape_equal(&got.shape, &reference.shape), "%s", path);
    const json_t *tolerance = json_object_get(wanted, "tolerance");
    double atol = json_number_value(json_object_get(tolerance, "atol"));
    double rtol = json_number_value(json_object_get(tolerance, "rtol"));
    cr_assert(atol > 0 || rtol > 0, "%s: no tolerance", path);
    const float *a = got.data;
    const float *b = reference.data;
    for (size_t i = 0; i < got.size_bytes / sizeof(float); i++) {
        double difference = fabs((double)a[i] - (double)b[i]);
        if (!(difference <= atol + rtol * fabs((double)b[i])))
            cr_assert_fail("%s: element %zu is %g, wanted %g", path, i, (double)a[i], (double)b[i]);
    }
    inf_npy_unload(&got);
    inf_npy_unload(&reference);
}

static void check_case(const struct inf_fixture *fixture, const char *models, const char *name,
                       const char *device, const json_t *one)
{
    char assignment[PATH_MAX + 64];
    char directory[128];
    size_t index;
    const json_t *output;
    const json_t *input = json_array_get(json_object_get(one, "inputs"), 0);
    snprintf(directory, sizeof directory, "%s/out", fixture->directory);
    snprintf(assignment, sizeof assignment, "%s=%s/%s", read_text(input, "name"), models,
             read_text(input, "file"));
    struct inf_inferctl run;
    inf_inferctl_run(&run, fixture->socket,
                     (const char *const[]){"infer", name, "-i", assignment, "-o", directory,
                                           "--json", device != NULL ? "-d" : NULL, device, NULL});
    cr_assert_eq(run.code, 0, "%s", run.err);
    json_t *answer = inf_inferctl_json(&run);
    if (device != NULL)
        cr_assert_str_eq(read_text(answer, "device"), device);
    cr_assert_gt(json_array_size(json_object_get(one, "outputs")), 0u);
    json_array_foreach(json_object_get(one, "outputs"), index, output)
        check_output(models, output, file_of(answer, read_text(output, "name")));
    json_decref(answer);
    inf_inferctl_free(&run);
}

// Loads a model of the manifest and runs its test cases on a device. If `device` is NULL, the
// daemon chooses the device.
static void check_model(const char *id, const char *device)
{
    char path[PATH_MAX];
    const char *models = getenv("INF_MODELS");
    cr_assert_not_null(models, "$INF_MODELS is not set");
    snprintf(path, sizeof path, "%s/manifest.json", models);
    if (access(path, R_OK) != 0)
        cr_skip_test("there are no real models: %s is absent", path);
    json_error_t error;
    json_t *manifest = json_load_file(path, 0, &error);
    cr_assert_not_null(manifest, "%s: %s", path, error.text);
    const json_t *model = find_model(manifest, id);
    snprintf(path, sizeof path, "%s/%s", models, read_text(model, "model"));
    struct inf_fixture fixture;
    inf_fixture_start(&fixture, NULL);
    struct inf_inferctl run;
    inf_inferctl_run(&run, fixture.admin_socket, (const char *const[]){"load", "real", path, NULL});
    cr_assert_eq(run.code, 0, "%s", run.err);
    inf_inferctl_free(&run);
    size_t index;
    const json_t *one;
    cr_assert_gt(json_array_size(json_object_get(model, "cases")), 0u);
    json_array_foreach(json_object_get(model, "cases"), index, one)
        check_case(&fixture, models, "real", device, one);
    inf_fixture_stop(&fixture);
    json_decref(manifest);
}

Test(inferctl_models, blazeface_is_right_on_the_reference)
{
    check_model("blazeface-front", "ref");
}

Test(inferctl_models, blazeface_is_right_on_the_default_device)
{
    check_model("blazeface-front", NULL);
}

Test(inferctl_models, mobilenet_is_right_on_the_default_device)
{
    check_model("mobilenet_v2_100_224-tfjs", NULL);
}
