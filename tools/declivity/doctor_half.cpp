// Kernels in f16, if the device supports them.
#include <random>
#include <string>
#include <vector>

#include <declivity/ops/half.hpp>
#include <declivity/runtime/error.hpp>
#include <fmt/format.h>

#include "doctor_launch.hpp"
#include "doctor_section.hpp"

namespace declivity::tools::doctor {

void examine_half(DoctorRun& e) {
    const Device device = e.device();
    const bool reported = device.info().fp16;
    const auto examine = [&](const Kernel& kernel) {
        std::vector<float> a, b, expected;
        std::mt19937 engine(11);
        for (int i = 0; i < 2048; ++i) {
            a.push_back(float16(static_cast<float>(engine() % 4096) / 64 - 32)),
                b.push_back(float16(static_cast<float>(engine() % 4096) / 64 - 32));
            expected.push_back(float16(a.back() + b.back())), expected.push_back(float16(a.back() * b.back()));
        }
        const Buffer as = to_device(device, a), bs = to_device(device, b), out(device, expected.size() * sizeof(float));
        launch(kernel, {{a.size()}}, {argument<float>(as), argument<float>(bs), argument<float>(out)});
        return first_difference(to_host<float>(out, expected.size()), expected);
    };
    if (reported) {
        e.check_unused("cl_khr_fp16 is reported: sums and products in f16", [&] {
            return examine(Kernel(device, {"doctor_half.cl", "doctor_half", {{"ENABLED", "1"}}}));
        });
        return;
    }
    for (const bool enabled : {false, true})
        e.fact(fmt::format("cl_khr_fp16 is not reported; an f16 kernel, {}",
                           enabled ? "with the extension enabled" : "without enabling the extension"),
               [&] {
                   try {
                       const Kernel kernel(
                           device, {"doctor_half.cl", "doctor_half", enabled ? Defines{{"ENABLED", "1"}} : Defines{}});
                       const std::string wrong = examine(kernel);
                       return Fact{wrong.empty() ? "builds and computes correctly nevertheless"
                                                 : "builds, and computes wrong results: " + wrong,
                                   {{"builds", true}, {"right", wrong.empty()}}};
                   } catch (const DeviceError&) {
                       return Fact{"does not build", {{"builds", false}, {"right", false}}};
                   }
               });
}

}  // namespace declivity::tools::doctor
