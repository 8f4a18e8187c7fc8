// Functions of one element. GLSL guarantees little precision for its own functions (4096 ULP for
// asin, 2^-11 for sin), so these functions use polynomials in plain arithmetic. The coefficients
// come from the single precision functions of Cephes; relative errors are a few 1e-7.
#include "lib/numbers.glsl"

bool is_nan(float x)
{
    return (floatBitsToUint(x) & 0x7fffffffu) > 0x7f800000u;
}

// NaN stays NaN, because both comparisons are false for NaN.
float clip(float x, float low, float high)
{
    return x < low ? low : (x > high ? high : x);
}

// Returns e^r for |r| <= 0.35, by a polynomial.
float exp_core(float r)
{
    float p = 1.9875691500e-4;
    p = fma(p, r, 1.3981999507e-3);
    p = fma(p, r, 8.3334519073e-3);
    p = fma(p, r, 4.1665795894e-2);
    p = fma(p, r, 1.6666665459e-1);
    p = fma(p, r, 5.0000001201e-1);
    return fma(p * r, r, r) + 1.0;
}

float exp_of(float x)
{
    float n = floor(fma(x, 1.44269504088896341, 0.5));
    n = clip(n, -150.0, 130.0);
    float r = fma(n, -0.693359375, x);
    r = fma(n, 2.12194440e-4, r);
    // Multiply by 2^n as two powers of two, because 2^n itself may not be a normal float.
    int whole = int(n);
    int half_of = whole >> 1;
    float result = exp_core(clip(r, -1.0, 1.0)) * uintBitsToFloat(uint(half_of + 127) << 23) *
                   uintBitsToFloat(uint(whole - half_of + 127) << 23);
    return is_nan(x) ? x : (x > 89.0 ? INFINITY : (x < -104.0 ? 0.0 : result));
}

float expm1_of(float x)
{
    float p = 1.9841270e-4;
    p = fma(p, x, 1.3888889e-3);
    p = fma(p, x, 8.3333333e-3);
    p = fma(p, x, 4.1666667e-2);
    p = fma(p, x, 1.6666667e-1);
    p = fma(p, x, 0.5);
    float small = fma(p * x, x, x);
    return abs(x) < 0.35 ? small : exp_of(x) - 1.0;
}

// Returns log(1 + x) for -0.3 <= x <= 0.42, by a polynomial.
float log1p_core(float x)
{
    float z = x * x;
    float p = 7.0376836292e-2;
    p = fma(p, x, -1.1514610310e-1);
    p = fma(p, x, 1.1676998740e-1);
    p = fma(p, x, -1.2420140846e-1);
    p = fma(p, x, 1.4249322787e-1);
    p = fma(p, x, -1.6668057665e-1);
    p = fma(p, x, 2.0000714765e-1);
    p = fma(p, x, -2.4999993993e-1);
    p = fma(p, x, 3.3333331174e-1);
    return fma(-0.5, z, p * x * z) + x;
}

float log_of(float x)
{
    uint bits = floatBitsToUint(x);
    int exponent = int(bits >> 23) - 127;
    float m = uintBitsToFloat((bits & 0x7fffffu) | 0x3f800000u);
    if (m > 1.41421356) {
        m *= 0.5;
        exponent++;
    }
    float result = log1p_core(m - 1.0) - float(exponent) * 2.12194440e-4;
    result += float(exponent) * 0.693359375;
    if (is_nan(x) || x < 0.0)
        return NAN;
    return x == 0.0 ? -INFINITY : (x == INFINITY ? x : result);
}

float log1p_of(float x)
{
    return x > -0.25 && x < 0.4 ? log1p_core(x) : log_of(1.0 + x);
}

// Returns the sine of x, or the cosine if `quarter` is 1. x is first reduced by the nearest
// multiple of pi/2. Accurate for |x| up to some thousands.
float sine(float x, int quarter)
{
    float n = floor(fma(x, 0.63661977236758134, 0.5));
    float r = fma(n, -1.5703125, x);
    r = fma(n, -4.83751296997e-4, r);
    r = fma(n, -7.54978995489e-8, r);
    int turn = int(clip(n, -1e9, 1e9)) + quarter;
    float z = r * r;
    float s = fma(fma(fma(-1.9515295891e-4, z, 8.3321608736e-3), z, -1.6666654611e-1) * z, r, r);
    float c = fma(fma(fma(2.443315711809948e-5, z, -1.388731625493765e-3), z,
        4.166664568298827e-2) * z, z,
                  fma(-0.5, z, 1.0));
    float result = (turn & 1) != 0 ? c : s;
    result = (turn & 2) != 0 ? -result : result;
    return is_nan(x) || abs(x) == INFINITY ? NAN : result;
}

