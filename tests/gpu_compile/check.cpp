// Compiles kernels for GPUs on a machine without one, and reports their resource usage.
//
//   gpu_compile_check [--library FOLDER --only-forced FILE] [--every N [--from K]] [--each] [--jobs N] FOLDER|FILE...
//
// Each .cl file written by the library (DECLIVITY_DUMP_KERNELS) is compiled by clang and libclc for AMD gfx906 and, if
// ptxas is in PATH, for NVIDIA sm_80. A kernel fails if it does not compile, spills registers (up to 32 scalar ones may
// be in lanes of vector registers, more in double), or has private arrays in scratch memory ("local memory" in CUDA).
// The numbers are those of LLVM and ptxas, not of the drivers' compilers.
//
//   --library FOLDER    all kernels of the .cl files in this folder must be among those compiled, or
//   --only-forced FILE  in this list of kernels that simt devices do not use unless forced: lines "KERNEL: reason"
//                       (or "PREFIX*: reason"). A listed kernel that is compiled or does not exist is an error
//   --every N           only every N-th program of each kernel, at least one: compiling all takes many minutes
//   --from K            with --every: offset K of the selection
//   --each              a row for each program; otherwise for each kernel, with its worst program
//   --jobs N            number of parallel compilers
//   --compilers         only prints which compilers are used
//
// DECLIVITY_CLANG and DECLIVITY_LIBCLC select another compiler and another folder of libclc. Exit code 77 if there is
// none.
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <mutex>
#include <optional>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace {

namespace fs = std::filesystem;

constexpr int kSkipped = 77;
constexpr int kOldestClang = 15, kNewestClang = 30;
constexpr long kMaxScalarSpills = 32;
constexpr const char* kAmd = "gfx906";
constexpr const char* kNvidia = "sm_80";

std::string quoted(const std::string& text) {
    std::string out = "'";
    for (const char c : text) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
    return out + "'";
}

struct Output {
    int code;
    std::string text;  // stdout and stderr
};

Output run(const std::string& command) {
    FILE* pipe = popen(("LC_ALL=C " + command + " 2>&1").c_str(), "r");
    if (pipe == nullptr) return {-1, "no process could be started"};
    std::string text;
    std::array<char, 4096> part{};
    for (std::size_t n = 0; (n = std::fread(part.data(), 1, part.size(), pipe)) > 0;) text.append(part.data(), n);
    const int status = pclose(pipe);
    return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, std::move(text)};
}

std::string text_of(const fs::path& file) {
    std::ifstream in(file, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
}

std::string line_with(const std::string& text, const std::string& word) {
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);)
        if (line.find(word) != std::string::npos) return line;
    return text.substr(0, text.find('\n'));
}

// ---- compilers

struct Compilers {
    std::string clang, version;
    std::string amd_library, nvidia_library;  // the latter is empty without ptxas
    std::string ptxas, ptxas_version;

    /// @param to the assembly file, or /dev/null
    [[nodiscard]] std::string for_amd(const std::string& options, const fs::path& from) const {
        return clang + " -x cl " + options + " -O3 -w -target amdgcn-mesa-mesa3d -mcpu=" + kAmd +
               " -nogpulib -Xclang -mlink-builtin-bitcode -Xclang " + quoted(amd_library) +
               " -Rpass-analysis=kernel-resource-usage -fno-caret-diagnostics -S -o /dev/null " + quoted(from.string());
    }
    [[nodiscard]] std::string for_nvidia(const std::string& options, const fs::path& from, const fs::path& to) const {
        return clang + " -x cl " + options + " -O3 -w -target nvptx64--nvidiacl -Xclang -target-cpu -Xclang " +
               kNvidia + " -Xclang -mlink-builtin-bitcode -Xclang " + quoted(nvidia_library) +
               " -fno-caret-diagnostics -S -o " + quoted(to.string()) + " " + quoted(from.string());
    }
    [[nodiscard]] std::string assembled(const fs::path& from) const {
        return ptxas + " -v -arch=" + kNvidia + " -o /dev/null " + quoted(from.string());
    }
};

