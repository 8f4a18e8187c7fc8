// SPDX-License-Identifier: Apache-2.0
// The identity of this build. Measurements that are kept for the next start are valid for one build
// only.
#ifndef INF_BACKENDS_STORAGE_BUILD_ID_H
#define INF_BACKENDS_STORAGE_BUILD_ID_H

#define INF_BUILD_ID_TEXT 48

// Writes the build ID of the program or library that contains this code, in hexadecimal digits;
// "none" if it has no ID. Builds of different code have different IDs. Any thread.
void inf_build_id(char text[INF_BUILD_ID_TEXT]);

#endif
