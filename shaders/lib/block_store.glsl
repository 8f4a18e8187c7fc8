// Stores results. The including file declares y and Y_VECTOR.

// Reports sums that left the range of 16 bits. The caller calls this function before it applies the
// activation, which may make such a sum finite again.
void report_overflow(vec4 sums)
{
#if defined(F16) && defined(HALF)
    if (!all(lessThan(abs(sums), vec4(3.0e38))))
        status[STATUS_OVERFLOWED] = 1;
#endif
}

// Stores vector `block` of the vectors of four channels of a pixel of y. `first` is the index in y
// of the first channel of the pixel. The pixel has `channels` channels; numbers behind the last one
// are not stored.
void store_vector(uint first, uint block, uint channels, vec4 result)
{
    uint to = first + block * 4;
    if (Y_VECTOR) {
        put_y4(to / 4, result);
    } else {
        [[unroll]] for (uint i = 0; i < 4; i++)
            if (block * 4 + i < channels)
                put_y(to + i, result[i]);
    }
}