std::vector<std::string> clangs() {
    if (const char* configured = std::getenv("DECLIVITY_CLANG"); configured != nullptr && *configured != '\0')
        return {configured};
    std::vector<std::string> names;
    for (int version = kOldestClang; version <= kNewestClang; ++version)
        names.push_back("clang-" + std::to_string(version));
    names.emplace_back("clang");
    return names;
}

std::vector<fs::path> library_folders(int version) {
    if (const char* configured = std::getenv("DECLIVITY_LIBCLC"); configured != nullptr && *configured != '\0')
        return {configured};
    const std::string llvm = "/usr/lib/llvm-" + std::to_string(version);
    return {"/usr/lib/clc",      "/usr/share/clc", llvm + "/lib/clc",
            llvm + "/share/clc", "/usr/lib64/clc", "/usr/local/share/clc"};
}

/// The first clang and libclc that compile a kernel with a library function.
std::optional<Compilers> find_compilers(const fs::path& scratch) {
    const fs::path probe = scratch / "probe.cl";
    std::ofstream(probe)
        << "__kernel void probe(__global float* x) { x[get_global_id(0)] = sqrt(x[get_global_id(0)]); }\n";
    for (const std::string& clang : clangs()) {
        const Output output = run(clang + " --version");
        std::smatch match;
        if (output.code != 0 || !std::regex_search(output.text, match, std::regex("version ([0-9]+)\\.[0-9.]+")) ||
            std::stoi(match[1]) < kOldestClang)
            continue;
        for (const fs::path& folder : library_folders(std::stoi(match[1]))) {
            Compilers compilers{.clang = clang,
                                .version = match[0],
                                .amd_library = (folder / (std::string(kAmd) + "-amdgcn-mesa-mesa3d.bc")).string(),
                                .nvidia_library = {},
                                .ptxas = {},
                                .ptxas_version = {}};
            if (!fs::exists(compilers.amd_library) || run(compilers.for_amd("-cl-std=CL1.2", probe)).code != 0)
                continue;
            const Output ptxas = run("ptxas --version");
            compilers.nvidia_library = (folder / "nvptx64--nvidiacl.bc").string();
            const fs::path assembly = scratch / "probe.ptx";
            compilers.ptxas = "ptxas";
            if (ptxas.code != 0 || !fs::exists(compilers.nvidia_library) ||
                run(compilers.for_nvidia("-cl-std=CL1.2", probe, assembly)).code != 0 ||
                run(compilers.assembled(assembly)).code != 0)
                compilers.ptxas.clear();
            else if (std::regex_search(ptxas.text, match, std::regex("V[0-9.]+"))) compilers.ptxas_version = match[0];
            return compilers;
        }
    }
    return std::nullopt;
}

// ---- kernels

/// Resource usage of one kernel, by one compiler.
struct Amd {
    long vector_registers = 0, scalar_registers = 0, vector_spills = 0, scalar_spills = 0, scratch = 0, local = 0,
         waves = 0;
};
struct Nvidia {
    long registers = 0, spilled = 0, stack = 0, local = 0;
};
struct Result {
    std::string kernel, program;
    std::optional<Amd> amd;
    std::optional<Nvidia> nvidia;
    std::vector<std::string> faults;
};

