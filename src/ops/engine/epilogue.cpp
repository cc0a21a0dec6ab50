#include "epilogue.hpp"

#include <algorithm>
#include <string_view>

#include "continuity.hpp"
#include "expression_node.hpp"
#include "ops/support/work_split.hpp"

namespace declivity::ops {
namespace {

using Kind = ExpressionNode::Kind;

// EPILOGUE_BIAS, EPILOGUE_RESIDUAL, EPILOGUE_RELU, EPILOGUE_RELU_GRADIENT, EPILOGUE_SCALE, EPILOGUE_SHIFT
constexpr std::int32_t kBias = 1, kResidual = 2, kRelu = 4, kReluGradient = 8, kScale = 16, kShift = 32;

bool is_number_for_each_column(const View& view, const View& out) {
    const std::int64_t columns = out.shape.back();
    return view.numel() == columns && view.rank() > 0 && view.shape.back() == columns && view.dense();
}

/// (C, 1, 1) with (N, C, H, W), or with any number of leading ones.
bool is_number_for_each_channel(const View& view, const View& out) {
    const int axis = view.rank() - out.rank() + 1;
    return out.rank() == 4 && axis >= 0 && view.numel() == out.shape[1] && view.shape[axis] == out.shape[1] &&
           view.dense();
}

/// Same number of elements as the result, in the same order, up to leading axes of size 1.
bool is_residual(const View& view, const View& out) {
    if (view.numel() != out.numel() || !view.dense()) return false;
    for (int i = 1; i <= std::max(view.rank(), out.rank()); ++i)
        if ((i <= view.rank() ? view.shape[view.rank() - i] : 1) != (i <= out.rank() ? out.shape[out.rank() - i] : 1))
            return false;
    return true;
}

/// A factor for each channel, if it is one; the other input is what it scales.
const View* channel_factor(const Expression& a, const View& out) {
    const ExpressionNode& node = *a.node();
    return node.kind == Kind::view && node.dtype == out.dtype && is_number_for_each_channel(node.view, out) &&
                   !may_overlap(node.view, out)
               ? &node.view
               : nullptr;
}

/// Adds the terms of a sum, each times `factor`, to the epilogue. Returns false if any other term occurs.
bool take_sum(const ExpressionNode& node, double factor, const View& out, EpilogueTarget target,
              KernelEpilogue& epilogue, bool& has_result) {
    switch (node.kind) {
        case Kind::operator_result:
            if (has_result) return false;
            has_result = true;
            epilogue.alpha = factor;
            return true;
        case Kind::view:
            if (node.dtype != out.dtype || may_overlap(node.view, out)) return false;
            if (target == EpilogueTarget::convolution && !epilogue.shift && factor == 1 &&
                is_number_for_each_channel(node.view, out))
                epilogue.shift = node.view;
            else if (target == EpilogueTarget::product && !epilogue.bias && factor == 1 &&
                     is_number_for_each_column(node.view, out))
                epilogue.bias = node.view;
            else if (!epilogue.residual && is_residual(node.view, out))
                epilogue.residual = node.view, epilogue.beta = factor;
            else return false;
            return true;
        case Kind::apply:
            switch (node.function) {
                case Function::add:
                    return take_sum(*node.inputs[0].node(), factor, out, target, epilogue, has_result) &&
                           take_sum(*node.inputs[1].node(), factor, out, target, epilogue, has_result);
                case Function::sub:
                    return take_sum(*node.inputs[0].node(), factor, out, target, epilogue, has_result) &&
                           take_sum(*node.inputs[1].node(), -factor, out, target, epilogue, has_result);
                case Function::neg:
                    return take_sum(*node.inputs[0].node(), -factor, out, target, epilogue, has_result);
                case Function::mul_scalar:
                    return take_sum(*node.inputs[0].node(), factor * node.parameters[0].to_double(), out, target,
                                    epilogue, has_result);
                case Function::mul: {
                    if (target != EpilogueTarget::convolution || has_result) return false;
                    const std::size_t at = channel_factor(node.inputs[1], out) != nullptr ? 1 : 0;
                    const View* scale = channel_factor(node.inputs[at], out);
                    KernelEpilogue scaled;  // only the result itself
                    if (scale == nullptr ||
                        !take_sum(*node.inputs[1 - at].node(), factor, out, target, scaled, has_result) ||
                        scaled.scale || scaled.shift || scaled.residual)
                        return false;
                    epilogue.alpha = scaled.alpha;
                    epilogue.scale = *scale;
                    return has_result;
                }
                default:
                    return false;
            }
        default:
            return false;
    }
}

bool take(const ExpressionNode& node, const View& out, EpilogueTarget target, KernelEpilogue& epilogue) {
    bool has_result = false;
    return take_sum(node, 1, out, target, epilogue, has_result) && has_result;
}

/// The second operand of an activation's gradient, if it is a single view.
std::optional<View> saved_of(const ExpressionNode& gradient, const View& out) {
    const Expression &x = gradient.inputs[1], &y = gradient.inputs[2];
    const Expression& only = x ? x : y;
    if (!only || (x && y) || only.node()->kind != Kind::view) return std::nullopt;
    const View& saved = only.node()->view;
    if (saved.dtype != out.dtype || may_overlap(saved, out) || !is_residual(saved, out)) return std::nullopt;
    return saved;
}

/// In f64, exponentials and similar functions are calls as long as a kernel, one for each sum of a work-item, and leave
/// no registers in simt kernels: a separate kernel computes them.
bool too_long(const KernelEpilogue& epilogue, const View& out) {
    const FunctionInfo& function = info(*epilogue.activation);
    return out.dtype == DType::f64 && !is_simd(out.device()) &&
           (epilogue.saved ? function.gradient_info[0].costly : function.costly);
}

}  // namespace

std::optional<KernelEpilogue> kernel_epilogue(const Epilogue& epilogue, const View& out, EpilogueTarget target) {
    if (!epilogue) return KernelEpilogue{};
    const ExpressionNode& node = *epilogue.node();
    if (node.dtype != out.dtype) return std::nullopt;
    if (KernelEpilogue sum; take(node, out, target, sum)) return sum;
    const bool gradient = node.kind == Kind::gradient;
    if ((!gradient && node.kind != Kind::apply) || info(node.function).inputs != 1) return std::nullopt;
    // The kernels do not include these headers, whose functions take one element.
    if (info(node.function).special || info(node.function).divides) return std::nullopt;
    // They would apply it to the operator's sums before these are rounded.
    if (is_16bit_float(out.dtype) && !gradient && !is_continuous(node.function)) return std::nullopt;
    KernelEpilogue result{.activation = node.function};
    std::ranges::transform(node.parameters, result.parameters.begin(), &Scalar::to_double);
    if (gradient && !(result.saved = saved_of(node, out))) return std::nullopt;
    if (too_long(result, out) || !take(*node.inputs[0].node(), out, target, result)) return std::nullopt;
    return result;
}

void set_activation(Defines& defines, const KernelEpilogue& epilogue) {
    // ReLU is a flag, since each define is a kernel to compile.
    if (!epilogue.activation || *epilogue.activation == Function::relu) return;
    const FunctionInfo& function = info(*epilogue.activation);
    if (epilogue.saved) defines.set("ACTIVATION_GRADIENT", function.gradient[0]);
    else defines.set("ACTIVATION", function.value);
}

void set_epilogue_stored(Defines& defines, const KernelEpilogue& epilogue) {
    if (epilogue.empty()) return;
    defines.set("EPILOGUE", std::int64_t{1});
    set_activation(defines, epilogue);
}

EpilogueArguments::EpilogueArguments(const KernelEpilogue& epilogue, const View& any)
    : empty_(epilogue.empty()),
      flags_((epilogue.bias ? kBias : 0) | (epilogue.scale ? kScale : 0) | (epilogue.shift ? kShift : 0) |
             (epilogue.residual ? kResidual : 0) |
             (epilogue.activation == Function::relu ? epilogue.saved ? kReluGradient : kRelu : 0)) {
    all_.reserve(kMax);
    all_.emplace_back(flags_);
    for (const double number : {epilogue.alpha, epilogue.beta, epilogue.parameters[0], epilogue.parameters[1]})
        all_.push_back(real_argument(any.dtype, number));
    for (const auto* view : {&epilogue.bias, &epilogue.residual, &epilogue.saved, &epilogue.scale, &epilogue.shift})
        all_.emplace_back((*view ? **view : any).argument());
}

std::pmr::vector<Argument> EpilogueArguments::append_to(std::initializer_list<Argument> first) const& {
    std::pmr::vector<Argument> all(scratch_.memory());
    all.reserve(first.size() + all_.size());
    all.assign(first);
    all.insert(all.end(), all_.begin(), all_.end());
    return all;
}

std::pmr::vector<Argument> EpilogueArguments::append_to_if_any(std::initializer_list<Argument> first) const& {
    return empty_ ? std::pmr::vector<Argument>(first, scratch_.memory()) : append_to(first);
}

}  // namespace declivity::ops
