// SPDX-License-Identifier: Apache-2.0
// What a model file contains, in words, for people who look at a file before they serve it.
#ifndef INF_BACKENDS_IMPORT_COMMON_CONTENTS_H
#define INF_BACKENDS_IMPORT_COMMON_CONTENTS_H

#include <stdio.h>

struct inf_file_contents {
    // The caller sets it. Receives the name of each operator or layer of the file, one a line,
    // those of subgraphs included. NULL: not wanted.
    FILE *operators;
    char version[96];       // of the format: "schema 3", "IR 8, opset 13"; "" if the file has none
    char quantization[256]; // types of weights and of other tensors; "" if nothing is quantised
};

#endif
