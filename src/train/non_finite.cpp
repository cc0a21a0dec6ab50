#include "non_finite.hpp"

#include "checks.hpp"

#include <declivity/ops/finite.hpp>
#include <declivity/tensor/autograd.hpp>
#include <declivity/tensor/creation.hpp>
#include <fmt/format.h>

namespace declivity::train {
namespace {

bool finite(const Tensor& tensor) {
    const Tensor guard = zeros({2}, {DType::i32, tensor.device()});
    ops::check_finite(tensor.to(compute_type(tensor.dtype())).dense_view(), guard.view());
    return guard.to_vector<std::int32_t>()[0] == 0;
}

struct Found {
    std::string layer;   // the first whose output is not finite
    Tensor output = {};  // of the model, if it was called
};

Found first_not_finite(nn::Module& model, const Loss& loss, const data::Batch& batch) {
    if (!finite(batch[0])) return {"input"};
    for (const auto& [name, parameter] : model.named_parameters())
        if (!finite(parameter)) return {fmt::format("parameter {}", name)};
    std::string layer;
    Tensor output;
    {
        // The inner modules report before those that hold them, so the first to report is the most precise.
        const nn::ObserveCalls observe(
            [&](const std::string& path, const nn::Module&, const Tensor&, const Tensor& out) {
                if (layer.empty() && !finite(out)) layer = path;
            });
        output = outputs_of(model, type_of(model), batch[0]);
    }
    if (layer.empty() && !finite(loss(output, batch[1]))) layer = "loss";
    return {layer, output};
}

}  // namespace

void throw_loss_not_finite(nn::Module& model, const Loss& loss, const data::Batch& batch, const NotedLabels& noted,
                           std::int64_t step, std::int64_t epoch) {
    const NoGrad no_grad;
    const auto [layer, output] = first_not_finite(model, loss, batch);
    if (output.defined() && (layer.empty() || layer == "loss"))
        if (const auto label = refused_label(loss, output, batch[1].dtype(), noted))
            throw ValueError(
                fmt::format("Trainer: wants labels in [0, {}), as many as the model has outputs, got label {} at step "
                            "{} (epoch {}, batch {}). "
                            "The parameters are those from before the step",
                            output.size(1), *label, step, epoch, batch.number));
    throw NonFiniteLoss(fmt::format("Trainer: the loss was infinite or NaN at step {} (epoch {}, batch {}); {}. The "
                                    "parameters are those from before "
                                    "the step. {}",
                                    step, epoch, batch.number,
                                    layer.empty() ? "a second run of that batch was finite"
                                                  : fmt::format("the first value that is not finite is in '{}'", layer),
                                    layer == "input" ? "Look at the data and its transform"
                                                     : "A smaller learning rate or clip_norm often helps"),
                        step, layer);
}

}  // namespace declivity::train
