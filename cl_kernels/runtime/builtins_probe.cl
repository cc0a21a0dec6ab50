// Has an argument if the driver prepends clang's header of declarations to each program (builtins.clh), otherwise none.
// An #error would serve as well, but drivers print build errors to standard error.
#ifdef _OPENCL_H_
__kernel void builtins_probe(__global int* unused) {}
#else
__kernel void builtins_probe(void) {}
#endif
