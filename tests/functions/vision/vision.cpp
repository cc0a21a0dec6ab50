// Regions and boxes: more sizes than the catalogue, both kernel styles, out-of-image regions, ties, and errors.
#include <declivity/functions/vision.hpp>

#include <functional>
#include <limits>
#include <string>
#include <vector>

#include <declivity/autograd/autograd.hpp>
#include <declivity/functions/functions.hpp>
#include <declivity/runtime/error.hpp>
#include <declivity/tensor/creation.hpp>
#include <doctest/doctest.h>
#include <tests/functions/catalogue/references.hpp>
#include <tests/support/devices.hpp>
#include <tests/support/error_message.hpp>
#include <tests/support/values.hpp>

#include "ops/support/work_split.hpp"

using namespace declivity;
using namespace declivity::test;

namespace {

using Values = std::vector<double>;

/// Boxes within and around an image of `h` x `w`, some of them inverted.
Tensor some_boxes(std::int64_t count, double h, double w, DType dtype) {
    const Tensor first = random_tensor({count, 2}, 5, dtype, -2, h * 0.8),
                 size = random_tensor({count, 2}, 6, dtype, -1, w);
    return concat({first, first + size}, 1);
}

}  // namespace

TEST_CASE("nms, box_area, roi_align: three boxes, of which two overlap, and the mean of four pixels") {
    const Tensor boxes = tensor({0, 0, 2, 2, 0, 0, 2, 1.75, 5, 5, 6, 6}, {3, 4}), scores = tensor({0.5, 0.9, 0.7}, {3});
    CHECK(difference(box_area(boxes), {4, 3.5, 1}, {1e-6}) == "");
    // Box 1 has the highest score; box 0 overlaps it by 3.5 / 4.
    CHECK(values(nms(boxes, scores, 0.5)) == Values{1, 2});
    CHECK(values(nms(boxes, scores, 0.9)) == Values{1, 2, 0});
    const Tensor image = tensor({1, 2, 3, 4}, {1, 1, 2, 2}), region = tensor({0, 0, 0, 2, 2}, {1, 5});
    CHECK(difference(roi_align(image, region, 1, {.aligned = true}), {2.5}, {1e-6}) == "");
}

TEST_CASE("roi_align and roi_pool: boxes within, around and outside of images, in both kernel styles") {
    const std::int64_t h = 9, w = 7;
    for (const DType dtype : floats()) {
        const Tensor x = random_tensor({3, 2, h, w}, 1, dtype), boxes = some_boxes(12, h, w, dtype);
        const Tensor images = (arange(0, 12, 1, {DType::i64}) * 5) % 3;
        const Values plain = values(x), corners = values(boxes), image_indices = values(images);
        const auto pooled = [&](Size2 bins, const auto& bin) {
            return catalogue::table({12, 2, bins[0], bins[1]}, [&](const Dims& at) {
                const auto k = static_cast<std::size_t>(at[0]);
                const auto plane =
                    static_cast<std::size_t>((static_cast<std::int64_t>(image_indices[k]) * 2 + at[1]) * h * w);
                return bin(&plain[plane], &corners[4 * k], at[2], at[3]);
            });
        };
        // boxes (K, 5) with the image index first.
        const Tensor numbered = concat({reshape(images.to(dtype), {12, 1}), boxes}, 1);
        for (const KernelStyle style : kernel_styles()) {
            const ops::KernelStyleScope scope(style);
            for (const std::int64_t ratio : {0, 1, 3})
                for (const bool aligned : {false, true})
                    for (const char* mode : {"avg", "max"}) {
                        const RoiAlignOptions options{
                            .spatial_scale = 0.8, .sampling_ratio = ratio, .aligned = aligned, .mode = mode};
                        CAPTURE(ratio);
                        CAPTURE(aligned);
                        CAPTURE(mode);
                        const Values expected =
                            pooled({3, 2}, [&](const double* plane, const double* box, auto p, auto q) {
                                return catalogue::roi_align_bin(plane, h, w, box, p, q, {3, 2}, options);
                            });
                        CHECK(difference(roi_align(x, numbered, {3, 2}, options), expected, tolerance(dtype, 60, 8)) ==
                              "");
                    }
            const Values expected = pooled({2, 3}, [&](const double* plane, const double* box, auto p, auto q) {
                return catalogue::roi_pool_bin(plane, h, w, box, p, q, {2, 3}, 0.7);
            });
            CHECK(values(roi_pool(x, numbered, {2, 3}, 0.7)) == expected);
            CHECK(values(roi_pool(x, boxes, {2, 3}, 0.7, images)) == expected);
        }
    }
}

