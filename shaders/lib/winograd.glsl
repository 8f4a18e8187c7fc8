// Tiles of 4x4 pixels of a 3x3 convolution with stride 1, and the part of them that is computed at
// a time.
layout(push_constant) uniform Tiles {
    uint count;  // invocations
    uint first; // the first tile of this part
    uint stride; // tiles from one of the 36 matrices to the next
    uint tiles_h, tiles_w; // tiles of an image
    uint in_h, in_w;
    uint out_h, out_w;
    uint blocks; // of four channels
    int pad_top, pad_left;
    float low, high; // of the activation
    uint added; // channels of the residual
} p;
