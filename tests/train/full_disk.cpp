// A disk that fills up while a training saves: the error names the file, the previous checkpoint remains, nothing else
// is left, and the training continues once there is room.
// no-oclgrind: it starts a child process
#include <sys/resource.h>

#include <cstdlib>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <declivity/data/random.hpp>
#include <declivity/io/safetensors.hpp>
#include <declivity/nn/nn.hpp>
#include <declivity/optim/adam.hpp>
#include <declivity/runtime/error.hpp>
#include <declivity/tensor/creation.hpp>
#include <declivity/train/callbacks.hpp>
#include <doctest/doctest.h>

#include "tests/support/child.hpp"
#include "tests/support/temp_folder.hpp"

using namespace declivity;
namespace fs = std::filesystem;

namespace {

data::InMemoryDataset line_points(std::int64_t count) {
    data::Random random(1, 0, 0, data::Purpose::user);
    std::vector<float> values;
    std::vector<std::int64_t> labels;
    for (std::int64_t i = 0; i < count; ++i) {
        for (int k = 0; k < 5; ++k) values.push_back(random.normal() + static_cast<float>(i % 2));
        labels.push_back(i % 2);
    }
    return {{5}, std::move(values), std::move(labels), 2};
}

struct DiskSetup {
    nn::Sequential model;
    optim::Adam optimizer;
    train::Trainer trainer;

    DiskSetup()
        : model((manual_seed(3), nn::Sequential(nn::Linear(5, 16), nn::ReLU(), nn::Dropout(0.3), nn::Linear(16, 2)))),
          optimizer(model.parameters(), {.lr = 1e-2}),
          trainer(model, optimizer) {}

    void fit(std::int64_t epochs, std::shared_ptr<train::Callback> callback = nullptr) {
        train::FitOptions options{.epochs = epochs, .batch = 16, .seed = 7, .quiet = true};
        if (callback) options.callbacks.push_back(std::move(callback));
        trainer.fit(line_points(64), options);
    }
};

/// Limits the file size of this process during its lifetime, like a full disk. Only the soft limit, which can be raised
/// again.
class FullAfter {
  public:
    explicit FullAfter(std::uintmax_t bytes) {
        REQUIRE(getrlimit(RLIMIT_FSIZE, &before_) == 0);
        const rlimit limit{static_cast<rlim_t>(bytes), before_.rlim_max};
        REQUIRE(setrlimit(RLIMIT_FSIZE, &limit) == 0);
    }
    ~FullAfter() { setrlimit(RLIMIT_FSIZE, &before_); }
    FullAfter(const FullAfter&) = delete;
    FullAfter& operator=(const FullAfter&) = delete;

  private:
    rlimit before_{};
};

/// The message of an IoError about `path`; anything else is a failure.
std::string error_of_save(const fs::path& path, const std::function<void()>& call) {
    try {
        call();
    } catch (const IoError& error) {
        CHECK(error.file() == path.string());
        return error.what();
    }
    FAIL("nothing was thrown");
    return "";
}

}  // namespace

TEST_CASE("full disk: child process" * doctest::skip()) {
    const fs::path folder = std::getenv("DECLIVITY_TEST_FOLDER");
    const fs::path path = folder / "last.safetensors", unbroken = folder / "unbroken", resumed = folder / "resumed";
    {
        // This compiles everything needed, so that only the tested code reaches the limit.
        DiskSetup complete;
        complete.fit(3);
        complete.trainer.save(unbroken);
    }
    const auto check_files = [&](std::size_t files) {
        CHECK(std::distance(fs::directory_iterator(folder), fs::directory_iterator()) ==
              static_cast<std::ptrdiff_t>(files));
    };

    DiskSetup setup;
    setup.fit(1, std::make_shared<train::Checkpoint>(train::CheckpointOptions{.last = path}));
    const test::Bytes old = test::get_file(path);
    const auto size = fs::file_size(path);
    check_files(2);

    for (const std::uintmax_t room : {std::uintmax_t{0}, std::uintmax_t{1}, size / 2, size - 1}) {
        CAPTURE(room);
        const FullAfter full(room);
        const std::string message = error_of_save(path, [&] { setup.trainer.save(path); });
        CHECK(message.find("write") != std::string::npos);
        CHECK(message.find(path.string()) != std::string::npos);
        CHECK(message.find("File too large") != std::string::npos);
        CHECK(test::get_file(path) == old);
        check_files(2);
        (void)error_of_save(folder / "new", [&] { setup.trainer.save(folder / "new"); });
        check_files(2);
    }
    {
        const FullAfter full(size - 1);
        // The checkpoint of the second epoch ends the training, ...
        CHECK(error_of_save(path, [&] {
                  setup.fit(3, std::make_shared<train::Checkpoint>(train::CheckpointOptions{.last = path}));
              }).find(path.string()) != std::string::npos);
        CHECK(setup.trainer.progress().epoch == 2);
        CHECK(test::get_file(path) == old);
        check_files(2);
        // ... another can continue from the old one, ...
        DiskSetup other;
        other.trainer.load(path);
        CHECK(other.trainer.progress().epoch == 1);
        // ... and so do the other files of a training.
        const auto table = std::make_shared<train::CsvLog>(folder / "log.csv");
        const FullAfter full_at_once(10);
        (void)error_of_save(folder / "log.csv", [&] { other.fit(2, table); });
        (void)error_of_save(folder / "curve.png", [&] {
            other.fit(3, std::make_shared<train::LearningCurvePicture>(folder / "curve.png", "x"));
        });
        check_files(2);
    }
    // With room again, both ways to the end give the same numbers: continuing with the failed trainer, or from the
    // checkpoint.
    DiskSetup from_old;
    from_old.trainer.load(path);
    from_old.fit(3);
    from_old.trainer.save(resumed);
    CHECK(io::read_safetensors(resumed).arrays == io::read_safetensors(unbroken).arrays);
    DiskSetup again;
    again.fit(1);
    {
        const FullAfter full(size / 2);
        (void)error_of_save(resumed, [&] {
            again.fit(3,
                      std::make_shared<train::Checkpoint>(train::CheckpointOptions{.last = resumed, .every_steps = 3}));
        });
    }
    again.fit(3, std::make_shared<train::Checkpoint>(train::CheckpointOptions{.last = resumed}));
    CHECK(io::read_safetensors(resumed).arrays == io::read_safetensors(unbroken).arrays);
    check_files(3);
}

TEST_CASE("full disk (RLIMIT_FSIZE): while a training saves") {
    const test::TempFolder folder;
    const auto result =
        test::run_child("full disk: child process", {{"DECLIVITY_TEST_FOLDER", folder.path().string()}});
    INFO(result.output);
    CHECK(result.code == 0);
}
