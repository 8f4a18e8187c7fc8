// The push constants of a product of two tensors: y[i] = a[i] * b[i] for each matrix i of a batch.
layout(push_constant) uniform Product {
    uint count; // invocations, or work groups if these compute blocks
    uint m, n, k;
    // Elements between neighbouring rows and columns of a and of b.
    uint a_row, a_column, b_row, b_column;
    uint batch_axes;
    uint batch_dims[BATCH_AXES]; // sizes of the batch axes, innermost first
    uint a_batch[BATCH_AXES], b_batch[BATCH_AXES];
    float low, high;
} p;

// Sets a_at and b_at to the indices of the first elements of matrix `batch` in a and in b.
void find_matrices(uint batch, out uint a_at, out uint b_at)
{
    a_at = 0;
    b_at = 0;
    for (uint i = 0; i < p.batch_axes; i++) {
        a_at += batch % p.batch_dims[i] * p.a_batch[i];
        b_at += batch % p.batch_dims[i] * p.b_batch[i];
        batch /= p.batch_dims[i];
    }
}
