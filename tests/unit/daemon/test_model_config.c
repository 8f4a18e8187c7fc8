// SPDX-License-Identifier: Apache-2.0
// Settings of a model, shapes written as text, and lists of devices.
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/model/config.h"
#include "daemon/model/devices.h"
#include "daemon/model/shapes.h"
#include "proto/core/span.h"

static enum inf_code read_text(struct inf_model_config *config, const char *text,
                               struct inf_error *err)
{
    char path[] = "/tmp/inferd-conf-XXXXXX";
    int fd = mkstemp(path);
    cr_assert_geq(fd, 0);
    cr_assert_eq(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    cr_assert_eq(lseek(fd, 0, SEEK_SET), 0);
    unlink(path);
    inf_model_config_init(config);
    return inf_model_config_read(config, fd, "model.conf", err);
}

Test(model_config, has_the_values_of_the_file_and_their_origins)
{
    struct inf_model_config config;
    struct inf_error err = {0};
    cr_assert_eq(read_text(&config,
                           "# a comment\n"
                           "device = cpu\n"
                           "\tpolicy=throughput\n"
                           "warmup-shapes = x=1x3x224x224\n"
                           "warmup_shapes = x=4x3x224x224\r\n"
                           "remember_shapes = no\n"
                           "runs_max = 3\n"
                           "reserve_slots = 2\n"
                           "batch_rows_max = 4",
                           &err),
                 INF_OK, "%s", err.text);
    cr_expect_str_eq(config.device, "cpu");
    cr_expect_str_eq(config.policy, "throughput");
    cr_expect_str_eq(config.warmup_shapes, "x=1x3x224x224; x=4x3x224x224");
    cr_expect_str_eq(config.precision, "auto");
    cr_expect(config.warmup && !config.remember_shapes);
    cr_expect_eq(config.batch_rows_max, 4u);
    cr_expect_eq(config.runs_max, 3u);
    cr_expect_eq(config.reserve_slots, 2u);
    cr_expect_eq(inf_model_config_origin(&config, INF_MODEL_FLAG_ID_device), INF_ORIGIN_MODEL);
    cr_expect_eq(inf_model_config_origin(&config, INF_MODEL_FLAG_ID_precision), INF_ORIGIN_DEFAULT);
}

Test(model_config, errors_name_the_line_and_what_was_wanted)
{
    static const struct {
        const char *text, *wanted;
    } cases[] = {
        {"\n\ndevise = cpu\n", "model.conf:3: 'devise' is no setting; did you mean 'device'?"},
        {"polcy = latency\n", "did you mean 'policy'?"},
        {"policy = fast\n", "model.conf:1: policy = fast: wanted latency, throughput"},
        {"precision = fp8\n", "wanted auto, fp32, fp16, bf16 or int8"},
        {"warmup = perhaps\n", "wanted yes or no"},
        {"batch_rows_max = 33\n", "wanted a number from 0 to 32"},
        {"batch_rows_max = four\n", "wanted a number from 0 to 32"},
        {"runs_max = 257\n", "wanted a number from 0 to 256"},
        {"reserve_slots = -1\n", "wanted a number from 0 to 256"},
        {"power = green\n", "wanted any, low or high"},
        {"warmup_shapes = 1x2y\n", "wanted INPUT=1x3x224x224"},
        {"warmup_shapes = =1x2\n", "wanted INPUT=1x3x224x224"},
        {"session_pairs = a, b\n", "wanted OUTPUT=INPUT"},
        {"device\n", "model.conf:1: 'device': wanted key = value"},
    };
    for (size_t i = 0; i < INF_ARRAY_LENGTH(cases); i++) {
        struct inf_model_config config;
        struct inf_error err = {0};
        cr_expect_eq(read_text(&config, cases[i].text, &err), INF_INVALID, "%s", cases[i].text);
        cr_expect(strstr(err.text, cases[i].wanted) != NULL, "no '%s' in: %s", cases[i].wanted,
                  err.text);
    }
}

Test(model_config, admins_override_the_file)
{
    struct inf_model_config asked, config;
    struct inf_error err = {0};
    inf_model_config_init(&asked);
    cr_assert_eq(inf_model_config_ask(&asked, INF_MODEL_FLAG_ID_device, "ref", &err), INF_OK);
    cr_assert_eq(inf_model_config_ask(&asked, INF_MODEL_FLAG_ID_devices, "ref, cpu", &err), INF_OK);
    cr_assert_eq(inf_model_config_ask(&asked, INF_MODEL_FLAG_ID_devices, "ref", &err), INF_OK);
    cr_expect_str_eq(asked.devices, "ref", "a list that is asked for is the whole list");
    cr_expect_eq(inf_model_config_ask(&asked, INF_MODEL_FLAG_ID_policy, "best", &err), INF_INVALID);
    cr_expect(strstr(err.text, "policy 'best': wanted latency") != NULL, "%s", err.text);
    cr_assert_eq(read_text(&config, "device = cpu\npolicy = memory\ndevices = cpu\n", &err),
                 INF_OK);
    inf_model_config_take_asked(&config, &asked);
    cr_expect_str_eq(config.device, "ref");
    cr_expect_str_eq(config.devices, "ref");
    cr_expect_str_eq(config.policy, "memory");
    cr_expect_eq(inf_model_config_origin(&config, INF_MODEL_FLAG_ID_device), INF_ORIGIN_ADMIN);
    cr_expect_eq(inf_model_config_origin(&config, INF_MODEL_FLAG_ID_policy), INF_ORIGIN_MODEL);
}

// --- parsing shapes in the settings of a model ---

// Parses all sets in a text and compares them with `wanted`, written as "name[1,2] name[]; ...".
static void expect_shapes(const char *text, const char *wanted)
{
    char got[512] = "", shape[INF_SHAPE_TEXT_SIZE];
    struct inf_shape_set set;
    struct inf_error err = {0};
    for (const char *rest = text; *rest != '\0';) {
        cr_assert_eq(inf_shape_set_next(&set, &rest, &err), INF_OK, "%s: %s", text, err.text);
        for (uint32_t i = 0; i < set.count; i++)
            snprintf(got + strlen(got), sizeof got - strlen(got), "%.*s%s ",
                     (int)set.entries[i].name_length,
                     set.entries[i].name != NULL ? set.entries[i].name : "",
                     inf_shape_print(&set.entries[i].shape, shape));
        snprintf(got + strlen(got), sizeof got - strlen(got), ";");
    }
    cr_expect_str_eq(got, wanted, "%s", text);
}

Test(model_shapes, are_read_as_people_write_them)
{
    expect_shapes("", "");
    expect_shapes("1x3x224x224", "[1,3,224,224] ;");
    expect_shapes("x=7", "x[7] ;");
    expect_shapes(" ids=1x128,mask=1x128 ;ids=8x128\tmask=8x128; ",
                  "ids[1,128] mask[1,128] ;ids[8,128] mask[8,128] ;;");
    expect_shapes("serving/x:0=0x2 rate=scalar", "serving/x:0[0,2] rate[] ;");
    expect_shapes("a=b=2", "a=b[2] ;");
    expect_shapes("1x2x3x4x5x6x7x8", "[1,2,3,4,5,6,7,8] ;");
}

Test(model_shapes, malformed_texts_are_refused)
{
    static const char *const texts[] = {"x=",
                                        "x=1x",
                                        "x=x1",
                                        "=1",
                                        "x=1xx2",
                                        "x=-1",
                                        "x=1x2147483648",
                                        "x=1.5",
                                        "scalarx",
                                        "1x2x3x4x5x6x7x8x9",
                                        "x=99999999999999999999"};
    for (size_t i = 0; i < INF_ARRAY_LENGTH(texts); i++) {
        struct inf_shape_set set;
        struct inf_error err = {0};
        char wanted[128] = "";
        const char *rest = texts[i];
        cr_expect_eq(inf_shape_set_next(&set, &rest, &err), INF_INVALID, "%s", texts[i]);
        cr_expect(!inf_shape_sets_check(texts[i], wanted, sizeof wanted), "%s", texts[i]);
        cr_expect(wanted[0] != '\0');
    }
    char wanted[128];
    cr_expect(inf_shape_sets_check("1;1;1;1;1;1;1;1", wanted, sizeof wanted));
    cr_expect(!inf_shape_sets_check("1;1;1;1;1;1;1;1;1", wanted, sizeof wanted), "9 sets");
}

static struct inf_graph *make_graph(void)
{
    struct inf_graph *graph = NULL;
    cr_assert_eq(inf_graph_create(&graph, NULL), INF_OK);
    static const struct {
        const char *name;
        struct inf_shape shape;
    } inputs[] = {{"ids", {.rank = 2, .dims = {INF_DIM_UNKNOWN, 128}}},
                  {"rate", {.rank = 1, .dims = {3}}}};
    for (size_t i = 0; i < INF_ARRAY_LENGTH(inputs); i++) {
        uint32_t value;
        cr_assert_eq(inf_graph_add_value(graph, inputs[i].name, INF_DTYPE_F32, &inputs[i].shape,
                                         &value, NULL),
                     INF_OK);
        cr_assert_eq(inf_graph_add_input(graph, inputs[i].name, value, NULL), INF_OK);
    }
    return graph;
}

Test(model_shapes, fill_the_inputs_they_name)
{
    struct inf_graph *graph = make_graph();
    struct inf_shape shapes[2];
    struct inf_shape_set set;
    struct inf_error err = {0};
    const char *text = "ids=5x128";
    cr_assert_eq(inf_shape_set_next(&set, &text, &err), INF_OK);
    cr_assert_eq(inf_shape_set_bind(&set, graph, shapes, &err), INF_OK, "%s", err.text);
    cr_expect_eq(shapes[0].dims[0], 5);
    cr_expect_eq(shapes[1].dims[0], 3, "the model's own");
    text = "ids:0=6x128";
    cr_assert_eq(inf_shape_set_next(&set, &text, &err), INF_OK);
    cr_assert_eq(inf_shape_set_bind(&set, graph, shapes, &err), INF_OK, "%s", err.text);
    cr_expect_eq(shapes[0].dims[0], 6);
    static const struct {
        const char *text, *wanted;
        enum inf_reason reason;
    } cases[] = {
        {"ids=5x127", "input 'ids': shape is [5,127], wanted [?,128]", INF_REASON_SHAPE_MISMATCH},
        {"ids=128", "wanted [?,128]", INF_REASON_SHAPE_MISMATCH},
        {"idx=1x128", "input 'idx': the model has no such input", INF_REASON_TENSOR_UNKNOWN},
        {"1x128", "the model has 2 inputs", INF_REASON_TENSOR_UNKNOWN},
        {"rate=3", "input 'ids': its shape [?,128] is open", INF_REASON_TENSOR_MISSING},
    };
    for (size_t i = 0; i < INF_ARRAY_LENGTH(cases); i++) {
        text = cases[i].text;
        err = (struct inf_error){0};
        cr_assert_eq(inf_shape_set_next(&set, &text, &err), INF_OK);
        cr_expect_eq(inf_shape_set_bind(&set, graph, shapes, &err), INF_INVALID, "%s",
                     cases[i].text);
        cr_expect_eq(err.reason, cases[i].reason, "%s", cases[i].text);
        cr_expect(strstr(err.text, cases[i].wanted) != NULL, "no '%s' in: %s", cases[i].wanted,
                  err.text);
    }
    inf_graph_destroy(&graph);
}

// --- devices that the settings of a model allow and deny ---

static const struct inf_device_info discrete = {.name = "vulkan0",
                                                .kind = INF_DEVICE_GPU,
                                                .discrete = true},
                                    integrated = {.name = "vulkan1", .kind = INF_DEVICE_GPU},
                                    cpu = {.name = "cpu", .kind = INF_DEVICE_CPU},
                                    ref = {.name = "ref", .kind = INF_DEVICE_HOST};

static void expect_allowed(const struct inf_allow_rules *rules, const char *wanted)
{
    const struct inf_device_info *const devices[] = {&discrete, &integrated, &cpu, &ref};
    const char *reasons[INF_PLACE_DEVICES];
    char got[64] = "";
    uint32_t allowed = inf_allow_check(rules, devices, 4, reasons), found = 0;
    for (int i = 0; i < 4; i++) {
        if (reasons[i] != NULL)
            continue;
        snprintf(got + strlen(got), sizeof got - strlen(got), "%s ", devices[i]->name);
        found++;
    }
    cr_expect_eq(allowed, found);
    cr_expect_str_eq(got, wanted);
}

Test(model_devices, are_those_that_lists_and_power_allow)
{
    expect_allowed(&(struct inf_allow_rules){0}, "vulkan0 vulkan1 cpu ref ");
    expect_allowed(&(struct inf_allow_rules){.allowed = "cpu, ref"}, "cpu ref ");
    expect_allowed(&(struct inf_allow_rules){.denied = "vulkan0,ref"}, "vulkan1 cpu ");
    expect_allowed(&(struct inf_allow_rules){.allowed = "cpu vulkan0", .denied = "cpu"},
                   "vulkan0 ");
    expect_allowed(&(struct inf_allow_rules){.allowed = "vulkan"}, "");
    expect_allowed(&(struct inf_allow_rules){.power = INF_POWER_LOW}, "vulkan1 cpu ref ");
    expect_allowed(&(struct inf_allow_rules){.power = INF_POWER_HIGH}, "vulkan0 cpu ref ");
    // If there is no device of the preferred kind, expect another one.
    expect_allowed(&(struct inf_allow_rules){.denied = "vulkan1", .power = INF_POWER_LOW},
                   "vulkan0 cpu ref ");
    expect_allowed(&(struct inf_allow_rules){.allowed = "vulkan1", .power = INF_POWER_HIGH},
                   "vulkan1 ");
}
