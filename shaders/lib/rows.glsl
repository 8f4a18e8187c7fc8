// For dispatches in which each subgroup computes one row of the result. Works with any subgroup
// size.
#extension GL_KHR_shader_subgroup_arithmetic : require
layout(local_size_x_id = 0) in;

// Returns the number of the row that this subgroup computes. The work groups of a dispatch may be
// arranged in several rows, because a dimension has at most 65535 groups.
uint row()
{
    return (gl_WorkGroupID.y * gl_NumWorkGroups.x + gl_WorkGroupID.x) * gl_NumSubgroups
        + gl_SubgroupID;
}
