// SPDX-License-Identifier: Apache-2.0
// The interface of compute devices for their users. Calls are checked and then passed to the
// backend (backend.h). Devices are reference-counted. Any thread except the event loop may call
// these functions, unless a comment says otherwise.
#ifndef INF_BACKENDS_DEVICE_DEVICE_H
#define INF_BACKENDS_DEVICE_DEVICE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "backends/base/log.h"
#include "backends/base/precision.h"
#include "backends/base/role.h"
#include "backends/device/kernel_races.h"
#include "backends/device/run_step.h"
#include "backends/graph/graph.h"
#include "backends/graph/readers.h"

struct inf_backend;
struct inf_device;
struct inf_buffer;
struct inf_evaluator;
struct inf_program;

// The kind of hardware on which a device computes.
enum inf_device_kind {
    INF_DEVICE_HOST, // plain host code (the reference device `ref`)
    INF_DEVICE_CPU,  // optimised code on the cores of the host
    INF_DEVICE_GPU,  // a discrete or integrated GPU
    // A GPU interface that computes on the CPU (lavapipe); never preferred over cpu.
    INF_DEVICE_SOFTWARE,
};

// Properties of one device. They do not change after the device was opened.
struct inf_device_info {
    char name[32];        // unique in the daemon: "cpu", "ref", "vulkan0"
    char backend[16];     // name of the backend: "cpu", "ref" or "vulkan"
    char description[96]; // for users: names of the processor or GPU and of the driver
    // Identifies the device and the build of its driver. Used as the key of measurements; if it is
    // "", `description` is used.
    char identity[128];
    char features[240]; // for people: limits and abilities that matter; "": none
    enum inf_device_kind kind;
    int priority;          // static preference: vulkan 300, cpu 200, ref 100
    uint32_t slots;        // number of concurrent runs of one program, at least 1
    uint32_t threads;      // number of threads that one run uses
    bool discrete;         // true: a GPU with its own memory
    bool host_memory;      // true: buffers are host memory, so bindings need only `host`
    size_t alignment;      // alignment of buffer offsets, a power of two
    uint64_t memory_bytes; // size of the device's own memory; 0: it uses host memory
    // If all operands of a node are in host memory and have fewer elements than this, a host device
    // should run the node. 0: this never applies.
    uint32_t handoff_elements;
    uint32_t precisions; // INF_PRECISION_BIT() of each precision in addition to fp32
    bool fewer_threads;  // true: a program may be compiled for fewer threads than `threads`
    bool strings;        // true: the device computes nodes with operands of BYTES
};

// Options for opening a device.
struct inf_device_options {
    uint32_t slots;      // 0: the backend chooses the number
    uint32_t threads;    // 0: the backend chooses the number
    const char *isa_max; // highest ISA level of kernels; NULL or "auto": the highest available
    const struct inf_log *log;  // NULL: no log; must outlive the device
    uint32_t handoff_elements;  // copied to the info of a device with its own memory; 0: no handoff
    uint64_t memory_bytes;      // limit for devices with their own memory; 0: no limit
    const char *vulkan_loader;  // path of the Vulkan loader library; NULL: the system's loader
    const char *vulkan_drivers; // driver manifests, separated by colons; NULL: all drivers
    // Directory for compiled code that later starts use; NULL: none. The string is copied.
    const char *cache_directory;
    // True: if several kernels can compute a kind of node, time them when a program is compiled,
    // and keep the result in cache_directory. False: fixed rules choose the kernel.
    bool kernel_races;
    // Computes nodes for comparison, when a device uses a shader for the first time on its driver.
    // NULL: shaders are not checked. Must outlive the device.
    const struct inf_evaluator *shader_oracle;
    // True: check the shaders of devices that compute on the CPU too.
    bool check_software;
};

// Host memory that is counted for a device although the device did not allocate it: the constants
// of the models that run on the device.
struct inf_device_held {
    uint64_t bytes;
    uint32_t tensors; // number of constants; each is one tensor
    uint32_t buffers; // number of allocations that contain the constants
};

// The memory in use on one device.
struct inf_device_memory {
    uint64_t weight_bytes; // packed or uploaded weights of all programs
    uint64_t buffer_bytes; // buffers allocated through inf_buffer_alloc()
    struct inf_device_held held;
    uint32_t allocations; // number of programs with weights, and of non-empty buffers
    uint64_t peak_bytes;  // highest sum of weights, buffers and held memory
};

