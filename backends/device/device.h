// SPDX-License-Identifier: Apache-2.0
// Compute devices, for those who use them. Calls are checked here and then passed to the backend
// (backend.h). A device is shared by reference; its calls may come from any thread but the
// loop, except where a line says otherwise.
#ifndef INF_BACKENDS_DEVICE_DEVICE_H
#define INF_BACKENDS_DEVICE_DEVICE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "backends/base/log.h"
#include "backends/base/precision.h"
#include "backends/base/role.h"
#include "backends/graph/graph.h"

struct inf_backend;
struct inf_device;
struct inf_buffer;
struct inf_program;

// What hardware a device is.
enum inf_device_kind {
    INF_DEVICE_HOST,     // plain host code (ref)
    INF_DEVICE_CPU,      // host cores, optimised
    INF_DEVICE_GPU,      // a GPU of its own or integrated
    INF_DEVICE_SOFTWARE, // a GPU interface computed by the CPU (lavapipe): never preferred over cpu
};

// Facts about one device, fixed once it is found.
struct inf_device_info {
    char name[32];        // unique in the daemon: "cpu", "ref", "vulkan0"
    char backend[16];     // "cpu", "ref", "vulkan"
    char description[96]; // for people: processor or GPU, driver
    char identity
        [128]; // which device and which build of its driver, for what is measured of them; "":
               // the description says it
    char features[160]; // for people: limits and abilities that matter; "": nothing to say
    enum inf_device_kind kind;
    int priority;          // static preference: vulkan 300, cpu 200, ref 100
    uint32_t slots;        // runs of one program that may go on at once, 1 or more
    uint32_t threads;      // threads one run uses
    bool discrete;         // a GPU with memory of its own
    bool host_memory;      // its buffers are host memory: bindings need only `host`
    size_t alignment;      // wanted of buffer offsets, a power of two
    uint64_t memory_bytes; // memory it has; 0 where that is the host's
    // Nodes all of whose operands lie with the host and have fewer elements each are better left to a
    // host device behind this one in a plan; 0: none are.
    uint32_t handoff_elements;
    uint32_t precisions; // INF_PRECISION_BIT() of each it computes in beside fp32
    bool fewer_threads;  // a program may be compiled for fewer threads than `threads`
};

// What a device may be told when it is opened.
struct inf_device_options {
    uint32_t slots;   // 0: the backend's choice
    uint32_t threads; // 0: the backend's choice
    const char
        *isa_max; // best instruction set of the backend's own loops; NULL or "auto": the best
    const struct inf_log *log; // NULL: no log; must outlive the device
    uint32_t handoff_elements; // of devices with memory of their own, for their info; 0: none
    uint64_t
        memory_bytes; // that is used on devices with memory of their own, at most; 0: what there is
    const char *vulkan_loader;  // the library, of the vulkan backend; NULL: where the system has it
    const char *vulkan_drivers; // its drivers' manifests, with colons between; NULL: all there are
    const char *cache_directory; // for what is compiled once for all starts; NULL: none. Copied
    // Whether kernels race for nodes that several of them compute, once for each kind of node, when a
    // program is compiled; cache_directory remembers who won. Else the choice is by rule.
    bool kernel_races;
};

// Memory that somebody else holds because of the device: the constants of models placed on it.
struct inf_device_held {
    uint64_t bytes;
    uint32_t tensors; // constants
    uint32_t buffers; // allocations that they lie in
};

// Memory in use, as the device counts it.
struct inf_device_memory {
    uint64_t weight_bytes; // packed or uploaded weights of all programs
    uint64_t buffer_bytes; // buffers allocated through inf_buffer_alloc()
    struct inf_device_held held;
    uint32_t allocations; // those of programs with weights, and of buffers that are not empty
    uint64_t peak_bytes;  // the most that weights, buffers and what is held were together
};

enum inf_device_health {
    INF_DEVICE_OK,          // runs may be tried
    INF_DEVICE_LOST,        // every run fails for a while; then it is made anew
    INF_DEVICE_QUARANTINED, // lost too often: every run fails until the process starts again
};

// Opens device number `index` of those that `backend` probes. *out_device has one reference, the
// caller's.
//
// INF_UNAVAILABLE  (NO_DEVICE) the backend cannot start here; the text says why.
enum inf_code inf_device_open(struct inf_device **out_device, const struct inf_backend *backend,
                              uint32_t index, const struct inf_device_options *options,
                              struct inf_error *err) INF_NODISCARD INF_MAY_BLOCK;

