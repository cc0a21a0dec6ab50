#include "doctor_section.hpp"

#include <array>
#include <chrono>
#include <cstdlib>
#include <stdexcept>
#include <thread>
#include <utility>

#include <declivity/runtime/error.hpp>
#include <fmt/format.h>

namespace declivity::tools::doctor {
namespace {

constexpr std::array<std::pair<Status, std::string_view>, 5> kNames{{{Status::right, "right"},
                                                                     {Status::fact, "fact"},
                                                                     {Status::skipped, "skipped"},
                                                                     {Status::avoided, "avoided"},
                                                                     {Status::wrong, "wrong"}}};

constexpr std::array kSections{
    Section{"device", "device properties and requirements", examine_device, 1, true},
    Section{"arithmetic", "arithmetic, conversions, f16, bf16, f64", examine_arithmetic},
    Section{"maths", "mathematical functions and their stated error bounds", examine_maths},
    Section{"groups", "work-groups, barriers, local memory", examine_groups},
    Section{"atomics", "atomic functions, which the library itself does not use", examine_atomics},
    Section{"arguments", "structs by value, many arguments", examine_arguments},
    Section{"half", "arithmetic in f16", examine_half},
    Section{"memory", "allocations, and offsets beyond 4 GiB", examine_memory, 1, true},
    Section{"queues", "order, events, copies, fills, mapped memory", examine_queues},
    Section{"elementwise", "every function, and fused chains", examine_elementwise, 4},
    Section{"copies", "permuted, sliced and broadcast copies, casts", examine_copies, 4},
    Section{"random", "random numbers, bit for bit", examine_random},
    Section{"reduce", "sums, means, extrema, argmax", examine_reduce, 3},
    Section{"rows", "softmax, cross entropy, batch normalisation", examine_rows, 3},
    Section{"pool2d", "pooling and its gradients", examine_pool2d, 2},
    Section{"optimizers", "steps of SGD and Adam", examine_optimizers},
    Section{"matmul", "each strategy for matrix products", examine_matmul, 4},
    Section{"conv2d", "each strategy for convolutions, in each direction", examine_conv2d, 6},
    Section{"training", "a small network, compared with a reference run", examine_training},
    Section{"faults", "known driver faults", examine_faults},
    Section{"bench", "rates compared with the device's measured peak", measure, 1, true, true},
};

}  // namespace

std::string_view name_of(Status status) {
    for (const auto& [known_status, name] : kNames)
        if (known_status == status) return name;
    return "";
}

Status status_of(std::string_view name) {
    for (const auto& [status, known_name] : kNames)
        if (known_name == name) return status;
    throw ValueError(fmt::format("doctor: expected the name of a status, got \"{}\"", name));
}

std::span<const Section> sections() { return kSections; }

bool DoctorRun::begin(const std::string& name, Status failure_status, const std::string& at_end) {
    const std::size_t at = at_++;
    if (at < first_ || at % shard_.count != shard_.index || name.find(name_filter_) == std::string::npos ||
        (other_style_ && own_style_))
        return false;
    emit_({{"at", at},
           {"begin", name},
           {"otherwise", name_of(failure_status)},
           {"at_end", at_end},
           {"other_form", other_style_}});
    if (fault_ == "slow" && other_style_)
        for (;;) std::this_thread::sleep_for(std::chrono::seconds(1));
    if (fault_.empty() || at != 1) return true;
    if (fault_ == "crash") std::abort();
    if (fault_ == "exit") std::_Exit(3);
    if (fault_ == "hang")
        for (;;) std::this_thread::sleep_for(std::chrono::seconds(1));
    return true;
}

void DoctorRun::end(const std::string& name, Status status, const std::string& text, const Json& metrics) {
    Json line{{"at", at_ - 1}, {"name", name}, {"status", name_of(status)}};
    if (!text.empty()) line["text"] = text;
    if (!metrics.empty()) line["metrics"] = metrics;
    emit_(line);
}

void DoctorRun::run_check(const std::string& name, const std::function<std::string()>& what, Status failure_status,
                          const std::string& at_end) {
    if (!begin(name, failure_status, at_end)) return;
    std::string wrong;
    try {
        if (fault_ == "throw" && at_ == 2) throw std::runtime_error("an injected fault");
        wrong = what();
    } catch (const std::exception& error) {
        wrong = error.what();
        if (wrong.empty()) wrong = "an error without a message";
    }
    end(name, wrong.empty() ? Status::right : failure_status, wrong);
}

void DoctorRun::check_style(KernelStyle style, const std::string& name, const std::function<std::string()>& what) {
    const bool needed = workarounds_off() || device().kernel_style() == style;
    other_style_ = !needed;
    run_check(name, what, needed ? Status::wrong : Status::avoided);
    other_style_ = false;
}

bool workarounds_off() {
    const char* set = std::getenv("DECLIVITY_WORKAROUNDS");
    return set != nullptr && std::string_view(set) == "0";
}

void DoctorRun::fact(const std::string& name, const std::function<Fact()>& what) {
    if (!begin(name, Status::wrong)) return;
    try {
        const Fact fact = what();
        end(name, Status::fact, fact.text, fact.metrics);
    } catch (const std::exception& error) {
        end(name, Status::wrong, error.what());
    }
}

void DoctorRun::fact(const std::string& name, const std::string& text) {
    fact(name, [&] { return Fact{text}; });
}

void DoctorRun::skip(const std::string& name, const std::string& why) {
    if (begin(name, Status::wrong)) end(name, Status::skipped, why);
}

void DoctorRun::avoided(const std::string& name, const std::string& text) {
    if (begin(name, Status::wrong)) end(name, Status::avoided, text);
}

}  // namespace declivity::tools::doctor