TEST_CASE("roi_pool: NaN is the largest, the first of equal ones gets the gradient, invalid images give 0") {
    const double nan = std::numeric_limits<double>::quiet_NaN();
    Tensor x = tensor({1, 5, 5, nan, 2, 5}, {1, 1, 2, 3}).set_requires_grad();
    for (const KernelStyle style : kernel_styles()) {
        const ops::KernelStyleScope scope(style);
        const Tensor y = roi_pool(x, tensor({0, 1, 0, 2, 1}, {1, 5}), 1);
        CHECK(values(y) == Values{5});
        x.zero_grad();
        sum(y).backward();
        CHECK(values(x.grad()) == Values{0, 1, 0, 0, 0, 0});
        CHECK(difference(roi_pool(x, tensor({0, 0, 0, 2, 1}, {1, 5}), 1), {nan}, {}) == "");
        CHECK(values(roi_pool(x, tensor({0, 0, 2, 1}, {1, 4}), 1, 1, Tensor::from<std::int64_t>({7}, {1}))) ==
              Values{0});
    }
    CHECK(roi_pool(x, zeros({0, 5}), 2).shape() == Shape{0, 1, 2, 2});
    CHECK(roi_align(x, zeros({0, 5}), {2, 3}).shape() == Shape{0, 1, 2, 3});
    CHECK(roi_align(zeros({1, 0, 2, 3}), zeros({2, 5}), 2).shape() == Shape{2, 0, 2, 2});
}

TEST_CASE("deform_conv2d: without offsets it matches conv2d, with all gradients") {
    for (const DType dtype : floats()) {
        const auto leaf = [&](const Shape& shape, std::uint64_t seed) {
            return random_tensor(shape, seed, dtype).set_requires_grad();
        };
        const std::vector<Tensor> leaves{leaf({2, 4, 7, 6}, 1), leaf({6, 2, 3, 2}, 2), leaf({6}, 3)};
        const Tensor still = zeros({2, 2 * 2 * 6, 4, 7}, {dtype}), open = ones({2, 2 * 6, 4, 7}, {dtype});
        const Tensor expected =
            conv2d(leaves[0], leaves[1], leaves[2], {.stride = {2, 1}, .padding = {1, 1}, .dilation = 1, .groups = 2});
        const Tensor g = random_tensor(expected.shape(), 4, dtype);
        const auto gradients = grad({expected}, leaves, {.output_gradients = {g}});
        for (const bool masked : {false, true}) {
            const Tensor y = deform_conv2d(leaves[0], still, leaves[1], leaves[2], {.stride = {2, 1}, .padding = 1},
                                           masked ? open : Tensor());
            CHECK(difference(y, values(expected), tolerance(dtype, 20, 4)) == "");
            const auto got = grad({y}, leaves, {.output_gradients = {g}});
            for (std::size_t i = 0; i < got.size(); ++i)
                CHECK(difference(got[i], values(gradients[i]), tolerance(dtype, 200, 8)) == "");
        }
        CHECK(deform_conv2d(zeros({0, 4, 7, 6}, {dtype}), zeros({0, 24, 4, 7}, {dtype}), leaves[1], {},
                            {.stride = {2, 1}, .padding = 1})
                  .shape() == Shape{0, 6, 4, 7});
    }
}

TEST_CASE("nms: equal scores keep their order, classes are independent, many boxes") {
    const Tensor boxes = tensor({0, 0, 2, 2, 0, 0, 2, 2, 5, 5, 6, 6, 0, 0, 2, 1}, {4, 4});
    const Tensor scores = tensor({0.5, 0.5, 0.1, 0.9}, {4});
    CHECK(values(nms(boxes, scores, 0.6)) == Values{3, 0, 2});
    CHECK(values(nms(boxes, scores, 0.4)) == Values{3, 2});
    // An overlap equal to the threshold is kept.
    CHECK(values(nms(boxes, scores, 0.5)) == Values{3, 0, 2});
    const Tensor classes = Tensor::from<std::int64_t>({1, 2, 1, 1}, {4});
    CHECK(values(batched_nms(boxes, scores, classes, 0.4)) == Values{3, 1, 2});
    CHECK(nms(zeros({0, 4}), zeros({0}), 0.5).shape() == Shape{0});
    CHECK(nms(boxes, scores, 0.5).dtype() == DType::i64);
    for (const DType dtype : floats()) {
        const Tensor many_boxes = catalogue::with_corners(random_tensor({200, 4}, 2, dtype, 1, 5));
        const Tensor box_scores = random_tensor({200}, 3, dtype), box_classes = randint(0, 3, {200});
        CHECK(values(nms(many_boxes, box_scores, 0.45)) ==
              catalogue::nms_reference(values(many_boxes), values(box_scores), {}, 0.45));
        CHECK(values(batched_nms(many_boxes, box_scores, box_classes, 0.3)) ==
              catalogue::nms_reference(values(many_boxes), values(box_scores), values(box_classes), 0.3));
    }
}

