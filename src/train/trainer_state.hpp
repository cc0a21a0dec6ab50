// Floor 5, private. What a Trainer holds.
#pragma once

#include <array>
#include <atomic>
#include <optional>

#include <declivity/train/trainer.hpp>

namespace declivity::train {

struct Trainer::State {
    State(nn::Module& network, optim::Optimizer& steps, Loss of);

    nn::Module& model;
    optim::Optimizer& optimizer;
    Loss loss;
    Device device;
    DType dtype;  // of the model's parameters
    Progress progress;
    Replays replays;
    /// f32 [2]: sum of losses and number of right answers in the current epoch. Part of a checkpoint, so that the
    /// figures of a resumed epoch are those of an unbroken one.
    Tensor totals;
    Tensor guard;  // i32 [2], see ops/finite.hpp
    Tensor noted;  // i64 [4], see ops/classification.hpp
    std::int64_t planned_steps = 0;
    bool stop = false;
    std::atomic<bool> fitting = false;
    /// What the order of the examples depends on; a checkpoint in the middle of an epoch serves only the same.
    struct Run {
        std::uint64_t seed = 0;
        std::int64_t batch = 0, examples = 0;
        bool shuffle = true;
        friend bool operator==(const Run&, const Run&) = default;
    } run;
};

}  // namespace declivity::train
