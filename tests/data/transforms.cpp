// Transforms compared with plain loops; the result depends only on the random stream.
#include <algorithm>
#include <array>
#include <cmath>
#include <set>
#include <vector>

#include <declivity/data/transforms.hpp>
#include <declivity/runtime/error.hpp>
#include <doctest/doctest.h>

using namespace declivity;
using namespace declivity::data;

namespace {

// Every pixel differs from every other and from the padding.
Image ramp(std::int64_t channels, std::int64_t height, std::int64_t width) {
    Image image{channels, height, width, {}};
    for (std::int64_t i = 0; i < channels * height * width; ++i) image.pixels.push_back(static_cast<float>(i + 1));
    return image;
}

float at(const Image& image, std::int64_t c, std::int64_t y, std::int64_t x) {
    if (y < 0 || x < 0 || y >= image.height || x >= image.width) return 0;
    return image.pixels[static_cast<std::size_t>((c * image.height + y) * image.width + x)];
}

}  // namespace

TEST_CASE("transforms: normalize works per channel") {
    Image image = ramp(2, 1, 2);
    Random random(0, 0, 0);
    data::normalize({1.0F, 2.0F}, {2.0F, 0.5F})(image, random);
    CHECK(image.pixels == std::vector<float>{0.0F, 0.5F, 2.0F, 4.0F});
    Image gray = ramp(1, 2, 2);
    CHECK_THROWS_AS(data::normalize({1.0F, 2.0F}, {2.0F, 0.5F})(gray, random), ShapeError);
    CHECK_THROWS_AS((void)data::normalize({1.0F}, {2.0F, 0.5F}), ShapeError);
    CHECK_THROWS_AS((void)data::normalize({}, {}), ShapeError);
    CHECK_THROWS_AS((void)data::normalize({0.0F}, {0.0F}), ValueError);
    CHECK_THROWS_AS((void)data::normalize({NAN}, {1.0F}), ValueError);
}

TEST_CASE("transforms: random_crop is a window of the padded image, at every position") {
    for (const auto& [height, width, padding] :
         {std::array<std::int64_t, 3>{4, 5, 2}, {3, 3, 0}, {4, 5, 0}, {8, 9, 2}, {2, 1, 3}}) {
        const Image ramp_image = ramp(2, 4, 5);
        const Transform crop = random_crop(height, width, padding);
        std::set<std::pair<std::int64_t, std::int64_t>> offsets;
        for (std::uint64_t index = 0; index < 2000; ++index) {
            Random random(3, 0, index), twin(3, 0, index);
            const std::int64_t top = twin.below(4 + 2 * padding - height + 1) - padding;
            const std::int64_t left = twin.below(5 + 2 * padding - width + 1) - padding;
            offsets.insert({top, left});
            Image image = ramp_image;
            crop(image, random);
            REQUIRE(image.shape() == Shape{2, height, width});
            REQUIRE(image.pixels.size() == static_cast<std::size_t>(2 * height * width));
            bool same = true;
            for (std::int64_t c = 0; c < 2; ++c)
                for (std::int64_t y = 0; y < height; ++y)
                    for (std::int64_t x = 0; x < width; ++x)
                        same = same && at(image, c, y, x) == at(ramp_image, c, top + y, left + x);
            REQUIRE(same);
        }
        CHECK(offsets.size() ==
              static_cast<std::size_t>((4 + 2 * padding - height + 1) * (5 + 2 * padding - width + 1)));
    }
    Image image = ramp(1, 4, 5);
    Random random(0, 0, 0);
    CHECK_THROWS_AS(random_crop(7, 3, 1)(image, random), ShapeError);
    CHECK_THROWS_AS((void)random_crop(0, 3), ValueError);
    CHECK_THROWS_AS((void)random_crop(3, 3, -1), ValueError);
}