/// Parses the number after `name:` in the remarks that follow "Function Name: kernel".
std::optional<Amd> amd_of(const std::string& remarks, const std::string& kernel) {
    const std::regex line("remark: +([A-Za-z /\\[\\]]+): ([A-Za-z0-9_.$]+)");
    bool in_section = false;
    Amd out;
    bool found = false;
    for (std::sregex_iterator at(remarks.begin(), remarks.end(), line), end; at != end; ++at) {
        const std::string name = (*at)[1], value = (*at)[2];
        if (name == "Function Name") {
            in_section = value == kernel;
            found = found || in_section;
            continue;
        }
        if (!in_section) continue;
        const std::map<std::string_view, long*> fields{
            {"VGPRs", &out.vector_registers},       {"SGPRs", &out.scalar_registers},
            {"TotalSGPRs", &out.scalar_registers},  {"VGPRs Spill", &out.vector_spills},
            {"SGPRs Spill", &out.scalar_spills},    {"ScratchSize [bytes/lane]", &out.scratch},
            {"LDS Size [bytes/block]", &out.local}, {"Occupancy [waves/SIMD]", &out.waves}};
        if (const auto field = fields.find(name); field != fields.end()) *field->second = std::stol(value);
    }
    return found ? std::optional(out) : std::nullopt;
}

std::optional<Nvidia> nvidia_of(const std::string& output, const std::string& kernel) {
    const std::size_t begin = output.find("Compiling entry function '" + kernel + "'");
    if (begin == std::string::npos) return std::nullopt;
    const std::string in_section = output.substr(begin, output.find("Compiling entry function", begin + 1) - begin);
    const auto number = [&](const char* text) {
        std::smatch match;
        return std::regex_search(in_section, match, std::regex(text)) ? std::stol(match[1]) : 0;
    };
    return Nvidia{.registers = number("Used ([0-9]+) registers"),
                  .spilled = number("([0-9]+) bytes spill stores") + number("([0-9]+) bytes spill loads"),
                  .stack = number("([0-9]+) bytes stack frame"),
                  .local = number("([0-9]+) bytes smem")};
}

/// A program and its launched kernels.
struct Program {
    fs::path file;
    std::vector<std::string> kernels;
    std::string options;
    bool uses_f64 = false;  // f64 is for verification, not for speed (math.clh)
};

std::string comment_value(const std::string& text, const std::string& what) {
    std::smatch match;
    return std::regex_search(text, match, std::regex("// " + what + ": ([^\n]*)\n")) ? match[1].str() : std::string();
}

std::vector<Program> programs_in(const std::vector<fs::path>& places) {
    std::vector<fs::path> files;
    for (const fs::path& place : places) {
        if (!fs::is_directory(place)) files.push_back(place);
        else
            for (const auto& entry : fs::directory_iterator(place))
                if (entry.path().extension() == ".cl") files.push_back(entry.path());
    }
    std::ranges::sort(files);
    std::map<std::string, Program> programs_by_text;  // without the first line, which names the kernel
    for (const fs::path& file : files) {
        const std::string text = text_of(file);
        Program& program = programs_by_text[text.substr(std::min(text.size(), text.find('\n')))];
        program.file = file;
        program.kernels.push_back(comment_value(text, "kernel"));
        program.options = comment_value(text, "options");
        program.uses_f64 = text.find("#define REAL_IS_DOUBLE") != std::string::npos;
    }
    std::vector<Program> out;
    for (auto& [text, program] : programs_by_text) out.push_back(std::move(program));
    return out;
}

/// Every n-th program of each kernel, at least one.
std::vector<Program> every(int n, int from, std::vector<Program> programs) {
    std::map<std::string, int> count, seen;
    for (const Program& program : programs)
        for (const std::string& kernel : program.kernels) ++count[kernel];
    std::erase_if(programs, [&](const Program& program) {
        bool is_kept = false;
        for (const std::string& kernel : program.kernels)
            is_kept = seen[kernel]++ % n == from % std::min(n, count[kernel]) || is_kept;
        return !is_kept;
    });
    return programs;
}

/// libclc for NVIDIA has no get_work_dim(), which the drivers have.
fs::path completed(const fs::path& from, const fs::path& to) {
    std::ofstream out(to);
    out << std::ifstream(from).rdbuf() << "\nuint __attribute__((overloadable)) get_work_dim(void) { return 1; }\n";
    return to;
}

