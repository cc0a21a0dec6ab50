#include "program_cache.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <vector>

#include <declivity/runtime/driver_faults.hpp>
#include <declivity/runtime/error.hpp>
#include <fmt/format.h>

#include "runtime/process.hpp"
#include "runtime/binary_store.hpp"
#include "runtime/blocking.hpp"
#include "runtime/environment.hpp"
#include "runtime/kernel_source.hpp"

namespace declivity::detail {

namespace {

/// The kind of argument `index`, so that a launch can refuse a number where the kernel has a pointer.
KernelState::Space argument_space(const cl::Kernel& kernel, unsigned index) {
    cl_kernel_arg_address_qualifier where = 0;
    // The C API, because a driver that cannot answer is no error.
    if (clGetKernelArgInfo(kernel(), index, CL_KERNEL_ARG_ADDRESS_QUALIFIER, sizeof where, &where, nullptr) !=
        CL_SUCCESS)
        return KernelState::Space::unknown;
    switch (where) {
        case CL_KERNEL_ARG_ADDRESS_PRIVATE:
            return KernelState::Space::value;
        case CL_KERNEL_ARG_ADDRESS_GLOBAL:
        case CL_KERNEL_ARG_ADDRESS_CONSTANT:
            return KernelState::Space::global;
        case CL_KERNEL_ARG_ADDRESS_LOCAL:
            return KernelState::Space::local;
        default:
            return KernelState::Space::unknown;
    }
}

// Through the C API: CLHPP takes a list of its device objects, whose copies query the device without checking the
// result.
void build(const cl::Program& program, const DeviceContext& device, const std::string& options) {
    const cl_int status = clBuildProgram(program(), 1, &device.device, options.c_str(), nullptr, nullptr);
    if (status != CL_SUCCESS) throw cl::Error(status, "clBuildProgram");
}

cl::Program of_binary(const DeviceContext& device, const std::vector<unsigned char>& binary) {
    const std::size_t size = binary.size();
    const unsigned char* data = binary.data();
    cl_int each = CL_SUCCESS, status = CL_SUCCESS;
    cl::Program program(clCreateProgramWithBinary(device.context(), 1, &device.device, &size, &data, &each, &status));
    if (status != CL_SUCCESS) throw cl::Error(status, "clCreateProgramWithBinary");
    return program;
}

// Drivers need not report the arguments of a program loaded as a binary, so those reported for the source build are
// appended to it: for each kernel its name and one letter per argument, then the length and this mark.
constexpr std::string_view kLetters = "?vgl";  // of KernelState::Space
constexpr std::string_view kMark = "\nARGUMENTS\n";

std::string describe_arguments(const cl::Program& program) {
    std::string lines;
    try {
        std::vector<cl_kernel> raw(program.getInfo<CL_PROGRAM_NUM_KERNELS>());
        const cl_int status =
            clCreateKernelsInProgram(program(), static_cast<cl_uint>(raw.size()), raw.data(), nullptr);
        if (status != CL_SUCCESS) throw cl::Error(status, "clCreateKernelsInProgram");
        std::vector<cl::Kernel> kernels;
        for (cl_kernel item : raw) kernels.emplace_back(item);
        for (const cl::Kernel& kernel : kernels) {
            lines += kernel.getInfo<CL_KERNEL_FUNCTION_NAME>() + ' ';
            for (unsigned index = 0; index < kernel.getInfo<CL_KERNEL_NUM_ARGS>(); ++index)
                lines += kLetters[static_cast<std::size_t>(argument_space(kernel, index))];
            lines += '\n';
        }
    } catch (const cl::Error& error) {
        if (is_transient(error.err())) throw;
        return {};  // needed only if a program passes an argument of the wrong kind
    }
    return fmt::format("{}{:08x}{}", lines, lines.size(), kMark);
}

/// Removes the appended arguments from a stored binary; empty if there are none.
std::string take_arguments(std::vector<unsigned char>& stored) {
    constexpr std::size_t digits = 8;
    const std::string_view text(reinterpret_cast<const char*>(stored.data()), stored.size());
    if (text.size() < digits + kMark.size() || !text.ends_with(kMark)) return {};
    const std::size_t end = text.size() - kMark.size() - digits;
    std::size_t size = 0;
    const char* const from = text.data() + end;
    if (std::from_chars(from, from + digits, size, 16).ptr != from + digits || size > end) return {};
    std::string lines(text.substr(end - size, size));
    stored.resize(end - size);
    return lines;
}

KernelState::Space described_argument(std::string_view lines, std::string_view kernel, unsigned index) {
    while (!lines.empty()) {
        const std::string_view line = lines.substr(0, lines.find('\n'));
        const std::size_t space = line.find(' ');
        if (space != std::string_view::npos && line.substr(0, space) == kernel && space + 1 + index < line.size())
            return static_cast<KernelState::Space>(std::min(kLetters.find(line[space + 1 + index]), kLetters.size()) %
                                                   kLetters.size());
        lines.remove_prefix(std::min(line.size() + 1, lines.size()));
    }
    return KernelState::Space::unknown;
}

/// Empty if the driver does not provide it.
std::string log_of(const cl::Program& program, const DeviceContext& device) {
    std::size_t size = 0;
    if (program() == nullptr ||
        clGetProgramBuildInfo(program(), device.device, CL_PROGRAM_BUILD_LOG, 0, nullptr, &size) != CL_SUCCESS)
        return {};
    std::string log(size, '\0');
    if (clGetProgramBuildInfo(program(), device.device, CL_PROGRAM_BUILD_LOG, size, log.data(), nullptr) != CL_SUCCESS)
        return {};
    log.resize(std::min(log.find('\0'), log.size()));
    return log;
}

/// Returns whether the driver prepends clang's header of declarations to each program, tested by its include guard.
/// @throws cl::Error on a lack of resources
bool has_declarations_in_front(const DeviceContext& device) {
    const cl::Program program(device.context, kernel_source("builtins_probe.cl"));
    try {
        build(program, device, "");
        return cl::Kernel(program, "builtins_probe").getInfo<CL_KERNEL_NUM_ARGS>() == 1;
    } catch (const cl::Error& error) {
        if (is_transient(error.err())) throw;
        return false;
    }
}

/// Disables the driver workarounds in kernels, to reproduce the faults.
std::string workarounds() { return environment().workarounds.get() ? "" : "#define DECLIVITY_NO_WORKAROUNDS\n"; }

std::string kernels_in(const cl::Program& program) {
    try {
        return program.getInfo<CL_PROGRAM_KERNEL_NAMES>();
    } catch (const cl::Error&) {
        return "kernels that the driver does not name";
    }
}

}  // namespace

std::shared_ptr<KernelState> ProgramCache::kernel(const KernelSpec& spec) {
    struct View {
        std::string_view file, name, defines;
    };
    refuse_after_fork(spec.name);
    {
        const std::scoped_lock lock(mutex_);
        const auto found = kernels_.find(View{spec.file, spec.name, spec.defines.text()});
        if (found != kernels_.end()) return found->second;
    }
    // Other threads may launch meanwhile, also on this device.
    const BlockingScope compiles(device_.handle());
    dump_kernel(spec);  // also for what then fails to compile
    const auto [built, arguments] =
        checked(fmt::format("program '{}'", spec.file), device_.info.name, [&] { return program(spec); });
    auto state = std::make_shared<KernelState>();
    state->name = spec.name;
    state->device = &device_.owner;
    checked(fmt::format("kernel '{}' of '{}'", spec.name, spec.file), device_.info.name, [&] {
        try {
            state->kernel = cl::Kernel(built, spec.name.c_str());
        } catch (const cl::Error& error) {
            if (error.err() != CL_INVALID_KERNEL_NAME) throw;
            throw DeviceError(fmt::format("kernel '{}': no kernel of this name in '{}', which has: {}", spec.name,
                                          spec.file, kernels_in(built)),
                              error.err());
        }
        state->max_work_group = max_work_group(state->kernel);
        const unsigned count = state->kernel.getInfo<CL_KERNEL_NUM_ARGS>();
        for (unsigned index = 0; index < count; ++index) {
            const KernelState::Space space = argument_space(state->kernel, index);
            state->arguments.push_back(
                space == KernelState::Space::unknown ? described_argument(arguments, spec.name, index) : space);
        }
        state->values.resize(count);
    });
    const std::scoped_lock lock(mutex_);
    return kernels_.emplace(Key{spec.file, spec.name, spec.defines.text()}, std::move(state)).first->second;
}

ProgramCache::Built ProgramCache::program(const KernelSpec& spec) {
    const std::string key = spec.file + '\n' + spec.defines.text();
    std::unique_lock lock(mutex_);
    for (;;) {
        const auto found = programs_.find(key);
        if (found == programs_.end()) break;
        if (!found->second.building) return found->second.built;
        built_.wait(lock);
    }
    refuse_at_exit(spec.file);
    programs_[key] = {};
    lock.unlock();
    try {
        const Compiling compiling;
        Built result = build(spec, workarounds() + spec.defines.text() + kernel_source(spec.file));
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

ProgramCache::Built ProgramCache::build(const KernelSpec& spec, const std::string& source) {
    const BinaryStore store(device_.info, source, kBuildOptions);
    if (auto binary = store.load()) {
        try {
            std::string arguments = take_arguments(*binary);
            cl::Program program = of_binary(device_, *binary);
            detail::build(program, device_, kBuildOptions);
            return {std::move(program), std::move(arguments)};
        } catch (const cl::Error&) {
            // A driver may refuse a binary for its own reasons; the source is the fallback.
        }
    }
    cl::Program program;
    const auto begin = std::chrono::steady_clock::now();
    try {
        if (!build_with_own_builtins(spec, source, program)) {
            program = cl::Program(device_.context, source);
            detail::build(program, device_, kBuildOptions);
        }
    } catch (const cl::Error& error) {
        const std::string log = log_of(program, device_);
        if (is_transient(error.err()) || log.empty())
            throw_status(error.err(), fmt::format("build of '{}'", spec.file), device_.info.name);
        throw DeviceError(
            fmt::format("build of '{}' for '{}': {} ({})\nbuilt with:\n{}build log:\n{}", spec.file, device_.info.name,
                        status_name(error.err()), error.err(), spec.defines.text(), log),
            error.err());
    }
    const auto build_time = std::chrono::steady_clock::now() - begin;
    if (store.enabled() && binaries_.kind() != BinarySource::Kind::compiled)
        binaries_.save(program, device_.device, device_.info, store, build_time, describe_arguments(program));
    return {std::move(program), ""};
}

std::size_t ProgramCache::max_work_group(const cl::Kernel& kernel) {
    const auto query = [&](cl_kernel_work_group_info what, auto& value) {
        const cl_int status = clGetKernelWorkGroupInfo(kernel(), device_.device, what, sizeof value, &value, nullptr);
        if (status != CL_SUCCESS) throw cl::Error(status, "clGetKernelWorkGroupInfo");
    };
    std::size_t limit = 0;
    query(CL_KERNEL_WORK_GROUP_SIZE, limit);
    std::array<std::size_t, 3> stated{};
    query(CL_KERNEL_COMPILE_WORK_GROUP_SIZE, stated);
    const std::size_t own = stated[0] * stated[1] * stated[2];
    return limit < own && understates_groups() ? own : limit;
}

bool ProgramCache::understates_groups() {
    {
        const std::scoped_lock lock(query_mutex_);
        if (understates_groups_) return *understates_groups_;
    }
    const bool found =
        environment().workarounds.get() && has_fault(device_.handle(), driver_fault("understated_work_group"));
    const std::scoped_lock lock(query_mutex_);
    understates_groups_ = found;
    return found;
}

bool ProgramCache::build_with_own_builtins(const KernelSpec& spec, const std::string& source, cl::Program& program) {
    // A user's file may need any built-in function, and its warnings are useful; those of the library's kernels would
    // be noise. The probes of `declivity doctor` need functions that no other kernel uses.
    if (spec.file.find('/') != std::string::npos || spec.file.starts_with("doctor_")) return false;
    {
        const std::scoped_lock lock(query_mutex_);
        if (!declarations_in_front_) declarations_in_front_ = has_declarations_in_front(device_);
        if (!*declarations_in_front_) return false;
    }
    program = cl::Program(device_.context, kernel_source("builtins.clh") + source);
    try {
        detail::build(program, device_, fmt::format("{} -w -D _OPENCL_H_", kBuildOptions));
        return true;
    } catch (const cl::Error& error) {
        // Programs built with and without it may differ in the last bits, so a lack of memory must not change the
        // choice.
        if (is_transient(error.err())) throw;
        return false;
    }
}

}  // namespace declivity::detail