TEST_CASE("transforms: random_horizontal_flip mirrors rows with the given probability") {
    const Image ramp_image = ramp(2, 3, 5);
    int flips = 0;
    for (std::uint64_t index = 0; index < 2000; ++index) {
        Random random(8, 1, index);
        Image image = ramp_image;
        random_horizontal_flip(0.25F)(image, random);
        if (image.pixels == ramp_image.pixels) continue;
        ++flips;
        bool mirrored = true;
        for (std::int64_t c = 0; c < 2; ++c)
            for (std::int64_t y = 0; y < 3; ++y)
                for (std::int64_t x = 0; x < 5; ++x)
                    mirrored = mirrored && at(image, c, y, x) == at(ramp_image, c, y, 4 - x);
        REQUIRE(mirrored);
    }
    CHECK(std::abs(flips - 500) < 100);
    Random random(0, 0, 0);
    for (int i = 0; i < 100; ++i) {
        Image image = ramp_image;
        random_horizontal_flip(0.0F)(image, random);
        CHECK(image.pixels == ramp_image.pixels);
        random_horizontal_flip(1.0F)(image, random);
        CHECK(image.pixels != ramp_image.pixels);
    }
    CHECK_THROWS_AS((void)random_horizontal_flip(1.5F), ValueError);
    CHECK_THROWS_AS((void)random_horizontal_flip(NAN), ValueError);
}

TEST_CASE("transforms: compose applies in order; the result depends on (seed, epoch, index) only") {
    const Transform augment =
        compose({random_crop(4, 4, 2), random_horizontal_flip(), data::normalize({2.0F}, {3.0F})});
    const auto prepare = [&](std::uint64_t seed, std::uint64_t epoch, std::uint64_t index) {
        Image image = ramp(1, 4, 4);
        Random random(seed, epoch, index);
        augment(image, random);
        return image.pixels;
    };
    Image reference = ramp(1, 4, 4);
    Random random(1, 2, 3);
    random_crop(4, 4, 2)(reference, random);
    random_horizontal_flip()(reference, random);
    data::normalize({2.0F}, {3.0F})(reference, random);
    const std::vector<float> first = prepare(1, 2, 3);
    CHECK(first == reference.pixels);
    (void)prepare(1, 2, 4);
    CHECK(prepare(1, 2, 3) == first);
    int differ = 0;
    for (std::uint64_t epoch = 10; epoch < 20; ++epoch) differ += prepare(1, epoch, 3) != first ? 1 : 0;
    CHECK(differ >= 7);
    CHECK_THROWS_AS((void)compose({Transform{}}), ValueError);
}

namespace {

/// A float image, a byte mask of the same size, and a number.
Example segmentation(std::int64_t height, std::int64_t width) {
    std::vector<float> pixels;
    std::vector<std::uint8_t> mask;
    for (std::int64_t i = 0; i < height * width; ++i)
        pixels.push_back(static_cast<float>(i + 1)), mask.push_back(static_cast<std::uint8_t>(i + 1));
    return {{"image", "mask", "weight"},
            {io::HostArray::of({1, height, width}, pixels), io::HostArray::of({height, width}, mask),
             io::HostArray::of(0.5F)}};
}

}  // namespace

TEST_CASE("transforms: several fields are transformed alike") {
    const Transform both = on_fields({"image", "mask"}, compose({random_crop(3, 4, 1), random_horizontal_flip()}));
    CHECK_FALSE(both.is_image_transform());
    std::set<std::vector<std::uint8_t>> different;
    for (std::uint64_t index = 0; index < 50; ++index) {
        Example example = segmentation(4, 5);
        Random random(2, 0, index), twin(2, 0, index);
        both(example, random);
        REQUIRE(example["image"].shape == Shape{1, 3, 4});
        REQUIRE(example["mask"].shape == Shape{3, 4});
        const auto pixels = example["image"].as<float>();
        const auto mask = example["mask"].as<std::uint8_t>();
        for (std::size_t i = 0; i < mask.size(); ++i) CHECK(pixels[i] == static_cast<float>(mask[i]));
        different.insert({mask.begin(), mask.end()});
        // The expected result, with as many random numbers consumed.
        Image image = to_image(segmentation(4, 5)["image"]);
        compose({random_crop(3, 4, 1), random_horizontal_flip()})(image, twin);
        CHECK(std::equal(pixels.begin(), pixels.end(), image.pixels.begin()));
        CHECK(random.word() == twin.word());
    }
    CHECK(different.size() > 10);
    Example example = segmentation(2, 2);
    Random random(0, 0, 0);
    on_fields({"image"}, data::normalize({1.0F}, {2.0F}))(example, random);
    CHECK(example["image"].as<float>()[3] == 1.5F);
    CHECK(example["mask"].as<std::uint8_t>()[3] == 4);
    CHECK_THROWS_WITH_AS(on_fields({"masks"}, random_horizontal_flip())(example, random),
                         doctest::Contains("on_fields: expected the name of a field"), ValueError);
    CHECK_THROWS_WITH_AS(on_fields({"weight"}, random_horizontal_flip())(example, random),
                         doctest::Contains("on_fields: field 'weight': to_image: expected an array of shape (C, H, W)"),
                         ShapeError);
    CHECK_THROWS_AS((void)on_fields({}, random_horizontal_flip()), ValueError);
    CHECK_THROWS_AS((void)on_fields({"image"}, both), ValueError);
    CHECK_THROWS_AS((void)on_fields({"image"}, {}), ValueError);
}

