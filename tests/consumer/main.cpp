#include <cstdio>

#include <declivity/ops/shape.hpp>
#include <declivity/runtime/device.hpp>
#include <declivity/version.hpp>

int main() {
    std::printf("declivity %.*s\n", static_cast<int>(declivity::kVersion.size()), declivity::kVersion.data());
    std::printf("%s\n", declivity::Shape({2, 3}).str().c_str());
    for (const declivity::Device& device : declivity::Device::all()) std::printf("device: %s\n", device.name().c_str());
}
