// Preloaded into a program (LD_PRELOAD): writes the number of OpenCL calls to the file named by DECLIVITY_TEST_REPORT.
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
