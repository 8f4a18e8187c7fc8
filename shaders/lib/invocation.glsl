// Computes the number of this invocation. The groups of a dispatch may be arranged in several rows,
// because a dimension has at most 65535 groups.
layout(local_size_x_id = 0) in;

uint invocation()
{
    return gl_GlobalInvocationID.y * gl_NumWorkGroups.x * gl_WorkGroupSize.x
        + gl_GlobalInvocationID.x;
}
