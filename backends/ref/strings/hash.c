// SPDX-License-Identifier: Apache-2.0
// Hashes of strings. Fingerprint64 is farmhashna::Hash64 of Google's FarmHash (Geoff Pike, 2014),
// which TensorFlow uses for StringToHashBucketFast. MurmurHash3 is Austin Appleby's x86 variant of
// 32 bits. Both are defined by their published code; the names of constants and steps are theirs.
#include "backends/ref/text.h"

// --- FarmHash Fingerprint64 ---

#define K0 UINT64_C(0xc3a5c85c97cb3127)
#define K1 UINT64_C(0xb492b66fbe98f273)
#define K2 UINT64_C(0x9ae16a3b2f90404f)

static uint64_t fetch_64(const uint8_t *from)
{
    uint64_t word;
    memcpy(&word, from, sizeof word); // little-endian, as all supported machines
    return word;
}

static uint32_t fetch_32(const uint8_t *from)
{
    uint32_t word;
    memcpy(&word, from, sizeof word);
    return word;
}

static uint64_t rotate_right(uint64_t word, unsigned bits)
{
    return word >> bits | word << (64 - bits);
}

static uint64_t shift_mix(uint64_t word)
{
    return word ^ word >> 47;
}

static uint64_t hash_pair(uint64_t u, uint64_t v, uint64_t mul)
{
    uint64_t a = shift_mix((u ^ v) * mul);
    return shift_mix((v ^ a) * mul) * mul;
}

static uint64_t hash_to_16(const uint8_t *s, size_t size)
{
    uint64_t mul = K2 + size * 2;
    if (size >= 8) {
        uint64_t a = fetch_64(s) + K2, b = fetch_64(s + size - 8);
        uint64_t c = rotate_right(b, 37) * mul + a, d = (rotate_right(a, 25) + b) * mul;
        return hash_pair(c, d, mul);
    }
    if (size >= 4)
        return hash_pair(size + ((uint64_t)fetch_32(s) << 3), fetch_32(s + size - 4), mul);
    if (size > 0) {
        uint32_t y = s[0] + ((uint32_t)s[size >> 1] << 8);
        uint32_t z = (uint32_t)size + ((uint32_t)s[size - 1] << 2);
        return shift_mix(y * K2 ^ z * K0) * K2;
    }
    return K2;
}

static uint64_t hash_to_32(const uint8_t *s, size_t size)
{
    uint64_t mul = K2 + size * 2;
    uint64_t a = fetch_64(s) * K1, b = fetch_64(s + 8);
    uint64_t c = fetch_64(s + size - 8) * mul, d = fetch_64(s + size - 16) * K2;
    return hash_pair(rotate_right(a + b, 43) + rotate_right(c, 30) + d,
                     a + rotate_right(b + K2, 18) + c, mul);
}

static uint64_t hash_to_64(const uint8_t *s, size_t size)
{
    uint64_t mul = K2 + size * 2;
    uint64_t a = fetch_64(s) * K2, b = fetch_64(s + 8);
    uint64_t c = fetch_64(s + size - 8) * mul, d = fetch_64(s + size - 16) * K2;
    uint64_t y = rotate_right(a + b, 43) + rotate_right(c, 30) + d;
    uint64_t z = hash_pair(y, a + rotate_right(b + K2, 18) + c, mul);
    uint64_t e = fetch_64(s + 16) * mul, f = fetch_64(s + 24);
    uint64_t g = (y + fetch_64(s + size - 32)) * mul, h = (z + fetch_64(s + size - 24)) * mul;
    return hash_pair(rotate_right(e + f, 43) + rotate_right(g, 30) + h,
                     e + rotate_right(f + a, 18) + g, mul);
}

// The state of hashing a long string.
struct farm {
    uint64_t x, y, z, v[2], w[2];
};

// Mixes 32 bytes with two seeds.
static void mix_32(uint64_t out[2], const uint8_t *s, uint64_t a, uint64_t b)
{
    uint64_t z = fetch_64(s + 24);
    a += fetch_64(s);
    b = rotate_right(b + a + z, 21);
    uint64_t c = a;
    a += fetch_64(s + 8);
    a += fetch_64(s + 16);
    b += rotate_right(a, 44);
    out[0] = a + z;
    out[1] = b + c;
}

