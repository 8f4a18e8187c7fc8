// Push constants of a sliding window over images [n,h,w,c], and the pixels that an invocation
// computes.
layout(push_constant) uniform Window {
    uint count; // number of invocations
    uint in_h, in_w, in_c;
    uint out_h, out_w, out_c;
    uint kernel_h, kernel_w;
    uint stride_h, stride_w;
    uint dilation_h, dilation_w;
    int pad_top, pad_left;
    uint strips;    // number of strips of pixels in a row of y
    uint blocks;    // number of blocks of four channels of y, in all groups
    uint group_blocks, group_in, group_out;
    float low, high; // parameters of the activation
    uint added; // number of channels of the residual; 0 is added to the channels after these
} p;
