// Finds the positions of elements in operands that are broadcast to the result's shape. An
// invocation computes four neighbouring elements, starting at 4 * invocation(). The last invocation
// may compute up to three elements too many; every tensor is followed by enough free memory for
// them.
layout(push_constant) uniform Shape {
    uint vectors; // number of invocations
    uint axes;
    uint dims[BROADCAST_AXES];       // sizes of the axes of the result, innermost first
    // The stride of operand a along each axis, in elements; 0 if the operand is repeated along the
    // axis.
    uint strides_a[BROADCAST_AXES];
    uint strides_b[BROADCAST_AXES];
    uint strides_c[BROADCAST_AXES];
    // For MODE_ROW: length of the repeated row of operands a and b, in vectors of four elements.
    uint row_a, row_b;
    float low, high;   // parameters of the activation
    uint elements;     // number of elements of the result
} shape;

uint offset_a(uint element)
{
    uint at = 0;
    for (uint i = 0; i < shape.axes; i++) {
        at += element % shape.dims[i] * shape.strides_a[i];
        element /= shape.dims[i];
    }
    return at;
}

uint offset_b(uint element)
{
    uint at = 0;
    for (uint i = 0; i < shape.axes; i++) {
        at += element % shape.dims[i] * shape.strides_b[i];
        element /= shape.dims[i];
    }
    return at;
}

uint offset_c(uint element)
{
    uint at = 0;
    for (uint i = 0; i < shape.axes; i++) {
        at += element % shape.dims[i] * shape.strides_c[i];
        element /= shape.dims[i];
    }
    return at;
}
