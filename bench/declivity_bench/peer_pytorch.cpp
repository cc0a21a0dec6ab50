#include "peer_pytorch.hpp"

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <stdexcept>

#include <declivity/io/host_array.hpp>
#include <declivity/io/state_dict.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

namespace declivity::bench {
namespace {

/// The PyTorch process; it ends with this one, when its input is closed.
class Process {
  public:
    static Process& instance() {
        static auto* process = new Process;
        return *process;
    }

    void send_request(const nlohmann::json& request) {
        const std::string line = request.dump() + "\n";
        if (std::fputs(line.c_str(), to_) < 0 || std::fflush(to_) != 0) throw std::runtime_error("PyTorch has ended");
        std::string answer;
        for (int c = std::fgetc(from_); c != '\n'; c = std::fgetc(from_)) {
            if (c == EOF) throw std::runtime_error("PyTorch has ended");
            answer.push_back(static_cast<char>(c));
        }
        if (answer != "ok") throw std::runtime_error("PyTorch says: " + answer);
    }
    [[nodiscard]] std::filesystem::path file(const std::string& name) const { return folder_ / name; }

  private:
    Process() {
        const char* python = std::getenv("DECLIVITY_BENCH_PYTHON");
        if (python == nullptr) throw std::runtime_error("DECLIVITY_BENCH_PYTHON names no Python");
        int in[2], out[2];
        if (pipe(in) != 0 || pipe(out) != 0) throw std::runtime_error("no pipe");
        const pid_t child = fork();
        if (child == 0) {
            dup2(in[0], 0), dup2(out[1], 1);
            for (const int descriptor : {in[0], in[1], out[0], out[1]}) close(descriptor);
            execlp(python, python, DECLIVITY_BENCH_PEERS "/pytorch_calls.py", nullptr);
            _exit(127);
        }
        close(in[0]), close(out[1]);
        to_ = fdopen(in[1], "w"), from_ = fdopen(out[0], "r");
        folder_ = std::filesystem::temp_directory_path() / fmt::format("declivity_bench_{}", getpid());
        std::filesystem::create_directories(folder_);
        std::atexit([] { std::filesystem::remove_all(instance().folder_); });
    }

    std::FILE *to_ = nullptr, *from_ = nullptr;
    std::filesystem::path folder_;
};

const char* numpy_name(DType dtype) {
    switch (dtype) {
        case DType::f32:
            return "float32";
        case DType::f64:
            return "float64";
        case DType::i32:
            return "int32";
        case DType::i64:
            return "int64";
        case DType::boolean:
            return "bool";
        default:
            throw std::runtime_error("no numpy type");
    }
}

}  // namespace

bool has_pytorch() { return std::getenv("DECLIVITY_BENCH_PYTHON") != nullptr; }

Pytorch pytorch(const PytorchCase& test_case) {
    Process& process = Process::instance();
    nlohmann::json load = nlohmann::json::array();
    for (std::size_t i = 0; i < test_case.inputs.size(); ++i) {
        const io::HostArray elements = io::to_host(test_case.inputs[i]);
        const auto path = process.file(fmt::format("x{}", i));
        std::ofstream(path, std::ios::binary)
            .write(reinterpret_cast<const char*>(elements.bytes.data()),
                   static_cast<std::streamsize>(elements.bytes.size()));
        std::vector<std::int64_t> shape(test_case.inputs[i].shape().begin(), test_case.inputs[i].shape().end());
        load.push_back({{"path", path.string()}, {"shape", shape}, {"dtype", numpy_name(test_case.inputs[i].dtype())}});
    }
    process.send_request({{"load", load}});
    const auto out = process.file("out");
    process.send_request({{"case", test_case.code}, {"out", out.string()}, {"leaves", test_case.leaves}});
    Pytorch output;
    output.result.resize(std::filesystem::file_size(out) / sizeof(double));
    std::ifstream(out, std::ios::binary)
        .read(reinterpret_cast<char*>(output.result.data()),
              static_cast<std::streamsize>(output.result.size() * sizeof(double)));
    // Calls are counted and executed at the wait.
    const auto pending = std::make_shared<int>(0);
    output.contender = {"PyTorch", [pending](int) { ++*pending; },
                        [pending] {
                            Process::instance().send_request({{"run", std::exchange(*pending, 0)}});
                        }};
    return output;
}

}  // namespace declivity::bench
