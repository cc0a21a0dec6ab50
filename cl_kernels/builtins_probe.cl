// Builds only where the driver puts clang's header of declarations in front of each program (builtins.clh).
#ifndef _OPENCL_H_
#error no header stands in front
#endif
__kernel void builtins_probe(void) {}
