// SPDX-License-Identifier: Apache-2.0
// A daemon whose GPU fails or is missing. Expect that clients are served all the same. The GPU is
// llvmpipe behind a Vulkan layer that injects failures when the test requests them.
#include <criterion/criterion.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>

#include "shaders/constants.h"
#include "tests/support/daemon/fixture.h"
#include "tests/support/device/vulkan_faults.h"

#define DEVICE_LOST (-4) // VK_ERROR_DEVICE_LOST

TestSuite(serving_vulkan, .timeout = 240);

static struct inf_fixture fixture;
static struct inf_raw raw;

// One row of input a, padding to 64 bytes, and one row of input b.
static const float ab[32] = {1, 2, 3, 4, [16] = 10, 20, 30, 40};
static const float sums[4] = {11, 22, 33, 44};

static void start_server(void)
{
    static const char *const arguments[] = {"--backends=vulkan,cpu", "--gpu-handoff-elements=0",
                                            NULL};
    inf_fixture_start(&fixture, arguments);
    inf_raw_open(&raw, fixture.socket);
}

static void stop_server(void)
{
    inf_raw_close(&raw);
    inf_fixture_stop(&fixture);
}

// Starts the daemon, which logs to the file `log`, with one more argument; NULL: none.
static void start_logged(const char *log, const char *argument)
{
    const char *const arguments[] = {"--backends=vulkan,cpu", "--log-level=info",
                                     "--gpu-handoff-elements=0", argument, NULL};
    inf_fixture_start_logged(&fixture, log, arguments);
    inf_raw_open(&raw, fixture.socket);
}

// Returns true if a line of the log contains `wanted`.
static bool has_line(const char *log, const char *wanted)
{
    char line[1024];
    bool found = false;
    FILE *file = fopen(log, "r");
    cr_assert_not_null(file);
    while (!found && fgets(line, sizeof line, file) != NULL)
        found = strstr(line, wanted) != NULL;
    fclose(file);
    return found;
}

// Sends a request that adds a and b on a device ("": the device that the model is placed on).
// Stores the answer in raw.message.
static void send_request(const char *device)
{
    union inf_message message;
    inf_add_request(&message, 1);
    message.infer_request.device = device;
    inf_raw_call(&raw, INF_METHOD_MODEL_INFER, INF_MESSAGE_INFER_REQUEST, &message,
                 (struct inf_span){(const uint8_t *)ab, 20 * sizeof(float)});
}

// Sends a request on `device`, checks the sum in the answer, and returns the name of the device
// that computed it.
static const char *served_by(const char *device)
{
    send_request(device);
    if ((raw.frame.header.flags & INF_FRAME_FLAG_ERROR) != 0) {
        inf_raw_decode(&raw, INF_MESSAGE_STATUS);
        cr_assert_fail("%s", raw.message.status.message);
    }
    cr_assert_eq(memcmp(raw.frame.data, sums, sizeof sums), 0);
    inf_raw_decode(&raw, INF_MESSAGE_INFER_REPLY);
    return raw.message.infer_reply.device;
}

// Returns the health of a device, a word that the daemon reports in its device list; NULL if there
// is no such device.
static const char *find_health(const char *device)
{
    inf_raw_call(&raw, INF_METHOD_DEVICE_LIST, INF_MESSAGE_EMPTY, NULL, (struct inf_span){0});
    inf_raw_decode(&raw, INF_MESSAGE_DEVICE_INDEX);
    for (uint32_t i = 0; i < raw.message.device_index.count; i++)
        if (strcmp(raw.message.device_index.entries[i].name, device) == 0)
            return raw.message.device_index.entries[i].health;
    return NULL;
}

// Places the model `add` on the GPU.
static void place_model(void)
{
    struct inf_raw admin;
    const union inf_message message = {.model = {.name = "add", .device = "vulkan0"}};
    inf_raw_open(&admin, fixture.admin_socket);
    inf_raw_request(&admin, INF_METHOD_REPOSITORY_MODEL_LOAD, INF_MESSAGE_MODEL_LOAD_REQUEST,
                    &message, (struct inf_span){0});
    do {
        cr_assert(inf_raw_next(&admin, 60000), "the load does not end");
    } while ((admin.frame.header.flags & INF_FRAME_FINAL) == 0);
    if ((admin.frame.header.flags & INF_FRAME_FLAG_ERROR) != 0) {
        inf_raw_decode(&admin, INF_MESSAGE_STATUS);
        cr_assert_fail("%s", admin.message.status.message);
    }
    inf_raw_close(&admin);
}

// Starts the daemon with the model `add` on a GPU whose failures the test controls. Skips the test
// if there is no GPU.
static struct vulkan_faults *start_on_gpu(void)
{
    struct vulkan_faults *faults = vulkan_faults_install();
    cr_assert_not_null(faults);
    start_server();
    if (find_health("vulkan0") == NULL) {
        stop_server();
        cr_skip_test("no Vulkan driver finds a device");
    }
    place_model();
    cr_assert_str_eq(served_by(""), "vulkan0");
    return faults;
}

