// Buffers of numbers. A module that is built with HALF may find those operands in 16 bits that HALVES
// names: they are widened as they are loaded and rounded as they are stored, and everything in between
// is computed in 32 bits. Words that are no floats are never kept so.
//
// READS(slot, x) gives x(i), x4(i) and their bits x_word(i), x4_word(i); WRITES(slot, y) gives
// put_y(i, value) and its likes. The index of a vector counts vectors.
#ifdef HALF
#extension GL_EXT_shader_16bit_storage : require
layout(constant_id = 8) const uint HALVES = 0; // by binding

#define HALF_BUFFERS(slot, access, name)                                          \
    layout(binding = slot) access buffer name##_half_1 { float16_t name##_halves[]; }; \
    layout(binding = slot) access buffer name##_half_4 { f16vec4 name##_half_vectors[]; };
#define LOAD(slot, half_, full) ((HALVES >> slot & 1u) != 0u ? (half_) : (full))
#define STORE(slot, half_, full)         \
    if ((HALVES >> slot & 1u) != 0u)     \
        half_;                           \
    else                                 \
        full;
#else
#define HALF_BUFFERS(slot, access, name)
#define LOAD(slot, half_, full) (full)
#define STORE(slot, half_, full) full;
#endif

#define BUFFERS(slot, access, name)                                                     \
    HALF_BUFFERS(slot, access, name)                                                    \
    layout(binding = slot) access buffer name##_float_1 { float name##_floats[]; };     \
    layout(binding = slot) access buffer name##_float_4 { vec4 name##_vectors[]; };     \
    layout(binding = slot) access buffer name##_word_1 { uint name##_words[]; };        \
    layout(binding = slot) access buffer name##_word_4 { uvec4 name##_word_vectors[]; };

// Bits go through as they are where they are not widened: a driver may take the tiniest floats for 0.
#define READS(slot, name)                                                                              \
    BUFFERS(slot, readonly, name)                                                                      \
    float name(uint i)                                                                                 \
    {                                                                                                  \
        return LOAD(slot, float(name##_halves[i]), name##_floats[i]);                                  \
    }                                                                                                  \
    vec4 name##4(uint i)                                                                               \
    {                                                                                                  \
        return LOAD(slot, vec4(name##_half_vectors[i]), name##_vectors[i]);                            \
    }                                                                                                  \
    uint name##_word(uint i)                                                                           \
    {                                                                                                  \
        return LOAD(slot, floatBitsToUint(float(name##_halves[i])), name##_words[i]);                  \
    }                                                                                                  \
    uvec4 name##4_word(uint i)                                                                         \
    {                                                                                                  \
        return LOAD(slot, floatBitsToUint(vec4(name##_half_vectors[i])), name##_word_vectors[i]);      \
    }

#define WRITES(slot, name)                                                                                      \
    BUFFERS(slot, writeonly, name)                                                                              \
    void put_##name(uint i, float value)                                                                        \
    {                                                                                                           \
        STORE(slot, name##_halves[i] = float16_t(value), name##_floats[i] = value)                              \
    }                                                                                                           \
    void put_##name##4(uint i, vec4 value)                                                                      \
    {                                                                                                           \
        STORE(slot, name##_half_vectors[i] = f16vec4(value), name##_vectors[i] = value)                         \
    }                                                                                                           \
    void put_##name##_word(uint i, uint value)                                                                  \
    {                                                                                                           \
        STORE(slot, name##_halves[i] = float16_t(uintBitsToFloat(value)), name##_words[i] = value)              \
    }                                                                                                           \
    void put_##name##4_word(uint i, uvec4 value)                                                                \
    {                                                                                                           \
        STORE(slot, name##_half_vectors[i] = f16vec4(uintBitsToFloat(value)), name##_word_vectors[i] = value)   \
    }