std::vector<Result> compiled(const Compilers& compilers, const Program& program, const fs::path& assembly) {
    const Output amd = run(compilers.for_amd(program.options, program.file));
    Output nvidia{0, ""};
    std::string stage = std::string("does not compile for ") + kNvidia + ": ";
    if (!compilers.ptxas.empty()) {
        const fs::path whole = completed(program.file, fs::path(assembly).replace_extension(".whole.cl"));
        nvidia = run(compilers.for_nvidia(program.options, whole, assembly));
        fs::remove(whole);
        if (nvidia.code == 0) nvidia = run(compilers.assembled(assembly)), stage = "ptxas refuses it: ";
    }
    std::vector<Result> results;
    for (const std::string& kernel : program.kernels) {
        Result result{.kernel = kernel, .program = program.file.string(), .amd = {}, .nvidia = {}, .faults = {}};
        const auto fault = [&](const std::string& text) { result.faults.push_back(text); };
        const auto bytes = [&](const char* compiler, long count, const char* what) {
            if (count > 0) fault(std::string(compiler) + ": " + std::to_string(count) + what);
        };
        if (amd.code != 0) fault(std::string("does not compile for ") + kAmd + ": " + line_with(amd.text, "error"));
        else if (!(result.amd = amd_of(amd.text, kernel))) fault("there is no kernel of this name in the program");
        if (result.amd) {
            bytes(kAmd, result.amd->vector_spills, " vector registers spilled");
            // Scalar spills go to lanes of vector registers, not to memory; otherwise they count as scratch. LLVM
            // spills the constants of two libclc calls in double this way; a kernel with many arguments may use half of
            // a vector register.
            if (!program.uses_f64 && result.amd->scalar_spills > kMaxScalarSpills)
                bytes(kAmd, result.amd->scalar_spills, " scalar registers spilled");
            bytes(kAmd, result.amd->scratch, " bytes of scratch memory a work-item");
        }
        if (nvidia.code != 0) fault(stage + line_with(nvidia.text, "error"));
        else if (!compilers.ptxas.empty() && !(result.nvidia = nvidia_of(nvidia.text, kernel)))
            fault("ptxas says nothing of it");
        if (result.nvidia) {
            bytes(kNvidia, result.nvidia->spilled, " bytes of registers spilled");
            bytes(kNvidia, result.nvidia->stack, " bytes of stack a work-item");
        }
        results.push_back(std::move(result));
    }
    return results;
}

// ---- output

/// The element-wise maximum of both.
void worsen(Result& all, const Result& result) {
    const auto keep_larger = [](long& a, long b) { a = std::max(a, b); };
    if (result.amd && !all.amd) all.amd = result.amd;
    else if (result.amd) {
        keep_larger(all.amd->vector_registers, result.amd->vector_registers);
        keep_larger(all.amd->scalar_registers, result.amd->scalar_registers);
        keep_larger(all.amd->vector_spills, result.amd->vector_spills);
        keep_larger(all.amd->scalar_spills, result.amd->scalar_spills);
        keep_larger(all.amd->scratch, result.amd->scratch);
        keep_larger(all.amd->local, result.amd->local);
        all.amd->waves = std::min(all.amd->waves, result.amd->waves);
    }
    if (result.nvidia && !all.nvidia) all.nvidia = result.nvidia;
    else if (result.nvidia) {
        keep_larger(all.nvidia->registers, result.nvidia->registers);
        keep_larger(all.nvidia->spilled, result.nvidia->spilled);
        keep_larger(all.nvidia->stack, result.nvidia->stack);
        keep_larger(all.nvidia->local, result.nvidia->local);
    }
}