static void pause_ms(long ms)
{
    nanosleep(&(struct timespec){.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000}, NULL);
}

// Sends requests until the GPU, which was lost, is created again and computes one.
static void wait_until_back(void)
{
    bool back = false;
    for (int tries = 0; tries < 1000 && !back; tries++) {
        back = strcmp(served_by(""), "vulkan0") == 0;
        if (!back)
            pause_ms(20);
    }
    cr_assert(back, "the device was not created again");
}

Test(serving_vulkan, requests_move_off_a_lost_device_and_back_once_it_is_made_anew)
{
    struct vulkan_faults *faults = start_on_gpu();
    faults->wait = DEVICE_LOST;
    // The request in flight when the GPU is lost moves to another device. The next request avoids
    // the GPU at once.
    cr_assert_str_neq(served_by(""), "vulkan0");
    cr_assert_eq(raw.message.infer_reply.flags, INF_INFER_MOVED);
    cr_assert_eq(faults->devices, 1u);
    // If a request names the lost GPU, expect an error instead of another device.
    send_request("vulkan0");
    inf_raw_check_failure(&raw, INF_UNAVAILABLE, INF_REASON_DEVICE_LOST);
    cr_assert_str_neq(served_by(""), "vulkan0");
    faults->wait = 0;
    wait_until_back();
    cr_assert_str_eq(find_health("vulkan0"), "ok");
    cr_assert_geq(faults->devices, 2u);
    cr_assert_str_eq(served_by("vulkan0"), "vulkan0");
    stop_server();
}

static double now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

// The most milliseconds from a request to its answer while the device is lost. The limit is far
// above the usual time, because the machine may be busy.
#define LOSS_MS_MAX 5000

Test(serving_vulkan, an_answer_during_the_loss_of_the_device_comes_soon)
{
    struct vulkan_faults *faults = start_on_gpu();
    for (int loss = 0; loss < 2; loss++) {
        double begin_ms = now_ms();
        cr_assert_str_eq(served_by(""), "vulkan0");
        double usual_ms = now_ms() - begin_ms;
        faults->wait = DEVICE_LOST;
        begin_ms = now_ms();
        cr_assert_str_neq(served_by(""), "vulkan0");
        double lost_ms = now_ms() - begin_ms;
        cr_assert_eq(raw.message.infer_reply.flags, INF_INFER_MOVED);
        printf("an answer takes %.2f ms, and %.2f ms while the device is lost\n", usual_ms,
               lost_ms);
        cr_expect_lt(lost_ms, LOSS_MS_MAX);
        faults->wait = 0;
        wait_until_back();
    }
    stop_server();
}

Test(serving_vulkan, a_device_lost_time_and_again_is_quarantined)
{
    struct vulkan_faults *faults = start_on_gpu();
    faults->submit = DEVICE_LOST;
    bool quarantined = false;
    for (int tries = 0; tries < 3000 && !quarantined; tries++) {
        cr_assert_str_neq(served_by(""), "vulkan0");
        quarantined = strcmp(find_health("vulkan0"), "quarantined") == 0;
        pause_ms(20);
    }
    cr_assert(quarantined);
    faults->submit = 0;
    cr_assert_str_neq(served_by(""), "vulkan0");
    send_request("vulkan0");
    inf_raw_check_failure(&raw, INF_UNAVAILABLE, INF_REASON_DEVICE_LOST);
    stop_server();
}

// --- requests whose tensors the GPU reads in place ---

#define ROWS      ((int64_t)1 << 16)
#define ROW_BYTES ((uint64_t)ROWS * 4 * sizeof(float)) // bytes of one input: 1 MiB

// Returns the counter called `what` of device vulkan0.
static uint64_t find_count(const char *what)
{
    char name[64];
    snprintf(name, sizeof name, "device.vulkan0.%s", what);
    inf_raw_call(&raw, INF_METHOD_ENVIRONMENT, INF_MESSAGE_EMPTY, NULL, (struct inf_span){0});
    inf_raw_decode(&raw, INF_MESSAGE_ENVIRONMENT);
    const struct inf_environment_reply *reply = &raw.message.environment;
    for (uint32_t i = 0; i < reply->fact_count; i++)
        if (strcmp(reply->facts[i].name, name) == 0)
            return strtoull(reply->facts[i].value, NULL, 10);
    cr_assert_fail("there is no fact %s", name);
    return 0;
}

