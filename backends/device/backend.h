// SPDX-License-Identifier: Apache-2.0
// The interface of a backend, for authors of backends. device.c checks the arguments and then calls
// the entry; docs/explanation/backends.md explains all entries. Entries marked (optional) may be
// NULL. The text after "optional" says what happens if the entry is NULL.
#ifndef INF_BACKENDS_DEVICE_BACKEND_H
#define INF_BACKENDS_DEVICE_BACKEND_H

#include "backends/device/counts.h"
#include "backends/device/device.h"

// The first member of a backend's device struct.
struct inf_device {
    const struct inf_backend *backend; // set by device.c
    _Atomic size_t references;         // set by device.c
    // Total weight_bytes of programs; counted by device.c.
    _Atomic uint64_t weight_bytes;
    // Bytes from inf_buffer_alloc(); counted by device.c.
    _Atomic uint64_t buffer_bytes;
    // Number of weights and buffers; counted by device.c.
    _Atomic uint32_t allocations;
    _Atomic uint64_t held_bytes;   // see inf_device_add_held(); counted by device.c
    _Atomic uint32_t held_tensors; // number of constants in held_bytes; counted by device.c
    _Atomic uint32_t held_buffers; // number of allocations in held_bytes; counted by device.c
    // sum of weight_bytes, buffer_bytes and held_bytes; counted by device.c
    _Atomic uint64_t total_bytes;
    _Atomic uint64_t peak_bytes;                // highest total_bytes so far; counted by device.c
    _Atomic uint64_t counts[INF_DEVICE_COUNTS]; // see inf_device_add_count()
    struct inf_device_info info;                // filled by open()
};

// Says which code allocated a buffer and must free it.
enum inf_buffer_origin {
    INF_BUFFER_BACKEND,  // the backend's entry buffer_alloc() or buffer_import()
    INF_BUFFER_HOST,     // device.c, which allocated host memory
    INF_BUFFER_BORROWED, // device.c, which wraps the caller's host memory
};

// The first member of a backend's buffer struct.
struct inf_buffer {
    struct inf_device *device;     // set by device.c
    size_t size_bytes;             // set by device.c
    size_t counted_bytes;          // set by device.c: contribution to the device's buffer_bytes
    enum inf_buffer_origin origin; // set by device.c
    // Filled by alloc or import; NULL: the host cannot access the buffer.
    void *host;
};

// The first member of a backend's program struct.
struct inf_program {
    struct inf_device *device; // set by device.c
    uint32_t slots;            // set by device.c
    uint64_t counted_bytes;    // set by device.c: contribution to the device's weight_bytes
    uint64_t weight_bytes;     // filled by compile(): weights that no other program shares
    // Filled by compile(). True if weights are uploaded and evicted during the program's life; the
    // backend then counts them itself.
    bool weights_move;
    // Filled by compile(): memory of runs in addition to the arena, for all slots.
    uint64_t scratch_bytes;
    uint32_t lowered_nodes; // filled by compile(): number of nodes computed in less than fp32
};

// Adds one allocation of weights that several programs share to the device's memory in use. Any
// thread.
void inf_device_count_weights(struct inf_device *device, uint64_t bytes);

// Subtracts an allocation that inf_device_count_weights() added. Any thread.
void inf_device_uncount_weights(struct inf_device *device, uint64_t bytes);

struct inf_backend {
    const char *name;
    int priority;

    // Receives the options, once, before any other call. (optional: options are ignored)
    //
    // INF_UNAVAILABLE  a file that the options name does not exist.
    enum inf_code (*prepare)(const struct inf_device_options *options, struct inf_error *err);

    // Returns true if hardware for this backend may be present. Cheap: loads no driver. If it
    // returns false, the backend is opened only if it is requested by name. (optional: true)
    bool (*hardware)(void);

    // Returns the number of devices of this backend. Cheap, without side effects.
    uint32_t (*probe)(void);

    // Opens device `index`: allocates the backend's struct and fills `info`. Frees everything on
    // failure.
    enum inf_code (*open)(struct inf_device **out_device, uint32_t index,
                          const struct inf_device_options *options, struct inf_error *err);

    // Frees the device. All its programs and buffers are already freed.
    void (*close)(struct inf_device *device);

    // Returns INF_OK if the node can be computed, else INF_UNSUPPORTED with the reason in `err`.
    enum inf_code (*supports)(struct inf_device *device, const struct inf_graph *graph,
                              uint32_t node, struct inf_error *err);