void print(const std::vector<Result>& results, bool print_each) {
    std::map<std::string, std::pair<Result, int>> rows;
    for (const Result& result : results) {
        auto [row, first] =
            rows.try_emplace(print_each ? fs::path(result.program).stem().string() : result.kernel, result, 0);
        if (!first) worsen(row->second.first, result);
        ++row->second.second;
    }
    std::printf("%-42s%9s |%6s%6s%8s%8s%7s%6s |%10s%8s%7s%7s\n", "", "", "VGPRs", "SGPRs", "spills", "scratch", "local",
                "waves", "registers", "spilled", "stack", "local");
    std::printf("%-42s%9s |%-41s |%s\n", "kernel", "programs", (std::string(" ") + kAmd).c_str(),
                (std::string(" ") + kNvidia).c_str());
    for (const auto& [name, row] : rows) {
        const auto& [worst, count] = row;
        std::printf("%-42s%9d |", name.c_str(), count);
        if (worst.amd)
            std::printf("%6ld%6ld%8ld%8ld%7ld%6ld |", worst.amd->vector_registers, worst.amd->scalar_registers,
                        worst.amd->vector_spills + worst.amd->scalar_spills, worst.amd->scratch, worst.amd->local,
                        worst.amd->waves);
        else std::printf("%41s |", "-");
        if (worst.nvidia)
            std::printf("%10ld%8ld%7ld%7ld\n", worst.nvidia->registers, worst.nvidia->spilled, worst.nvidia->stack,
                        worst.nvidia->local);
        else std::printf("%10s\n", "-");
    }
}

// ---- list of kernels that are only used when forced

/// Kernel and reason.
std::map<std::string, std::string> list_in(const fs::path& file) {
    std::map<std::string, std::string> list;
    std::istringstream lines(text_of(file));
    for (std::string line; std::getline(lines, line);)
        if (const std::size_t colon = line.find(": "); !line.empty() && line[0] != '#' && colon != std::string::npos)
            list[line.substr(0, colon)] = line.substr(colon + 2);
    return list;
}

std::set<std::string> kernels_of_library(const fs::path& folder) {
    std::set<std::string> kernels;
    const std::regex kernel("__kernel[^(;]*(?:\\(\\([^)]*\\([^)]*\\)\\)\\)\\s*)?void\\s+([a-z0-9_]+)\\(");
    for (const auto& entry : fs::recursive_directory_iterator(folder)) {
        if (entry.path().extension() != ".cl") continue;
        const std::string text = text_of(entry.path());
        for (std::sregex_iterator at(text.begin(), text.end(), kernel), end; at != end; ++at) kernels.insert((*at)[1]);
    }
    return kernels;
}

/// Returns whether a list entry matches this kernel: "prefix_*" matches all names with that prefix.
bool is_meant(const std::string& is_listed, const std::string& kernel) {
    return is_listed.ends_with('*') ? kernel.starts_with(is_listed.substr(0, is_listed.size() - 1))
                                    : is_listed == kernel;
}

/// Prints the errors and returns their number.
int check_list(const std::set<std::string>& library, const std::map<std::string, std::string>& forced,
               const std::vector<Result>& results) {
    std::set<std::string> seen;
    for (const Result& result : results) seen.insert(result.kernel);
    int wrong = 0;
    const auto report_entry = [&](const std::string& kernel, const char* text) {
        std::printf("FAILED: %s: %s\n", kernel.c_str(), text);
        ++wrong;
    };
    const auto is_listed = [&](const std::string& kernel) {
        return std::ranges::any_of(forced, [&](const auto& entry) { return is_meant(entry.first, kernel); });
    };
    for (const std::string& kernel : library)
        if (!seen.contains(kernel) && !is_listed(kernel))
            report_entry(kernel, "not collected, and not listed as only forced");
    for (const auto& [name, reason] : forced) {
        const auto meant = [&name = name](const std::string& kernel) { return is_meant(name, kernel); };
        if (std::ranges::none_of(library, meant))
            report_entry(name, "listed as only forced, and the library has no such kernel");
        for (const std::string& kernel : seen)
            if (meant(kernel)) report_entry(kernel, "listed as only forced, and yet given to a simt device");
        if (reason.empty()) report_entry(name, "listed as only forced without a reason");
    }
    return wrong;
}

}  // namespace

