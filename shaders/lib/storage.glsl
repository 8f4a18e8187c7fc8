// Access to buffers of numbers.
//
// A module built with HALF may have operands of 16-bit floats; HALVES says which operands. They are
// widened when they are loaded and rounded when they are stored. All computation is in 32 bits.
// Words that are not floats are never 16-bit.
//
// A module built with TEXELS reads floats through texel views. The views are bound from
// BINDINGS_MAX on, and their format widens the floats. Use x(i) for views of numbers and x4(i) for
// views of vectors. Drivers for the CPU load a whole texel in one access, but load the numbers of a
// buffer one after the other.
//
// A value that becomes non-finite in 16 bits is reported in the dispatch's status. A shader that
// reports other conditions defines CHECKS.
//
// READS(slot, x) defines x(i), x4(i) and their bits x_word(i), x4_word(i). WRITES(slot, y) defines
// put_y(i, value) and the same variants. The index of a vector counts vectors.
//
// A module built with BYTES has operands of bytes: x_word(i) is a byte, and x4_word(i) are the four
// bytes of word i. Such a module has no x(i).
#if defined(HALF) || defined(CHECKS)
layout(binding = STATUS_BINDING) buffer Status { uint status[STATUS_WORDS]; };
#endif

#ifdef HALF
#extension GL_EXT_shader_16bit_storage : require
// Bit i is set if the floats of binding i are 16-bit.
layout(constant_id = HALVES_CONSTANT) const uint HALVES = 0;

#define HALF_BUFFERS(slot, access, name)                                          \
    layout(binding = slot) access buffer name##_half_1 { float16_t name##_halves[]; }; \
    layout(binding = slot) access buffer name##_half_4 { f16vec4 name##_half_vectors[]; };
#define LOAD(slot, half_, full) ((HALVES >> slot & 1u) != 0u ? (half_) : (full))
#define STORE(slot, lost, half_, full)      \
    if ((HALVES >> slot & 1u) != 0u) {      \
        if (lost)                           \
            status[STATUS_OVERFLOWED] = 1;  \
        half_;                              \
    } else {                                \
        full;                               \
    }

bool is_lost(float value)
{
    return !(abs(value) < HALF_BEYOND);
}

// Returns true if a number of `value`, vector i of a tensor, is not finite after rounding to 16
// bits. Numbers after the end of the tensor are ignored.
bool are_lost(vec4 value, uint i, uint vectors)
{
    bvec4 fine = lessThan(abs(value), vec4(HALF_BEYOND));
    uint behind = HALVES >> HALVES_BEHIND;
    if (behind != 0u)
        fine = mix(fine, bvec4(true), greaterThanEqual(uvec4(0, 1, 2, 3) + 4 * i,
            uvec4(4 * vectors - behind)));
    return !all(fine);
}
#else
#define HALF_BUFFERS(slot, access, name)
#define LOAD(slot, half_, full) (full)
#define STORE(slot, lost, half_, full) full;
#endif

#ifdef TEXELS
#define VIEW(slot, name) layout(binding = slot + BINDINGS_MAX) uniform samplerBuffer name##_texels;
#define LOAD_NUMBER(slot, name, i) texelFetch(name##_texels, int(i)).x
#define LOAD_VECTOR(slot, name, i) texelFetch(name##_texels, int(i))
#define LOAD_WORD(slot, name, i) floatBitsToUint(LOAD_NUMBER(slot, name, i))
#define LOAD_WORDS(slot, name, i) floatBitsToUint(LOAD_VECTOR(slot, name, i))
#else
#define VIEW(slot, name)
#define LOAD_NUMBER(slot, name, i) LOAD(slot, float(name##_halves[i]), name##_floats[i])
#define LOAD_VECTOR(slot, name, i) LOAD(slot, vec4(name##_half_vectors[i]), name##_vectors[i])
#define LOAD_WORD(slot, name, i) \
    LOAD(slot, floatBitsToUint(float(name##_halves[i])), name##_words[i])
#define LOAD_WORDS(slot, name, i) \
    LOAD(slot, floatBitsToUint(vec4(name##_half_vectors[i])), name##_word_vectors[i])
#endif

#define BUFFERS(slot, access, name)                                                     \
    HALF_BUFFERS(slot, access, name)                                                    \
    layout(binding = slot) access buffer name##_float_1 { float name##_floats[]; };     \
    layout(binding = slot) access buffer name##_float_4 { vec4 name##_vectors[]; };     \
    layout(binding = slot) access buffer name##_word_1 { uint name##_words[]; };        \
    layout(binding = slot) access buffer name##_word_4 { uvec4 name##_word_vectors[]; };

#ifdef BYTES
#include "bytes.glsl"
#define READS(slot, name)                              \
    BYTE_BUFFERS(slot, readonly, name)                 \
    uint name##_word(uint i)                           \
    {                                                  \
        return uint(name##_bytes[i]);                  \
    }                                                  \
    uvec4 name##4_word(uint i)                         \
    {                                                  \
        return bytes_of(name##_packed[i]);             \
    }
#define WRITES(slot, name)                             \
    BYTE_BUFFERS(slot, writeonly, name)                \
    void put_##name##_word(uint i, uint value)         \
    {                                                  \
        name##_bytes[i] = uint8_t(value);              \
    }                                                  \
    void put_##name##4_word(uint i, uvec4 value)       \
    {                                                  \
        name##_packed[i] = word_of(value);             \
    }
#else
// Floats that need not be widened are copied as integer words, because a driver may flush subnormal
// floats to 0.
#define READS(slot, name)                                                                         \
    BUFFERS(slot, readonly, name)                                                                 \
    VIEW(slot, name)                                                                              \
    float name(uint i)                                                                            \
    {                                                                                             \
        return LOAD_NUMBER(slot, name, i);                                                        \
    }                                                                                             \
    vec4 name##4(uint i)                                                                          \
    {                                                                                             \
        return LOAD_VECTOR(slot, name, i);                                                        \
    }                                                                                             \
    uint name##_word(uint i)                                                                      \
    {                                                                                             \
        return LOAD_WORD(slot, name, i);                                                  \
    }                                                                                             \
    uvec4 name##4_word(uint i)                                                                    \
    {                                                                                             \
        return LOAD_WORDS(slot, name, i);                                                 \
    }

#define WRITES(slot, name)                                                                        \
    BUFFERS(slot, writeonly, name)                                                                \
    void put_##name(uint i, float value)                                                          \
    {                                                                                             \
        STORE(slot, is_lost(value), name##_halves[i] = float16_t(value),                          \
              name##_floats[i] = value)                                                           \
    }                                                                                             \
    void put_##name##4(uint i, vec4 value)                                                        \
    {                                                                                             \
        STORE(slot, are_lost(value, i, uint(name##_half_vectors.length())),                       \
            name##_half_vectors[i] = f16vec4(value), name##_vectors[i] = value)                   \
    }                                                                                             \
    void put_##name##_word(uint i, uint value)                                                    \
    {                                                                                             \
        STORE(slot, is_lost(uintBitsToFloat(value)), name##_halves[i] =                           \
            float16_t(uintBitsToFloat(value)), name##_words[i] = value)                           \
    }                                                                                             \
    void put_##name##4_word(uint i, uvec4 value)                                                  \
    {                                                                                             \
        STORE(slot, are_lost(uintBitsToFloat(value), i, uint(name##_half_vectors.length())),      \
            name##_half_vectors[i] = f16vec4(uintBitsToFloat(value)), name##_word_vectors[i] =    \
            value)                                                                                \
    }
#endif
