// SPDX-License-Identifier: Apache-2.0
// Advice for users whose model has operators that are not supported.
#ifndef INF_BACKENDS_IMPORT_ONNX_HINT_H
#define INF_BACKENDS_IMPORT_ONNX_HINT_H

// Returns advice how to export a model without the operator `name` of `domain`, such as "quantise
// with quant_format=QDQ". NULL if there is no advice. The text is static.
const char *inf_onnx_find_hint(const char *domain, const char *name);

#endif
