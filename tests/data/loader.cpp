// The data loader: every example once, the same batches with any number of threads, errors propagated.
#include <declivity/data/loader.hpp>

#include <algorithm>
#include <memory>
#include <set>
#include <string>

#include <declivity/runtime/error.hpp>
#include <doctest/doctest.h>

#include <tests/support/values.hpp>

using namespace declivity;

namespace {

/// Example i has the features i, i + 0.5, ... and the label i % 3.
class Numbers : public data::ClassificationDataset {
  public:
    explicit Numbers(std::int64_t count, std::int64_t failing_index = -1)
        : count_(count), failing_index_(failing_index) {}
    std::int64_t size() const override { return count_; }
    Shape shape() const override { return {1, 2, 2}; }
    std::int64_t classes() const override { return 3; }

  private:
    void do_features(std::int64_t index, std::span<float> features) const override {
        if (index == failing_index_) throw FormatError("numbers", 12, "a broken example");
        for (std::size_t i = 0; i < features.size(); ++i)
            features[i] = static_cast<float>(index) + 0.5F * static_cast<float>(i);
    }
    std::int64_t do_label(std::int64_t index) const override { return index % 3; }
    std::int64_t count_, failing_index_;
};

/// Example i: an image with its own height, and i numbers.
data::FunctionDataset growing(std::int64_t count) {
    return {count,
            {{.name = "image", .dtype = DType::f32}, {.name = "tokens", .dtype = DType::i32}},
            [](std::int64_t index) {
                std::vector<std::int32_t> tokens;
                for (std::int32_t i = 0; i <= index; ++i) tokens.push_back(100 * static_cast<std::int32_t>(index) + i);
                const std::int64_t height = 2 + index % 2;
                std::vector<float> pixels(static_cast<std::size_t>(height * 3), static_cast<float>(index));
                return std::vector{io::HostArray::of({1, height, 3}, pixels),
                                   io::HostArray::of({static_cast<std::int64_t>(tokens.size())}, tokens)};
            }};
}

struct Observed {
    std::vector<double> features, labels;
    std::vector<std::int64_t> sizes;
    friend bool operator==(const Observed&, const Observed&) = default;
};

void add_batch(Observed& observed, const data::Batch& batch) {
    CHECK(batch["image"].shape() == Shape{batch.size, 1, 2, 2});
    for (const double value : test::values(batch[0])) observed.features.push_back(value);
    for (const double value : test::values(batch["label"])) observed.labels.push_back(value);
    observed.sizes.push_back(batch.size);
}

Observed run(data::Loader& loader, std::uint64_t epoch, std::int64_t first = 0) {
    Observed observed;
    std::int64_t number = first;
    for (const data::Batch& batch : loader.epoch(epoch, first)) {
        CHECK(batch.number == number++);
        add_batch(observed, batch);
    }
    return observed;
}

}  // namespace

TEST_CASE("loader: each example occurs once with its label, in order or shuffled") {
    const Numbers set(23);
    data::Loader plain(set, {.batch = 5});
    const Observed in_order = run(plain, 0);
    CHECK(plain.batches() == 5);
    CHECK(plain.examples() == 23);
    CHECK(plain.examples(4) == 3);
    CHECK(in_order.sizes == std::vector<std::int64_t>{5, 5, 5, 5, 3});
    for (std::size_t i = 0; i < 23; ++i) {
        CHECK(in_order.features[4 * i + 1] == static_cast<double>(i) + 0.5);
        CHECK(in_order.labels[i] == static_cast<double>(i % 3));
    }
    data::Loader shuffled(set, {.batch = 5, .shuffle = true, .seed = 3});
    const Observed first = run(shuffled, 0), second = run(shuffled, 1);
    CHECK(first.features != in_order.features);
    CHECK(first.features != second.features);
    CHECK(run(shuffled, 0) == first);
    auto sorted = first.features;
    std::sort(sorted.begin(), sorted.end());
    auto expected = in_order.features;
    std::sort(expected.begin(), expected.end());
    CHECK(sorted == expected);
    data::Loader dropping_loader(set, {.batch = 5, .drop_last = true});
    CHECK(run(dropping_loader, 0).sizes == std::vector<std::int64_t>{5, 5, 5, 5});
    // The order is that of shuffled_order, so that the seeds of earlier trainings remain valid.
    const auto order = data::shuffled_order(23, 3, 1);
    for (std::size_t i = 0; i < 23; ++i) CHECK(second.features[4 * i] == static_cast<double>(order[i]));
}

