#include "binary_source.hpp"

#include <vector>

namespace declivity::detail {
namespace {

using Clock = std::chrono::steady_clock;

/// A driver that needs more than this fraction of the build time is assumed to compile on request.
constexpr double kSlow = 0.1;

BinaryStore note_of(const DeviceInfo& info) {
    return {info, "// This driver compiles binaries when it is asked for them.", ""};
}

}  // namespace

void BinarySource::save(const cl::Program& program, cl_device_id device, const DeviceInfo& info,
                        const BinaryStore& store, std::chrono::duration<double> build_time, std::string_view behind) {
    if (kind_ == Kind::unknown && note_of(info).load()) kind_ = Kind::compiled;
    if (kind_ == Kind::compiled) return;
    const auto begin = Clock::now();
    try {
        // A program belongs to all devices of its context, and a user's context may have several.
        std::vector<cl_device_id> devices(program.getInfo<CL_PROGRAM_NUM_DEVICES>());
        if (clGetProgramInfo(program(), CL_PROGRAM_DEVICES, devices.size() * sizeof devices[0],
                             static_cast<void*>(devices.data()), nullptr) != CL_SUCCESS)
            return;
        const auto binaries = program.getInfo<CL_PROGRAM_BINARIES>();
        if (kind_ == Kind::unknown) kind_ = Clock::now() - begin > kSlow * build_time ? Kind::compiled : Kind::at_hand;
        if (kind_ == Kind::compiled) return note_of(info).save({1});
        for (std::size_t i = 0; i < devices.size() && i < binaries.size(); ++i) {
            if (devices[i] != device || binaries[i].empty()) continue;
            std::vector<unsigned char> stored = binaries[i];
            stored.insert(stored.end(), behind.begin(), behind.end());
            store.save(stored);
        }
    } catch (const cl::Error&) {
        // Some drivers return no binaries; then each process compiles.
    }
}

}  // namespace declivity::detail
