// Loads the pixels of a window; pixels outside the image are 0. The including shader defines the
// operand x and the names that lib/source.glsl requires.

// Generates the body of a function that returns `read(place)`, or 0 if the position `at` is
// OUTSIDE. Through a texel view the load is unconditional, so that the driver can issue it early:
// outside the image, texel 0 is loaded and ignored.
#ifdef TEXELS
#define LOAD_INSIDE(type, at, read, place)    \
    bool outside = !ONE_TAP && at == OUTSIDE; \
    type from = read(outside ? 0 : (place));  \
    return outside ? type(0.0) : from;
#else
#define LOAD_INSIDE(type, at, read, place) \
    type from = type(0.0);                 \
    if (ONE_TAP || at != OUTSIDE)          \
        from = read(place);                \
    return from;
#endif

// Returns four channels of a pixel, from `channel` on; 0 if the pixel is outside the image.
vec4 load4(uint at, uint channel)
{
    LOAD_INSIDE(vec4, at, x4, (at + channel) / 4)
}

// Returns one channel of a pixel; 0 if the pixel is outside the image.
float load(uint at, uint channel)
{
    LOAD_INSIDE(float, at, x, at + channel)
}

// Returns three channels of a pixel, read through a texel view of three components; 0 if the pixel
// is outside the image.
vec4 load3(uint at, uint channel)
{
#ifdef TEXELS
    LOAD_INSIDE(vec4, at, x4, (at + channel) / 3)
#else
    return vec4(load(at, channel), load(at, channel + 1), load(at, channel + 2), 0.0);
#endif
}
