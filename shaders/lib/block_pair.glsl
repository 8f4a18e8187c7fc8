// A product of two tensors for shaders whose work groups compute a block of results together. This
// file has the functions of lib/block_window.glsl, which describes them and lists what the shader
// must define. In the names, a pixel is a row of a, and a channel is a column of b.
#include "lib/product.glsl"

layout(constant_id = 3) const bool A_VECTOR = false; // four neighbours in a are a vector
layout(constant_id = 4) const bool Y_VECTOR = false;
layout(constant_id = 5) const bool A_BY_K = true;  // values of k are neighbours in a, else rows are
layout(constant_id = 6) const bool B_BY_K = false; // values of k are neighbours in b, else columns
layout(constant_id = 7) const bool B_VECTOR = false;
layout(constant_id = 8) const bool BIAS = false;

READS(0, a)
READS(1, b)
READS(2, bias)
WRITES(3, y)

#include "lib/block_store.glsl"

// The number of rows of a and of columns of b in a block.
#define ACROSS_A ROWS
#define ACROSS_B (COLUMNS * 4)

uint batch, a_at, b_at, first_row;

bool choose_block(uint local, out uint first, out uint tile)
{
    uint group = gl_WorkGroupID.y * gl_NumWorkGroups.x + gl_WorkGroupID.x;
    uint across = (p.n + ACROSS_B - 1) / ACROSS_B, down = (p.m + ACROSS_A - 1) / ACROSS_A;
    tile = group % across * COLUMNS;
    first = first_row = group / across % down * ROWS;
    batch = group / across / down;
    find_matrices(batch, a_at, b_at);
    return group < p.count;
}

uint count_terms()
{
    return p.k;
}

uint choose_split()
{
    return 0;
}

// Generates the loop that copies a slice of a or of b: DEPTH values of k, from `k` on, of `count`
// rows of a or columns of b, from `begin` on. The copied numbers are 0 for values of k from `total`
// on, and for rows or columns from `end` on.
//
// The loop copies vectors of four numbers that are neighbours in memory. They belong to one row (or
// column) and four values of k if BY_K is true, else to four rows (or columns) and one value of k.
// Neighbouring invocations load neighbouring vectors.
//
// The operand has its first number at `start`, and `step` numbers between rows (or columns) if BY_K
// is true, else between values of k. load(i) loads one number. If IS_VECTOR is true, load4(i) loads
// the vectors. put(depth, at, value) stores a number, and put4(depth, at / 4, vector) stores four
// neighbouring rows or columns.
#define COPY_SLICE(count, begin, end, BY_K, IS_VECTOR, load, load4, start, step, put, put4)       \
    for (uint place = local; place < (count) * DEPTH / 4; place += GROUP) {                       \
        uint parts = BY_K ? DEPTH / 4 : (count) / 4;                                              \
        uint near = place % parts * 4, far = place / parts;                                       \
        uint depth = BY_K ? near : far, at = BY_K ? far : near;                                   \
        uint left_k = total - min(k + depth, total), left = end - min(begin + at, end);           \
        uint inside = BY_K ? (left > 0 ? left_k : 0) : (left_k > 0 ? left : 0);                   \
        uint source = start + (BY_K ? (begin + at) * step + k + depth                             \
                                    : (k + depth) * step + begin + at);                           \
        vec4 four = vec4(0.0);                                                                    \
        if (IS_VECTOR) {                                                                          \
            if (inside > 0)                                                                       \
                four = load4(source / 4);                                                         \
        } else {                                                                                  \
            [[unroll]] for (uint i = 0; i < 4; i++)                                               \
                if (i < inside)                                                                   \
                    four[i] = load(source + i);                                                   \
        }                                                                                         \
        if (BY_K) {                                                                               \
            [[unroll]] for (uint i = 0; i < 4; i++)                                               \
                put(depth + i, at, four[i]);                                                      \
        } else {                                                                                  \
            put4(depth, at / 4, four);                                                            \
        }                                                                                         \
    }

void put_pixel(uint depth, uint pixel, float value)
{
    from[depth * STRIDE + pixel] = NUMBER(value);
}

void put_pixels(uint depth, uint vector, vec4 values)
{
    [[unroll]] for (uint i = 0; i < 4; i++)
        put_pixel(depth, vector * 4 + i, values[i]);
}

void copy_pixels(uint local, uint k, uint total)
{
    uint step = A_BY_K ? p.a_row : p.a_column;
    COPY_SLICE(ACROSS_A, first_row, p.m, A_BY_K, A_VECTOR, a, a4, a_at, step, put_pixel,
               put_pixels)
}

void copy_weights(uint local, uint tile, uint k, uint total)
{
    uint step = B_BY_K ? p.b_column : p.b_row;
    COPY_SLICE(ACROSS_B, tile * 4, p.n, B_BY_K, B_VECTOR, b, b4, b_at, step, put_weight,
               put_weights)
}

vec4 load_bias(uint block)
{
    vec4 four = vec4(0.0);
    [[unroll]] for (uint i = 0; i < 4; i++)
        if (BIAS && block * 4 + i < p.n)
            four[i] = bias(block * 4 + i);
    return four;
}

void store_sums(uint row, uint block, vec4 result)
{
    if (row >= p.m || block * 4 >= p.n)
        return;
    report_overflow(result);
    result = activate4(ACTIVATION, result, vec4(p.low), p.high);
    store_vector((batch * p.m + row) * p.n, block, p.n, result);
}
