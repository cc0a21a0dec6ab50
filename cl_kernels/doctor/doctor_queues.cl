// x[i] = factor * x[i] + i + added: the result depends on the order of all launches.
__kernel void doctor_step(__global uint* x, const long x_offset, const uint factor, const uint added) {
    const long i = get_global_id(0);
    x[x_offset + i] = factor * x[x_offset + i] + (uint)i + added;
}
