#include <declivity/ops/roi_pool.hpp>

#include <algorithm>

#include <declivity/ops/operation.hpp>
#include <declivity/runtime/error.hpp>
#include <fmt/format.h>

#include "ops/engine/real_arguments.hpp"
#include "ops/support/local_block.hpp"
#include "ops/support/work.hpp"
#include "ops/support/work_split.hpp"

namespace declivity::ops {
namespace {

/// Layout of the kernel's struct; must match cl_kernels/vision/roi_pool.cl.
struct RoiPoolSizes {
    std::int64_t total, images;
    std::int32_t channels, h, w, p, q, unused = 0;
};

struct RoiPool {
    double scale;
};

EpilogueFused launch_roi_pool(const OperationViews& views, const RoiPool& pool) {
    const View &x = views.in(0), &boxes = views.in(1), &images = views.in(2), &out = views.out(0);
    if (out.numel() == 0) return EpilogueFused::no;
    const WorkScope work("roi_pool", work_each(1, x, boxes, images, out));
    const RoiPoolSizes sizes{.total = out.numel(),
                             .images = x.shape[0],
                             .channels = narrow(x.shape[1]),
                             .h = narrow(x.shape[2]),
                             .w = narrow(x.shape[3]),
                             .p = narrow(out.shape[2]),
                             .q = narrow(out.shape[3])};
    const Device device = x.device();
    const bool simd = is_simd(device);
    Defines defines = real_defines(x.dtype);
    const Kernel kernel(device, {"roi_pool.cl", "roi_pool", defines.set(form_macro(simd), 1)});
    const std::size_t group = simd ? 1 : item_group(kernel);
    launch(
        kernel, {.global = {round_up(to_size(sizes.total), group), 1, 1}, .local = {group, 1, 1}},
        {sizes, x.argument(), boxes.argument(), images.argument(), real_argument(x.dtype, pool.scale), out.argument()});
    return EpilogueFused::no;
}

}  // namespace

LazyArray roi_pool_indices(const View& x, const View& boxes, const View& images, Size2 output_size, double scale) {
    constexpr std::string_view function = "roi_pool";
    require_rank(function, "x", x, 4, "N, C, H, W");
    require_dense(function, "x", x);
    require_alike(function, "x", x, "boxes", boxes);
    require_dense(function, "boxes", boxes);
    require_shape(function, "boxes", boxes, {boxes.shape[0], 4});
    require_dense(function, "images", images);
    require_shape(function, "images", images, {boxes.shape[0]});
    if (x.dtype != DType::f32 && x.dtype != DType::f64)
        throw TypeError(fmt::format("{}: expected f32 or f64, got {}", function, name_of(x.dtype)));
    if (images.dtype != DType::i64)
        throw TypeError(fmt::format("{}: expected image indices of i64, got {}", function, name_of(images.dtype)));
    if (x.shape[2] * x.shape[3] > (std::int64_t{1} << 31) - 1)
        throw ShapeError(fmt::format("{}: expected images of fewer than 2^31 pixels, got {}", function, x.shape.str()));
    return operation(function, launch_roi_pool, RoiPool{scale},
                     {.reads = {x, boxes, images},
                      .outputs = {{DType::i32, {boxes.shape[0], x.shape[1], output_size[0], output_size[1]}}}})[0];
}

}  // namespace declivity::ops
