// x[i] = factor * x[i] + i + added: what depends on all launches before.
__kernel void doctor_step(__global uint* x, const long x_offset, const uint factor, const uint added) {
    const long i = get_global_id(0);
    x[x_offset + i] = factor * x[x_offset + i] + (uint)i + added;
}
