// Interposes the OpenCL functions that the library and CLBlast call, except those counted by opencl_calls.cpp.
#include "tests/support/opencl_faults.hpp"

#include <dlfcn.h>
#include <sys/auxv.h>

#include <array>
#include <atomic>
#include <cstring>
#include <mutex>
#include <set>

#define CL_USE_DEPRECATED_OPENCL_1_2_APIS  // clCreateCommandQueue, for devices of OpenCL 1.x
#include <CL/cl.h>

#include "tests/support/blocked_build.hpp"
#include "tests/support/interpose.hpp"

namespace declivity::test {
namespace {

// Constant-initialised and never destroyed: calls occur before main() and after it.
constinit std::atomic<long> all_calls{0};
constinit std::array<std::atomic<long>, 6> live_handles{};
constinit std::atomic<int> active_faults{0};
constinit std::atomic<int> event_status{0};
constinit std::atomic<bool> waits_fail{false};

struct FaultState {
    std::mutex mutex;
    std::set<std::string> functions;  // each call of these fails
    bool numbering = false;
    long failing_call = -1;
    std::vector<const char*> calls;
    std::string function;
    int code = 0;
};
FaultState& fault_state() {
    static auto* state = new FaultState;
    return *state;
}

}  // namespace

namespace faults {

bool is_from_program(const void* return_address) {
    // Queried for each call: the last result is cached by address.
    thread_local const void* last = nullptr;
    thread_local bool result = true;
    if (return_address == last) return result;
    Dl_info from{}, test_program{}, main{};
    last = return_address;
    result =
        dladdr(return_address, &from) == 0 || from.dli_fname == nullptr ||
        std::strstr(from.dli_fname, "clblast") != nullptr || std::strstr(from.dli_fname, "libdeclivity") != nullptr ||
        (dladdr(reinterpret_cast<const void*>(&opencl_call_count), &test_program) != 0 &&
         from.dli_fbase == test_program.dli_fbase) ||
        (dladdr(reinterpret_cast<const void*>(getauxval(AT_ENTRY)), &main) != 0 && from.dli_fbase == main.dli_fbase);
    return result;
}

int injected_status(const char* function, std::span<const int> codes) {
    ++all_calls;
    if (active_faults == 0) return 0;
    FaultState& state = fault_state();
    const std::scoped_lock lock(state.mutex);
    if (state.functions.contains(function)) return codes.front();
    if (!state.numbering) return 0;
    const auto number = static_cast<long>(state.calls.size());
    state.calls.push_back(function);
    if (number != state.failing_call) return 0;
    state.function = function;
    state.code = codes[static_cast<std::size_t>(number) % codes.size()];
    return state.code;
}

void count_call() { ++all_calls; }
void count(Handle kind, long change) { live_handles[static_cast<std::size_t>(kind)] += change; }
int failed_status() { return event_status; }
bool failed_wait() { return waits_fail; }

}  // namespace faults

OpenClHandles OpenClHandles::operator-(const OpenClHandles& other) const {
    return {memory - other.memory,     events - other.events, kernels - other.kernels,
            programs - other.programs, queues - other.queues, contexts - other.contexts};
}

std::string OpenClHandles::text() const {
    std::string out;
    for (const auto& [name, number] : {std::pair{"memory", memory},
                                       {"events", events},
                                       {"kernels", kernels},
                                       {"programs", programs},
                                       {"queues", queues},
                                       {"contexts", contexts}})
        out += std::string(out.empty() ? "" : ", ") + name + " " + std::to_string(number);
    return out;
}

OpenClHandles opencl_handles() {
    return {live_handles[0], live_handles[1], live_handles[2], live_handles[3], live_handles[4], live_handles[5]};
}
long opencl_call_count() { return all_calls; }

OpenClFault::OpenClFault(long failing_call) {
    FaultState& state = fault_state();
    const std::scoped_lock lock(state.mutex);
    state.failing_call = failing_call;
    state.calls.clear();
    state.function.clear();
    state.code = 0;
    state.numbering = true;
    ++active_faults;
}

OpenClFault::~OpenClFault() {
    const std::scoped_lock lock(fault_state().mutex);
    fault_state().numbering = false;
    --active_faults;
}

FailingFunction::FailingFunction(const char* function) : function_(function) {
    const std::scoped_lock lock(fault_state().mutex);
    fault_state().functions.insert(function_);
    ++active_faults;
}

FailingFunction::~FailingFunction() {
    const std::scoped_lock lock(fault_state().mutex);
    fault_state().functions.erase(function_);
    --active_faults;
}

std::vector<std::string> OpenClFault::calls() const {
    const std::scoped_lock lock(fault_state().mutex);
    return {fault_state().calls.begin(), fault_state().calls.end()};
}

std::string OpenClFault::function() const {
    const std::scoped_lock lock(fault_state().mutex);
    return fault_state().function;
}

int OpenClFault::code() const {
    const std::scoped_lock lock(fault_state().mutex);
    return fault_state().code;
}

FailedCommands::FailedCommands(int status, bool wait_fails) {
    event_status = status;
    waits_fail = wait_fails;
}
FailedCommands::~FailedCommands() {
    event_status = 0;
    waits_fail = false;
}

}  // namespace declivity::test

