// SPDX-License-Identifier: Apache-2.0
// Complex numbers exist only during the import. A node with a complex result (is_complex is set)
// has two values, the real and the imaginary part. The graph has only real numbers.
#ifndef INF_BACKENDS_IMPORT_TFJS_COMPLEX_H
#define INF_BACKENDS_IMPORT_TFJS_COMPLEX_H

#include "backends/import/tfjs/lower.h"

// Returns true if an input of the scope's node is complex.
bool inf_tfjs_takes_complex(const struct inf_tfjs_scope *scope);

// Makes the result of the node complex, with two values that only complex operators use.
//
// INF_EXHAUSTED  memory.
enum inf_code inf_tfjs_finish_complex(struct inf_tfjs_scope *scope, uint32_t real,
                                      uint32_t imaginary, struct inf_error *err) INF_NODISCARD;

// Lowers a node with complex inputs. scope->inputs are the real parts; scope->op is the operator of
// the node.
//
// INF_UNSUPPORTED  the operator is not supported for complex numbers.
enum inf_code inf_tfjs_lower_complex(struct inf_tfjs_scope *scope,
                                     struct inf_error *err) INF_NODISCARD;

#endif
