// Loaded in front of a program (LD_PRELOAD): writes how many OpenCL calls it made to the file that
// DECLIVITY_TEST_REPORT names.
#include <cstdio>
#include <cstdlib>

#include "tests/support/opencl_faults.hpp"

namespace {

struct Report {
    ~Report() {
        const char* file = std::getenv("DECLIVITY_TEST_REPORT");
        std::FILE* out = file != nullptr ? std::fopen(file, "w") : nullptr;
        if (out == nullptr) return;
        std::fprintf(out, "OpenCL calls: %ld\n", declivity::test::opencl_call_count());
        std::fclose(out);
    }
} report;

}  // namespace