// How often a device has chosen among several kernels or levels of fusion, by how it chose.
struct inf_kernel_choices {
    uint64_t measured; // by a race that was run for this choice
    uint64_t known;    // by the recorded result of an earlier race
    uint64_t rule;     // by the fixed rule, because no race was possible
    uint64_t later;    // by the fixed rule, until a race in the background
    // Of all races, those that another kernel than the choice of the fixed rule has won.
    uint64_t overturned;
};

enum inf_device_health {
    INF_DEVICE_OK,   // no failure of the device is known
    INF_DEVICE_LOST, // every run fails until the device is reopened, which is tried after a delay
    INF_DEVICE_QUARANTINED, // lost too often: every run fails until the process restarts
};

// Opens device number `index` of `backend`. The caller owns the only reference, *out_device.
//
// INF_UNAVAILABLE  (NO_DEVICE) the backend cannot start on this machine; the text gives the reason.
enum inf_code inf_device_open(struct inf_device **out_device, const struct inf_backend *backend,
                              uint32_t index, const struct inf_device_options *options,
                              struct inf_error *err) INF_NODISCARD INF_MAY_BLOCK;

// Takes another reference and returns the device. Any thread.
struct inf_device *inf_device_ref(struct inf_device *device) INF_NODISCARD;

// Drops a reference and sets the pointer to NULL. Dropping the last reference closes the device.
// NULL is allowed.
void inf_device_unref(struct inf_device **device);

// Returns the properties of the device; valid as long as the device. Any thread.
const struct inf_device_info *inf_device_info(const struct inf_device *device);

// Returns INF_OK if the device can compute node `node` of `graph` (shapes known).
//
// INF_UNSUPPORTED  it cannot; the text gives the reason (operator, attribute, element type, rank).
enum inf_code inf_device_supports(struct inf_device *device, const struct inf_graph *graph,
                                  uint32_t node, struct inf_error *err) INF_NODISCARD;

// --- buffers: memory of a device ---

enum inf_buffer_usage {
    INF_BUFFER_ARENA,   // for intermediate tensors of runs
    INF_BUFFER_STAGING, // for transfers between host and device
};

// Allocates device memory. The caller frees *out_buffer before the device's last reference is
// dropped.
//
// INF_EXHAUSTED  (DEVICE_OOM, HOST_OOM) there is not enough memory.
enum inf_code inf_buffer_alloc(struct inf_buffer **out_buffer, struct inf_device *device,
                               size_t size_bytes, enum inf_buffer_usage usage,
                               struct inf_error *err) INF_NODISCARD;

// Makes the caller's host memory usable by the device without a copy. The caller must keep the
// memory until the buffer is freed.
//
// INF_UNSUPPORTED  the device cannot import it; copy instead.
enum inf_code inf_buffer_import(struct inf_buffer **out_buffer, struct inf_device *device,
                                void *host, size_t size_bytes, struct inf_error *err) INF_NODISCARD;

// Returns the buffer's bytes in host memory; NULL if the host cannot access them.
void *inf_buffer_host(const struct inf_buffer *buffer);

// Copies `size` bytes between two buffers of the same device, either of which may be host memory.
// Returns when the copy is done.
enum inf_code inf_buffer_copy(struct inf_buffer *to, size_t to_offset, struct inf_buffer *from,
                              size_t from_offset, size_t size,
                              struct inf_error *err) INF_NODISCARD INF_MAY_BLOCK;

// Returns true if the buffer can never be used again because its device was lost. Any thread.
bool inf_buffer_lost(const struct inf_buffer *buffer);

// Frees the buffer. No run may use it. NULL is allowed.
void inf_buffer_free(struct inf_buffer **buffer);

// --- programs: compiled segments of a plan ---

