// Layer 7, private. Building blocks shared by several models.
#pragma once

#include <cmath>
#include <cstdint>
#include <string>

#include <declivity/autograd/autograd.hpp>
#include <declivity/autograd/checkpoint.hpp>
#include <declivity/functions/functions.hpp>
#include <declivity/models/causal_lm.hpp>
#include <declivity/nn/init.hpp>
#include <declivity/nn/linear.hpp>
#include <declivity/nn/module_list.hpp>
#include <declivity/runtime/error.hpp>
#include <fmt/format.h>

namespace declivity::models {

/// Groups modules under a name; it is not called.
class Container : public nn::Module {
  public:
    using Module::add;
    using Module::emplace;
    [[nodiscard]] std::string type_name() const override { return "Container"; }
    [[nodiscard]] const std::type_info& capture_safe() const override { return typeid(Container); }
};

/// (..., width) -> (..., vocab_size), without a bias.
class LMHead : public nn::Layer {
  public:
    /// @param weight (vocab_size, width), may be another module's, to which it is tied then
    explicit LMHead(const Tensor& weight) { weight_ = parameter("weight", weight); }
    [[nodiscard]] std::string type_name() const override { return "LMHead"; }
    [[nodiscard]] const std::type_info& capture_safe() const override { return typeid(LMHead); }

  protected:
    Tensor forward(Tensor x) override { return linear(x, weight_); }

  private:
    Parameter weight_;
};

/// Inputs of a causal model's layer besides the hidden states.
struct LayerInputs {
    nn::KeyValueCache cache = {};
    Tensor mask = {};       ///< (N, 1, 1, L), bool, true takes part
    Tensor positions = {};  ///< (N, 1, L), for rotary positions; 0, 1, ... if undefined
};
inline std::vector<Tensor> tensors_of(const LayerInputs& inputs) {
    std::vector<Tensor> tensors = tensors_of(inputs.cache);
    tensors.insert(tensors.end(), {inputs.mask, inputs.positions});
    return tensors;
}

/// Runs the layers of a causal model one after the other, each with the arguments after `inputs` as well.
template <class Block, class... LayerArgs>
Tensor run_blocks(nn::ModuleList<Block>& blocks, Tensor x, const CausalInputs& inputs, const LayerArgs&... layer_args) {
    const bool recompute = inputs.gradient_checkpointing && !inputs.cache.defined() && grad_enabled();
    for (Block& block : blocks)
        x = recompute ? checkpoint([&block, layer_args...](const Tensor& in) { return block(in, layer_args...); }, x)
                      : block(x, layer_args...);
    return x;
}

inline nn::LinearOptions linear_options(bool bias, const ModelOptions& options) {
    return {.bias = bias, .dtype = options.dtype, .device = options.device};
}

/// (N, L, heads D) as (N, heads, L, D).
inline Tensor split_heads(const Tensor& x, std::int64_t heads) {
    return permute(reshape(x, {x.size(0), x.size(1), heads, x.size(2) / heads}), {0, 2, 1, 3});
}
/// Inverse of split_heads().
inline Tensor merge_heads(const Tensor& x) {
    return reshape(permute(x, {0, 2, 1, 3}), {x.size(0), x.size(2), x.size(1) * x.size(3)});
}

/// (N, L), bool or numbers, as (N, 1, 1, L), bool.
inline Tensor mask_of(const char* name, const Tensor& mask, const Tensor& input_ids) {
    if (!mask.defined()) return mask;
    ops::require_shape(name, "attention_mask", mask.shape(), {input_ids.size(0), input_ids.size(1)});
    return reshape(mask.dtype() == DType::boolean ? mask : mask != 0, {mask.size(0), 1, 1, mask.size(1)});
}

inline void require_tokens(const char* name, const Tensor& input_ids, std::int64_t max_tokens) {
    if (input_ids.rank() != 2)
        throw ShapeError(fmt::format("{}: expected input_ids of shape (N, L), got {}", name, input_ids.shape().str()));
    if (input_ids.dtype() != DType::i64 && input_ids.dtype() != DType::i32)
        throw TypeError(fmt::format("{}: expected input_ids of i64 or i32, got {}", name, name_of(input_ids.dtype())));
    if (input_ids.size(1) > max_tokens)
        throw ShapeError(fmt::format("{}: expected up to {} tokens, got {}", name, max_tokens, input_ids.size(1)));
}

/// Positions of the tokens, (N, L), from a cache if there is one, which is advanced; undefined if they are 0, 1, ...
inline Tensor resolve_positions(const char* name, const Tensor& input_ids, CausalInputs& inputs) {
    if (inputs.cache.defined()) {
        if (inputs.attention_mask.defined())
            throw Unsupported(
                fmt::format("{}: expected no attention_mask with a cache, whose lengths determine the valid tokens; "
                            "pad rows at the end and call set_lengths()",
                            name));
        if (input_ids.size(0) != inputs.cache.batch())
            throw ShapeError(fmt::format("{}: expected input_ids of {} texts, the cache's batch size, got {}", name,
                                         inputs.cache.batch(), input_ids.shape().str()));
        inputs.cache.advance(input_ids.size(1));
        if (!inputs.position_ids.defined()) return inputs.cache.positions(input_ids.size(1));
    }
    if (inputs.position_ids.defined())
        ops::require_shape(name, "position_ids", inputs.position_ids.shape(), input_ids.shape());
    return inputs.position_ids;
}

/// Initialises matrices from a normal distribution with std `range`, biases with 0; normalisation layers are unchanged.
inline void initialise(const nn::Module& module, double range) {
    const NoGrad no_grad;
    for (const auto& [name, tensor] : module.named_parameters()) {
        if (tensor.rank() >= 2) nn::normal_(tensor, 0, range);
        else if (name.ends_with("bias")) Tensor(tensor).fill_(0);
    }
}

/// @throws ValueError for more tokens than the model has positions
inline void require_cache_length(const char* name, std::int64_t max_length, std::int64_t positions) {
    if (max_length > positions)
        throw ValueError(
            fmt::format("{}::make_cache: expected a max_length of up to {}, got {}", name, positions, max_length));
}

/// Cache options for a model: type and device default to the model's.
inline nn::KeyValueCacheOptions cache_options(const nn::Module& module, nn::KeyValueCacheOptions options) {
    const Tensor first = module.named_parameters().at(0).tensor;
    if (options.dtype == DType::f32) options.dtype = first.dtype();
    if (!options.device) options.device = first.device();
    return options;
}

}  // namespace declivity::models
