// Tiles of 4x4 pixels of a convolution of 3x3 at stride 1, and what of them is made at a time.
layout(push_constant) uniform Tiles {
    uint count;  // invocations
    uint first;  // the first tile that is made
    uint stride; // tiles from one of the 36 matrices to the next
    uint tiles_h, tiles_w; // of a picture
    uint in_h, in_w;
    uint out_h, out_w;
    uint blocks; // of four channels
    int pad_top, pad_left;
    float low, high; // of the activation
    uint added;      // channels of what is added to y
} p;