// Consecutive steps of a plan that one device runs. Read during compilation only.
struct inf_segment {
    const struct inf_graph *graph; // all shapes are known; must outlive the program
    const uint32_t *nodes;         // indices of the nodes to run, ascending
    uint32_t node_count;
    // For each node of the graph, the nodes that read its first output (inf_graph_list_readers()).
    // For fusion; NULL if not known.
    const struct inf_readers *readers;
    uint32_t slots; // number of concurrent runs, each in its own slot
    // The precision of products and of values stored between steps; the device must offer it. Sums
    // and bound values are always fp32. AUTO means FP32.
    enum inf_precision precision;
    const bool *pinned; // pinned[n]: node n of the graph stays in fp32; NULL: no node is pinned
    // lowered[v]: the memory of value v holds 16-bit floats of `precision`, which is possible
    // because only devices with the same memory access it. The memory still has room for 32-bit
    // floats. NULL: no value is lowered.
    const bool *lowered;
    uint32_t threads; // threads of each run; 0: all threads of the device
    bool by_rule;     // true: choose kernels without measuring, because a run waits for the program
    struct inf_kernel_races races;
    // Checked between nodes while the segment is compiled; NULL: not cancellable.
    const atomic_bool *cancelled;
};

// Measures which kernels suit the segment best, if the device chooses by measurement. Call it
// before inf_device_fused_into() and inf_program_compile(), which use the result. Ignores `slots`
// and `lowered`. May compile and run parts of the segment, so constants must have their bytes.
void inf_device_choose_kernels(struct inf_device *device,
                               const struct inf_segment *segment) INF_MAY_BLOCK;

// Returns the later node of the segment whose step also computes `node`; INF_NODE_NONE if `node`
// has its own step. Values between the two nodes are not stored. Ignores `slots` and `lowered`.
uint32_t inf_device_fused_into(struct inf_device *device, const struct inf_segment *segment,
                               uint32_t node);

enum inf_compile_flag {
    INF_COMPILE_ONLY = 1u << 0, // prepare code only; the first run uploads the weights
};

// The memory of one value during a run.
struct inf_binding {
    void *host;                // host memory, if the device has host_memory; otherwise may be NULL
    struct inf_buffer *buffer; // used if the device has no host_memory
    size_t offset;             // offset in `buffer`
};

// The processor cores that a run used.
struct inf_core_use {
    // The time for which threads of the device other than the calling one worked for the run,
    // summed over the threads.
    uint64_t helper_ns;
    // The most threads that computed at the same time, including the calling one; 0: not reported.
    uint32_t threads;
};

// One run of a program.
struct inf_run {
    // bindings[v] is the memory of value v; set for every operand that is not a constant
    const struct inf_binding *bindings;
    uint32_t slot;                // below segment.slots; concurrent runs have different slots
    const atomic_bool *cancelled; // checked between steps; NULL: the run cannot be cancelled
    bool profile;                 // true: keep times for inf_program_profile()
    // Set to true if the device stored a non-finite value in less than fp32; not every device
    // checks this. NULL if the caller does not need it.
    atomic_bool *overflowed;
    struct inf_run_step *step; // receives the name of each node before it is computed; may be NULL
    struct inf_string_pool *strings; // strings that the run makes; NULL: it must make none
    // The device adds to `helper_ns`, and raises `threads` if it used more; may be NULL.
    struct inf_core_use *core_use;
};

// The number of a submission on a device, such as a run. Devices finish submissions in this order.
struct inf_ticket {
    uint64_t value;
};

// Compiles a segment: chooses kernels, packs or uploads weights. The caller destroys *out_program
// before the device's last reference is dropped. The graph must outlive the program, and must have
// the bytes of all constants during the call.
//
// INF_UNSUPPORTED  a node that the device cannot compute, or a precision that it does not offer.
// INF_EXHAUSTED    memory.
// INF_CANCELLED    *segment->cancelled became true.
enum inf_code inf_program_compile(struct inf_program **out_program, struct inf_device *device,
                                  const struct inf_segment *segment, uint32_t flags,
                                  struct inf_error *err) INF_NODISCARD INF_MAY_BLOCK;

// Returns true if the program can never run again because its device was lost. Any thread.
bool inf_program_lost(const struct inf_program *program);

// Frees the program. No run may be in progress. NULL is allowed.
void inf_program_destroy(struct inf_program **program);

// Runs the program. Devices with host memory compute on the calling thread and return when the run
// is done; other devices submit, return, and store a ticket, which is the number of the submission.
// The caller must keep the bindings until the device has finished that submission. Allocates
// nothing.
//
// INF_CANCELLED    *run->cancelled became true.
// INF_INVALID      a value is invalid for an operator, such as an index out of range.
// INF_UNAVAILABLE  (DEVICE_LOST)
enum inf_code inf_program_run(struct inf_program *program, const struct inf_run *run,
                              struct inf_ticket *out_ticket,
                              struct inf_error *err) INF_NODISCARD INF_MAY_BLOCK;

