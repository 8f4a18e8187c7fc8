// Finds the positions in x of the pixels that a window covers. Requires the constants TRANSPOSED
// and ONE_TAP, and lib/window.glsl.
#define OUTSIDE 0xffffffffu

// The push constants that source() needs, copied to variables. The copy is needed because drivers
// for the CPU read push constants again at every use, which would be the largest cost in a loop.
struct Picture {
    int in_h, in_w, in_c;
    int stride_h, stride_w;
    int dilation_h, dilation_w;
    int pad_top, pad_left;
};

Picture picture_of_window()
{
    return Picture(int(p.in_h), int(p.in_w), int(p.in_c), int(p.stride_h), int(p.stride_w),
                   int(p.dilation_h), int(p.dilation_w), p.pad_top, p.pad_left);
}

// Returns the index in x of the first channel of a pixel: the pixel that the tap in row `ky` and
// column `kx` of a window covers. Returns OUTSIDE if that pixel is padding. `row` and `column` are
// the position of the window's result.
uint source(Picture a, uint image, uint row, uint column, uint ky, uint kx)
{
    int y = int(row), x = int(column), before = int(image) * a.in_h;
    if (ONE_TAP)
        return uint(((before + y * a.stride_h) * a.in_w + x * a.stride_w) * a.in_c);
    int down = int(ky) * a.dilation_h, right = int(kx) * a.dilation_w;
    if (TRANSPOSED) {
        y += a.pad_top - down;
        x += a.pad_left - right;
        if (y < 0 || x < 0 || y % a.stride_h != 0 || x % a.stride_w != 0)
            return OUTSIDE;
        y /= a.stride_h;
        x /= a.stride_w;
    } else {
        y = y * a.stride_h + down - a.pad_top;
        x = x * a.stride_w + right - a.pad_left;
    }
    bool inside = y >= 0 && x >= 0 && y < a.in_h && x < a.in_w;
    return inside ? uint(((before + y) * a.in_w + x) * a.in_c) : OUTSIDE;
}