// Another reference. Any thread.
struct inf_device *inf_device_ref(struct inf_device *device) INF_NODISCARD;

// Drops a reference and sets the pointer NULL; the last one closes the device. NULL is fine.
void inf_device_unref(struct inf_device **device);

// The device's facts; valid as long as the device. Any thread.
const struct inf_device_info *inf_device_info(const struct inf_device *device);

// Whether the device can compute node `node` of `graph` (shapes known).
//
// INF_UNSUPPORTED  it cannot; the text says why (operator, attribute, element type, rank).
enum inf_code inf_device_supports(struct inf_device *device, const struct inf_graph *graph,
                                  uint32_t node, struct inf_error *err) INF_NODISCARD;

// --- buffers ---

enum inf_buffer_usage {
    INF_BUFFER_ARENA,   // intermediates
    INF_BUFFER_STAGING, // on its way between host and device
};

// Allocates device memory. *out_buffer is the caller's to free, before the device's last reference.
//
// INF_EXHAUSTED  (DEVICE_OOM, HOST_OOM) there is not that much.
enum inf_code inf_buffer_alloc(struct inf_buffer **out_buffer, struct inf_device *device,
                               size_t size_bytes, enum inf_buffer_usage usage,
                               struct inf_error *err) INF_NODISCARD;

// Makes host memory of the caller's usable by the device, without a copy where the device can.
// The memory must stay until the buffer is freed.
//
// INF_UNSUPPORTED  the device cannot; copy instead.
enum inf_code inf_buffer_import(struct inf_buffer **out_buffer, struct inf_device *device,
                                void *host, size_t size_bytes, struct inf_error *err) INF_NODISCARD;

// The buffer's bytes in host memory; NULL where the host cannot see them.
void *inf_buffer_host(const struct inf_buffer *buffer);

// Copies `size` bytes between two buffers, either of which may be host memory of the same device.
// Returns when done.
enum inf_code inf_buffer_copy(struct inf_buffer *to, size_t to_offset, struct inf_buffer *from,
                              size_t from_offset, size_t size,
                              struct inf_error *err) INF_NODISCARD INF_MAY_BLOCK;

// Whether the buffer can never be used again because its device was lost. Any thread.
bool inf_buffer_lost(const struct inf_buffer *buffer);

// Frees the buffer; nothing may still run on it. NULL is fine.
void inf_buffer_free(struct inf_buffer **buffer);

// --- programs ---

// A stretch of a plan's steps that one device runs. Read during compile only.
struct inf_segment {
    const struct inf_graph *graph; // shapes known; outlives the program
    const uint32_t *nodes;         // indices of the nodes to run, ascending
    uint32_t node_count;
    // As inf_graph_sole_readers() has it, for devices that compute several nodes at once; NULL: not known.
    const uint32_t *readers;
    uint32_t slots; // how many runs may go on at once, each with a slot number of its own
    // What products and what is stored between steps may be in, one of the device's precisions. Sums
    // are in fp32 in any case, and so is all that comes and goes by bindings. AUTO, FP32: in fp32.
    enum inf_precision precision;
    const bool *pinned; // by node of the graph: it is computed in fp32 all the same; NULL: none is
    // By value: floats that lie in 16 bits of `precision` where they are bound, since nothing but
    // devices of its memory touches them; NULL: none. Their room is that of floats.
    const bool *lowered;
    uint32_t threads; // that a run may use; 0: all that the device has
    bool by_rule;     // nothing is measured: a run waits for the program
};

// Finds out what inf_device_fused_into() and inf_program_compile() answer for the segment, where that
// is chosen by measurement: before either of them is asked. `slots` and `lowered` are not looked at. May
// compile and run parts of the segment, so constants must have their bytes.
void inf_device_choose_kernels(struct inf_device *device,
                               const struct inf_segment *segment) INF_MAY_BLOCK;

// The later node of the segment whose step also computes `node`; INF_NODE_NONE where `node` has a step
// of its own. What lies between the two is stored nowhere. `slots` and `lowered` are not looked at.
uint32_t inf_device_fused_into(struct inf_device *device, const struct inf_segment *segment,
                               uint32_t node);

enum inf_compile_flag {
    INF_COMPILE_ONLY = 1u << 0, // prepare code, leave weights where they are until the first run
};

// Where one value lies during a run.
struct inf_binding {
    void *host;                // host memory, where the device has host_memory; else may be NULL
    struct inf_buffer *buffer; // else this buffer,
    size_t offset;             // from here
};

