// A training that is killed at any moment leaves a checkpoint from which it continues with exactly the same numbers.
// no-oclgrind: runs other programs
#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <memory>
#include <random>
#include <thread>

#include <declivity/data/synthetic_digits.hpp>
#include <declivity/functions/functions.hpp>
#include <declivity/io/safetensors.hpp>
#include <declivity/nn/nn.hpp>
#include <declivity/optim/adam.hpp>
#include <declivity/tensor/creation.hpp>
#include <declivity/train/callbacks.hpp>
#include <declivity/train/trainer.hpp>
#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/support/skip.hpp"
#include "tests/support/temp_folder.hpp"

using namespace declivity;

namespace {

/// The sample in the folder of this test program.
std::filesystem::path mnist() { return std::filesystem::read_symlink("/proc/self/exe").parent_path() / "mnist"; }

pid_t start(const std::vector<std::string>& arguments) {
    const pid_t child = fork();
    if (child != 0) return child;
    std::vector<char*> raw;
    for (const std::string& argument : arguments) raw.push_back(const_cast<char*>(argument.c_str()));
    raw.push_back(nullptr);
    if (std::freopen("/dev/null", "w", stdout) == nullptr) _exit(126);
    execv(raw[0], raw.data());
    _exit(127);
}

int finish(pid_t child) {
    int status = 0;
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

using Command = std::function<std::vector<std::string>(const std::string& file, bool resume)>;

/// Kills a training at random moments, and resumes it from its checkpoint, until it is complete.
void kill_and_resume(const Command& command) {
    const test::TempFolder folder;
    const std::string unbroken = folder.path() / "unbroken", broken = folder.path() / "broken";
    using Clock = std::chrono::steady_clock;
    const auto since = [](Clock::time_point begin) {
        return std::chrono::duration<double>(Clock::now() - begin).count();
    };
    auto begin = Clock::now();
    REQUIRE(finish(start(command(unbroken, false))) == 0);
    double full_duration = since(begin);

    const char* kill_count = std::getenv("DECLIVITY_KILLS");
    const int kills = kill_count != nullptr ? std::atoi(kill_count) : 4;
    std::mt19937_64 random(1);
    int killed = 0;
    for (int tries = 0; killed < kills && tries < 20 * kills; ++tries) {
        const pid_t child = start(command(broken, std::filesystem::exists(broken)));
        const double delay = full_duration * static_cast<double>(random() % 1000) / 1000;
        begin = Clock::now();
        bool ended = false;
        while (!ended && since(begin) < delay) {
            std::this_thread::sleep_for(std::chrono::milliseconds(2));
            ended = waitpid(child, nullptr, WNOHANG) == child;
        }
        if (ended) {  // it was faster than the first one, which compiled; begin again
            full_duration = std::min(full_duration, since(begin));
            std::filesystem::remove(broken);
            continue;
        }
        kill(child, SIGKILL);
        killed += finish(child) == -SIGKILL;
        if (std::filesystem::exists(broken)) CHECK_NOTHROW((void)io::read_safetensors(broken));
        if (killed % 5 == 4) std::filesystem::remove(broken);  // so that early moments are tried again
    }
    MESSAGE("killed ", killed, " of ", kills, " runs");
    CHECK(killed == kills);
    REQUIRE(finish(start(command(broken, std::filesystem::exists(broken)))) == 0);
    CHECK(io::read_safetensors(broken).arrays == io::read_safetensors(unbroken).arrays);
}

constexpr const char* kFile = "DECLIVITY_KILLED_TRAINING";

}  // namespace

TEST_CASE("kill: killed at random moments and resumed, the result is identical bit for bit") {
    if (!std::filesystem::exists(mnist())) {
        test::skip("the sample mnist was not built");
        return;
    }
    kill_and_resume([](const std::string& file, bool resume) {
        std::vector<std::string> out{mnist(), "--limit",      "640", "--batch", "32", "--epochs",
                                     "4",     "--save-every", "3",   "--save",  file};
        if (resume) out.insert(out.end(), {"--load", file});
        return out;
    });
}

TEST_CASE("kill: a user-defined step with two optimizers, child process" * doctest::skip()) {
    const char* file = std::getenv(kFile);
    REQUIRE(file != nullptr);
    manual_seed(1);
    const data::SyntheticDigits digits(320, 1);
    nn::Sequential generator(nn::Linear(8, 32), nn::ReLU(), nn::Linear(32, 784), nn::Sigmoid());
    nn::Sequential critic(nn::Flatten(), nn::Linear(784, 32), nn::ReLU(), nn::Dropout(0.3), nn::Linear(32, 1));
    optim::Adam first(generator.parameters()), second(critic.parameters());
    train::Trainer trainer({.modules = {{"generator", generator}, {"critic", critic}},
                            .optimizers = {{"generator", first}, {"critic", second}}},
                           [&](train::Step& step, const data::Batch& batch) {
                               const Tensor generated = generator(randn({batch.size, 8}));
                               second.zero_grad();
                               const Tensor gap = mean(critic(batch["image"])) - mean(critic(generated.detach()));
                               step.backward(-gap);
                               second.step();
                               step.report("gap", gap);
                               if (step.number() % 2 == 1) return;
                               first.zero_grad();
                               step.backward(-mean(critic(generated)));
                               first.step();
                           });
    if (std::filesystem::exists(file)) trainer.load(file);
    CHECK(trainer.fit(
        digits,
        {.epochs = 6,
         .batch = 16,
         .callbacks = {std::make_shared<train::Checkpoint>(train::CheckpointOptions{.last = file, .every_steps = 3})},
         .quiet = true}));
}

TEST_CASE("kill: a user-defined step, killed at random moments and resumed, is identical bit for bit") {
    kill_and_resume([](const std::string& file, bool) {
        return std::vector<std::string>{"/usr/bin/env", std::string(kFile) + "=" + file,
                                        std::filesystem::read_symlink("/proc/self/exe"), "--no-skip",
                                        "--test-case=kill: a user-defined step with two optimizers*"};
    });
}