TEST_CASE("loader: each range-for goes through the next epoch and may be left early") {
    const Numbers set(23);
    data::Loader loader(set, {.batch = 5, .shuffle = true, .seed = 3}),
        other(set, {.batch = 5, .shuffle = true, .seed = 3});
    for (std::uint64_t epoch = 0; epoch < 3; ++epoch) {
        Observed observed;
        for (const data::Batch& batch : loader) add_batch(observed, batch);
        CHECK(observed == run(other, epoch));
    }
    for (const data::Batch& batch : loader)
        if (batch.number == 1) break;
    Observed observed;
    for (const data::Batch& batch : loader) add_batch(observed, batch);
    CHECK(observed == run(other, 4));
    loader.start(7);
    observed = {};
    for (const data::Batch& batch : loader) add_batch(observed, batch);
    CHECK(observed == run(other, 8));
    auto dropped = loader.begin();
    loader.start(0);
    CHECK_THROWS_WITH_AS(++dropped, doctest::Contains("abandoned by another start()"), ValueError);
}

TEST_CASE("loader: threads, prefetch and the first batch do not change the batches") {
    const Numbers set(41);
    const auto transform = [](data::Image& image, data::Random& random) {
        for (float& pixel : image.pixels) pixel += random.uniform();
    };
    data::Loader loader(set, {.batch = 4, .shuffle = true, .seed = 9, .transform = transform});
    const Observed reference = run(loader, 2);
    data::Loader threaded(set,
                          {.batch = 4, .shuffle = true, .seed = 9, .transform = transform, .threads = 3, .ahead = 5});
    CHECK(run(threaded, 2) == reference);
    const Observed remaining = run(threaded, 2, 7);
    CHECK(std::equal(remaining.features.begin(), remaining.features.end(), reference.features.begin() + 7 * 4 * 4,
                     reference.features.end()));
    threaded.start(1);
    (void)threaded.next();  // an unfinished epoch
    CHECK(run(threaded, 2) == reference);
    // The same with a transform of whole examples and a collate function.
    const data::Transform per_example = [&](data::Example& example, data::Random& random) {
        for (float& pixel : example["image"].as<float>()) pixel += random.uniform();
    };
    data::Loader single(set, {.batch = 4, .shuffle = true, .seed = 9, .transform = per_example, .threads = 3});
    CHECK(run(single, 2) == reference);
    data::Loader collated(
        set, {.batch = 4, .shuffle = true, .seed = 9, .transform = transform, .collate = data::stack, .threads = 2});
    CHECK(run(collated, 2) == reference);
}

TEST_CASE("loader: a transform of an image may change its shape, the same for all images") {
    const Numbers set(9);
    data::Loader cropped(set, {.batch = 4, .transform = data::random_crop(1, 1)});
    std::set<double> observed;
    for (const data::Batch& batch : cropped.epoch(0)) {
        CHECK(batch["image"].shape() == Shape{batch.size, 1, 1, 1});
        const auto values = test::values(batch["image"]);
        for (std::size_t i = 0; i < values.size(); ++i) {
            const double offset = values[i] - static_cast<double>(batch.number * 4) - static_cast<double>(i);
            CHECK((offset == 0 || offset == 0.5 || offset == 1 || offset == 1.5));
            observed.insert(offset);
        }
    }
    CHECK(observed.size() > 1);
    data::Loader uneven(set, {.transform = [](data::Image& image, data::Random&) {
                            if (image.pixels[0] == 3) image = {1, 1, 1, {0}};
                        }});
    CHECK_THROWS_WITH_AS(
        (void)run(uneven, 0),
        "Loader: expected field 'image' of example 3 of shape [1, 2, 2], like in example 0, got [1, 1, 1] "
        "from the transform",
        ShapeError);
    data::Loader reshaping(set, {.transform = [](data::Image& image, data::Random&) { image.width = 1; }});
    CHECK_THROWS_WITH_AS((void)run(reshaping, 0), doctest::Contains("with as many pixels as its shape [1, 2, 1] has"),
                         ShapeError);
}

