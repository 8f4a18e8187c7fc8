// Reads indices of 32 or 64 bits, and reports those that are out of range. The including shader
// defines the constant WIDE (true: indices are 64-bit), the array of words indices[], and the macro
// CHECKS.

// Returns the index at position i if it is below `bound`. Otherwise reports the index in the
// dispatch's status and returns 0.
uint index_at(uint i, uint bound)
{
    uint index = indices[WIDE ? 2 * i : i];
    if (index < bound && (!WIDE || indices[2 * i + 1] == 0u))
        return index;
    if (atomicCompSwap(status[STATUS_BAD_INDEX], 0u, 1u) == 0u) {
        status[STATUS_BAD_INDEX + 1] = index;
        status[STATUS_BAD_INDEX + 2] = WIDE ? indices[2 * i + 1] : uint(int(index) >> 31);
    }
    return 0;
}

// Returns the index at position i; a negative index counts from the end. If it is out of range,
// reports it in the dispatch's status and returns 0.
uint index_from_end(uint i, uint bound)
{
    uint index = indices[WIDE ? 2 * i : i];
    bool negative = !WIDE || indices[2 * i + 1] == 0xffffffffu;
    return negative && int(index) < 0 && index + bound < bound ? index + bound : index_at(i, bound);
}
