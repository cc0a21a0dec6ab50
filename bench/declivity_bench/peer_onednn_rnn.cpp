// oneDNN's recurrent layers, in the layouts oneDNN chooses.
#include "peers.hpp"

#ifdef DECLIVITY_BENCH_ONEDNN
#include <algorithm>
#include <cstddef>
#include <type_traits>
#include <unordered_map>

#include <oneapi/dnnl/dnnl.hpp>
#endif

namespace declivity::bench {

#ifdef DECLIVITY_BENCH_ONEDNN
namespace {

using dnnl::memory;
using Arguments = std::unordered_map<int, memory>;

dnnl::engine& engine() {
    static dnnl::engine cpu(dnnl::engine::kind::cpu, 0);
    return cpu;
}
dnnl::stream& stream() {
    static dnnl::stream in_order(engine());
    return in_order;
}

/// Fills with numbers that are neither large nor denormal.
memory filled(const memory::desc& description) {
    memory result(description, engine());
    auto* elements = static_cast<float*>(result.get_data_handle());
    for (std::size_t i = 0; i < description.get_size() / sizeof(float); ++i)
        elements[i] = 0.05F * (static_cast<float>(i * 2654435761U % 1000) / 500.0F - 1.0F);
    return result;
}

/// Creates the primitives from plain descriptors; `any` lets oneDNN choose the layout.
struct Sizes {
    memory::desc x, state, weights, bias, y;
};
Sizes sizes_of(const HostRnn& rnn) {
    const std::int64_t gates = rnn.lstm ? 4 : 3, biases = 4;  // the linear-before-reset GRU has two biases for one gate
    const auto any = [](const memory::dims& dims) {
        return memory::desc(dims, memory::data_type::f32, memory::format_tag::any);
    };
    return {any({rnn.steps, rnn.rows, rnn.units}), any({1, 1, rnn.rows, rnn.units}),
            any({1, 1, rnn.units, gates, rnn.units}), any({1, 1, biases, rnn.units}),
            any({rnn.steps, rnn.rows, rnn.units})};
}

template <class Forward, class Backward, class MakeForward, class MakeBackward>
Contender contender(const HostRnn& rnn, MakeForward make_forward, MakeBackward make_backward) {
    const auto kind = rnn.backward ? dnnl::prop_kind::forward_training : dnnl::prop_kind::forward_inference;
    const typename Forward::primitive_desc forward = make_forward(kind);
    Arguments arguments{{DNNL_ARG_SRC_LAYER, filled(forward.src_layer_desc())},
                        {DNNL_ARG_SRC_ITER, filled(forward.src_iter_desc())},
                        {DNNL_ARG_WEIGHTS_LAYER, filled(forward.weights_layer_desc())},
                        {DNNL_ARG_WEIGHTS_ITER, filled(forward.weights_iter_desc())},
                        {DNNL_ARG_BIAS, filled(forward.bias_desc())},
                        {DNNL_ARG_DST_LAYER, filled(forward.dst_layer_desc())},
                        {DNNL_ARG_DST_ITER, filled(forward.dst_iter_desc())}};
    if constexpr (std::is_same_v<Forward, dnnl::lstm_forward>) {
        arguments[DNNL_ARG_SRC_ITER_C] = filled(forward.src_iter_c_desc());
        arguments[DNNL_ARG_DST_ITER_C] = filled(forward.dst_iter_c_desc());
    }
    if (!rnn.backward) {
        return {"oneDNN",
                [primitive = Forward(forward), arguments](int) mutable { primitive.execute(stream(), arguments); },
                [] { stream().wait(); }};
    }
    const memory workspace(forward.workspace_desc(), engine());
    arguments[DNNL_ARG_WORKSPACE] = workspace;
    const typename Backward::primitive_desc backward = make_backward(forward);
    Arguments back = arguments;
    // The weights in the layout of the backward pass are another copy; its creation is not timed.
    back[DNNL_ARG_WEIGHTS_LAYER] = filled(backward.weights_layer_desc());
    back[DNNL_ARG_WEIGHTS_ITER] = filled(backward.weights_iter_desc());
    back[DNNL_ARG_DIFF_SRC_LAYER] = filled(backward.diff_src_layer_desc());
    back[DNNL_ARG_DIFF_SRC_ITER] = filled(backward.diff_src_iter_desc());
    memory weights_layer = filled(backward.diff_weights_layer_desc()),
           weights_iter = filled(backward.diff_weights_iter_desc()), bias = filled(backward.diff_bias_desc());
    back[DNNL_ARG_DIFF_WEIGHTS_LAYER] = weights_layer;
    back[DNNL_ARG_DIFF_WEIGHTS_ITER] = weights_iter;
    back[DNNL_ARG_DIFF_BIAS] = bias;
    back[DNNL_ARG_DIFF_DST_LAYER] = filled(backward.diff_dst_layer_desc());
    back[DNNL_ARG_DIFF_DST_ITER] = filled(backward.diff_dst_iter_desc());
    if constexpr (std::is_same_v<Forward, dnnl::lstm_forward>) {
        back[DNNL_ARG_DIFF_SRC_ITER_C] = filled(backward.diff_src_iter_c_desc());
        back[DNNL_ARG_DIFF_DST_ITER_C] = filled(backward.diff_dst_iter_c_desc());
    }
    return {"oneDNN",
            [first = Forward(forward), second = Backward(backward), arguments, back, weights_layer, weights_iter,
             bias](int) mutable {
                // oneDNN accumulates into the weight gradients.
                for (memory* item : {&weights_layer, &weights_iter, &bias}) {
                    auto* elements = static_cast<float*>(item->get_data_handle());
                    std::fill_n(elements, item->get_desc().get_size() / sizeof(float), 0.0F);
                }
                first.execute(stream(), arguments);
                second.execute(stream(), back);
            },
            [] { stream().wait(); }};
}

}  // namespace

std::optional<Contender> onednn_rnn(const HostRnn& rnn) {
    const Sizes s = sizes_of(rnn);
    const auto direction = dnnl::rnn_direction::unidirectional_left2right;
    const auto back = dnnl::prop_kind::backward;
    if (rnn.lstm)
        return contender<dnnl::lstm_forward, dnnl::lstm_backward>(
            rnn,
            [&](dnnl::prop_kind kind) -> dnnl::lstm_forward::primitive_desc {
#if DNNL_VERSION_MAJOR >= 3
                return {engine(),  kind,      direction, s.x, s.state, s.state,
                        s.weights, s.weights, s.bias,    s.y, s.state, s.state};
#else
                return {{kind, direction, s.x, s.state, s.state, s.weights, s.weights, s.bias, s.y, s.state, s.state},
                        engine()};
#endif
            },
            [&](const dnnl::lstm_forward::primitive_desc& forward) -> dnnl::lstm_backward::primitive_desc {
#if DNNL_VERSION_MAJOR >= 3
                return {engine(),  back,   direction, s.x,     s.state, s.state, s.weights, s.weights,
                        s.bias,    s.y,    s.state,   s.state, s.x,     s.state, s.state,   s.weights,
                        s.weights, s.bias, s.y,       s.state, s.state, forward};
#else
                return {
                    {back,    direction, s.x,     s.state, s.state,   s.weights, s.weights, s.bias, s.y,     s.state,
                     s.state, s.x,       s.state, s.state, s.weights, s.weights, s.bias,    s.y,    s.state, s.state},
                    engine(),
                    forward};
#endif
            });
    return contender<dnnl::lbr_gru_forward, dnnl::lbr_gru_backward>(
        rnn,
        [&](dnnl::prop_kind kind) -> dnnl::lbr_gru_forward::primitive_desc {
#if DNNL_VERSION_MAJOR >= 3
            return {engine(), kind, direction, s.x, s.state, s.weights, s.weights, s.bias, s.y, s.state};
#else
            return {{kind, direction, s.x, s.state, s.weights, s.weights, s.bias, s.y, s.state}, engine()};
#endif
        },
        [&](const dnnl::lbr_gru_forward::primitive_desc& forward) -> dnnl::lbr_gru_backward::primitive_desc {
#if DNNL_VERSION_MAJOR >= 3
            return {engine(), back, direction, s.x,       s.state,   s.weights, s.weights, s.bias,  s.y,
                    s.state,  s.x,  s.state,   s.weights, s.weights, s.bias,    s.y,       s.state, forward};
#else
            return {{back, direction, s.x, s.state, s.weights, s.weights, s.bias, s.y, s.state, s.x, s.state, s.weights,
                     s.weights, s.bias, s.y, s.state},
                    engine(),
                    forward};
#endif
        });
}

#else

std::optional<Contender> onednn_rnn(const HostRnn&) { return std::nullopt; }

#endif

}  // namespace declivity::bench
