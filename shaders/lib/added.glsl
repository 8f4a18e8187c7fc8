// Loads the residual that is added to a convolution's result before the activation. Requires the
// constant ADDED, which is one of ADDED_*, and the operand `added`, which has `channels` channels.
vec4 added_to(uint pixel, uint channel, uint channels)
{
    vec4 result = vec4(0.0);
    if (ADDED == ADDED_VECTORS && channel < channels)
        result = added4((pixel * channels + channel) / 4);
    [[unroll]] for (uint k = 0; k < 4; k++)
        if (ADDED == ADDED_NUMBERS && channel + k < channels)
            result[k] = added(pixel * channels + channel + k);
    return result;
}
