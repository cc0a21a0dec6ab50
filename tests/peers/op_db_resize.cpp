// Adapters for PyTorch's resizing and grid sampling.
#include <declivity/functions/resize.hpp>

#include "op_db.hpp"

namespace declivity::peers {
namespace {

using A = Arguments;
using Tensors = std::vector<Tensor>;

Tensors interpolated(A& a, const std::string& mode, bool align_corners) {
    InterpolateOptions options{.mode = mode, .align_corners = align_corners};
    const Tensor x = a.tensor(0);
    if (a.is_given(1, "size")) options.size = a.dims(1, "size");
    if (a.is_given(2, "scale_factor")) options.scale_factor = a.numbers(2, "scale_factor");
    return {interpolate(x, options)};
}

Tensors sampled(A& a, const char* mode, const char* padding, bool align_corners) {
    return {grid_sample(a.tensor(0), a.tensor(1, "grid"),
                        {.mode = mode, .padding_mode = padding, .align_corners = align_corners})};
}

void add_resize(Table& all) {
    for (const char* mode : {"nearest", "nearest-exact", "linear", "bilinear", "bicubic", "trilinear", "area"})
        all[std::string("nn.functional.interpolate.") + mode] = [](A& a) {
            InterpolateOptions options;
            const Tensor x = a.tensor(0);
            if (a.is_given(1, "size")) options.size = a.dims(1, "size");
            if (a.is_given(2, "scale_factor")) options.scale_factor = a.numbers(2, "scale_factor");
            options.mode = a.word(3, "mode", "nearest");
            options.align_corners = a.flag(4, "align_corners", false);
            options.recompute_scale_factor = a.flag(5, "recompute_scale_factor", false);
            options.antialias = a.flag(6, "antialias", false);
            return Tensors{interpolate(x, options)};
        };
    all["nn.functional.upsample_nearest"] = [](A& a) { return interpolated(a, "nearest", false); };
    all["nn.functional.upsample_bilinear"] = [](A& a) { return interpolated(a, "bilinear", true); };
    all["_upsample_bilinear2d_aa"] = [](A& a) {
        InterpolateOptions options{.mode = "bilinear", .antialias = true};
        const Tensor x = a.tensor(0);
        if (a.is_given(1, "output_size")) options.size = a.dims(1, "output_size");
        options.align_corners = a.flag(2, "align_corners", false);
        if (a.is_given(3, "scale_factors")) options.scale_factor = a.numbers(3, "scale_factors");
        if (a.is_given(99, "scales_h") || a.is_given(99, "scales_w")) throw UnsupportedSample("scales beside sizes");
        return Tensors{interpolate(x, options)};
    };
    all["nn.functional.grid_sample"] = [](A& a) {
        return Tensors{grid_sample(a.tensor(0), a.tensor(1, "grid"),
                                   {.mode = a.word(2, "mode", "bilinear"),
                                    .padding_mode = a.word(3, "padding_mode", "zeros"),
                                    .align_corners = a.flag(4, "align_corners", false)})};
    };
    for (const char* name : {"grid_sampler_2d", "grid_sampler_3d"})
        all[name] = [](A& a) {
            constexpr const char* kModes[] = {"bilinear", "nearest", "bicubic"};
            constexpr const char* kPaddings[] = {"zeros", "border", "reflection"};
            return sampled(a, kModes[a.integer(2, "interpolation_mode")], kPaddings[a.integer(3, "padding_mode")],
                           a.flag(4, "align_corners", false));
        };
    all["nn.functional.affine_grid"] = [](A& a) {
        const Dims size = a.dims(1, "size");
        return Tensors{affine_grid(a.tensor(0), size, a.flag(2, "align_corners", false))};
    };
}

const Adapters own{add_resize};

}  // namespace
}  // namespace declivity::peers
