// Has an argument where the driver puts clang's header of declarations in front of each program (builtins.clh), and
// none where it does not. An "#error no header stands in front" would do as well, but drivers count the errors of a
// build aloud on standard error.
#ifdef _OPENCL_H_
__kernel void builtins_probe(__global int* unused) {}
#else
__kernel void builtins_probe(void) {}
#endif
