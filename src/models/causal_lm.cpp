#include <declivity/models/causal_lm.hpp>

#include <utility>

namespace declivity::models {

Tensor CausalLM::forward(Tensor input_ids, CausalInputs inputs) {
    if (gradient_checkpointing_ && training()) inputs.gradient_checkpointing = true;
    return logits(hidden_states(std::move(input_ids), std::move(inputs)));
}

}  // namespace declivity::models
