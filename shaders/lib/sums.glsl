// Sums of many numbers by Kahan's algorithm. An addition rounds away the last digits of the term if
// the sum so far is much larger. Of a hundred thousand terms of equal size, a plain sum loses up to
// half a percent, because all roundings may have the same direction. Here `lost` carries the lost
// digits to the next addition. The caller sets `sum` and `lost` to 0 before the first term. If the
// sum is not finite, `lost` is 0, so that an infinite sum does not become NaN.
bvec4 are_finite(vec4 value)
{
    return lessThan(floatBitsToUint(value) & uvec4(0x7fffffffu), uvec4(0x7f800000u));
}

void add_term(vec4 term, inout vec4 sum, inout vec4 lost)
{
    precise vec4 whole = term - lost;
    precise vec4 next = sum + whole;
    precise vec4 kept = next - sum;
    precise vec4 rest = kept - whole;
    lost = mix(vec4(0.0), rest, are_finite(next));
    sum = next;
}

void add_term(float term, inout float sum, inout float lost)
{
    precise float whole = term - lost;
    precise float next = sum + whole;
    precise float kept = next - sum;
    precise float rest = kept - whole;
    lost = are_finite(vec4(next)).x ? rest : 0.0;
    sum = next;
}
