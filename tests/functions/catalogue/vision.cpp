// Functions of detectors as cases of the catalogue.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include <declivity/functions/functions.hpp>
#include <declivity/functions/vision.hpp>
#include <tests/functions/catalogue/case.hpp>
#include <tests/functions/catalogue/parts.hpp>
#include <tests/functions/catalogue/references.hpp>
#include <tests/functions/catalogue/shared.hpp>

namespace declivity::test::catalogue {
namespace {

/// x (2, 2, 6, 5), boxes (3, 4) from corners and sizes that the call adds, images (3).
Case region_case(const std::string& name, Size2 bins,
                 std::function<Tensor(const Tensor&, const Tensor&, const Tensor&)> call,
                 std::function<double(const double*, const double*, std::int64_t, std::int64_t)> bin,
                 bool reads_elements) {
    const Shape x{2, 2, 6, 5};
    return {.name = name,
            .inputs = {{x}, {{3, 4}, -1, 7, Kind::constant}, {{3}, 0, 2, Kind::label}},
            .call =
                [call = std::move(call)](const Tensors& in) {
                    if (!in[1].defined()) return call(in[0], in[1], in[2]);
                    // The second corner after the first.
                    const Tensor boxes = concat({slice(in[1], -1, 0, 2) * 0.5, slice(in[1], -1, 2, 4)}, -1);
                    return call(in[0], boxes, in[2]);
                },
            .reference =
                [=, bin = std::move(bin)](const Columns& in, DType) {
                    return table({3, 2, bins[0], bins[1]}, [&](const Dims& at) {
                        const auto k = static_cast<std::size_t>(at[0]);
                        const double box[] = {in[1][4 * k] * 0.5, in[1][4 * k + 1] * 0.5, in[1][4 * k + 2],
                                              in[1][4 * k + 3]};
                        const auto image = static_cast<std::int64_t>(in[2][k]);
                        return bin(&in[0][static_cast<std::size_t>((image * 2 + at[1]) * 30)], box, at[2], at[3]);
                    });
                },
            .terms = 16,
            .reads_elements = reads_elements,
            .sampled = true};
}

Case roi_align_case(Size2 bins, const RoiAlignOptions& options) {
    return region_case(
        "roi_align", bins,
        [=](const Tensor& x, const Tensor& boxes, const Tensor& images) {
            return roi_align(x, boxes, bins, options, images);
        },
        [=](const double* plane, const double* box, std::int64_t p, std::int64_t q) {
            return roi_align_bin(plane, 6, 5, box, p, q, bins, options);
        },
        options.sampling_ratio <= 0);
}

Case roi_pool_case(Size2 bins, double scale) {
    return region_case(
        "roi_pool", bins,
        [=](const Tensor& x, const Tensor& boxes, const Tensor& images) {
            return roi_pool(x, boxes, bins, scale, images);
        },
        [=](const double* plane, const double* box, std::int64_t p, std::int64_t q) {
            return roi_pool_bin(plane, 6, 5, box, p, q, bins, scale);
        },
        false);
}

/// @param offset_groups,masked how x (2, 4, H, W) is read; weight (4, 4 / groups, R, S)
Case deform_case(const Shape& x, Size2 window, std::int64_t groups, std::int64_t offset_groups, bool masked,
                 const DeformConv2dOptions& options) {
    const std::int64_t r = window[0], s = window[1], n = x[0], channels = x[1], channels_per_group = channels / groups;
    const auto outs = [&](std::size_t i) {
        const std::int64_t reach = options.dilation[i] * (window[i] - 1) + 1;
        return (x[2 + static_cast<int>(i)] + 2 * options.padding[i] - reach) / options.stride[i] + 1;
    };
    const std::int64_t p = outs(0), q = outs(1);
    const Shape offset{n, 2 * offset_groups * r * s, p, q}, weight{4, channels_per_group, r, s},
        mask{n, offset_groups * r * s, p, q};
    std::vector<Input> inputs{{x}, {offset}, {weight}, {{4}}};
    if (masked) inputs.push_back({mask, 0, 1});
    const auto reference = [=](const Columns& in, DType) {
        const auto element_at = [](const Values& column, const Shape& shape, std::initializer_list<std::int64_t> at) {
            return column[flat_index(shape, at)];
        };
        return table({n, 4, p, q}, [&](const Dims& at) {
            double sum = in[3][static_cast<std::size_t>(at[1])];
            for (std::int64_t c = 0; c < channels_per_group; ++c)
                for (std::int64_t i = 0; i < r; ++i)
                    for (std::int64_t j = 0; j < s; ++j) {
                        const std::int64_t channel = at[1] / (4 / groups) * channels_per_group + c;
                        const std::int64_t tap = channel / (channels / offset_groups) * r * s + i * s + j;
                        const double y = static_cast<double>(at[2] * options.stride[0] - options.padding[0] +
                                                             i * options.dilation[0]) +
                                         element_at(in[1], offset, {at[0], 2 * tap, at[2], at[3]});
                        const double z = static_cast<double>(at[3] * options.stride[1] - options.padding[1] +
                                                             j * options.dilation[1]) +
                                         element_at(in[1], offset, {at[0], 2 * tap + 1, at[2], at[3]});
                        double sample = 0;
                        for (std::int64_t h = 0; h < x[2]; ++h)
                            for (std::int64_t w = 0; w < x[3]; ++w)
                                sample += triangle(static_cast<double>(h) - y) * triangle(static_cast<double>(w) - z) *
                                          element_at(in[0], x, {at[0], channel, h, w});
                        if (masked) sample *= element_at(in[4], mask, {at[0], tap, at[2], at[3]});
                        sum += sample * element_at(in[2], weight, {at[1], c, i, j});
                    }
            return sum;
        });
    };
    return {.name = "deform_conv2d",
            .inputs = std::move(inputs),
            .call =
                [options](const Tensors& in) {
                    return deform_conv2d(in[0], in[1], in[2], in[3], options, in.size() > 4 ? in[4] : Tensor());
                },
            .reference = reference,
            .terms = static_cast<double>(8 * channels_per_group * r * s),
            .gradient_tolerance = 1e-5,
            .first_optional = 3,
            .sampled = true};
}

}  // namespace

double roi_align_bin(const double* plane, std::int64_t h, std::int64_t w, const double* box, std::int64_t p,
                     std::int64_t q, Size2 bins, const RoiAlignOptions& options) {
    const double offset = options.aligned ? 0.5 : 0;
    const auto corner = [&](int i) { return box[i] * options.spatial_scale - offset; };
    double height = corner(3) - corner(1), width = corner(2) - corner(0);
    if (!options.aligned) height = std::max(height, 1.0), width = std::max(width, 1.0);
    const double bin_h = height / static_cast<double>(bins[0]), bin_w = width / static_cast<double>(bins[1]);
    const auto count = [&](double bin) {
        return options.sampling_ratio > 0 ? options.sampling_ratio : static_cast<std::int64_t>(std::ceil(bin));
    };
    const std::int64_t rows = count(bin_h), columns = count(bin_w);
    double total = 0, largest = -1e300;
    for (std::int64_t i = 0; i < rows; ++i)
        for (std::int64_t j = 0; j < columns; ++j) {
            double y = corner(1) + static_cast<double>(p) * bin_h +
                       (static_cast<double>(i) + 0.5) * bin_h / static_cast<double>(rows);
            double x = corner(0) + static_cast<double>(q) * bin_w +
                       (static_cast<double>(j) + 0.5) * bin_w / static_cast<double>(columns);
            const bool outside = y < -1 || y > static_cast<double>(h) || x < -1 || x > static_cast<double>(w);
            y = std::clamp(y, 0.0, static_cast<double>(h - 1)), x = std::clamp(x, 0.0, static_cast<double>(w - 1));
            double sample = 0;
            for (const auto& [at_y, weight_y] : filter_weights(h, y, triangle))
                for (const auto& [at_x, weight_x] : filter_weights(w, x, triangle)) {
                    const double value = outside ? 0 : weight_y * weight_x * plane[at_y * w + at_x];
                    sample += value;
                    largest = std::max(largest, value);
                }
            // Neighbours of weight 0 count as 0.
            if (outside || y == std::floor(y) || x == std::floor(x)) largest = std::max(largest, 0.0);
            total += sample;
        }
    if (options.mode == "max") return rows * columns == 0 ? 0 : largest;
    return total / static_cast<double>(std::max<std::int64_t>(1, rows * columns));
}

double roi_pool_bin(const double* plane, std::int64_t h, std::int64_t w, const double* box, std::int64_t p,
                    std::int64_t q, Size2 bins, double scale) {
    const auto corner = [&](int i) { return std::round(box[i] * scale); };
    const double height = std::max(corner(3) - corner(1) + 1, 1.0) / static_cast<double>(bins[0]);
    const double width = std::max(corner(2) - corner(0) + 1, 1.0) / static_cast<double>(bins[1]);
    const auto end = [](double at, std::int64_t size) {
        return static_cast<std::int64_t>(std::clamp(at, 0.0, static_cast<double>(size)));
    };
    const auto i = static_cast<double>(p), j = static_cast<double>(q);
    double largest = 0;
    bool any = false;
    for (std::int64_t y = end(std::floor(i * height) + corner(1), h);
         y < end(std::ceil((i + 1) * height) + corner(1), h); ++y)
        for (std::int64_t x = end(std::floor(j * width) + corner(0), w);
             x < end(std::ceil((j + 1) * width) + corner(0), w); ++x) {
            largest = any ? std::max(largest, plane[y * w + x]) : plane[y * w + x];
            any = true;
        }
    return largest;
}

Values nms_reference(const Values& boxes, const Values& scores, const Values& classes, double threshold) {
    std::vector<std::size_t> order(scores.size());
    std::iota(order.begin(), order.end(), 0);
    std::ranges::stable_sort(order, std::greater<>(), [&](std::size_t i) { return scores[i]; });
    Values kept_boxes;
    for (const std::size_t i : order) {
        const bool suppressed = std::ranges::any_of(kept_boxes, [&](double kept_box) {
            const auto j = static_cast<std::size_t>(kept_box);
            if (!classes.empty() && classes[i] != classes[j]) return false;
            const double *a = &boxes[4 * i], *b = &boxes[4 * j];
            const double width = std::min(a[2], b[2]) - std::max(a[0], b[0]),
                         height = std::min(a[3], b[3]) - std::max(a[1], b[1]);
            const double both = std::max(0.0, width) * std::max(0.0, height);
            return both > threshold * ((a[2] - a[0]) * (a[3] - a[1]) + (b[2] - b[0]) * (b[3] - b[1]) - both);
        });
        if (!suppressed) kept_boxes.push_back(static_cast<double>(i));
    }
    return kept_boxes;
}

Values with_corners(const Values& boxes) {
    Values out = boxes;
    for (std::size_t i = 0; i < out.size(); i += 4) out[i + 2] += out[i], out[i + 3] += out[i + 1];
    return out;
}

Tensor with_corners(const Tensor& boxes) { return boxes.defined() ? box_convert(boxes, "xywh", "xyxy") : boxes; }

std::vector<Case> vision_catalogue() {
    std::vector<Case> all;
    all.push_back(roi_align_case({2, 3}, {.spatial_scale = 0.75, .sampling_ratio = 2}));
    all.back().sampled = false;
    all.push_back(roi_align_case({2, 2}, {.sampling_ratio = 1, .aligned = true}));
    all.push_back(roi_align_case({2, 2}, {.spatial_scale = 0.9}));
    all.push_back(roi_align_case({2, 1}, {.sampling_ratio = 2, .mode = "max"}));
    all.push_back(roi_pool_case({2, 3}, 0.75));
    all.back().sampled = false;
    all.push_back(roi_pool_case({3, 2}, 1));
    all.push_back(deform_case({2, 4, 4, 3}, {2, 2}, 1, 1, false, {}));
    all.back().sampled = false;
    all.push_back(deform_case({1, 4, 5, 4}, {3, 2}, 2, 2, true, {.stride = {2, 1}, .padding = {1, 0}}));
    all.push_back(deform_case({2, 4, 4, 4}, {2, 1}, 4, 4, true, {.padding = 1, .dilation = {2, 1}}));
    const Input boxes{{9, 4}, 1, 4, Kind::constant}, scores{{9}, 0, 1, Kind::constant}, classes{{9}, 0, 2, Kind::label};
    all.push_back(
        {.name = "nms",
         .inputs = {boxes, scores},
         .call = [](const Tensors& in) { return nms(with_corners(in[0]), in[1], 0.3); },
         .reference = [](const Columns& in, DType) { return nms_reference(with_corners(in[0]), in[1], {}, 0.3); },
         .differentiable = false,
         .reads_elements = true});
    all.push_back(
        {.name = "batched_nms",
         .inputs = {boxes, scores, classes},
         .call = [](const Tensors& in) { return batched_nms(with_corners(in[0]), in[1], in[2], 0.2); },
         .reference = [](const Columns& in, DType) { return nms_reference(with_corners(in[0]), in[1], in[2], 0.2); },
         .differentiable = false,
         .reads_elements = true});
    const Input corners{{3, 5, 4}};
    all.push_back({.name = "box_area",
                   .inputs = {corners},
                   .call = [](const Tensors& in) { return box_area(in[0]); },
                   .reference =
                       [](const Columns& in, DType) {
                           Values out;
                           for (std::size_t i = 0; i < in[0].size(); i += 4)
                               out.push_back((in[0][i + 2] - in[0][i]) * (in[0][i + 3] - in[0][i + 1]));
                           return out;
                       },
                   .terms = 4});
    for (const char* from : {"xyxy", "xywh", "cxcywh"})
        for (const char* to : {"xyxy", "xywh", "cxcywh"})
            all.push_back({.name = "box_convert",
                           .inputs = {corners},
                           .call = [=](const Tensors& in) { return box_convert(in[0], from, to); },
                           .reference =
                               [from = std::string(from), to = std::string(to)](const Columns& in, DType) {
                                   Values out = in[0];
                                   for (std::size_t i = 0; i < out.size(); ++i) {
                                       if (i % 4 > 1) continue;
                                       double low = out[i], size = out[i + 2];
                                       if (from == "xyxy") size -= low;
                                       if (from == "cxcywh") low -= size / 2;
                                       out[i] = to == "cxcywh" ? low + size / 2 : low;
                                       out[i + 2] = to == "xyxy" ? low + size : size;
                                   }
                                   return out;
                               },
                           .terms = 4,
                           .sampled = true});
    all.push_back({.name = "clip_boxes_to_image",
                   .inputs = {corners},
                   .call =
                       [](const Tensors& in) {
                           return clip_boxes_to_image(in[0], {1, 2});
                       },
                   .reference =
                       [](const Columns& in, DType) {
                           Values out;
                           for (std::size_t i = 0; i < in[0].size(); ++i)
                               out.push_back(std::clamp(in[0][i], 0.0, i % 2 == 0 ? 2.0 : 1.0));
                           return out;
                       }});
    return all;
}

}  // namespace declivity::test::catalogue
