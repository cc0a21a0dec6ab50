#include "kernel_arguments.hpp"

#include <string_view>
#include <utility>

namespace declivity::detail {
namespace {

/// Size in bytes of an OpenCL C type such as "uint4"; 0 for others, such as structs.
std::size_t size_of_type(std::string_view type) {
    static constexpr std::pair<std::string_view, std::size_t> kTypes[] = {
        {"char", 1}, {"short", 2}, {"int", 4}, {"long", 8}, {"half", 2}, {"float", 4}, {"double", 8}};
    if (type.starts_with('u')) type.remove_prefix(1);
    for (const auto& [name, size] : kTypes) {
        if (!type.starts_with(name)) continue;
        const std::string_view lanes = type.substr(name.size());
        if (lanes.empty()) return size;
        for (const auto& [text, count] :
             {std::pair<std::string_view, std::size_t>{"2", 2}, {"3", 4}, {"4", 4}, {"8", 8}, {"16", 16}})
            if (lanes == text) return size * count;
    }
    return 0;
}

}  // namespace

std::string argument_type(cl_kernel kernel, unsigned index) {
    // The C API, because a driver that cannot answer is no error.
    std::size_t size = 0;
    if (clGetKernelArgInfo(kernel, index, CL_KERNEL_ARG_TYPE_NAME, 0, nullptr, &size) != CL_SUCCESS || size < 2)
        return {};
    std::string type(size, ' ');
    if (clGetKernelArgInfo(kernel, index, CL_KERNEL_ARG_TYPE_NAME, size, type.data(), nullptr) != CL_SUCCESS) return {};
    type.resize(size - 1);  // the terminating zero
    const std::size_t bytes = size_of_type(type);
    const std::string_view article = type.find_first_of("aeiou") == 0 ? "an" : "a";
    return bytes == 0 ? fmt::format("{} {}", article, type) : fmt::format("{} {} ({} bytes)", article, type, bytes);
}

}  // namespace declivity::detail