int main(int argc, char** argv) try {
    std::vector<fs::path> places;
    fs::path library, forced;
    bool print_each = false, only_compilers = false;
    unsigned jobs = 1;
    int nth = 1, from = 0;
    for (int i = 1; i < argc; ++i) {
        const std::string_view word = argv[i];
        if (word == "--each") print_each = true;
        else if (word == "--compilers") only_compilers = true;
        else if (word == "--library" && i + 1 < argc) library = argv[++i];
        else if (word == "--only-forced" && i + 1 < argc) forced = argv[++i];
        else if (word == "--every" && i + 1 < argc) nth = std::max(1, std::atoi(argv[++i]));
        else if (word == "--from" && i + 1 < argc) from = std::max(0, std::atoi(argv[++i]));
        else if (word == "--jobs" && i + 1 < argc) jobs = static_cast<unsigned>(std::max(1, std::atoi(argv[++i])));
        else places.emplace_back(word);
    }
    const fs::path scratch = fs::temp_directory_path() / ("gpu_compile_" + std::to_string(getpid()));
    fs::create_directories(scratch);
    const struct Cleaner {
        const fs::path& folder;
        ~Cleaner() {
            std::error_code ignored;
            fs::remove_all(folder, ignored);
        }
    } cleaner{scratch};
    const auto compilers = find_compilers(scratch);
    if (!compilers) {
        std::printf(
            "SKIPPED: found no clang (%d or newer) and libclc that compile for AMD's %s; on Debian 12: apt-get install "
            "clang-15 libclc-15\n",
            kOldestClang, kAmd);
        return kSkipped;
    }
    std::printf("%s %s, %s for %s; %s\n", compilers->clang.c_str(), compilers->version.c_str(),
                compilers->amd_library.c_str(), kAmd,
                compilers->ptxas.empty()
                    ? "no ptxas in PATH that accepts its assembly: NVIDIA is not checked"
                    : (std::string("ptxas ") + compilers->ptxas_version + " for " + kNvidia).c_str());
    std::fflush(stdout);
    if (only_compilers) return 0;
    const std::vector<Program> programs = every(nth, from, programs_in(places));
    if (programs.empty()) {
        std::printf("FAILED: no .cl file to compile\n");
        return 1;
    }

    std::vector<std::vector<Result>> results_by_program(programs.size());
    std::atomic<std::size_t> next{0};
    const auto work = [&](unsigned worker) {
        for (std::size_t i = 0; (i = next++) < programs.size();)
            results_by_program[i] = compiled(*compilers, programs[i], scratch / (std::to_string(worker) + ".ptx"));
    };
    std::vector<std::thread> workers;
    for (unsigned worker = 1; worker < jobs; ++worker) workers.emplace_back(work, worker);
    work(0);
    for (std::thread& worker : workers) worker.join();

    std::vector<Result> results;
    for (auto& some : results_by_program) std::ranges::move(some, std::back_inserter(results));
    print(results, print_each);
    int wrong = 0;
    for (const Result& result : results)
        for (const std::string& fault : result.faults) {
            std::printf("FAILED: %s: %s (%s)\n", result.kernel.c_str(), fault.c_str(), result.program.c_str());
            ++wrong;
        }
    const auto list = forced.empty() ? std::map<std::string, std::string>{} : list_in(forced);
    if (!library.empty()) wrong += check_list(kernels_of_library(library), list, results);
    if (!list.empty()) {
        std::printf("only for simd devices, not compiled:\n");
        for (const auto& [kernel, reason] : list) std::printf("  %-38s%s\n", kernel.c_str(), reason.c_str());
    }
    std::printf("%zu programs, %zu kernels: %d faults\n", programs.size(), results.size(), wrong);
    return wrong == 0 ? 0 : 1;
} catch (const std::exception& error) {
    std::fprintf(stderr, "gpu_compile_check: %s\n", error.what());
    return 1;
}
