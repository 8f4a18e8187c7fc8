// Weights of 2, 4 or 8 bits in blocks, each of which has a scale and a zero point.
//
// Word i of column c is at i * columns + c, so that neighbouring columns are in neighbouring words.
// A block is a multiple of 16 numbers long, so a word lies in one block.
layout(constant_id = 1) const uint BITS = 4; // of a number
layout(constant_id = 2) const uint ZEROS = BLOCKS_ZEROS_NONE;

layout(binding = 0) readonly buffer W { uint words[]; };
// Floats: the bias of each column, if there is one, the scales [block][column], the zero points
// [block][column]. Zero points of bytes are words of four columns, [block][column / 4].
layout(binding = 1) readonly buffer N { uint numbers[]; };
layout(push_constant) uniform P {
    uint rows, columns, depth;
    uint column_words; // words of a column
    uint block_words;  // words of a block
    uint scales_at, zeros_at; // first element of the scales and of the zero points in `numbers`
} p;

const uint WORD_NUMBERS = 32 / BITS;

// A word, and the scale and the zero point of its block.
struct Word {
    uint bits;
    float scale, zero;
};

float zero_point(uint block, uint column)
{
    if (ZEROS == BLOCKS_ZEROS_NONE)
        return float(1u << (BITS - 1));
    if (ZEROS == BLOCKS_ZEROS_FLOATS)
        return uintBitsToFloat(numbers[p.zeros_at + block * p.columns + column]);
    uint word = numbers[p.zeros_at + block * ((p.columns + 3) / 4) + column / 4];
    return float(word >> column % 4 * 8 & 0xffu);
}

Word load_word(uint at, uint column)
{
    uint block = at / p.block_words;
    return Word(words[at * p.columns + column],
                uintBitsToFloat(numbers[p.scales_at + block * p.columns + column]),
                zero_point(block, column));
}

// Returns weights i to i + 3 of the word.
vec4 four_weights(Word word, uint i)
{
    uint four = word.bits >> i * BITS;
    uvec4 shifted = uvec4(four, four >> BITS, four >> 2 * BITS, four >> 3 * BITS);
    return (vec4(shifted & uvec4((1u << BITS) - 1)) - word.zero) * word.scale;
}