TEST_CASE("loader: fields of any types and shapes are unchanged") {
    std::vector<std::uint8_t> masks;
    std::vector<double> points;
    std::vector<std::int16_t> counts;
    for (int i = 0; i < 7 * 6; ++i) masks.push_back(static_cast<std::uint8_t>(i * 5));
    for (int i = 0; i < 7; ++i) points.push_back(0.1 * i), counts.push_back(static_cast<std::int16_t>(-300 * i));
    std::vector<std::pair<std::string, io::HostArray>> arrays{{"mask", io::HostArray::of({7, 2, 3}, masks)},
                                                              {"count", io::HostArray::of({7, 1}, counts)}};
    const bool doubles = default_device().info().fp64;
    if (doubles) arrays.emplace_back("point", io::HostArray::of({7}, points));
    const data::TensorDataset set(arrays);
    data::Loader loader(set, {.batch = 3});
    std::vector<double> seen_masks, seen_counts, seen_points;
    for (const data::Batch& batch : loader) {
        CHECK(batch.names() == (doubles ? std::vector<std::string>{"mask", "count", "point"}
                                        : std::vector<std::string>{"mask", "count"}));
        CHECK(batch["mask"].dtype() == DType::u8);
        CHECK(batch["mask"].shape() == Shape{batch.size, 2, 3});
        CHECK(batch[1].dtype() == DType::i16);
        for (const double value : test::values(batch["mask"])) seen_masks.push_back(value);
        for (const double value : test::values(batch["count"])) seen_counts.push_back(value);
        if (doubles)
            for (const double value : test::values(batch["point"])) seen_points.push_back(value);
        if (doubles) {
            const auto [mask, count, point] = batch.tensors<3>();
            CHECK(mask.shape() == batch[0].shape());
            CHECK(point.shape() == Shape{batch.size});
        }
        CHECK_THROWS_WITH_AS((void)batch.tensors<5>(),
                             doctest::Contains("Batch::tensors: expected 5 fields, got a batch"), ValueError);
        CHECK_THROWS_WITH_AS((void)batch["masks"], doctest::Contains("one of [\"mask\", \"count\""), ValueError);
        CHECK_THROWS_AS((void)batch[-1], ValueError);
        CHECK_THROWS_AS((void)batch[9], ValueError);
    }
    CHECK(seen_masks == std::vector<double>(masks.begin(), masks.end()));
    CHECK(seen_counts == std::vector<double>(counts.begin(), counts.end()));
    if (doubles) CHECK(seen_points == points);
}

TEST_CASE("loader: examples of different sizes are padded, or refused by name") {
    const auto set = growing(5);
    data::Loader stacking(set, {.batch = 2});
    CHECK_THROWS_WITH_AS(
        (void)stacking.epoch(0).begin(),
        "stack: expected field 'image' of example 1 of shape [1, 2, 3], like in example 0, got [1, 3, 3] "
        "(data::pad pads named fields)",
        ShapeError);
    data::Loader loader(
        set, {.batch = 2, .collate = data::pad({.values = {{"image", -1}, {"tokens", 7}}, .lengths_of = {"tokens"}})});
    loader.start(0, 1);
    const data::Batch batch = *loader.next();
    const auto [image, tokens, length] = batch.tensors<3>();
    CHECK(batch.names() == std::vector<std::string>{"image", "tokens", "tokens_length"});
    CHECK(image.shape() == Shape{2, 1, 3, 3});
    CHECK(test::values(image) == std::vector<double>{2, 2, 2, 2, 2, 2, -1, -1, -1, 3, 3, 3, 3, 3, 3, 3, 3, 3});
    CHECK(tokens.dtype() == DType::i32);
    CHECK(test::values(tokens) == std::vector<double>{200, 201, 202, 7, 300, 301, 302, 303});
    CHECK(length.dtype() == DType::i64);
    CHECK(test::values(length) == std::vector<double>{3, 4});
}

TEST_CASE("loader: may own its data set") {
    data::Loader loader(std::make_shared<const Numbers>(6), {.batch = 4});
    CHECK(run(loader, 0).sizes == std::vector<std::int64_t>{4, 2});
    CHECK_THROWS_WITH_AS(data::Loader(std::shared_ptr<const data::Dataset>(), {}),
                         "Loader: expected a data set, got null", ValueError);
}

