// The loader: every example once, the same batches whatever the threads, errors handed on.
#include <declivity/data/loader.hpp>

#include <algorithm>

#include <declivity/runtime/error.hpp>
#include <doctest/doctest.h>

#include "tests/support/values.hpp"

using namespace declivity;

namespace {

/// Example i has the features i, i + 0.5, ... and the label i % 3.
class Numbers : public data::Dataset {
  public:
    explicit Numbers(std::int64_t count, std::int64_t broken = -1) : count_(count), broken_(broken) {}
    std::int64_t size() const override { return count_; }
    Shape shape() const override { return {1, 2, 2}; }
    std::int64_t classes() const override { return 3; }

  private:
    void do_read(std::int64_t index, std::span<float> features) const override {
        if (index == broken_) throw FormatError("numbers", 12, "a broken example");
        for (std::size_t i = 0; i < features.size(); ++i)
            features[i] = static_cast<float>(index) + 0.5F * static_cast<float>(i);
    }
    std::int64_t do_label(std::int64_t index) const override { return index % 3; }
    std::int64_t count_, broken_;
};

struct Seen {
    std::vector<double> features, labels;
    std::vector<std::int64_t> sizes;
    friend bool operator==(const Seen&, const Seen&) = default;
};

Seen run(data::Loader& loader, std::uint64_t epoch, std::int64_t first = 0) {
    Seen seen;
    loader.start(epoch, first);
    std::int64_t number = first;
    while (const auto batch = loader.next()) {
        CHECK(batch->number == number++);
        CHECK(batch->features.shape() == Shape{batch->size, 1, 2, 2});
        for (const double value : test::values(batch->features)) seen.features.push_back(value);
        for (const double value : test::values(batch->labels)) seen.labels.push_back(value);
        seen.sizes.push_back(batch->size);
    }
    return seen;
}

}  // namespace

TEST_CASE("each example comes once, with its label, in order or shuffled") {
    const Numbers set(23);
    data::Loader plain(set, {.batch = 5});
    const Seen in_order = run(plain, 0);
    CHECK(plain.batches() == 5);
    CHECK(in_order.sizes == std::vector<std::int64_t>{5, 5, 5, 5, 3});
    for (std::size_t i = 0; i < 23; ++i) {
        CHECK(in_order.features[4 * i + 1] == static_cast<double>(i) + 0.5);
        CHECK(in_order.labels[i] == static_cast<double>(i % 3));
    }
    data::Loader shuffled(set, {.batch = 5, .shuffle = true, .seed = 3});
    const Seen first = run(shuffled, 0), second = run(shuffled, 1);
    CHECK(first.features != in_order.features);
    CHECK(first.features != second.features);
    CHECK(run(shuffled, 0) == first);
    auto sorted = first.features;
    std::sort(sorted.begin(), sorted.end());
    auto expected = in_order.features;
    std::sort(expected.begin(), expected.end());
    CHECK(sorted == expected);
    data::Loader dropping(set, {.batch = 5, .drop_last = true});
    CHECK(run(dropping, 0).sizes == std::vector<std::int64_t>{5, 5, 5, 5});
}

TEST_CASE("threads, prefetch and the batch to start with change nothing") {
    const Numbers set(41);
    const auto transform = [](data::Image& image, data::Random& random) {
        for (float& pixel : image.pixels) pixel += random.uniform();
    };
    data::Loader one(set, {.batch = 4, .shuffle = true, .seed = 9, .transform = transform});
    const Seen reference = run(one, 2);
    data::Loader many(set, {.batch = 4, .shuffle = true, .seed = 9, .transform = transform, .threads = 3, .ahead = 5});
    CHECK(run(many, 2) == reference);
    const Seen rest = run(many, 2, 7);
    CHECK(std::equal(rest.features.begin(), rest.features.end(), reference.features.begin() + 7 * 4 * 4,
                     reference.features.end()));
    many.start(1);
    (void)many.next();  // an epoch that is not finished
    CHECK(run(many, 2) == reference);
}

TEST_CASE("errors of examples arrive at their batch; wrong options are refused") {
    const Numbers set(20, 13);
    data::Loader loader(set, {.batch = 4});
    loader.start(0);
    for (int i = 0; i < 3; ++i) CHECK(loader.next().has_value());
    CHECK_THROWS_AS((void)loader.next(), FormatError);
    CHECK_THROWS_AS(data::Loader(set, {.batch = 0}), ValueError);
    data::Loader unstarted(set, {});
    CHECK_THROWS_AS((void)unstarted.next(), ValueError);
    CHECK_THROWS_AS(loader.start(0, 9), ValueError);
    data::Loader reshaping(set, {.transform = [](data::Image& image, data::Random&) { image.width = 1; }});
    reshaping.start(0);
    CHECK_THROWS_AS((void)reshaping.next(), ShapeError);
}