// Sends a request that adds a and b in region 1, which is mapped at `memory`, and checks the sums.
static void add_in_region(float *memory, float first)
{
    union inf_message message;
    const uint64_t count = ROW_BYTES / sizeof(float);
    for (uint64_t i = 0; i < count; i++) {
        memory[i] = first + (float)(i % 1000);
        memory[count + i] = 3;
        memory[2 * count + i] = -1;
    }
    inf_add_request(&message, ROWS);
    message.infer_request.device = "vulkan0";
    for (uint32_t i = 0; i < 2; i++)
        message.infer_request.inputs[i].location = (struct inf_location){
            .present = true, .region_id = 1, .offset = i * ROW_BYTES, .length = ROW_BYTES};
    message.infer_request.output_count = 1;
    message.infer_request.outputs[0] = (struct inf_tensor_entry){
        .name = "y",
        .location = {
            .present = true, .region_id = 1, .offset = 2 * ROW_BYTES, .length = ROW_BYTES}};
    uint64_t stream = inf_raw_request(&raw, INF_METHOD_MODEL_INFER, INF_MESSAGE_INFER_REQUEST,
                                      &message, (struct inf_span){0});
    inf_raw_expect_infer(&raw, stream);
    for (uint64_t i = 0; i < count; i++)
        cr_assert_eq(memory[2 * count + i], first + (float)(i % 1000) + 3, "element %d", (int)i);
}

