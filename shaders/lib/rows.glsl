// Dispatches in which each subgroup computes one row at a time, for any subgroup size.
#extension GL_KHR_shader_subgroup_arithmetic : require
layout(local_size_x_id = 0) in;

// Returns the number of the row of this subgroup, as in lib/invocation.glsl.
uint row()
{
    return (gl_WorkGroupID.y * gl_NumWorkGroups.x + gl_WorkGroupID.x) * gl_NumSubgroups
        + gl_SubgroupID;
}