// One run of a program.
struct inf_run {
    const struct inf_binding *bindings; // by value index; set for every operand that is no constant
    uint32_t slot;                      // below segment.slots; two runs never share a slot at once
    const atomic_bool *cancelled;       // NULL, or looked at between steps
    bool profile;                       // keep times for inf_program_profile()
    atomic_bool
        *overflowed; // NULL, or set where the device sees that a value it stored in less than
                     // fp32 is not finite; not every device looks
};

// Names a moment on the device's timeline; reached once inf_device_wait() returns INF_OK for it.
struct inf_ticket {
    uint64_t value;
};

// Compiles a segment: chooses kernels, packs or uploads weights. *out_program is the caller's to
// destroy, before the device's last reference. The program keeps the graph's constants alive by
// itself only where it copied them: the graph must outlive it, and have the bytes of every constant
// while it is compiled.
//
// INF_UNSUPPORTED  a node the device cannot compute, or a precision it does not offer.
// INF_EXHAUSTED    memory.
enum inf_code inf_program_compile(struct inf_program **out_program, struct inf_device *device,
                                  const struct inf_segment *segment, uint32_t flags,
                                  struct inf_error *err) INF_NODISCARD INF_MAY_BLOCK;

// Whether the program can never run again because its device was lost: compile another. Any thread.
bool inf_program_lost(const struct inf_program *program);

// Frees the program; no run of it may still go on. NULL is fine.
void inf_program_destroy(struct inf_program **program);

// Runs the program. Devices with host memory compute on the calling thread and return when done;
// others submit and return. Bindings must stay until the ticket is reached. Allocates nothing.
//
// INF_CANCELLED    `cancelled` was seen set.
// INF_INVALID      a value makes no sense to an operator (an index out of range).
// INF_UNAVAILABLE  (DEVICE_LOST)
enum inf_code inf_program_run(struct inf_program *program, const struct inf_run *run,
                              struct inf_ticket *out_ticket,
                              struct inf_error *err) INF_NODISCARD INF_MAY_BLOCK;

// Waits until the ticket is reached, at most `timeout_ns`.
//
// INF_DEADLINE     it was not.
// INF_UNAVAILABLE  (DEVICE_LOST)
enum inf_code inf_device_wait(struct inf_device *device, struct inf_ticket ticket,
                              uint64_t timeout_ns,
                              struct inf_error *err) INF_NODISCARD INF_MAY_BLOCK;

// Says what only the end of a run tells; once its ticket is reached, before the next run of its slot. Sets
// *run->overflowed where that is so. Never blocks.
//
// INF_INVALID  as inf_program_run(); what the run wrote means nothing then.
enum inf_code inf_program_finish(struct inf_program *program, const struct inf_run *run,
                                 struct inf_error *err) INF_NODISCARD;

// What a step of the last profiled run of `slot` took.
struct inf_step_profile {
    uint32_t node; // index in the graph
    uint64_t time_ns;
    const char *kernel; // what computed it; static
};

// Copies at most `capacity` step profiles and returns how many there are.
uint32_t inf_program_profile(const struct inf_program *program, uint32_t slot,
                             struct inf_step_profile *steps, uint32_t capacity);

// Nodes that the program computes in less than fp32.
uint32_t inf_program_lowered_nodes(const struct inf_program *program);

// Bytes of weights that the program packed or uploaded for itself alone.
uint64_t inf_program_weight_bytes(const struct inf_program *program);

// Bytes that the program's runs need beside the arena, of all slots: intermediates within its steps.
uint64_t inf_program_scratch_bytes(const struct inf_program *program);

// The form in which the program has the constant that operand `input` of `node` is, of the segment it
// was compiled from: its runs do not look at the graph's bytes, which may be given up. Borrowed from
// the program, which may share it with others. NULL where runs read what the graph has.
struct inf_blob_form *inf_program_packed_form(const struct inf_program *program, uint32_t node,
                                              uint32_t input);

// What the device counts as in use now. Any thread.
struct inf_device_memory inf_device_memory(struct inf_device *device);

// Counts memory as held because of the device, until inf_device_remove_held(). Any thread.
void inf_device_add_held(struct inf_device *device, const struct inf_device_held *held);

// Takes back what inf_device_add_held() counted. Any thread.
void inf_device_remove_held(struct inf_device *device, const struct inf_device_held *held);

// Whether a failure is the device's own (lost, hung, out of memory), so that another may do. Any thread.
bool inf_device_caused_error(const struct inf_error *err);

// Whether the device works, as far as is known. Any thread.
enum inf_device_health inf_device_health(struct inf_device *device);

#endif
