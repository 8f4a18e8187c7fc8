// What both transforms of Winograd's algorithm share, for a 3x3 convolution with stride 1 in the
// form F(PIXELS) of backends/base/winograd.h. A tile has PIXELS x PIXELS results. They are computed
// from SIDE x SIDE pixels, whose transform has one number in each of SIDE * SIDE matrices. Loops
// over them run to the bounds of F(4), so that the compiler can unroll them before it knows PIXELS.
layout(constant_id = 1) const uint PIXELS = 4; // 2 or 4

const uint SIDE = PIXELS + 2;
#define PIXELS_MAX 4
#define SIDE_MAX   6

// A dispatch computes some of the tiles.
layout(push_constant) uniform Tiles {
    uint count;  // number of invocations
    uint first; // index of the first tile that this dispatch computes
    uint stride; // distance, in tiles, between two of the matrices
    uint tiles_h, tiles_w; // number of tiles in an image
    uint in_h, in_w;
    uint out_h, out_w;
    uint channels; // number of channels of x in winograd_in.comp, of y in winograd_out.comp
    int pad_top, pad_left;
    float low, high; // parameters of the activation
    uint added; // number of channels of the residual
} p;
