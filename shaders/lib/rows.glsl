// Dispatches of which a subgroup makes one row at a time, whatever its size and however many of its invocations there are.
#extension GL_KHR_shader_subgroup_arithmetic : require
layout(local_size_x_id = 0) in;

// Which row, as in lib/invocation.glsl.
uint row()
{
    return (gl_WorkGroupID.y * gl_NumWorkGroups.x + gl_WorkGroupID.x) * gl_NumSubgroups + gl_SubgroupID;
}