TEST_CASE("transforms: of images and of examples, combined and refused") {
    Example example = segmentation(2, 2);
    Random random(0, 0, 0);
    const Transform doubled = [](Example& item, Random&) {
        for (std::uint8_t& value : item["mask"].as<std::uint8_t>()) value = static_cast<std::uint8_t>(2 * value);
    };
    const Transform normalized_twice = compose({normalize({0.0F}, {0.5F}), doubled});
    normalized_twice(example, random);
    CHECK(example["image"].as<float>()[1] == 4);
    CHECK(example["mask"].as<std::uint8_t>()[1] == 4);
    Image image = to_image(example["image"]);
    CHECK_THROWS_WITH_AS(normalized_twice(image, random), "Transform: expected an example, got an image", ValueError);
    CHECK_THROWS_AS(Transform{}(image, random), ValueError);
    CHECK_THROWS_AS(Transform{}(example, random), ValueError);
    Example none({"x"}, {io::HostArray::of(1.0F)});
    CHECK_THROWS_WITH_AS(data::normalize({0.0F}, {1.0F})(none, random), doctest::Contains("got an example without one"),
                         ValueError);
    Example pair({"left", "right"}, {segmentation(2, 2)["image"], segmentation(2, 2)["image"]});
    CHECK_THROWS_WITH_AS(data::normalize({0.0F}, {1.0F})(pair, random), doctest::Contains("got 'left' and 'right'"),
                         ValueError);
}

TEST_CASE("transforms: arrays of any type convert to images and back") {
    const auto there_and_back = [](const io::HostArray& array) {
        io::HostArray copy = array;
        from_image(to_image(array), copy);
        return copy == array;
    };
    CHECK(there_and_back(io::HostArray::of({2, 2}, std::vector<std::int64_t>{-5, 0, 7, 1 << 20})));
    CHECK(there_and_back(io::HostArray::of({1, 2, 2}, std::vector<std::uint16_t>{0, 1, 65535, 9})));
    CHECK(there_and_back(io::HostArray::of({2, 1, 2}, std::vector<double>{0.5, -1, 0, 1e10})));
    CHECK(there_and_back({DType::boolean, {1, 3}, {std::byte{1}, std::byte{0}, std::byte{1}}}));
    io::HostArray bytes = io::HostArray::of({1, 4}, std::vector<std::uint8_t>(4));
    from_image({1, 1, 4, {-3.0F, 2.5F, 300.0F, NAN}}, bytes);
    CHECK(bytes == io::HostArray::of({1, 4}, std::vector<std::uint8_t>{0, 2, 255, 0}));
    CHECK_THROWS_AS((void)to_image(io::HostArray::of({4}, std::vector<float>(4))), ShapeError);
    CHECK_THROWS_AS((void)to_image({DType::f16, {1, 1}, std::vector<std::byte>(2)}), TypeError);
    CHECK_THROWS_AS(from_image({2, 1, 1, {0, 0}}, bytes), ShapeError);
    CHECK_THROWS_AS(from_image({1, 2, 2, {0}}, bytes), ShapeError);
}
