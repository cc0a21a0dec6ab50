#include "program_cache.hpp"

#include <vector>

#include <declivity/runtime/error.hpp>
#include <fmt/format.h>

#include "binary_store.hpp"
#include "device_state.hpp"

namespace declivity::detail {

// Fused multiply-add is allowed, but infinities and NaN keep their meaning: the trainer looks for them.
// Arithmetic on numbers below 2^-126 runs 20 times slower on CPUs, and the squares of small gradients are such numbers.
// -cl-mad-enable and -cl-no-signed-zeros bought no speed (a * b + c is fused without), and the latter loses signs.
const char* const kBuildOptions = "-cl-std=CL1.2 -cl-denorms-are-zero";

std::shared_ptr<KernelState> ProgramCache::kernel(const KernelSpec& spec) {
    const std::string key = spec.file + '\n' + spec.name + '\n' + spec.defines.text();
    {
        const std::scoped_lock lock(mutex_);
        const auto found = kernels_.find(key);
        if (found != kernels_.end()) return found->second;
    }
    const cl::Program built = program(spec);
    auto state = std::make_shared<KernelState>();
    state->name = spec.name;
    state->device = &device_;
    checked(fmt::format("kernel '{}' of '{}'", spec.name, spec.file), device_.info.name, [&] {
        state->kernel = cl::Kernel(built, spec.name.c_str());
        state->max_work_group = state->kernel.getWorkGroupInfo<CL_KERNEL_WORK_GROUP_SIZE>(device_.device);
        state->arguments = state->kernel.getInfo<CL_KERNEL_NUM_ARGS>();
    });
    const std::scoped_lock lock(mutex_);
    return kernels_.emplace(key, std::move(state)).first->second;
}

cl::Program ProgramCache::program(const KernelSpec& spec) {
    const std::string key = spec.file + '\n' + spec.defines.text();
    std::unique_lock lock(mutex_);
    for (;;) {
        const auto found = programs_.find(key);
        if (found == programs_.end()) break;
        if (!found->second.building) return found->second.program;
        built_.wait(lock);
    }
    programs_[key] = {};
    lock.unlock();
    try {
        cl::Program result = build(spec, spec.defines.text() + kernel_source(spec.file));
        lock.lock();
        programs_[key] = {false, result};
        built_.notify_all();
        return result;
    } catch (...) {
        if (!lock.owns_lock()) lock.lock();
        programs_.erase(key);
        built_.notify_all();
        throw;
    }
}

cl::Program ProgramCache::build(const KernelSpec& spec, const std::string& source) {
    const BinaryStore store(device_.info, source, kBuildOptions);
    if (const auto binary = store.load()) {
        try {
            cl::Program program(device_.context, {device_.device}, cl::Program::Binaries{*binary});
            program.build({device_.device}, kBuildOptions);
            return program;
        } catch (const cl::Error&) {
            // A driver may refuse a binary for reasons of its own; the source is always at hand.
        }
    }
    cl::Program program;
    try {
        program = cl::Program(device_.context, source);
        program.build({device_.device}, kBuildOptions);
    } catch (const cl::BuildError& error) {
        std::string log;
        for (const auto& [device, text] : error.getBuildLog()) log += text;
        throw DeviceError(fmt::format("build of '{}' for '{}': {} ({})\nbuilt with:\n{}build log:\n{}", spec.file,
                                      device_.info.name, status_name(error.err()), error.err(), spec.defines.text(), log),
                          error.err());
    } catch (const cl::Error& error) {
        throw_status(error.err(), fmt::format("build of '{}'", spec.file), device_.info.name);
    }
    try {
        const auto binaries = program.getInfo<CL_PROGRAM_BINARIES>();
        if (!binaries.empty() && !binaries.front().empty()) store.save(binaries.front());
    } catch (const cl::Error&) {
        // Not every driver gives binaries out; then each process compiles.
    }
    return program;
}

}  // namespace declivity::detail
