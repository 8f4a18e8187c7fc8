// SPDX-License-Identifier: Apache-2.0
// Which build of this code runs, for what is kept for the next start and holds for this build only.
#ifndef INF_BACKENDS_STORAGE_BUILD_ID_H
#define INF_BACKENDS_STORAGE_BUILD_ID_H

#define INF_BUILD_ID_TEXT 48

// Writes the identity that the linker gave the program, or the library, that has this code, in
// hexadecimal digits; "none" where it gave none. Two builds of other code have others. Any thread.
void inf_build_id(char text[INF_BUILD_ID_TEXT]);

#endif
