// Access to large buffers: base[offset + i * step] for work-item i.
__kernel void doctor_write(__global uint* base, const long offset, const long step, const uint seed) {
    const long i = get_global_id(0);
    base[offset + i * step] = seed + (uint)i * 2654435761u;
}

__kernel void doctor_gather(__global const uint* restrict base, const long offset, const long step,
                            __global uint* restrict out, const long out_offset) {
    const long i = get_global_id(0);
    out[out_offset + i] = base[offset + i * step];
}
