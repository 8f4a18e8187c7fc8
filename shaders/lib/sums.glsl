// Sums of many numbers. A plain sum loses the digits of each term below those of the sum so far; of
// a hundred thousand terms of equal size that is up to half a percent, all in one direction.
// Here `lost` carries these digits to the next term (Kahan). Both begin at 0. Sums that are not
// finite lose nothing, so that an infinity stays one.
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
