// Push constants of Winograd's algorithm: tiles of 4x4 pixels of a 3x3 convolution with stride 1. A
// dispatch computes some of the tiles.
layout(push_constant) uniform Tiles {
    uint count;  // number of invocations
    uint first; // index of the first tile that this dispatch computes
    uint stride; // distance, in tiles, between two of the 36 matrices
    uint tiles_h, tiles_w; // number of tiles in an image
    uint in_h, in_w;
    uint out_h, out_w;
    uint blocks; // number of blocks of four channels
    int pad_top, pad_left;
    float low, high; // parameters of the activation
    uint added; // number of channels of the residual
} p;