// Mixes 64 bytes into the state. `factor` is 1 but for the last bytes, and `mul` is K1.
static void mix_64(struct farm *farm, const uint8_t *s, uint64_t mul, uint64_t factor)
{
    farm->x = rotate_right(farm->x + farm->y + farm->v[0] + fetch_64(s + 8), 37) * mul;
    farm->y = rotate_right(farm->y + farm->v[1] + fetch_64(s + 48), 42) * mul;
    farm->x ^= farm->w[1] * factor;
    farm->y += farm->v[0] * factor + fetch_64(s + 40);
    farm->z = rotate_right(farm->z + farm->w[0], 33) * mul;
    mix_32(farm->v, s, farm->v[1] * mul, farm->x + farm->w[0]);
    mix_32(farm->w, s + 32, farm->z + farm->w[1], farm->y + fetch_64(s + 16));
    uint64_t z = farm->z;
    farm->z = farm->x;
    farm->x = z;
}

static uint64_t hash_long(const uint8_t *s, size_t size)
{
    const uint64_t seed = 81;
    struct farm farm = {.x = seed * K2 + fetch_64(s), .y = seed * K1 + 113};
    farm.z = shift_mix(farm.y * K2 + 113) * K2;
    size_t whole = (size - 1) / 64 * 64, rest = (size - 1) & 63;
    for (size_t at = 0; at < whole; at += 64)
        mix_64(&farm, s + at, K1, 1);
    uint64_t mul = K1 + ((farm.z & 0xff) << 1);
    farm.w[0] += rest;
    farm.v[0] += farm.w[0];
    farm.w[0] += farm.v[0];
    mix_64(&farm, s + whole + rest - 63, mul, 9);
    return hash_pair(hash_pair(farm.v[0], farm.w[0], mul) + shift_mix(farm.y) * K0 + farm.z,
                     hash_pair(farm.v[1], farm.w[1], mul) + farm.x, mul);
}

static uint64_t hash_farm(struct inf_span string)
{
    if (string.size <= 16)
        return hash_to_16(string.data, string.size);
    if (string.size <= 32)
        return hash_to_32(string.data, string.size);
    return string.size <= 64 ? hash_to_64(string.data, string.size)
                             : hash_long(string.data, string.size);
}

enum inf_code inf_ref_string_hash(const struct inf_ref_call *call, struct inf_error *err)
{
    const struct inf_ref_tensor *y = &call->outputs[0];
    uint64_t buckets = (uint64_t)call->node->attrs.string_hash.buckets;
    for (size_t i = 0; i < y->count; i++) {
        struct inf_span string;
        INF_TRY(inf_ref_load_string(call, &call->inputs[0], i, &string, err));
        inf_ref_store_int(y, i, (__int128)(hash_farm(string) % buckets));
    }
    return INF_OK;
}

// --- MurmurHash3 ---

static uint32_t rotate_left_32(uint32_t word, unsigned bits)
{
    return word << bits | word >> (32 - bits);
}

static uint32_t scramble_word(uint32_t word)
{
    return rotate_left_32(word * 0xcc9e2d51u, 15) * 0x1b873593u;
}

static uint32_t hash_murmur(struct inf_span bytes, uint32_t seed)
{
    uint32_t hash = seed, tail = 0;
    size_t whole = bytes.size / 4 * 4;
    for (size_t at = 0; at < whole; at += 4)
        hash =
            rotate_left_32(hash ^ scramble_word(fetch_32(bytes.data + at)), 13) * 5 + 0xe6546b64u;
    for (size_t i = whole; i < bytes.size; i++)
        tail |= (uint32_t)bytes.data[i] << (8 * (i - whole));
    hash ^= scramble_word(tail); // 0 if there is no tail
    hash ^= (uint32_t)bytes.size;
    hash = (hash ^ hash >> 16) * 0x85ebca6bu;
    hash = (hash ^ hash >> 13) * 0xc2b2ae35u;
    return hash ^ hash >> 16;
}

enum inf_code inf_ref_murmur_hash(const struct inf_ref_call *call, struct inf_error *err)
{
    const struct inf_ref_tensor *x = &call->inputs[0];
    uint32_t seed = (uint32_t)call->node->attrs.murmur_hash.seed;
    for (size_t i = 0; i < x->count; i++) {
        struct inf_span bytes = {(const uint8_t *)x->data + i * x->element_bytes, x->element_bytes};
        if (x->dtype == INF_DTYPE_BYTES)
            INF_TRY(inf_ref_load_string(call, x, i, &bytes, err));
        inf_ref_store_int(&call->outputs[0], i, (int32_t)hash_murmur(bytes, seed));
    }
    return INF_OK;
}
