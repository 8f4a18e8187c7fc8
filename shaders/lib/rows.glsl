// For dispatches in which each subgroup computes one row of the result. Works with any subgroup
// size.
#extension GL_KHR_shader_subgroup_arithmetic : require
layout(local_size_x_id = 0) in;

// Returns the number of the row that this subgroup computes. Groups may be arranged in several
// rows, as in lib/invocation.glsl.
uint row()
{
    return (gl_WorkGroupID.y * gl_NumWorkGroups.x + gl_WorkGroupID.x) * gl_NumSubgroups
        + gl_SubgroupID;
}
