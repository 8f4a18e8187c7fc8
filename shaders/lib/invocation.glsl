// Which invocation this is, in a dispatch that may be folded into rows because a dimension holds no
// more than 65535 groups.
layout(local_size_x_id = 0) in;

uint invocation()
{
    return gl_GlobalInvocationID.y * gl_NumWorkGroups.x * gl_WorkGroupSize.x + gl_GlobalInvocationID.x;
}
