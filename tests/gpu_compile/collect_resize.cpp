// Resizing of images and regions.
#include <declivity/functions/resize.hpp>
#include <declivity/functions/vision.hpp>
#include <declivity/runtime/device.hpp>

#include "tests/gpu_compile/collect.hpp"

using namespace declivity;
using namespace declivity::gpu_compile;

namespace {

void resizes() {
    for (const DType dtype : kFloats) {
        const std::vector<Tensor> image{leaf(dtype, {2, 3, 9, 11})};
        for (const InterpolateOptions& options :
             {InterpolateOptions{.size = {17, 5}}, InterpolateOptions{.size = {17, 5}, .mode = "bilinear"},
              InterpolateOptions{.size = {17, 5}, .mode = "bicubic"},
              InterpolateOptions{.size = {3, 4}, .mode = "bicubic", .antialias = true},
              InterpolateOptions{.size = {3, 4}, .mode = "area"}})
            backward(interpolate(image[0], options), image);
        backward(resize(image[0], {.sizes = {2, 3, 4, 5}, .mode = ResizeMode::cubic, .exclude_outside = true}), image);
        const std::vector<Tensor> sampled{image[0], leaf(dtype, {2, 5, 4, 2})};
        for (const char* mode : {"bilinear", "nearest", "bicubic"})
            backward(grid_sample(sampled[0], sampled[1], {.mode = mode, .padding_mode = "reflection"}), sampled);
        const Tensor boxes = of(dtype, {5, 4}), images = of(DType::i64, {5});
        backward(roi_pool(image[0], boxes, {3, 2}, 1, images), image);
        backward(roi_align(image[0], boxes, {3, 2}, {.sampling_ratio = 2}, images), image);
    }
}

const Part part{"resize", resizes};

}  // namespace
