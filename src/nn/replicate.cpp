#include <declivity/nn/replicate.hpp>

#include <unordered_set>

#include <declivity/autograd/autograd.hpp>
#include <declivity/runtime/error.hpp>
#include <fmt/format.h>

#include "tensor/access.hpp"

namespace declivity::nn {
namespace {

/// @throws ValueError if the replica has other modules
void copy_modes(const Module& from, Module& to, const std::string& path) {
    const auto model_children = from.children(), replica_children = to.children();
    const auto names_of = [](const auto& children) {
        std::string out;
        for (const auto& [name, child] : children) out += (out.empty() ? "" : ", ") + name;
        return out;
    };
    bool same = model_children.size() == replica_children.size();
    for (std::size_t i = 0; same && i < replica_children.size(); ++i)
        same = model_children[i].first == replica_children[i].first;
    if (!same)
        throw ValueError(fmt::format(
            "replicate: expected a replica with the modules of the model, [{}] in {}, got [{}]",
            names_of(model_children), path.empty() ? "it" : fmt::format("'{}'", path), names_of(replica_children)));
    to.train(from.training());
    for (std::size_t i = 0; i < replica_children.size(); ++i)
        copy_modes(*model_children[i].second, *replica_children[i].second,
                   path.empty() ? replica_children[i].first : path + "." + replica_children[i].first);
}

}  // namespace

void copy_to_device(const Module& model, Module& replica, const Device& device) {
    copy_modes(model, replica, {});
    const StateDict from = model.state_dict(), to = replica.state_dict();
    for (std::size_t i = 0; i < std::max(from.size(), to.size()); ++i) {
        const std::string expected = i < from.size() ? from[i].name : "none",
                          actual = i < to.size() ? to[i].name : "none";
        if (expected != actual)
            throw ValueError(fmt::format(
                "replicate: expected a replica with the parameters and buffers of the model, '{}', got '{}'", expected,
                actual));
        if (!(from[i].tensor.shape() == to[i].tensor.shape()))
            throw ShapeError(fmt::format("replicate: expected a replica whose '{}' has shape {}, got {}", expected,
                                         from[i].tensor.shape().str(), to[i].tensor.shape().str()));
    }
    const NoGrad no_grad;
    replica.to(device);  // recomputes the memory scope of each module
    std::unordered_set<const void*> copied;
    for (std::size_t i = 0; i < from.size(); ++i) {
        Tensor tensor = to[i].tensor;
        if (!copied.insert(state_of(tensor).get()).second) continue;
        const Tensor& source = from[i].tensor;
        tensor.assign(source.device() == device ? source.detach().clone() : source.detach().to(device));
        if (tensor.is_leaf() && is_floating(tensor.dtype())) tensor.set_requires_grad(source.requires_grad());
    }
}

}  // namespace declivity::nn
