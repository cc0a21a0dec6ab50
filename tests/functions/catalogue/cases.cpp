#include <tests/functions/catalogue/cases.hpp>

#include <cmath>
#include <cstdlib>
#include <utility>

#include <declivity/functions/functions.hpp>
#include <declivity/tensor/creation.hpp>
#include <tests/functions/catalogue/parts.hpp>
#include <tests/support/devices.hpp>
#include <tests/support/values.hpp>

namespace declivity::test::catalogue {

std::vector<Case> cases() {
    std::vector<Case> all = operator_catalogue();
    const auto add = [&all](Case test_case) { all.push_back(std::move(test_case)); };
    for (Case& test_case : elementwise_catalogue()) add(std::move(test_case));
    for (Case& test_case : shape_catalogue()) add(std::move(test_case));
    for (Case& test_case : index_catalogue()) add(std::move(test_case));
    for (Case& test_case : reduction_catalogue()) add(std::move(test_case));
    for (Case& test_case : linalg_catalogue()) add(std::move(test_case));
    for (Case& test_case : statistics_catalogue()) add(std::move(test_case));
    for (Case& test_case : arrangement_catalogue()) add(std::move(test_case));
    for (Case& test_case : loss_catalogue()) add(std::move(test_case));
    for (Case& test_case : resize_catalogue()) add(std::move(test_case));
    for (Case& test_case : vision_catalogue()) add(std::move(test_case));
    for (Case& test_case : norm_embedding_catalogue()) add(std::move(test_case));
    for (Case& test_case : attention_catalogue()) add(std::move(test_case));
    for (Case& test_case : recurrent_catalogue()) add(std::move(test_case));
    for (Case& test_case : fft_catalogue()) add(std::move(test_case));
    for (const auto add_part : {add_convolutions, add_windows, add_pools, add_adaptive_pools, add_unpools})
        add_part(all);
    for (Case& test_case : view_catalogue()) add(std::move(test_case));
    for (Case& test_case : layer_catalogue()) add(std::move(test_case));
    add_random_cases(all);
    for (Case& item : all) {
        for (const char* name : {"conv2d", "batch_norm", "linear", "conv1d", "conv_transpose2d", "layer_norm",
                                 "rms_norm", "lstm_cell", "index"})
            if (item.name == name) item.first_optional = 1;
        for (const char* name : {"cross_entropy", "nll_loss", "multi_margin_loss", "binary_cross_entropy",
                                 "bce_with_logits", "binary_cross_entropy_with_logits", "multilabel_soft_margin_loss"})
            if (item.name == name) item.first_optional = 2;
    }
    return all;
}

std::size_t share_of_turn(std::size_t turn) { return (turn + turn / 16) % 4; }

bool is_other_turn(std::size_t at) {
    const char* const turn_text = std::getenv("DECLIVITY_TURN");
    if (turn_text == nullptr || std::getenv("DECLIVITY_FULL") != nullptr) return false;
    const auto turn = static_cast<std::size_t>(std::atoi(turn_text));
    return at % 4 != share_of_turn(turn);
}

Columns inputs_of(const Case& test_case) {
    Columns out;
    for (std::size_t i = 0; i < test_case.inputs.size(); ++i) {
        const Input& input = test_case.inputs[i];
        Values column = random_values(input.shape.numel(), 100 + i, input.low, input.high);
        for (double& value : column)
            value = input.kind == Kind::real || input.kind == Kind::constant ? static_cast<float>(value)
                    : input.kind == Kind::boolean                            ? std::round(value)
                                                                             : std::floor(value);
        out.push_back(std::move(column));
    }
    return out;
}

Tensor strided(const Tensor& x) {
    Dims reverse;
    for (int axis = x.rank() - 1; axis >= 0; --axis) reverse.push_back(axis);
    const Tensor reversed = permute(x, reverse).clone();
    const std::int64_t last = reversed.rank() - 1;
    const Tensor interleaved = reshape(concat({reshape(reversed, {-1, 1}), reshape(reversed, {-1, 1})}, 1), [&] {
        Shape shape = reversed.shape();
        shape[static_cast<int>(last)] *= 2;
        return shape;
    }());
    return permute(slice(interleaved, last, 0, 2 * x.shape()[0], 2), reverse).detach();
}

Tensors tensors_of(const Case& test_case, const Columns& columns, DType dtype, Layout layout) {
    Tensors out;
    for (std::size_t i = 0; i < columns.size(); ++i) {
        const Kind kind = test_case.inputs[i].kind;
        const DType input_dtype = kind == Kind::label ? DType::i64 : kind == Kind::boolean ? DType::boolean : dtype;
        const Tensor x = tensor(columns[i], test_case.inputs[i].shape, input_dtype);
        out.push_back(layout == Layout::dense ? x : strided(x));
    }
    return out;
}

}  // namespace declivity::test::catalogue
