#include "peers.hpp"

#ifdef DECLIVITY_BENCH_ONEDNN
#include <algorithm>
#include <chrono>
#include <memory>
#include <unordered_map>

#include <oneapi/dnnl/dnnl.hpp>
#endif

namespace declivity::bench {

#ifdef DECLIVITY_BENCH_ONEDNN
namespace {

using dnnl::memory;
using Tag = memory::format_tag;

dnnl::engine& engine() {
    static dnnl::engine cpu(dnnl::engine::kind::cpu, 0);
    return cpu;
}

dnnl::stream& stream() {
    static dnnl::stream in_order(engine());
    return in_order;
}

struct Step {
    dnnl::primitive primitive;
    std::unordered_map<int, memory> arguments;
};

std::function<void(int)> runner(std::vector<Step> steps) {
    return [steps = std::make_shared<std::vector<Step>>(std::move(steps))](int) {
        for (Step& step : *steps) step.primitive.execute(stream(), step.arguments);
    };
}

const auto kWait = [] { stream().wait(); };

/// A tensor argument of a primitive: the plain memory, and the memory in the layout that the primitive prefers.
struct Slot {
    int name;
    memory plain;
    memory::desc blocked;
    bool written;
};

/// "oneDNN-NCHW": from and to plain tensors, with reorders into the library's own layouts or without, whichever is
/// faster; "oneDNN-blocked": operands already in its own layouts.
std::vector<Contender> contenders(const dnnl::primitive& plain_primitive, const dnnl::primitive& own_primitive,
                                  const std::vector<Slot>& slots, std::unordered_map<int, memory> plain_arguments = {},
                                  std::unordered_map<int, memory> own_arguments = {}) {
    const auto reorder = [](const memory& from, const memory& to) {
        return Step{dnnl::reorder(from, to), {{DNNL_ARG_FROM, from}, {DNNL_ARG_TO, to}}};
    };
    std::vector<Step> before, after;
    for (const Slot& slot : slots) {
        const memory inner(slot.blocked, engine());
        plain_arguments[slot.name] = slot.plain;
        own_arguments[slot.name] = inner;
        Step fill = reorder(slot.plain, inner);  // the memory must have valid numbers even if no reorder is timed
        fill.primitive.execute(stream(), fill.arguments);
        if (slot.plain.get_desc() == slot.blocked) continue;
        if (slot.written) after.push_back(reorder(inner, slot.plain));
        else before.push_back(reorder(slot.plain, inner));
    }
    stream().wait();
    const Step direct{plain_primitive, plain_arguments}, blocked{own_primitive, own_arguments};
    std::vector<Step> reordered = before;
    reordered.push_back(before.empty() && after.empty() ? direct : blocked);
    reordered.insert(reordered.end(), after.begin(), after.end());
    const Contender plain_contender{"oneDNN-NCHW", runner({direct}), kWait},
        by_reorders{"oneDNN-NCHW", runner(reordered), kWait};
    const auto best_of_three = [](const Contender& contender) {
        double best = 1e9;
        for (int i = 0; i < 4; ++i) {
            const auto begin = std::chrono::steady_clock::now();
            contender.call(0);
            contender.wait();
            if (i > 0)
                best = std::min(best, std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
        }
        return best;
    };
    const bool reorders_win = best_of_three(by_reorders) < best_of_three(plain_contender);
    return {reorders_win ? by_reorders : plain_contender, {"oneDNN-blocked", runner({blocked}), kWait}};
}

/// A convolution for given layouts of x, weights and output: DNNL_ARG_* descriptors and the primitive.
struct Convolution {
    memory::desc x, weight, out;
    dnnl::primitive primitive;
};

Convolution convolution(const HostConv2d& conv, Tag x_tag, Tag weight_tag, Tag out_tag) {
    const memory::dims x_dims{conv.n, conv.c, conv.h, conv.w}, out_dims{conv.n, conv.o, conv.p, conv.q};
    const memory::dims weight_dims =
        conv.groups > 1 ? memory::dims{conv.groups, conv.o / conv.groups, conv.c / conv.groups, conv.r, conv.s}
                        : memory::dims{conv.o, conv.c, conv.r, conv.s};
    const auto type = memory::data_type::f32;
    const memory::desc x(x_dims, type, x_tag), weight(weight_dims, type, weight_tag), out(out_dims, type, out_tag);
    const memory::dims stride{conv.stride_h, conv.stride_w}, dilation{conv.dilation_h - 1, conv.dilation_w - 1};
    // The last window need not end at the end of the padding.
    const auto right = [](std::int64_t outputs, std::int64_t step, std::int64_t filter, std::int64_t spread,
                          std::int64_t size,
                          std::int64_t left) { return (outputs - 1) * step + (filter - 1) * spread + 1 - size - left; };
    const memory::dims before{conv.padding_h, conv.padding_w};
    const memory::dims after{right(conv.p, conv.stride_h, conv.r, conv.dilation_h, conv.h, conv.padding_h),
                             right(conv.q, conv.stride_w, conv.s, conv.dilation_w, conv.w, conv.padding_w)};
    const auto algorithm = dnnl::algorithm::convolution_direct;
#if DNNL_VERSION_MAJOR >= 3
    const dnnl::convolution_forward::primitive_desc forward(engine(), dnnl::prop_kind::forward_training, algorithm, x,
                                                            weight, out, stride, dilation, before, after);
#else
    const dnnl::convolution_forward::primitive_desc forward(
        {dnnl::prop_kind::forward_training, algorithm, x, weight, out, stride, dilation, before, after}, engine());
#endif
    switch (conv.direction) {
        case ConvDirection::forward:
            break;
        case ConvDirection::backward_input: {
#if DNNL_VERSION_MAJOR >= 3
            const dnnl::convolution_backward_data::primitive_desc backward(engine(), algorithm, x, weight, out, stride,
                                                                           dilation, before, after, forward);
#else
            const dnnl::convolution_backward_data::primitive_desc backward(
                {algorithm, x, weight, out, stride, dilation, before, after}, engine(), forward);
#endif
            return {backward.diff_src_desc(), backward.weights_desc(), backward.diff_dst_desc(),
                    dnnl::convolution_backward_data(backward)};
        }
        case ConvDirection::backward_weights: {
#if DNNL_VERSION_MAJOR >= 3
            const dnnl::convolution_backward_weights::primitive_desc backward(engine(), algorithm, x, weight, out,
                                                                              stride, dilation, before, after, forward);
#else
            const dnnl::convolution_backward_weights::primitive_desc backward(
                {algorithm, x, weight, out, stride, dilation, before, after}, engine(), forward);
#endif
            return {backward.src_desc(), backward.diff_weights_desc(), backward.diff_dst_desc(),
                    dnnl::convolution_backward_weights(backward)};
        }
    }
    return {forward.src_desc(), forward.weights_desc(), forward.dst_desc(), dnnl::convolution_forward(forward)};
}

}  // namespace

std::vector<Contender> onednn_conv2d(const HostConv2d& conv) {
    const Tag plain_weight = conv.groups > 1 ? Tag::goihw : Tag::oihw;
    const Convolution plain = convolution(conv, Tag::nchw, plain_weight, Tag::nchw),
                      blocked = convolution(conv, Tag::any, Tag::any, Tag::any);
    const bool forward = conv.direction == ConvDirection::forward,
               to_input = conv.direction == ConvDirection::backward_input;
    return contenders(
        plain.primitive, blocked.primitive,
        {{to_input ? DNNL_ARG_DIFF_SRC : DNNL_ARG_SRC, {plain.x, engine(), conv.x}, blocked.x, to_input},
         {forward || to_input ? DNNL_ARG_WEIGHTS : DNNL_ARG_DIFF_WEIGHTS,
          {plain.weight, engine(), conv.weight},
          blocked.weight,
          !forward && !to_input},
         {forward ? DNNL_ARG_DST : DNNL_ARG_DIFF_DST, {plain.out, engine(), conv.out}, blocked.out, forward}});
}

std::vector<Contender> onednn_pool2d(const HostPool2d& pool) {
    const auto primitives = [&](Tag tag) {
        const auto type = memory::data_type::f32;
        const memory::desc x({pool.n, pool.c, pool.h, pool.w}, type, tag),
            out({pool.n, pool.c, pool.p, pool.q}, type, tag);
        const memory::dims window{pool.window_h, pool.window_w}, stride{pool.stride_h, pool.stride_w},
            before{pool.padding_h, pool.padding_w};
        const memory::dims after{(pool.p - 1) * pool.stride_h + pool.window_h - pool.h - pool.padding_h,
                                 (pool.q - 1) * pool.stride_w + pool.window_w - pool.w - pool.padding_w};
        const auto algorithm =
            pool.largest ? dnnl::algorithm::pooling_max : dnnl::algorithm::pooling_avg_include_padding;
#if DNNL_VERSION_MAJOR >= 3
        const memory::dims dense{0, 0};
        const dnnl::pooling_forward::primitive_desc forward(engine(), dnnl::prop_kind::forward_training, algorithm, x,
                                                            out, stride, window, dense, before, after);
        const dnnl::pooling_backward::primitive_desc backward(engine(), algorithm, x, out, stride, window, dense,
                                                              before, after, forward);
#else
        const dnnl::pooling_forward::primitive_desc forward(
            {dnnl::prop_kind::forward_training, algorithm, x, out, stride, window, before, after}, engine());
        const dnnl::pooling_backward::primitive_desc backward({algorithm, x, out, stride, window, before, after},
                                                              engine(), forward);
#endif
        struct Pair {
            dnnl::primitive forward, backward;
            memory::desc x, out, workspace;
        };
        return Pair{dnnl::pooling_forward(forward), dnnl::pooling_backward(backward), x, out, forward.workspace_desc()};
    };
    const auto plain = primitives(Tag::nchw), blocked = primitives(Tag::nChw16c);
    // The argmax workspace stays in oneDNN's own layout, from a forward pass.
    const auto more = [&](const auto& item) {
        std::unordered_map<int, memory> arguments;
        if (!pool.largest) return arguments;
        const memory x(item.x, engine()), out(item.out, engine()), workspace(item.workspace, engine());
        std::fill_n(static_cast<float*>(x.get_data_handle()), x.get_desc().get_size() / 4, 0.5F);
        item.forward.execute(stream(), {{DNNL_ARG_SRC, x}, {DNNL_ARG_DST, out}, {DNNL_ARG_WORKSPACE, workspace}});
        stream().wait();
        arguments[DNNL_ARG_WORKSPACE] = workspace;
        return arguments;
    };
    return contenders(
        pool.forward ? plain.forward : plain.backward, pool.forward ? blocked.forward : blocked.backward,
        {{pool.forward ? DNNL_ARG_SRC : DNNL_ARG_DIFF_SRC, {plain.x, engine(), pool.x}, blocked.x, !pool.forward},
         {pool.forward ? DNNL_ARG_DST : DNNL_ARG_DIFF_DST, {plain.out, engine(), pool.out}, blocked.out, pool.forward}},
        more(plain), more(blocked));
}

std::vector<Contender> onednn_batch_norm(const HostBatchNorm& norm) {
    const auto type = memory::data_type::f32;
    const memory::dims dims{norm.n, norm.c, norm.h, norm.w};
    const memory::desc plain(dims, type, Tag::nchw), blocked(dims, type, Tag::nChw16c),
        channels({norm.c}, type, Tag::a);
#if DNNL_VERSION_MAJOR >= 3
    const auto flags = dnnl::normalization_flags::use_scale | dnnl::normalization_flags::use_shift;
#else
    // oneDNN 2 miscounts the arguments of a backward pass with separate scale and shift, and fails.
    const auto flags = dnnl::normalization_flags::use_scale_shift;
#endif
    const auto primitive = [&](const memory::desc& layout) -> dnnl::primitive {
#if DNNL_VERSION_MAJOR >= 3
        const dnnl::batch_normalization_forward::primitive_desc forward(engine(), dnnl::prop_kind::forward_training,
                                                                        layout, layout, 1e-5F, flags);
        if (norm.forward) return dnnl::batch_normalization_forward(forward);
        return dnnl::batch_normalization_backward(
            {engine(), dnnl::prop_kind::backward, layout, layout, layout, 1e-5F, flags, forward});
#else
        const dnnl::batch_normalization_forward::primitive_desc forward(
            {dnnl::prop_kind::forward_training, layout, 1e-5F, flags}, engine());
        if (norm.forward) return dnnl::batch_normalization_forward(forward);
        return dnnl::batch_normalization_backward(
            {{dnnl::prop_kind::backward, layout, layout, 1e-5F, flags}, engine(), forward});
#endif
    };
    const auto filled = [&](float value, std::int64_t rows = 1) {
        memory result(rows == 1 ? channels : memory::desc({rows, norm.c}, type, Tag::ab), engine());
        std::fill_n(static_cast<float*>(result.get_data_handle()), rows * norm.c, value);
        return result;
    };
    std::unordered_map<int, memory> more{{DNNL_ARG_MEAN, filled(0.1F)}, {DNNL_ARG_VARIANCE, filled(0.3F)}};
#if DNNL_VERSION_MAJOR >= 3
    more[DNNL_ARG_SCALE] = filled(1);
    if (norm.forward) more[DNNL_ARG_SHIFT] = filled(0);
    else more[DNNL_ARG_DIFF_SCALE] = filled(0), more[DNNL_ARG_DIFF_SHIFT] = filled(0);
#else
    more[DNNL_ARG_SCALE_SHIFT] = filled(1, 2);
    if (!norm.forward) more[DNNL_ARG_DIFF_SCALE_SHIFT] = filled(0, 2);
#endif
    std::vector<Slot> slots{
        {DNNL_ARG_SRC, {plain, engine(), norm.x}, blocked, false},
        {norm.forward ? DNNL_ARG_DST : DNNL_ARG_DIFF_DST, {plain, engine(), norm.out}, blocked, norm.forward}};
    if (!norm.forward) slots.push_back({DNNL_ARG_DIFF_SRC, {plain, engine(), norm.x_gradient}, blocked, true});
    return contenders(primitive(plain), primitive(blocked), slots, more, more);
}

std::vector<Contender> onednn_softmax(const HostSoftmax& softmax) {
    const memory::desc rows({softmax.rows, softmax.columns}, memory::data_type::f32, Tag::ab);
    const auto primitive = [&]() -> dnnl::primitive {
#if DNNL_VERSION_MAJOR >= 3
        const auto algorithm = softmax.logarithm ? dnnl::algorithm::softmax_log : dnnl::algorithm::softmax_accurate;
        const dnnl::softmax_forward::primitive_desc forward(engine(), dnnl::prop_kind::forward_training, algorithm,
                                                            rows, rows, 1);
        if (softmax.forward) return dnnl::softmax_forward(forward);
        return dnnl::softmax_backward({engine(), algorithm, rows, rows, rows, 1, forward});
#else
        if (softmax.logarithm) {
            const dnnl::logsoftmax_forward::primitive_desc forward({dnnl::prop_kind::forward_training, rows, 1},
                                                                   engine());
            if (softmax.forward) return dnnl::logsoftmax_forward(forward);
            return dnnl::logsoftmax_backward({{rows, rows, 1}, engine(), forward});
        }
        const dnnl::softmax_forward::primitive_desc forward({dnnl::prop_kind::forward_training, rows, 1}, engine());
        if (softmax.forward) return dnnl::softmax_forward(forward);
        return dnnl::softmax_backward({{rows, rows, 1}, engine(), forward});
#endif
    };
    const memory x(rows, engine(), softmax.x), y(rows, engine(), softmax.y), out(rows, engine(), softmax.out);
    std::unordered_map<int, memory> arguments;
    if (softmax.forward) arguments = {{DNNL_ARG_SRC, x}, {DNNL_ARG_DST, y}};
    else arguments = {{DNNL_ARG_DST, y}, {DNNL_ARG_DIFF_DST, out}, {DNNL_ARG_DIFF_SRC, x}};
    // Rows have a single layout.
    return {{"oneDNN-NCHW", runner({Step{primitive(), arguments}}), kWait}};
}

#else

std::vector<Contender> onednn_conv2d(const HostConv2d&) { return {}; }
std::vector<Contender> onednn_pool2d(const HostPool2d&) { return {}; }
std::vector<Contender> onednn_batch_norm(const HostBatchNorm&) { return {}; }
std::vector<Contender> onednn_softmax(const HostSoftmax&) { return {}; }

#endif

}  // namespace declivity::bench
