#include <declivity/nn/replicate.hpp>

#include <unordered_set>

#include <declivity/autograd/autograd.hpp>
#include <declivity/runtime/error.hpp>
#include <fmt/format.h>

namespace declivity::nn {
namespace {

/// @throws ValueError if the replica has other modules
void copy_modes(const Module& from, Module& to, const std::string& path) {
    const auto given = from.children(), own = to.children();
    const auto text = [](const auto& children) {
        std::string out;
        for (const auto& [name, child] : children) out += (out.empty() ? "" : ", ") + name;
        return out;
    };
    bool same = given.size() == own.size();
    for (std::size_t i = 0; same && i < own.size(); ++i) same = given[i].first == own[i].first;
    if (!same)
        throw ValueError(
            fmt::format("replicate: expected a replica with the modules of the model, [{}] in {}, got [{}]",
                        text(given), path.empty() ? "it" : fmt::format("'{}'", path), text(own)));
    to.train(from.training());
    for (std::size_t i = 0; i < own.size(); ++i)
        copy_modes(*given[i].second, *own[i].second, path.empty() ? own[i].first : path + "." + own[i].first);
}

}  // namespace

void copy_to_device(const Module& model, Module& replica, const Device& device) {
    copy_modes(model, replica, {});
    const StateDict from = model.state_dict(), to = replica.state_dict();
    for (std::size_t i = 0; i < std::max(from.size(), to.size()); ++i) {
        const std::string wanted = i < from.size() ? from[i].name : "none", got = i < to.size() ? to[i].name : "none";
        if (wanted != got)
            throw ValueError(fmt::format(
                "replicate: expected a replica with the parameters and buffers of the model, '{}', got '{}'", wanted,
                got));
        if (!(from[i].tensor.shape() == to[i].tensor.shape()))
            throw ShapeError(fmt::format("replicate: expected a replica whose '{}' has shape {}, got {}", wanted,
                                         from[i].tensor.shape().str(), to[i].tensor.shape().str()));
    }
    const NoGrad no_grad;
    replica.to(device);  // recomputes the memory scope of each module
    std::unordered_set<const void*> copied;
    for (std::size_t i = 0; i < from.size(); ++i) {
        Tensor own = to[i].tensor;
        if (!copied.insert(own.state().get()).second) continue;
        const Tensor& source = from[i].tensor;
        own.assign(source.device() == device ? source.detach().clone() : source.detach().to(device));
        if (own.is_leaf() && is_floating(own.dtype())) own.set_requires_grad(source.requires_grad());
    }
}

}  // namespace declivity::nn
