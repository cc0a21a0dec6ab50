// Helpers for tests of the trainer.
#pragma once

#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include <declivity/nn/nn.hpp>
#include <declivity/train/trainer.hpp>
#include <tests/support/values.hpp>

namespace declivity::test {

/// The elements of all parameters and buffers.
inline std::vector<double> weights(const nn::Module& model) {
    std::vector<double> all;
    for (const auto& [name, tensor] : model.state_dict())
        for (const double value : values(tensor)) all.push_back(value);
    return all;
}

/// Calls `action` after a step.
struct CallAt : train::Callback {
    std::int64_t step;
    std::function<void(train::Trainer&)> action;
    CallAt(std::int64_t at_step, std::function<void(train::Trainer&)> callback)
        : step(at_step), action(std::move(callback)) {}
    void after_step(train::Trainer& trainer) override {
        if (trainer.progress().step == step) action(trainer);
    }
};

}  // namespace declivity::test
