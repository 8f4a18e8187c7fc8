// Functions of two floats. Requires lib/functions.glsl.
float power(float base, float exponent)
{
    float size = exp_of(exponent * log_of(abs(base)));
    bool whole = floor(exponent) == exponent;
    bool odd = whole && abs(exponent) < 16777216.0 && (int(exponent) & 1) != 0;
    if (exponent == 0.0 || base == 1.0)
        return 1.0;
    if (is_nan(base) || is_nan(exponent) || (base < 0.0 && !whole && base != -INFINITY))
        return NAN;
    return base < 0.0 && odd ? -size : size;
}

// Returns the remainder a - trunc(a / b) * b. The result is exact for small quotients, because fma
// rounds only once.
float remainder_of(float a, float b)
{
    // The formula would multiply 0 and infinity.
    if (abs(b) == INFINITY && abs(a) != INFINITY)
        return a;
    float rest = fma(-trunc(a / b), b, a);
    // If the quotient was rounded up to the next integer, the remainder has the wrong sign and must
    // be corrected.
    if (rest != 0.0 && (rest < 0.0) != (a < 0.0))
        rest += a < 0.0 ? -abs(b) : abs(b);
    return abs(rest) >= abs(b) ? 0.0 : rest;
}

float combine(uint kind, float a, float b)
{
    switch (kind) {
    case BINARY_ADD:
        return a + b;
    case BINARY_SUB:
        return a - b;
    case BINARY_MUL:
        return a * b;
    case BINARY_DIV:
        return a / b;
    case BINARY_DIV_NO_NAN:
        return b == 0.0 ? 0.0 : a / b;
    case BINARY_FLOOR_DIV:
        return floor(a / b);
    case BINARY_FLOOR_MOD: {
        float rest = remainder_of(a, b);
        return rest != 0.0 && (rest < 0.0) != (b < 0.0) ? rest + b : rest;
    }
    case BINARY_MOD:
        return remainder_of(a, b);
    case BINARY_POW:
        return power(a, b);
    case BINARY_MIN:
        return is_nan(a) || is_nan(b) ? NAN : (b < a ? b : a);
    case BINARY_MAX:
        return is_nan(a) || is_nan(b) ? NAN : (b > a ? b : a);
    case BINARY_SQUARED_DIFFERENCE:
        return (a - b) * (a - b);
    default: // BINARY_PRELU
        return a < 0.0 ? a * b : a;
    }
}
