// The OpenCL library's own function, for a function that this program interposes.
#pragma once

#include <dlfcn.h>

namespace declivity::test {

template <class F>
F* real(const char* name) {
    return reinterpret_cast<F*>(dlsym(RTLD_NEXT, name));
}

}  // namespace declivity::test
