// SPDX-License-Identifier: Apache-2.0
// The part of print_tflite that asks devices.
#ifndef INF_TESTS_TOOLS_GEN_PRINT_TFLITE_MATRIX_H
#define INF_TESTS_TOOLS_GEN_PRINT_TFLITE_MATRIX_H

// Prints for each operator of the generated files in `folder` (gen_tflite_ops.py), each element
// type and each device of this machine whether the device runs the nodes that the operator becomes.
// Prints nothing if the folder has no manifest.
void print_tflite_matrix(const char *folder);

#endif