Test(serving_vulkan, large_inputs_in_regions_are_read_where_they_are)
{
    (void)start_on_gpu();
    for (int client = 0; client < 3; client++) {
        int fd = inf_memfd(3 * ROW_BYTES, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
        float *memory = mmap(NULL, 3 * ROW_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        cr_assert_neq(memory, MAP_FAILED);
        inf_raw_register(&raw, 1, fd, 3 * ROW_BYTES, true);
        uint64_t before = find_count("in_place_bytes");
        add_in_region(memory, 1);
        add_in_region(memory, 2);
        cr_expect_eq(find_count("in_place_bytes") - before, 4 * ROW_BYTES);
        munmap(memory, 3 * ROW_BYTES);
        // When the client disconnects, expect that its region and the device's import of it are
        // released.
        inf_raw_close(&raw);
        inf_raw_open(&raw, fixture.socket);
    }
    stop_server();
}

// --- a model that is compiled for the device that takes over ---

// Waits until the log says that the model `add` stands by. Returns false if it does not within
// `ms`.
static bool stands_by(const char *log, int ms)
{
    for (int waited = 0; waited < ms; waited += 10, pause_ms(10))
        if (has_line(log, "model stands by name=add device=cpu"))
            return true;
    return false;
}

// Starts a daemon that logs to `log`. Skips the test if there is no GPU.
static void start_logged_on_gpu(const char *log, const char *argument)
{
    start_logged(log, argument);
    if (find_health("vulkan0") == NULL) {
        stop_server();
        unlink(log);
        cr_skip_test("no Vulkan driver finds a device");
    }
}

Test(serving_vulkan, a_model_on_a_gpu_is_compiled_for_the_device_that_takes_over)
{
    char log[] = "/tmp/inferd-vulkan-log-XXXXXX";
    close(mkstemp(log));
    struct vulkan_faults *faults = vulkan_faults_install();
    start_logged_on_gpu(log, NULL);
    // A model on the cpu device is compiled for no other device.
    cr_expect(!has_line(log, "stands by"));
    place_model();
    cr_expect(stands_by(log, 60000));
    faults->wait = DEVICE_LOST;
    cr_expect_str_eq(served_by(""), "cpu");
    cr_expect_eq(raw.message.infer_reply.flags, INF_INFER_MOVED);
    stop_server();
    unlink(log);
}

Test(serving_vulkan, a_setting_saves_the_memory_of_the_device_that_takes_over)
{
    char log[] = "/tmp/inferd-vulkan-log-XXXXXX";
    close(mkstemp(log));
    struct vulkan_faults *faults = vulkan_faults_install();
    start_logged_on_gpu(log, "--gpu-standby=no");
    place_model();
    cr_expect(!stands_by(log, 500));
    faults->wait = DEVICE_LOST;
    cr_expect_str_eq(served_by(""), "cpu");
    stop_server();
    unlink(log);
}

// --- a driver whose shaders compute wrongly ---

// Asserts that the model `add` has nodes of operator `op` that its device declines for `reason`,
// and that `device` computes.
static void expect_declined(const char *op, const char *device, const char *reason)
{
    const union inf_message message = {.placement_request = {.name = "add"}};
    inf_raw_call(&raw, INF_METHOD_MODEL_PLACEMENT, INF_MESSAGE_PLACEMENT_REQUEST, &message,
                 (struct inf_span){0});
    inf_raw_decode(&raw, INF_MESSAGE_PLACEMENT_REPLY);
    const struct inf_placement_reply *reply = &raw.message.placement_reply;
    for (uint32_t i = 0; i < reply->declined_count; i++)
        if (strcmp(reply->declined[i].op, op) == 0) {
            cr_expect_str_eq(reply->declined[i].device, device);
            cr_expect_not_null(strstr(reply->declined[i].reason, reason), "%s",
                               reply->declined[i].reason);
            return;
        }
    cr_assert_fail("no node %s is declined", op);
}

Test(serving_vulkan, answers_are_right_although_a_shader_computes_wrongly)
{
    char log[] = "/tmp/inferd-vulkan-log-XXXXXX";
    close(mkstemp(log));
    // The shader of the sum subtracts. The daemon measures the device with it while it starts.
    struct vulkan_faults *faults = vulkan_faults_install();
    faults->wrong_word = 1;
    faults->wrong_value = BINARY_ADD;
    faults->wrong_instead = BINARY_SUB;
    start_logged_on_gpu(log, "--gpu-shader-check=always");
    place_model();
    cr_expect_str_eq(served_by(""), "vulkan0"); // checks the sums
    cr_expect_gt(find_count("shaders_wrong"), 0u);
    cr_expect(has_line(log, "a shader computes wrongly device=vulkan0"));
    expect_declined("binary", "cpu", "binary' wrongly");
    stop_server();
    unlink(log);
}

// --- starting a daemon on a machine without a GPU ---

// Starts the daemon with its log going to `log`, checks that it serves without a GPU, and stops the
// daemon.
static void serve_without(const char *log)
{
    start_logged(log, NULL);
    cr_assert_null(find_health("vulkan0"));
    cr_assert_str_neq(served_by(""), "vulkan0");
    stop_server();
}

// Removes the log, and asserts that a line of it contains `wanted`.
static void expect_line(const char *log, const char *wanted)
{
    bool found = has_line(log, wanted);
    unlink(log);
    cr_assert(found, "the log does not say '%s'", wanted);
}

Test(serving_vulkan, serves_from_the_cpu_where_there_is_no_driver)
{
    char log[] = "/tmp/inferd-vulkan-log-XXXXXX";
    close(mkstemp(log));
    setenv("VK_DRIVER_FILES", "/nonexistent", 1);
    setenv("VK_ICD_FILENAMES", "/nonexistent", 1);
    serve_without(log);
    expect_line(log, "backend left out backend=vulkan reason=\"it finds no device\"");
}

Test(serving_vulkan, serves_from_the_cpu_where_there_is_no_loader)
{
    char log[] = "/tmp/inferd-vulkan-log-XXXXXX";
    char folder[] = "/tmp/inferd-vulkan-none-XXXXXX";
    char loader[64];
    close(mkstemp(log));
    cr_assert_not_null(mkdtemp(folder));
    // The first file found under the loader's name is not a library. Expect the daemon to ignore
    // it.
    snprintf(loader, sizeof loader, "%s/libvulkan.so.1", folder);
    close(open(loader, O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
    setenv("LD_LIBRARY_PATH", folder, 1);
    serve_without(log);
    unlink(loader);
    rmdir(folder);
    expect_line(log, "backend left out backend=vulkan reason=\"it finds no device\"");
}

// --- settings for the paths of the Vulkan loader and drivers ---

// Returns whether a daemon started with these paths of loader and drivers has a GPU. Checks that it
// serves in any case.
static bool has_gpu(const char *loader, const char *drivers)
{
    inf_fixture_start(&fixture,
                      (const char *const[]){"--backends=vulkan,cpu", loader, drivers, NULL});
    inf_raw_open(&raw, fixture.socket);
    bool found = find_health("vulkan0") != NULL;
    (void)served_by("");
    stop_server();
    return found;
}

Test(serving_vulkan, loader_and_drivers_are_where_the_settings_say)
{
    Dl_info info;
    char loader[512], directory[] = "/tmp/inf-loader-XXXXXX", copy[64], command[700];
    void *library = dlopen("libvulkan.so.1", RTLD_NOW);
    cr_assert_not_null(library);
    cr_assert_neq(dladdr(dlsym(library, "vkGetInstanceProcAddr"), &info), 0);
    cr_assert_not_null(mkdtemp(directory));
    snprintf(copy, sizeof copy, "%s/moved.so", directory);
    snprintf(command, sizeof command, "cp -L '%s' '%s'", info.dli_fname, copy);
    cr_assert_eq(system(command), 0);
    snprintf(loader, sizeof loader, "--vulkan-loader=%s", copy);
    cr_expect(has_gpu(loader, NULL));
    cr_expect(!has_gpu("--vulkan-loader=/nowhere/libvulkan.so.1", NULL));
    cr_expect(!has_gpu("--vulkan-drivers=/nowhere/driver.json", NULL));
    snprintf(command, sizeof command, "rm -r '%s'", directory);
    cr_assert_eq(system(command), 0);
}
