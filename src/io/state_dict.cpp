#include <declivity/io/state_dict.hpp>
#include <declivity/runtime/error.hpp>
#include <declivity/runtime/scope.hpp>
#include <fmt/format.h>

namespace declivity::io {

HostArray to_host(const Tensor& tensor) {
    const ops::View view = tensor.dense_view();
    HostArray out{view.dtype, view.shape, std::vector<std::byte>(view.bytes())};
    read(view.buffer, static_cast<std::size_t>(view.offset) * size_of(view.dtype), out.bytes);
    return out;
}

Tensor to_device(const HostArray& array, const std::optional<Device>& device) {
    return Tensor::from_bytes(array.bytes, array.dtype, array.shape, device);
}

void save(const std::filesystem::path& path, const StateDict& state,
          const std::map<std::string, std::string>& metadata) {
    const FunctionScope function("io::save");
    Safetensors content{.arrays = {}, .metadata = metadata};
    for (const auto& [name, tensor] : state) {
        if (!tensor.defined())
            throw ValueError(fmt::format("io::save: expected a tensor as '{}', got an undefined one", name));
        if (content.arrays.contains(name))
            throw ValueError(fmt::format("io::save: expected each name once, got '{}' again", name));
        content.arrays.emplace(name, to_host(tensor));
    }
    write_safetensors(path, content);
}

StateDict load(const std::filesystem::path& path, const std::optional<Device>& device) {
    const FunctionScope function("io::load");
    StateDict out;
    for (const auto& [name, array] : read_safetensors(path).arrays) out.push_back({name, to_device(array, device)});
    return out;
}

}  // namespace declivity::io
