// Configurations of models, adapters and checkpoints.
#include <algorithm>
#include <array>
#include <filesystem>

#include <declivity/io/lora.hpp>
#include <declivity/io/safetensors.hpp>
#include <declivity/models/config.hpp>
#include <declivity/nn/nn.hpp>
#include <declivity/optim/sgd.hpp>
#include <declivity/tensor/creation.hpp>
#include <declivity/train/trainer.hpp>

#include "target.hpp"
#include "tests/support/temp_folder.hpp"

namespace declivity::fuzz {
namespace {

namespace fs = std::filesystem;
using test::get_file;
using test::put_file;
using test::TempFolder;

std::vector<Bytes> config_seeds() {
    const TempFolder folder;
    std::vector<Bytes> out;
    const auto add = [&](const auto& config) {
        config.save(folder / "f");
        out.push_back(get_file(folder / "f"));
    };
    add(models::GPT2Config{});
    add(models::LlamaConfig{.rope_scaling = {.rope_type = "llama3", .factor = 4}});
    add(models::BERTConfig{});
    add(models::ViTConfig{});
    return out;
}

template <class Config>
bool run_one_config(const std::string& path) {
    static const TempFolder folder;
    return attempt(path, [&] {
        const Config config = Config::load(path);
        config.check();
        config.save(folder / "f");
        Config::load(folder / "f").check();
    });
}

bool run_config(Input input) {
    const InputFile file(input);
    const std::array read{
        run_one_config<models::GPT2Config>(file.path()), run_one_config<models::LlamaConfig>(file.path()),
        run_one_config<models::BERTConfig>(file.path()), run_one_config<models::ViTConfig>(file.path())};
    return std::ranges::count(read, true) > 0;
}

std::vector<Bytes> adapter_seeds() {
    return {bytes_of(R"({"peft_type":"LORA","bias":"none","r":2,"lora_alpha":4,"lora_dropout":0.1,"use_rslora":false,)"
                     R"("target_modules":["0"],"use_dora":false,"rank_pattern":{}})"),
            bytes_of(R"({"peft_type":"LORA","r":2,"target_modules":"all-linear"})")};
}

/// A configuration next to adapters that match the first seed.
bool run_adapter(Input input) {
    static const TempFolder folder;
    static const bool ready = [] {
        nn::Sequential net(nn::Linear(3, 4));
        nn::add_lora(net, {.r = 2, .target_modules = {"0"}});
        io::save_lora(net, folder.path());
        return true;
    }();
    require(ready, "no adapters");
    put_file(folder / "adapter_config.json", input);
    try {
        nn::Sequential net(nn::Linear(3, 4));
        io::load_lora(net, folder.path());
        return true;
    } catch (const FormatError& error) {
        require(error.file() == (folder / "adapter_config.json").string(), "a FormatError does not name the file");
    } catch (const Error&) {
    }
    return false;
}

constexpr const char* kRecord = "declivity.checkpoint";

struct Training {
    TempFolder folder;
    nn::Sequential model{nn::Linear(2, 2)};
    optim::SGD optimizer{model.parameters(), {.lr = 0.1}};
    train::Trainer trainer{model, optimizer};
    io::Safetensors saved;

    Training() {
        trainer.save(folder / "f");
        saved = io::read_safetensors(folder / "f");
    }
    static Training& instance() {
        static Training training;
        return training;
    }
};

std::vector<Bytes> checkpoint_seeds() { return {bytes_of(Training::instance().saved.metadata.at(kRecord))}; }

/// The metadata of a checkpoint whose tensors match.
bool run_checkpoint(Input input) {
    Training& training = Training::instance();
    io::Safetensors content = training.saved;
    content.metadata[kRecord] = text_of(input);
    const fs::path path = training.folder / "f";
    try {
        io::write_safetensors(path, content);
    } catch (const ValueError&) {  // invalid UTF-8
        return false;
    }
    return attempt(path.string(), [&] { training.trainer.load(path); });
}

}  // namespace

std::vector<Target> model_targets() {
    return {{"config", config_seeds, run_config},
            {"adapter_config", adapter_seeds, run_adapter, 200},
            {"checkpoint", checkpoint_seeds, run_checkpoint, 200}};
}

}  // namespace declivity::fuzz
