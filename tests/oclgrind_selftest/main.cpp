// Launches one kernel, correct or with a deliberate error, to test that Oclgrind's findings are detected.
// usage: oclgrind_selftest right|race|bounds|uninitialized|api|exit
#include <cstdio>
#include <string>
#include <vector>

#include <CL/opencl.hpp>

namespace {

// Each work-item adds its index to an element of `in` and stores the sum in `out`.
std::string body_of(const std::string& fault) {
    if (fault == "race") return "out[0] = in[i] + (int)i;";
    if (fault == "bounds") return "out[i] = in[i + 1] + (int)i;";
    if (fault == "uninitialized") return "if (out[i] != 0) out[i] = in[i] + (int)i;";
    return "out[i] = in[i] + (int)i;";
}

}  // namespace

int main(int argc, char** argv) try {
    const std::string fault = argc == 2 ? argv[1] : "right";
    // Device::getDefault() is avoided: it is released after main, when Oclgrind has already shut down, and crashes.
    std::vector<cl::Platform> platforms;
    cl::Platform::get(&platforms);
    std::vector<cl::Device> devices;
    platforms.at(0).getDevices(CL_DEVICE_TYPE_ALL, &devices);
    const cl::Device& device = devices.at(0);
    std::printf("%s\n", device.getInfo<CL_DEVICE_NAME>().c_str());
    const cl::Context context(device);
    const cl::CommandQueue queue(context, device);
    const cl::Program program(
        context,
        "__kernel void add_index(__global const int* in, __global int* out) { size_t i = get_global_id(0); " +
            body_of(fault) + " }",
        true);
    int values[16] = {};
    const cl::Buffer in(context, CL_MEM_READ_ONLY | CL_MEM_COPY_HOST_PTR, sizeof values, values);
    const cl::Buffer out(context, CL_MEM_READ_WRITE, sizeof values);
    cl::Kernel kernel(program, "add_index");
    kernel.setArg(0, in);
    kernel.setArg(1, out);
    queue.enqueueNDRangeKernel(kernel, cl::NullRange, cl::NDRange(16));
    queue.enqueueReadBuffer(out, CL_TRUE, 0, sizeof values, values);
    if (fault == "api") clEnqueueReadBuffer(queue(), out(), CL_TRUE, 0, 2 * sizeof values, values, 0, nullptr, nullptr);
    if (fault == "right" && values[15] != 15) return 1;
    return fault == "exit" ? 3 : 0;
} catch (const cl::Error& error) {
    std::fprintf(stderr, "%s: OpenCL status %d\n", error.what(), error.err());
    return 1;
}
