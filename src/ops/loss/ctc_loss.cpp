#include <declivity/ops/ctc_loss.hpp>

#include <algorithm>
#include <string_view>
#include <vector>

#include <declivity/ops/copy.hpp>
#include <declivity/ops/operation.hpp>
#include <declivity/runtime/error.hpp>
#include <fmt/format.h>

#include "ops/support/work.hpp"
#include "ops/support/work_split.hpp"

namespace declivity::ops {
namespace {

/// Layout of the kernels' struct; must match cl_kernels/loss/ctc_loss.cl.
struct Sizes {
    std::int64_t steps, sequences, classes, labels, blank;
};

Sizes sizes_of(const View& x, const View& targets, std::int64_t blank) {
    return {x.shape[0], x.shape[1], x.shape[2], targets.shape[1], blank};
}

Kernel kernel_of(const char* name, const View& like) {
    Defines defines = real_defines(like.dtype);
    defines.set(form_macro(is_simd(like.device())), 1);
    return {like.device(), {"ctc_loss.cl", name, defines}};
}

/// One sequence for each work-item, or for each work-group with one work-item for each state, as far as they suffice.
Range along_sequences(const Kernel& kernel, const View& like, const Sizes& sizes) {
    if (is_simd(like.device())) return {.global = {to_size(sizes.sequences), 1, 1}, .local = {1, 1, 1}};
    const std::int64_t max_items =
        std::min<std::int64_t>(kSimtGroup, static_cast<std::int64_t>(kernel.max_work_group()));
    const auto group = to_size(power_of_two_up_to(std::min(max_items, 2 * (2 * sizes.labels + 1) - 1)));
    return {.global = {group, to_size(sizes.sequences), 1}, .local = {group, 1, 1}};
}

Range of_steps(const Kernel& kernel, const View& like, const Sizes& sizes) {
    const std::size_t steps = to_size(sizes.steps), sequences = to_size(sizes.sequences);
    if (is_simd(like.device())) return {.global = {steps, sequences, 1}, .local = {1, 1, 1}};
    const std::int64_t max_items = static_cast<std::int64_t>(item_group(kernel));
    const std::int64_t group_columns = power_of_two_up_to(std::min(max_items, sizes.labels + 1)),
                       group_rows = power_of_two_up_to(max_items / group_columns);
    return {.global = {round_up(to_size(sizes.labels + 1), to_size(group_columns)),
                       round_up(steps, to_size(group_rows)), sequences},
            .local = {to_size(group_columns), to_size(group_rows), 1}};
}

void check(std::string_view function, const CtcOperands& operands) {
    const View& x = operands.log_probs;
    require_floating(function, "log_probs", x);
    require_dense(function, "log_probs", x);
    require_rank(function, "log_probs", x, 3, "T, N, C");
    require_rank(function, "targets", operands.targets, 2, "N, S");
    require_shape(function, "targets", operands.targets, {x.shape[1], operands.targets.shape[1]});
    for (const auto& [name, view] : {std::pair<const char*, const View&>{"input_lengths", operands.input_lengths},
                                     {"target_lengths", operands.target_lengths}})
        require_shape(function, name, view, {x.shape[1]});
    for (const auto& [name, view] : {std::pair<const char*, const View&>{"targets", operands.targets},
                                     {"input_lengths", operands.input_lengths},
                                     {"target_lengths", operands.target_lengths}}) {
        require_dense(function, name, view);
        require_alike(function, "whole numbers", DType::i64, x.device(), name, view.dtype, view.device());
    }
    if (operands.blank < 0 || operands.blank >= x.shape[2])
        throw ValueError(
            fmt::format("{}: expected a blank class below {}, got {}", function, x.shape[2], operands.blank));
}

struct Attributes {
    std::int64_t blank;
};

/// The arguments that all kernels begin with.
std::vector<Argument> arguments_of(const Sizes& sizes, const OperationViews& views, const View& alphas) {
    return {sizes,
            views.in(0).argument(),
            views.in(1).argument(),
            views.in(2).argument(),
            views.in(3).argument(),
            alphas.argument()};
}

void run(const Kernel& kernel, const Range& range, std::vector<Argument> arguments, std::vector<Argument> further) {
    arguments.insert(arguments.end(), further.begin(), further.end());
    launch(kernel, range, std::span<const Argument>(arguments));
}

EpilogueFused launch_forward(const OperationViews& views, const Attributes& attributes) {
    const View &x = views.in(0), &alphas = views.out(1);
    const Sizes sizes = sizes_of(x, views.in(1), attributes.blank);
    if (sizes.sequences == 0) return EpilogueFused::no;
    const WorkScope work("ctc_loss", work_each(8, alphas));
    const Kernel kernel = kernel_of("ctc_alpha", x);
    run(kernel, along_sequences(kernel, x, sizes), arguments_of(sizes, views, alphas), {views.out(0).argument()});
    return EpilogueFused::no;
}

EpilogueFused launch_backward(const OperationViews& views, const Attributes& attributes) {
    const View &x = views.in(0), &alphas = views.in(4), &losses = views.in(5), &g = views.in(6), &dx = views.out(0);
    const Sizes sizes = sizes_of(x, views.in(1), attributes.blank);
    fill(dx, 0);
    if (dx.numel() == 0) return EpilogueFused::no;
    const WorkScope work("ctc_loss_backward", work_each(10, alphas, dx));
    const View after = View::make(x.device(), x.dtype, {sizes.sequences, 2, 2 * sizes.labels + 1}),
               posts = View::make(x.device(), x.dtype, alphas.shape),
               chains = View::make(x.device(), DType::i32, {sizes.sequences, sizes.labels});
    const Kernel beta = kernel_of("ctc_beta", x), gradient = kernel_of("ctc_gradient", x);
    run(beta, along_sequences(beta, x, sizes), arguments_of(sizes, views, alphas),
        {losses.argument(), g.argument(), after.argument(), posts.argument(), chains.argument()});
    run(gradient, of_steps(gradient, x, sizes), arguments_of(sizes, views, alphas),
        {posts.argument(), chains.argument(), dx.argument()});
    return EpilogueFused::no;
}

}  // namespace

CtcResults ctc_loss(const CtcOperands& operands) {
    check("ctc_loss", operands);
    const View& x = operands.log_probs;
    const std::int64_t steps = x.shape[0], sequences = x.shape[1], labels = operands.targets.shape[1];
    const OperationResults results =
        operation("ctc_loss", launch_forward, Attributes{operands.blank},
                  {.reads = {x, operands.targets, operands.input_lengths, operands.target_lengths},
                   .outputs = {{x.dtype, {sequences}}, {x.dtype, {sequences, steps, 2 * labels + 1}}}});
    return {results[0], results[1]};
}

LazyArray ctc_loss_backward(const CtcOperands& operands, const View& alphas, const View& losses, const View& gradient) {
    constexpr std::string_view function = "ctc_loss_backward";
    check(function, operands);
    const View& x = operands.log_probs;
    require_shape(function, "alphas", alphas, {x.shape[1], x.shape[0], 2 * operands.targets.shape[1] + 1});
    require_shape(function, "the losses", losses, {x.shape[1]});
    require_shape(function, "the gradient", gradient, {x.shape[1]});
    return operation(
        function, launch_backward, Attributes{operands.blank},
        {.reads = {x, operands.targets, operands.input_lengths, operands.target_lengths, alphas, losses, gradient},
         .outputs = {{x.dtype, x.shape}}})[0];
}

}  // namespace declivity::ops
