// SPDX-License-Identifier: Apache-2.0
// Whether this build has a sanitizer, which makes everything slower and larger.
#ifndef INF_TESTS_SUPPORT_SANITIZED_H
#define INF_TESTS_SUPPORT_SANITIZED_H

// gcc defines macros; clang has features.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define INF_TESTS_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define INF_TESTS_SANITIZED 1
#endif
#endif

#ifndef INF_TESTS_SANITIZED
#define INF_TESTS_SANITIZED 0
#endif

#endif
