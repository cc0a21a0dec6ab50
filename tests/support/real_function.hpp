// The OpenCL library's own function, where this program defines one of the same name that is called in its place.
#pragma once

#include <dlfcn.h>

namespace declivity::test {

template <class F>
F* real(const char* name) {
    return reinterpret_cast<F*>(dlsym(RTLD_NEXT, name));
}

}  // namespace declivity::test
