// Loads of a window's pixels. Wants what lib/source.glsl does, and x.

// The body of a load of `read(place)`, or of 0 where `at` is outside of the picture. Through a view a load that nothing hangs on
// may be made ahead: what lies outside is loaded from elsewhere, and not used.
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

// Four channels of a pixel.
vec4 load4(uint at, uint channel)
{
    LOAD_INSIDE(vec4, at, x4, (at + channel) / 4)
}

// One channel.
float load(uint at, uint channel)
{
    LOAD_INSIDE(float, at, x, at + channel)
}

// Three, behind a view of threes.
vec4 load3(uint at, uint channel)
{
#ifdef TEXELS
    LOAD_INSIDE(vec4, at, x4, (at + channel) / 3)
#else
    return vec4(load(at, channel), load(at, channel + 1), load(at, channel + 2), 0.0);
#endif
}