    // Measures which kernels suit the segment best. fused_into() and compile() use the result,
    // which stays the same while the device is open. May block. (optional: fixed rules choose the
    // kernels)
    void (*choose_kernels)(struct inf_device *device, const struct inf_segment *segment);

    // Returns the later node of the segment whose step also computes `node`; INF_NODE_NONE if
    // `node` has its own step. A fused node's operands stay until that step has run; its result is
    // not stored. compile() must fuse the same nodes. (optional: no node is fused)
    uint32_t (*fused_into)(struct inf_device *device, const struct inf_segment *segment,
                           uint32_t node);

    // Allocates device memory, as inf_buffer_alloc() describes. (optional: device.c allocates host
    // memory, aligned to 64 bytes, followed by slack for kernels that read beyond the end)
    enum inf_code (*buffer_alloc)(struct inf_buffer **out_buffer, struct inf_device *device,
                                  size_t size_bytes, enum inf_buffer_usage usage,
                                  struct inf_error *err);

    // Makes host memory usable by the device without a copy, as inf_buffer_import() describes.
    // (optional: devices with host memory use the memory as it is; for other devices the import
    // fails with INF_UNSUPPORTED)
    enum inf_code (*buffer_import)(struct inf_buffer **out_buffer, struct inf_device *device,
                                   void *host, size_t size_bytes, struct inf_error *err);

    // Copies bytes between two buffers of the device, as inf_buffer_copy() describes. (optional:
    // memcpy between host pointers)
    enum inf_code (*buffer_copy)(struct inf_buffer *to, size_t to_offset, struct inf_buffer *from,
                                 size_t from_offset, size_t size, struct inf_error *err);

    // Returns true if the buffer is unusable because the device was lost. (optional: never lost)
    bool (*buffer_lost)(const struct inf_buffer *buffer);

    // Frees a buffer from buffer_alloc or buffer_import. (optional if both are NULL)
    void (*buffer_free)(struct inf_buffer *buffer);

    // Allocates the backend's program struct and fills it. Frees everything on failure.
    enum inf_code (*compile)(struct inf_program **out_program, struct inf_device *device,
                             const struct inf_segment *segment, uint32_t flags,
                             struct inf_error *err);

    // Frees the program.
    void (*program_destroy)(struct inf_program *program);

    // Returns the packed form of constant operand `input` of `node`, or NULL, as
    // inf_program_packed_form() describes. (optional: runs read the graph's bytes of every
    // constant)
    struct inf_blob_form *(*packed)(const struct inf_program *program, uint32_t node,
                                    uint32_t input);

    // Makes a form from a record that a form of this backend described, as inf_device_adopt_form()
    // describes. (optional: no form can be kept)
    enum inf_code (*adopt_form)(struct inf_device *device, struct inf_blob *blob,
                                struct inf_form_record *record, struct inf_blob_form **out_form,
                                struct inf_error *err);

    // Returns true if the program can never run again because the device was lost. (optional:
    // never)
    bool (*program_lost)(const struct inf_program *program);

    // Runs the program, as inf_program_run() describes. A device with host memory has finished the
    // run on return and sets ticket->value to 0, which needs no wait.
    enum inf_code (*run)(struct inf_program *program, const struct inf_run *run,
                         struct inf_ticket *ticket, struct inf_error *err);

    // Waits until the device has finished the submission with the number ticket.value, at most
    // `timeout_ns`, as inf_device_wait() describes. (optional: run() returns after the work is
    // done)
    enum inf_code (*wait)(struct inf_device *device, struct inf_ticket ticket, uint64_t timeout_ns,
                          struct inf_error *err);

    // Reports errors that the device found during a run, as inf_program_finish() describes.
    // (optional: run() has reported all errors)
    enum inf_code (*finish)(struct inf_program *program, const struct inf_run *run,
                            struct inf_error *err);

    // Copies the step times of the slot's last profiled run, as inf_program_profile() describes.
    // (optional: there are no profiles)
    uint32_t (*profile)(const struct inf_program *program, uint32_t slot,
                        struct inf_step_profile *steps, uint32_t capacity);

    // Returns the memory in use; only weight_bytes and buffer_bytes need to be set. (optional:
    // device.c uses its own counts)
    struct inf_device_memory (*memory)(struct inf_device *device);

    // Counts choices among kernels, as inf_device_kernel_choices() describes. (optional: no races)
    bool (*kernel_choices)(struct inf_device *device, struct inf_kernel_choices *out_choices);

    // Says whether the device works, is lost or is quarantined. (optional: always INF_DEVICE_OK)
    enum inf_device_health (*health)(struct inf_device *device);
};

#endif