float asin_core(float x, float z)
{
    float p = 4.2163199048e-2;
    p = fma(p, z, 2.4181311049e-2);
    p = fma(p, z, 4.5470025998e-2);
    p = fma(p, z, 7.4953002686e-2);
    p = fma(p, z, 1.6666752422e-1);
    return fma(p * z, x, x);
}

float asin_of(float x)
{
    float a = abs(x);
    float z = 0.5 * (1.0 - a);
    float far = 1.57079632679 - 2.0 * asin_core(sqrt(z), z);
    float result = a > 0.5 ? far : asin_core(a, a * a);
    if (is_nan(x) || a > 1.0)
        return NAN;
    return x < 0.0 ? -result : result;
}

float acos_of(float x)
{
    float z = 0.5 * (1.0 - abs(x));
    float near = 2.0 * asin_core(sqrt(z), z);
    if (is_nan(x) || abs(x) > 1.0)
        return NAN;
    if (abs(x) > 0.5)
        return x > 0.0 ? near : 3.14159265359 - near;
    return 1.57079632679 - asin_of(x);
}

float atan_of(float x)
{
    float a = abs(x), base = 0.0;
    if (a > 2.414213562373095) {
        base = 1.57079632679;
        a = -1.0 / a;
    } else if (a > 0.4142135623730950) {
        base = 0.785398163397;
        a = (a - 1.0) / (a + 1.0);
    }
    float z = a * a;
    float p = fma(fma(fma(8.05374449538e-2, z, -1.38776856032e-1), z, 1.99777106478e-1), z,
        -3.33329491539e-1);
    float result = base + fma(p * z, a, a);
    return is_nan(x) ? x : (x < 0.0 ? -result : result);
}

float tanh_of(float x)
{
    float a = abs(x), z = x * x;
    float p = -5.70498872745e-3;
    p = fma(p, z, 2.06390887954e-2);
    p = fma(p, z, -5.37397155531e-2);
    p = fma(p, z, 1.33314422036e-1);
    p = fma(p, z, -3.33332819422e-1);
    float small = fma(p * z, x, x);
    float large = 1.0 - 2.0 / (exp_of(2.0 * a) + 1.0);
    return is_nan(x) ? x : (a < 0.625 ? small : (x < 0.0 ? -large : large));
}

float asinh_of(float x)
{
    float a = abs(x);
    float result = a > 1e9 ? log_of(a) + 0.69314718056 : log1p_of(a + a * a / (1.0 + sqrt(fma(a,
        a, 1.0))));
    return is_nan(x) ? x : (x < 0.0 ? -result : result);
}

float acosh_of(float x)
{
    float t = x - 1.0;
    if (is_nan(x) || t < 0.0)
        return NAN;
    return x > 1e9 ? log_of(x) + 0.69314718056 : log1p_of(t + sqrt(fma(t, t, 2.0 * t)));
}

float atanh_of(float x)
{
    float a = abs(x);
    if (is_nan(x) || a > 1.0)
        return NAN;
    float result = a == 1.0 ? INFINITY : 0.5 * log1p_of(2.0 * a / (1.0 - a));
    return x < 0.0 ? -result : result;
}

// Returns 1 - erf(a) for a >= 1.
float erfc_of(float a)
{
    float q = 1.0 / a, y = q * q;
    float r = 2.326819970068386e-2;
    r = fma(r, y, -1.387039388740657e-1);
    r = fma(r, y, 3.687424674597105e-1);
    r = fma(r, y, -5.824733027278666e-1);
    r = fma(r, y, 6.210004621745983e-1);
    r = fma(r, y, -4.944515323274145e-1);
    r = fma(r, y, 3.404879937665872e-1);
    r = fma(r, y, -2.741127028184656e-1);
    r = fma(r, y, 5.638259427386472e-1);
    return exp_of(-a * a) * q * r;
}

