// Loads of a window's pixels. Wants what lib/source.glsl does, and x.

// Four channels of a pixel, or one, or three. A load that nothing hangs on may be made ahead: what lies outside is 0 behind it.
vec4 load4(uint at, uint channel)
{
#ifdef TEXELS
    bool outside = !ONE_TAP && at == OUTSIDE;
    vec4 from = x4(outside ? 0 : (at + channel) / 4);
    return outside ? vec4(0.0) : from;
#else
    vec4 from = vec4(0.0);
    if (ONE_TAP || at != OUTSIDE)
        from = x4((at + channel) / 4);
    return from;
#endif
}

float load(uint at, uint channel)
{
#ifdef TEXELS
    bool outside = !ONE_TAP && at == OUTSIDE;
    float from = x(outside ? 0 : at + channel);
    return outside ? 0.0 : from;
#else
    float from = 0.0;
    if (ONE_TAP || at != OUTSIDE)
        from = x(at + channel);
    return from;
#endif
}

// Three, behind a view of threes.
vec4 load3(uint at, uint channel)
{
#ifdef TEXELS
    bool outside = !ONE_TAP && at == OUTSIDE;
    vec4 from = x4(outside ? 0 : (at + channel) / 3);
    return outside ? vec4(0.0) : from;
#else
    return vec4(load(at, channel), load(at, channel + 1), load(at, channel + 2), 0.0);
#endif
}