using declivity::test::faults::Handle;

extern "C" {

// Functions that create objects.
DECLIVITY_CREATE(cl_context, clCreateContext, Handle::context,
                 (const cl_context_properties* properties, cl_uint count, const cl_device_id* devices,
                  void(CL_CALLBACK* notify)(const char*, const void*, size_t, void*), void* data, cl_int* status),
                 (properties, count, devices, notify, data, status), CL_OUT_OF_HOST_MEMORY, CL_DEVICE_NOT_AVAILABLE)
DECLIVITY_CREATE(cl_command_queue, clCreateCommandQueue, Handle::queue,
                 (cl_context context, cl_device_id device, cl_command_queue_properties properties, cl_int* status),
                 (context, device, properties, status), CL_OUT_OF_RESOURCES, CL_OUT_OF_HOST_MEMORY)
DECLIVITY_CREATE(cl_command_queue, clCreateCommandQueueWithProperties, Handle::queue,
                 (cl_context context, cl_device_id device, const cl_queue_properties* properties, cl_int* status),
                 (context, device, properties, status), CL_OUT_OF_RESOURCES, CL_OUT_OF_HOST_MEMORY)
DECLIVITY_CREATE(cl_mem, clCreateSubBuffer, Handle::memory,
                 (cl_mem buffer, cl_mem_flags flags, cl_buffer_create_type type, const void* region, cl_int* status),
                 (buffer, flags, type, region, status), CL_MEM_OBJECT_ALLOCATION_FAILURE,
                 CL_MISALIGNED_SUB_BUFFER_OFFSET)
DECLIVITY_CREATE(cl_program, clCreateProgramWithSource, Handle::program,
                 (cl_context context, cl_uint count, const char** texts, const size_t* lengths, cl_int* status),
                 (context, count, texts, lengths, status), CL_OUT_OF_HOST_MEMORY, CL_OUT_OF_RESOURCES)
DECLIVITY_CREATE(cl_program, clCreateProgramWithBinary, Handle::program,
                 (cl_context context, cl_uint count, const cl_device_id* devices, const size_t* lengths,
                  const unsigned char** binaries, cl_int* statuses, cl_int* status),
                 (context, count, devices, lengths, binaries, statuses, status), CL_INVALID_BINARY,
                 CL_OUT_OF_HOST_MEMORY)
DECLIVITY_CREATE(cl_kernel, clCreateKernel, Handle::kernel, (cl_program program, const char* name, cl_int* status),
                 (program, name, status), CL_OUT_OF_RESOURCES, CL_OUT_OF_HOST_MEMORY, CL_INVALID_PROGRAM_EXECUTABLE)

DECLIVITY_EXPORT cl_int clCreateKernelsInProgram(cl_program program, cl_uint capacity, cl_kernel* kernels,
                                                 cl_uint* count) {
    DECLIVITY_INJECT_FAULT(clCreateKernelsInProgram, CL_OUT_OF_RESOURCES, CL_OUT_OF_HOST_MEMORY,
                           CL_INVALID_PROGRAM_EXECUTABLE)
    if (injected != CL_SUCCESS) return injected;
    static auto* next = declivity::test::real<decltype(clCreateKernelsInProgram)>("clCreateKernelsInProgram");
    cl_uint created = 0;
    const cl_int result = next(program, capacity, kernels, &created);
    if (count != nullptr) *count = created;
    if (from_program && result == CL_SUCCESS && kernels != nullptr)
        declivity::test::faults::count(Handle::kernel, created);
    return result;
}

DECLIVITY_EXPORT cl_int clBuildProgram(cl_program program, cl_uint count, const cl_device_id* devices,
                                       const char* options, void(CL_CALLBACK* notify)(cl_program, void*), void* data) {
    DECLIVITY_INJECT_FAULT(clBuildProgram, CL_BUILD_PROGRAM_FAILURE, CL_OUT_OF_HOST_MEMORY, CL_OUT_OF_RESOURCES)
    if (from_program) declivity::test::blocked_build::pass();
    if (injected != CL_SUCCESS) return injected;
    static auto* next = declivity::test::real<decltype(clBuildProgram)>("clBuildProgram");
    return next(program, count, devices, options, notify, data);
}

// Commands.
DECLIVITY_CALL(clSetKernelArg, (cl_kernel kernel, cl_uint index, size_t size, const void* value),
               (kernel, index, size, value), CL_OUT_OF_RESOURCES, CL_OUT_OF_HOST_MEMORY, CL_INVALID_MEM_OBJECT)
DECLIVITY_ENQUEUE(clEnqueueNDRangeKernel,
                  (cl_command_queue queue, cl_kernel kernel, cl_uint axes, const size_t* offset, const size_t* global,
                   const size_t* local, cl_uint count, const cl_event* events, cl_event* event),
                  (queue, kernel, axes, offset, global, local, count, events, event), CL_OUT_OF_RESOURCES,
                  CL_MEM_OBJECT_ALLOCATION_FAILURE, CL_OUT_OF_HOST_MEMORY, CL_INVALID_KERNEL_ARGS)
DECLIVITY_ENQUEUE(clEnqueueMarkerWithWaitList,
                  (cl_command_queue queue, cl_uint count, const cl_event* events, cl_event* event),
                  (queue, count, events, event), CL_OUT_OF_RESOURCES, CL_OUT_OF_HOST_MEMORY)
DECLIVITY_ENQUEUE(clEnqueueBarrierWithWaitList,
                  (cl_command_queue queue, cl_uint count, const cl_event* events, cl_event* event),
                  (queue, count, events, event), CL_OUT_OF_RESOURCES, CL_OUT_OF_HOST_MEMORY)
DECLIVITY_ENQUEUE(clEnqueueMigrateMemObjects,
                  (cl_command_queue queue, cl_uint number, const cl_mem* objects, cl_mem_migration_flags flags,
                   cl_uint count, const cl_event* events, cl_event* event),
                  (queue, number, objects, flags, count, events, event), CL_MEM_OBJECT_ALLOCATION_FAILURE,
                  CL_OUT_OF_RESOURCES, CL_OUT_OF_HOST_MEMORY)
DECLIVITY_CALL(clFlush, (cl_command_queue queue), (queue), CL_OUT_OF_RESOURCES, CL_OUT_OF_HOST_MEMORY)

// Queries.
DECLIVITY_CALL(clGetPlatformIDs, (cl_uint capacity, cl_platform_id* platforms, cl_uint* count),
               (capacity, platforms, count), CL_OUT_OF_HOST_MEMORY)
DECLIVITY_CALL(clGetPlatformInfo,
               (cl_platform_id platform, cl_platform_info property, size_t size, void* value, size_t* required_size),
               (platform, property, size, value, required_size), CL_OUT_OF_HOST_MEMORY)
DECLIVITY_CALL(clGetDeviceIDs,
               (cl_platform_id platform, cl_device_type type, cl_uint capacity, cl_device_id* devices, cl_uint* count),
               (platform, type, capacity, devices, count), CL_OUT_OF_RESOURCES)
DECLIVITY_CALL(clGetDeviceInfo,
               (cl_device_id device, cl_device_info property, size_t size, void* value, size_t* required_size),
               (device, property, size, value, required_size), CL_OUT_OF_RESOURCES)
DECLIVITY_CALL(clGetContextInfo,
               (cl_context context, cl_context_info property, size_t size, void* value, size_t* required_size),
               (context, property, size, value, required_size), CL_OUT_OF_RESOURCES)
DECLIVITY_CALL(clGetCommandQueueInfo,
               (cl_command_queue queue, cl_command_queue_info property, size_t size, void* value,
                size_t* required_size),
               (queue, property, size, value, required_size), CL_OUT_OF_RESOURCES)
DECLIVITY_CALL(clGetMemObjectInfo,
               (cl_mem memory, cl_mem_info property, size_t size, void* value, size_t* required_size),
               (memory, property, size, value, required_size), CL_OUT_OF_RESOURCES)
DECLIVITY_CALL(clGetProgramInfo,
               (cl_program program, cl_program_info property, size_t size, void* value, size_t* required_size),
               (program, property, size, value, required_size), CL_OUT_OF_RESOURCES, CL_OUT_OF_HOST_MEMORY)
DECLIVITY_CALL(clGetProgramBuildInfo,
               (cl_program program, cl_device_id device, cl_program_build_info property, size_t size, void* value,
                size_t* required_size),
               (program, device, property, size, value, required_size), CL_OUT_OF_RESOURCES)
DECLIVITY_CALL(clGetKernelInfo,
               (cl_kernel kernel, cl_kernel_info property, size_t size, void* value, size_t* required_size),
               (kernel, property, size, value, required_size), CL_OUT_OF_RESOURCES)
DECLIVITY_CALL(clGetKernelArgInfo,
               (cl_kernel kernel, cl_uint index, cl_kernel_arg_info property, size_t size, void* value,
                size_t* required_size),
               (kernel, index, property, size, value, required_size), CL_KERNEL_ARG_INFO_NOT_AVAILABLE)
DECLIVITY_CALL(clGetKernelWorkGroupInfo,
               (cl_kernel kernel, cl_device_id device, cl_kernel_work_group_info property, size_t size, void* value,
                size_t* required_size),
               (kernel, device, property, size, value, required_size), CL_OUT_OF_RESOURCES)
DECLIVITY_CALL(clGetEventProfilingInfo,
               (cl_event event, cl_profiling_info property, size_t size, void* value, size_t* required_size),
               (event, property, size, value, required_size), CL_PROFILING_INFO_NOT_AVAILABLE, CL_OUT_OF_RESOURCES)

DECLIVITY_EXPORT cl_int clGetEventInfo(cl_event event, cl_event_info property, size_t size, void* value,
                                       size_t* required_size) {
    static constexpr int kCodes[] = {CL_OUT_OF_RESOURCES, CL_OUT_OF_HOST_MEMORY};
    if (const cl_int status = declivity::test::faults::injected_status("clGetEventInfo", kCodes)) return status;
    static auto* next = declivity::test::real<decltype(clGetEventInfo)>("clGetEventInfo");
    const cl_int status = next(event, property, size, value, required_size);
    const int failed = declivity::test::faults::failed_status();
    if (status == CL_SUCCESS && failed != 0 && property == CL_EVENT_COMMAND_EXECUTION_STATUS && value != nullptr)
        *static_cast<cl_int*>(value) = failed;
    return status;
}

// Reference counts.
DECLIVITY_RETAIN(clRetainContext, cl_context, Handle::context)
DECLIVITY_RETAIN(clRetainCommandQueue, cl_command_queue, Handle::queue)
DECLIVITY_RETAIN(clRetainMemObject, cl_mem, Handle::memory)
DECLIVITY_RETAIN(clRetainProgram, cl_program, Handle::program)
DECLIVITY_RETAIN(clRetainKernel, cl_kernel, Handle::kernel)
DECLIVITY_RETAIN(clRetainEvent, cl_event, Handle::event)
DECLIVITY_CALL(clRetainDevice, (cl_device_id device), (device), CL_OUT_OF_RESOURCES, CL_OUT_OF_HOST_MEMORY)
DECLIVITY_RELEASE(clReleaseContext, cl_context, Handle::context)
DECLIVITY_RELEASE(clReleaseCommandQueue, cl_command_queue, Handle::queue)
DECLIVITY_RELEASE(clReleaseProgram, cl_program, Handle::program)
DECLIVITY_RELEASE(clReleaseKernel, cl_kernel, Handle::kernel)
DECLIVITY_RELEASE(clReleaseEvent, cl_event, Handle::event)

}  // extern "C"