TEST_CASE("vision: integer boxes, and errors of regions and boxes") {
    const Tensor integer_boxes = Tensor::from<std::int32_t>({-1, 2, 9, 4}, {1, 4});
    CHECK(values(box_area(integer_boxes)) == Values{20});
    CHECK(values(clip_boxes_to_image(integer_boxes, {3, 8})) == Values{0, 2, 8, 3});
    CHECK(clip_boxes_to_image(integer_boxes, {3, 8}).dtype() == DType::i32);
    const Tensor x = zeros({1, 2, 4, 4}), boxes = zeros({3, 5}), corner_boxes = zeros({3, 4});
    const Tensor weight = zeros({6, 2, 3, 3}), offset = zeros({1, 18, 2, 2});
    struct InvalidCall {
        std::string name;
        std::function<void()> call;
    };
    for (const auto& [name, call] : std::vector<InvalidCall>{
             {"roi_align",
              [&] {
                  roi_align(zeros({2, 4, 4}), boxes, 2);
              }},
             {"roi_align", [&] { roi_align(x, corner_boxes, 2); }},
             {"roi_align", [&] { roi_align(x, boxes, 0); }},
             {"roi_align", [&] { roi_align(x, boxes, 2, {.mode = "sum"}); }},
             {"roi_align", [&] { roi_align(x, boxes.to(DType::f16), 2); }},
             {"roi_align", [&] { roi_align(x, corner_boxes, 2, {}, zeros({3})); }},
             {"roi_align", [&] { roi_align(x, corner_boxes, 2, {}, zeros({2}, {DType::i64})); }},
             {"roi_align",
              [&] {
                  roi_align(zeros({1, 2, 0, 4}), boxes, 2);
              }},
             {"roi_align",
              [&] {
                  roi_align(zeros({0, 2, 4, 4}), boxes, 2);
              }},
             {"roi_align",
              [&] {
                  roi_align(x, tensor({0, 0, 0, 1e20, 1}, {1, 5}), 2);
              }},
             {"roi_pool", [&] { roi_pool(x, corner_boxes, 2); }},
             {"roi_pool", [&] { roi_pool(x.to(DType::i32), boxes, 2); }},
             {"roi_pool",
              [&] {
                  roi_pool(x, boxes, {2, -1});
              }},
             {"deform_conv2d",
              [&] {
                  deform_conv2d(zeros({1, 3, 4, 4}), offset, weight);
              }},
             {"deform_conv2d",
              [&] {
                  deform_conv2d(x, zeros({1, 17, 2, 2}), weight);
              }},
             {"deform_conv2d",
              [&] {
                  deform_conv2d(x, zeros({1, 18, 3, 2}), weight);
              }},
             {"deform_conv2d", [&] { deform_conv2d(x, offset, weight, zeros({5})); }},
             {"deform_conv2d",
              [&] {
                  deform_conv2d(x, offset, weight, {}, {}, zeros({1, 8, 2, 2}));
              }},
             {"deform_conv2d", [&] { deform_conv2d(x, offset, weight, {}, {.stride = 0}); }},
             {"deform_conv2d", [&] { deform_conv2d(x, offset.to(DType::f16), weight); }},
             {"nms", [&] { nms(boxes, zeros({3}), 0.5); }},
             {"nms", [&] { nms(corner_boxes, zeros({2}), 0.5); }},
             {"nms", [&] { nms(integer_boxes, zeros({1}), 0.5); }},
             {"batched_nms", [&] { batched_nms(corner_boxes, zeros({3}), zeros({3}), 0.5); }},
             {"batched_nms", [&] { batched_nms(corner_boxes, zeros({3}), zeros({2}, {DType::i64}), 0.5); }},
             {"box_area", [&] { box_area(boxes); }},
             {"box_convert", [&] { box_convert(corner_boxes, "xyxy", "yxyx"); }},
             {"box_convert", [&] { box_convert(integer_boxes, "xyxy", "xywh"); }},
             {"clip_boxes_to_image", [&] { clip_boxes_to_image(boxes, 3); }}}) {
        const std::string message = error_message<Error>(call);
        CAPTURE(message);
        CHECK(message.starts_with(name + ": expected"));
    }
}