float erf_of(float x)
{
    float a = abs(x), z = x * x;
    float p = 7.853861353153693e-5;
    p = fma(p, z, -8.010193625184903e-4);
    p = fma(p, z, 5.188327685732524e-3);
    p = fma(p, z, -2.685381193529856e-2);
    p = fma(p, z, 1.128358514861418e-1);
    p = fma(p, z, -3.761262582423300e-1);
    p = fma(p, z, 1.128379165726710);
    float result = a > 4.0 ? 1.0 : 1.0 - erfc_of(a);
    return is_nan(x) ? x : (a < 1.0 ? p * x : (x < 0.0 ? -result : result));
}

// Uses 1 + erf(t) = erfc(-t) for negative t, so that no digits are lost.
float gelu_of(float x)
{
    float t = x * 0.70710678118655;
    return 0.5 * x * (t <= -1.0 ? erfc_of(-t) : 1.0 + erf_of(t));
}

float round_even(float x)
{
    return abs(x) < 8388608.0 ? roundEven(x) : x;
}

// Applies an activation (FN_*) to x. For shaders of convolutions and products, which apply it to
// their results.
float activate(uint function, float x, float low, float high)
{
    switch (function) {
    case FN_CLIP:
        return clip(x, low, high);
    case FN_SIGMOID:
        return 1.0 / (1.0 + exp_of(-x));
    case FN_TANH:
        return tanh_of(x);
    case FN_ELU:
        return x < 0.0 ? low * expm1_of(x) : x;
    case FN_LEAKY_RELU:
        return x < 0.0 ? low * x : x;
    case FN_HARD_SWISH:
        return x * clip(x + 3.0, 0.0, 6.0) / 6.0;
    case FN_GELU:
        return gelu_of(x);
    case FN_GELU_TANH:
        return x / (1.0 + exp_of(-x * fma(0.0713548162726, x * x, 1.59576912161)));
    case FN_SILU:
        return x / (1.0 + exp_of(-x));
    default:
        return x;
    }
}

vec4 activate4(uint function, vec4 x, vec4 low, float high)
{
    for (uint k = 0; k < 4; k++)
        x[k] = activate(function, x[k], low[k], high);
    return x;
}

float apply(uint function, float x, float low, float high)
{
    switch (function) {
    case FN_NEG:
        return -x;
    case FN_ABS:
        return abs(x);
    case FN_SIGN:
        return x > 0.0 ? 1.0 : (x < 0.0 ? -1.0 : (is_nan(x) ? x : 0.0));
    case FN_FLOOR:
        return floor(x);
    case FN_CEIL:
        return ceil(x);
    case FN_ROUND:
        return round_even(x);
    case FN_TRUNC:
        return trunc(x);
    case FN_SQUARE:
        return x * x;
    case FN_SQRT:
        return x < 0.0 ? NAN : sqrt(x);
    case FN_RSQRT:
        return x < 0.0 ? NAN : 1.0 / sqrt(x);
    case FN_RECIPROCAL:
        return 1.0 / x;
    case FN_EXP:
        return exp_of(x);
    case FN_EXPM1:
        return expm1_of(x);
    case FN_LOG:
        return log_of(x);
    case FN_LOG1P:
        return log1p_of(x);
    case FN_SIN:
        return sine(x, 0);
    case FN_COS:
        return sine(x, 1);
    case FN_TAN:
        return sine(x, 0) / sine(x, 1);
    case FN_ASIN:
        return asin_of(x);
    case FN_ACOS:
        return acos_of(x);
    case FN_ATAN:
        return atan_of(x);
    case FN_SINH: {
        float e = expm1_of(abs(x));
        float result = e == INFINITY ? e : 0.5 * (e + e / (e + 1.0));
        return is_nan(x) ? x : (x < 0.0 ? -result : result);
    }
    case FN_COSH:
        return 0.5 * (exp_of(x) + exp_of(-x));
    case FN_ASINH:
        return asinh_of(x);
    case FN_ACOSH:
        return acosh_of(x);
    case FN_ATANH:
        return atanh_of(x);
    case FN_ERF:
        return erf_of(x);
    case FN_SOFTPLUS:
        return x > 0.0 ? x + log1p_of(exp_of(-x)) : log1p_of(exp_of(x));
    case FN_SELU:
        return 1.0507009873554805 * (x < 0.0 ? 1.6732632423543772 * expm1_of(x) : x);
    case FN_IS_NAN:
        return is_nan(x) ? 1.0 : 0.0;
    default:
        return activate(function, x, low, high);
    }
}
