// Access to buffers of bytes, of which four are packed into a word, the first one in the lowest
// bits.
#extension GL_EXT_shader_8bit_storage : require

// Declares name_bytes[] and name_packed[], which are the same memory.
#define BYTE_BUFFERS(slot, access, name)                                             \
    layout(binding = slot) access buffer name##_byte_1 { uint8_t name##_bytes[]; };  \
    layout(binding = slot) access buffer name##_byte_4 { uint name##_packed[]; };

uvec4 bytes_of(uint word)
{
    return uvec4(word, word >> 8, word >> 16, word >> 24) & uvec4(0xff);
}

ivec4 signed_bytes_of(uint word)
{
    return ivec4(word << 24, word << 16, word << 8, word) >> 24;
}

// Packs the low eight bits of each component.
uint word_of(uvec4 bytes)
{
    bytes &= uvec4(0xff);
    return bytes.x | bytes.y << 8 | bytes.z << 16 | bytes.w << 24;
}
