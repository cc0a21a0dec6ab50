#include "peers.hpp"

#ifdef DECLIVITY_BENCH_ONEDNN
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

/// The primitive for given layouts of x, weights and output, as DNNL_ARG_* descriptions and itself.
struct Convolution {
    memory::desc x, weight, out;
    dnnl::primitive primitive;
};

Convolution convolution(const HostConv2d& conv, Tag x_tag, Tag weight_tag, Tag out_tag) {
    const memory::dims x_dims{conv.n, conv.c, conv.h, conv.w}, out_dims{conv.n, conv.o, conv.p, conv.q};
    const memory::dims weight_dims = conv.groups > 1 ? memory::dims{conv.groups, conv.o / conv.groups, conv.c / conv.groups, conv.r, conv.s}
                                                     : memory::dims{conv.o, conv.c, conv.r, conv.s};
    const auto type = memory::data_type::f32;
    const memory::desc x(x_dims, type, x_tag), weight(weight_dims, type, weight_tag), out(out_dims, type, out_tag);
    const memory::dims stride{conv.stride_h, conv.stride_w}, dilation{conv.dilation_h - 1, conv.dilation_w - 1};
    // The last window need not end where the padding does.
    const auto right = [](std::int64_t outputs, std::int64_t step, std::int64_t filter, std::int64_t spread, std::int64_t size, std::int64_t left) {
        return (outputs - 1) * step + (filter - 1) * spread + 1 - size - left;
    };
    const memory::dims before{conv.padding_h, conv.padding_w};
    const memory::dims after{right(conv.p, conv.stride_h, conv.r, conv.dilation_h, conv.h, conv.padding_h),
                             right(conv.q, conv.stride_w, conv.s, conv.dilation_w, conv.w, conv.padding_w)};
    const auto algorithm = dnnl::algorithm::convolution_direct;
#if DNNL_VERSION_MAJOR >= 3
    const dnnl::convolution_forward::primitive_desc forward(engine(), dnnl::prop_kind::forward_training, algorithm, x, weight, out, stride, dilation, before, after);
#else
    const dnnl::convolution_forward::primitive_desc forward(
        {dnnl::prop_kind::forward_training, algorithm, x, weight, out, stride, dilation, before, after}, engine());
#endif
    switch (conv.direction) {
        case ConvDirection::forward: break;
        case ConvDirection::backward_input: {
#if DNNL_VERSION_MAJOR >= 3
            const dnnl::convolution_backward_data::primitive_desc backward(engine(), algorithm, x, weight, out, stride, dilation, before, after, forward);
#else
            const dnnl::convolution_backward_data::primitive_desc backward({algorithm, x, weight, out, stride, dilation, before, after}, engine(), forward);
#endif
            return {backward.diff_src_desc(), backward.weights_desc(), backward.diff_dst_desc(), dnnl::convolution_backward_data(backward)};
        }
        case ConvDirection::backward_weights: {
#if DNNL_VERSION_MAJOR >= 3
            const dnnl::convolution_backward_weights::primitive_desc backward(engine(), algorithm, x, weight, out, stride, dilation, before, after, forward);
#else
            const dnnl::convolution_backward_weights::primitive_desc backward({algorithm, x, weight, out, stride, dilation, before, after}, engine(), forward);
#endif
            return {backward.src_desc(), backward.diff_weights_desc(), backward.diff_dst_desc(), dnnl::convolution_backward_weights(backward)};
        }
    }
    return {forward.src_desc(), forward.weights_desc(), forward.dst_desc(), dnnl::convolution_forward(forward)};
}

}  // namespace

std::vector<Contender> onednn_conv2d(const HostConv2d& conv) {
    const Tag plain_weight = conv.groups > 1 ? Tag::goihw : Tag::oihw;
    const Convolution plain = convolution(conv, Tag::nchw, plain_weight, Tag::nchw), own = convolution(conv, Tag::any, Tag::any, Tag::any);
    const memory x(plain.x, engine(), conv.x), weight(plain.weight, engine(), conv.weight), out(plain.out, engine(), conv.out);
    const memory own_x(own.x, engine()), own_weight(own.weight, engine()), own_out(own.out, engine());

    const bool forward = conv.direction == ConvDirection::forward, to_input = conv.direction == ConvDirection::backward_input;
    const int x_name = to_input ? DNNL_ARG_DIFF_SRC : DNNL_ARG_SRC, out_name = forward ? DNNL_ARG_DST : DNNL_ARG_DIFF_DST;
    const int weight_name = forward || to_input ? DNNL_ARG_WEIGHTS : DNNL_ARG_DIFF_WEIGHTS;
    const auto reorder = [](const memory& from, const memory& to) {
        return Step{dnnl::reorder(from, to), {{DNNL_ARG_FROM, from}, {DNNL_ARG_TO, to}}};
    };
    const Step direct{plain.primitive, {{x_name, x}, {weight_name, weight}, {out_name, out}}};
    const Step blocked{own.primitive, {{x_name, own_x}, {weight_name, own_weight}, {out_name, own_out}}};
    std::vector<Step> into, from;
    const auto place = [&](const memory& user, const memory& inner, bool written) {
        if (user.get_desc() == inner.get_desc()) return;
        if (written) from.push_back(reorder(inner, user));
        else into.push_back(reorder(user, inner));
    };
    place(x, own_x, to_input);
    place(weight, own_weight, !forward && !to_input);
    place(out, own_out, forward);
    // Where a layout is plain, the inner memory must still hold numbers.
    for (const auto& [user, inner] : {std::pair{x, own_x}, {weight, own_weight}, {out, own_out}}) reorder(user, inner).primitive.execute(stream(), {{DNNL_ARG_FROM, user}, {DNNL_ARG_TO, inner}});
    stream().wait();
    std::vector<Step> reordered = into;
    reordered.push_back(into.empty() && from.empty() ? direct : blocked);
    reordered.insert(reordered.end(), from.begin(), from.end());

    Contender by_plain{"oneDNN-NCHW", runner({direct}), kWait}, by_reorders{"oneDNN-NCHW", runner(reordered), kWait};
    const auto best_of_three = [](const Contender& one) {
        double best = 1e9;
        for (int i = 0; i < 4; ++i) {
            const auto begin = std::chrono::steady_clock::now();
            one.call(0);
            one.wait();
            if (i > 0) best = std::min(best, std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
        }
        return best;
    };
    const bool reorders_win = best_of_three(by_reorders) < best_of_three(by_plain);
    return {reorders_win ? by_reorders : by_plain, {"oneDNN-blocked", runner({blocked}), kWait}};
}

#else

std::vector<Contender> onednn_conv2d(const HostConv2d&) { return {}; }

#endif

}  // namespace declivity::bench
