#include "opencl.hpp"

#include <algorithm>
#include <array>

#include <declivity/runtime/error.hpp>
#include <fmt/format.h>

namespace declivity::detail {
namespace {

struct StatusName {
    int status;
    std::string_view name;
};

#define DECLIVITY_STATUS(name) \
    StatusName { name, #name }
constexpr std::array kStatusNames{DECLIVITY_STATUS(CL_SUCCESS),
                                  DECLIVITY_STATUS(CL_DEVICE_NOT_FOUND),
                                  DECLIVITY_STATUS(CL_DEVICE_NOT_AVAILABLE),
                                  DECLIVITY_STATUS(CL_COMPILER_NOT_AVAILABLE),
                                  DECLIVITY_STATUS(CL_MEM_OBJECT_ALLOCATION_FAILURE),
                                  DECLIVITY_STATUS(CL_OUT_OF_RESOURCES),
                                  DECLIVITY_STATUS(CL_OUT_OF_HOST_MEMORY),
                                  DECLIVITY_STATUS(CL_PROFILING_INFO_NOT_AVAILABLE),
                                  DECLIVITY_STATUS(CL_MEM_COPY_OVERLAP),
                                  DECLIVITY_STATUS(CL_IMAGE_FORMAT_MISMATCH),
                                  DECLIVITY_STATUS(CL_IMAGE_FORMAT_NOT_SUPPORTED),
                                  DECLIVITY_STATUS(CL_BUILD_PROGRAM_FAILURE),
                                  DECLIVITY_STATUS(CL_MAP_FAILURE),
                                  DECLIVITY_STATUS(CL_MISALIGNED_SUB_BUFFER_OFFSET),
                                  DECLIVITY_STATUS(CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST),
                                  DECLIVITY_STATUS(CL_COMPILE_PROGRAM_FAILURE),
                                  DECLIVITY_STATUS(CL_LINKER_NOT_AVAILABLE),
                                  DECLIVITY_STATUS(CL_LINK_PROGRAM_FAILURE),
                                  DECLIVITY_STATUS(CL_DEVICE_PARTITION_FAILED),
                                  DECLIVITY_STATUS(CL_KERNEL_ARG_INFO_NOT_AVAILABLE),
                                  DECLIVITY_STATUS(CL_INVALID_VALUE),
                                  DECLIVITY_STATUS(CL_INVALID_DEVICE_TYPE),
                                  DECLIVITY_STATUS(CL_INVALID_PLATFORM),
                                  DECLIVITY_STATUS(CL_INVALID_DEVICE),
                                  DECLIVITY_STATUS(CL_INVALID_CONTEXT),
                                  DECLIVITY_STATUS(CL_INVALID_QUEUE_PROPERTIES),
                                  DECLIVITY_STATUS(CL_INVALID_COMMAND_QUEUE),
                                  DECLIVITY_STATUS(CL_INVALID_HOST_PTR),
                                  DECLIVITY_STATUS(CL_INVALID_MEM_OBJECT),
                                  DECLIVITY_STATUS(CL_INVALID_IMAGE_FORMAT_DESCRIPTOR),
                                  DECLIVITY_STATUS(CL_INVALID_IMAGE_SIZE),
                                  DECLIVITY_STATUS(CL_INVALID_SAMPLER),
                                  DECLIVITY_STATUS(CL_INVALID_BINARY),
                                  DECLIVITY_STATUS(CL_INVALID_BUILD_OPTIONS),
                                  DECLIVITY_STATUS(CL_INVALID_PROGRAM),
                                  DECLIVITY_STATUS(CL_INVALID_PROGRAM_EXECUTABLE),
                                  DECLIVITY_STATUS(CL_INVALID_KERNEL_NAME),
                                  DECLIVITY_STATUS(CL_INVALID_KERNEL_DEFINITION),
                                  DECLIVITY_STATUS(CL_INVALID_KERNEL),
                                  DECLIVITY_STATUS(CL_INVALID_ARG_INDEX),
                                  DECLIVITY_STATUS(CL_INVALID_ARG_VALUE),
                                  DECLIVITY_STATUS(CL_INVALID_ARG_SIZE),
                                  DECLIVITY_STATUS(CL_INVALID_KERNEL_ARGS),
                                  DECLIVITY_STATUS(CL_INVALID_WORK_DIMENSION),
                                  DECLIVITY_STATUS(CL_INVALID_WORK_GROUP_SIZE),
                                  DECLIVITY_STATUS(CL_INVALID_WORK_ITEM_SIZE),
                                  DECLIVITY_STATUS(CL_INVALID_GLOBAL_OFFSET),
                                  DECLIVITY_STATUS(CL_INVALID_EVENT_WAIT_LIST),
                                  DECLIVITY_STATUS(CL_INVALID_EVENT),
                                  DECLIVITY_STATUS(CL_INVALID_OPERATION),
                                  DECLIVITY_STATUS(CL_INVALID_GL_OBJECT),
                                  DECLIVITY_STATUS(CL_INVALID_BUFFER_SIZE),
                                  DECLIVITY_STATUS(CL_INVALID_MIP_LEVEL),
                                  DECLIVITY_STATUS(CL_INVALID_GLOBAL_WORK_SIZE),
                                  DECLIVITY_STATUS(CL_INVALID_PROPERTY),
                                  DECLIVITY_STATUS(CL_INVALID_IMAGE_DESCRIPTOR),
                                  DECLIVITY_STATUS(CL_INVALID_COMPILER_OPTIONS),
                                  DECLIVITY_STATUS(CL_INVALID_LINKER_OPTIONS),
                                  DECLIVITY_STATUS(CL_INVALID_DEVICE_PARTITION_COUNT),
                                  DECLIVITY_STATUS(CL_INVALID_PIPE_SIZE),
                                  DECLIVITY_STATUS(CL_INVALID_DEVICE_QUEUE),
                                  DECLIVITY_STATUS(CL_INVALID_SPEC_ID),
                                  DECLIVITY_STATUS(CL_MAX_SIZE_RESTRICTION_EXCEEDED),
                                  DECLIVITY_STATUS(CL_PLATFORM_NOT_FOUND_KHR)};
#undef DECLIVITY_STATUS

}  // namespace

std::string_view status_name(int status) {
    const auto* found = std::ranges::find(kStatusNames, status, &StatusName::status);
    return found == kStatusNames.end() ? std::string_view("unknown OpenCL status") : found->name;
}

void throw_status(int status, std::string_view action, const std::string& device) {
    const std::string text = fmt::format("{} on '{}': {} ({})", action, device, status_name(status), status);
    // CL_OUT_OF_RESOURCES is not among them: drivers also return it for a launch that needs too many registers.
    if (status == CL_MEM_OBJECT_ALLOCATION_FAILURE || status == CL_OUT_OF_HOST_MEMORY) throw OutOfMemory(text);
    throw DeviceError(text, status);
}

}  // namespace declivity::detail