TEST_CASE("loader: errors of examples are thrown at their batch; wrong options are refused") {
    const Numbers set(20, 13);
    data::Loader loader(set, {.batch = 4});
    loader.start(0);
    for (int i = 0; i < 3; ++i) CHECK(loader.next().has_value());
    CHECK_THROWS_AS((void)loader.next(), FormatError);
    int before = 0;
    CHECK_THROWS_AS(([&] {
                        for (const data::Batch& batch : loader.epoch(1)) before += batch.size > 0;
                    }()),
                    FormatError);
    CHECK(before == 3);
    CHECK_THROWS_AS(data::Loader(set, {.batch = 0}), ValueError);
    data::Loader unstarted(set, {});
    CHECK_THROWS_AS((void)unstarted.next(), ValueError);
    CHECK_THROWS_AS(loader.start(0, 9), ValueError);
    CHECK_THROWS_AS((void)loader.examples(5), ValueError);
    const auto sampler = std::make_shared<data::SequentialSampler>();
    CHECK_THROWS_WITH_AS(data::Loader(set, {.shuffle = true, .sampler = sampler}),
                         "Loader: expected a sampler or shuffle, got both", ValueError);
}

TEST_CASE("loader: invalid outputs of data sets, transforms and collate functions are refused by name") {
    const auto loader_of = [](std::vector<data::Field> fields, const io::HostArray& array,
                              data::LoaderOptions options) {
        const data::FunctionDataset set(3, std::move(fields), [array](std::int64_t) { return std::vector{array}; });
        data::Loader loader(set, options);
        loader.start(0);
        (void)loader.next();
    };
    const auto two = io::HostArray::of({2}, std::vector<float>{1, 2});
    const data::Collate custom_collate = [](std::span<const data::Example> examples) { return data::stack(examples); };
    for (const data::LoaderOptions& options : {data::LoaderOptions{}, data::LoaderOptions{.collate = custom_collate}}) {
        CHECK_THROWS_WITH_AS(loader_of({{.name = "a", .dtype = DType::i32, .shape = Shape{2}}}, two, options),
                             doctest::Contains("expected field 'a' of example 0 of type i32, got f32"), TypeError);
        CHECK_THROWS_WITH_AS(loader_of({{.name = "a", .shape = Shape{3}}}, two, options),
                             doctest::Contains("expected field 'a' of example 0 of shape [3], got [2]"), ShapeError);
        CHECK_THROWS_WITH_AS(loader_of({{.name = "a"}, {.name = "b"}}, two, options),
                             doctest::Contains("expected 2 fields of example 0"), ValueError);
        CHECK_THROWS_WITH_AS(
            loader_of({{.name = "a"}}, {DType::f32, {4}, std::vector<std::byte>(8)}, options),
            doctest::Contains("expected field 'a' of example 0 with 16 bytes for its shape [4], got 8"), ShapeError);
    }
    CHECK_THROWS_WITH_AS(
        loader_of({{.name = "a"}}, two, {.transform = [](data::Example& e, data::Random&) { e.arrays().clear(); }}),
        "Loader: expected a transform that keeps the 1 fields of example 0, got 0", ValueError);
    CHECK_THROWS_WITH_AS(loader_of({{.name = "a"}}, two, {.collate = [](auto) { return data::Example(); }}),
                         "Loader: expected fields from the collate function, got none", ValueError);
    CHECK_THROWS_AS(loader_of({{.name = "a"}}, two,
                              {.collate =
                                   [](auto) {
                                       return data::Example({"a"}, {{DType::f32, {9}, std::vector<std::byte>(4)}});
                                   }}),
                    ShapeError);
    const Numbers set(20);
    data::Loader changing(
        set, {.batch = 5, .collate = [](std::span<const data::Example> examples) {
                  data::Example out = data::stack(examples);
                  return examples[0].index() < 5 ? out : data::Example({"x", "y"}, std::move(out.arrays()));
              }});
    changing.start(0);
    (void)changing.next();
    CHECK_THROWS_WITH_AS((void)changing.next(), doctest::Contains("expected the same fields for each batch"),
                         ValueError);
    const auto flat = data::InMemoryDataset({4}, std::vector<float>(8), {0, 1}, 2);
    CHECK_THROWS_WITH_AS(data::Loader(flat, {.transform = data::random_horizontal_flip()}),
                         doctest::Contains("got examples of 'features' f32 [4], 'label' i64 []"), ShapeError);
    const auto image = io::HostArray::of({2, 1, 2, 2}, std::vector<float>(8));
    const data::TensorDataset pair({{"left", image}, {"right", image}});
    CHECK_THROWS_WITH_AS(data::Loader(pair, {.transform = data::random_horizontal_flip()}),
                         doctest::Contains("got [\"left\", \"right\"]: select one by data::on_fields"), ValueError);
    CHECK_THROWS_AS(data::FunctionDataset(1, {}, [](auto) { return std::vector<io::HostArray>(); }), ValueError);
}
