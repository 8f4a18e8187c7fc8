// A sliding window over images [n,h,w,c], and the pixels that an invocation computes.
layout(push_constant) uniform Window {
    uint count; // invocations
    uint in_h, in_w, in_c;
    uint out_h, out_w, out_c;
    uint kernel_h, kernel_w;
    uint stride_h, stride_w;
    uint dilation_h, dilation_w;
    int pad_top, pad_left;
    uint strips;    // of pixels in a row of y
    uint blocks;    // of four channels of y, over all groups
    uint group_blocks, group_in, group_out;
    float low, high; // of the activation
    uint added; // channels of the residual; the channels of y behind them get 0
} p;