// Waits until the device has finished the submission that `ticket` names, at most `timeout_ns`.
//
// INF_DEADLINE     the device did not finish in time.
// INF_UNAVAILABLE  (DEVICE_LOST)
enum inf_code inf_device_wait(struct inf_device *device, struct inf_ticket ticket,
                              uint64_t timeout_ns,
                              struct inf_error *err) INF_NODISCARD INF_MAY_BLOCK;

// Checks the result of a run for errors that the device found, and sets *run->overflowed. Call it
// after inf_device_wait() for the run and before the next run of the slot. Never blocks.
//
// INF_INVALID  as inf_program_run(); the outputs are undefined.
enum inf_code inf_program_finish(struct inf_program *program, const struct inf_run *run,
                                 struct inf_error *err) INF_NODISCARD;

// Time of one step in a profiled run.
struct inf_step_profile {
    uint32_t node; // index of the node in the graph
    uint64_t time_ns;
    const char *kernel; // name of the kernel; static
    uint32_t threads;   // threads that computed the step; 0: not reported
    // Most multiply-adds per second that one core reaches in dot products of bytes with vector
    // instructions; AMX may exceed it. 0: the step has no dot products of bytes, or the device does
    // not report this rate.
    double dot_rate;
};

// Copies at most `capacity` steps of the last profiled run of `slot`. Returns the total number of
// steps.
uint32_t inf_program_profile(const struct inf_program *program, uint32_t slot,
                             struct inf_step_profile *steps, uint32_t capacity);

// Returns the number of nodes that the program computes in less than fp32.
uint32_t inf_program_lowered_nodes(const struct inf_program *program);

// Returns the bytes of weights that the program packed or uploaded and does not share.
uint64_t inf_program_weight_bytes(const struct inf_program *program);

// Returns the bytes that runs need in addition to the arena, in all slots, for intermediates within
// steps.
uint64_t inf_program_scratch_bytes(const struct inf_program *program);

// Returns the packed form of the constant at operand `input` of `node`; NULL if runs read the
// graph's bytes. If there is a packed form, runs do not read the graph's bytes of the constant, so
// they may be evicted if the form can restore them. The form is borrowed from the program, which
// may share it with other programs.
struct inf_blob_form *inf_program_packed_form(const struct inf_program *program, uint32_t node,
                                              uint32_t input);

// Makes a form of `blob` from a record that the form of a device of the same kind wrote. Programs
// that are compiled while the caller holds the form use it instead of packing the constant again.
// On success the form takes the reference record->pages, which is set to NULL; the caller drops
// *out_form with inf_blob_form_unref() before the last reference to the blob. The bytes of the
// parts are used as they are; everything else in the record is checked.
//
// INF_UNSUPPORTED  the device keeps no forms, or packs for another ISA level.
// INF_INVALID      the record does not fit the blob.
// INF_EXHAUSTED    memory.
enum inf_code inf_device_adopt_form(struct inf_device *device, struct inf_blob *blob,
                                    struct inf_form_record *record, struct inf_blob_form **out_form,
                                    struct inf_error *err) INF_NODISCARD;

// Returns the memory in use on the device. Any thread.
struct inf_device_memory inf_device_memory(struct inf_device *device);

// Adds to the memory that is held for the device; see struct inf_device_held. Any thread.
void inf_device_add_held(struct inf_device *device, const struct inf_device_held *held);

// Subtracts an amount that was added by inf_device_add_held(). Any thread.
void inf_device_remove_held(struct inf_device *device, const struct inf_device_held *held);

// Returns true if the device caused the failure (lost, hung, out of memory), so that another device
// may succeed. Any thread.
bool inf_device_caused_error(const struct inf_error *err);

// Returns true and how the device has chosen kernels; false if it runs no races. Any thread.
bool inf_device_kernel_choices(struct inf_device *device, struct inf_kernel_choices *out_choices);

// Returns the health of the device. Any thread.
enum inf_device_health inf_device_health(struct inf_device *device);

#endif
