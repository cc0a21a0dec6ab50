// Compares functions with PyTorch's on the samples that op_db.py wrote: values, and gradients of a weighted sum of
// them.
//
//   declivity_op_db FILE.json [OPERATOR...]
//
// Prints a line for each operator: how many samples agree, how many the function does not take (by whose word), and how
// many are wrong; the first wrong ones in full. Ends with 1 where one is wrong.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <fstream>
#include <iostream>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <vector>

#include <declivity/declivity.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "op_db.hpp"

using namespace declivity;
using namespace declivity::peers;

namespace {

struct Tally {
    int right = 0, refused = 0, wrong = 0;
    std::set<std::string> said;
};

/// How far from PyTorch's number a result may be: both round.
double allowed(DType dtype, double wanted, double largest) {
    switch (dtype) {
        case DType::f32:
            return 2e-5 * std::abs(wanted) + 1e-5 * largest;
        case DType::f64:
            return 1e-7 * std::abs(wanted) + 1e-9 * largest;
        default:
            return 0;
    }
}

std::vector<double> values_of(const Tensor& x) { return x.to(DType::f64).to_vector<double>(); }

std::string compared(const char* what, std::size_t at, const Tensor& got, const Tensor& wanted, bool type,
                     double loose = 1, double least = 1e-3) {
    if (!got.defined()) return fmt::format("{} {} is missing", what, at);
    if (!(got.shape() == wanted.shape()))
        return fmt::format("{} {} has shape {}, wants {}", what, at, got.shape().str(), wanted.shape().str());
    if (type && got.dtype() != wanted.dtype())
        return fmt::format("{} {} is {}, wants {}", what, at, name_of(got.dtype()), name_of(wanted.dtype()));
    const auto a = values_of(got), b = values_of(wanted);
    double largest = least;
    for (const double one : b)
        if (std::isfinite(one)) largest = std::max(largest, std::abs(one));
    for (std::size_t i = 0; i < a.size(); ++i) {
        const bool same = a[i] == b[i] || (std::isnan(a[i]) && std::isnan(b[i]));
        if (!same && !(std::abs(a[i] - b[i]) <= loose * allowed(wanted.dtype(), b[i], largest)))
            return fmt::format("{} {}: element {} of {} is {}, wants {}", what, at, i, got.shape().str(), a[i], b[i]);
    }
    return {};
}

std::string tried(const Adapter& adapter, const Json& call, const Reader& reader) {
    Arguments arguments(call, reader);
    const std::vector<Tensor> results = adapter(arguments);
    const Json& wanted = call["results"];
    const std::size_t compares = arguments.compares_first() ? 1 : results.size();
    if (results.size() != wanted.size()) return fmt::format("{} results, wants {}", results.size(), wanted.size());
    for (std::size_t i = 0; i < compares; ++i)
        if (auto text = compared("result", i, results[i], reader.tensor(wanted[i]), true); !text.empty()) return text;
    if (!call.contains("gradients") || arguments.compares_values_alone()) return {};
    Tensor total;
    for (std::size_t i = 0; i < results.size(); ++i) {
        if (call["weights"][i].is_null()) continue;
        if (!results[i].requires_grad()) continue;  // the gradient must be 0
        const Tensor part = sum(results[i] * reader.tensor(call["weights"][i]));
        total = total.defined() ? total + part : part;
    }
    const auto& inputs = arguments.differentiable();
    std::vector<Tensor> gradients(inputs.size());
    if (total.defined()) gradients = grad({total}, inputs, {.allow_unused = true});
    for (std::size_t i = 0; i < inputs.size() && i < call["gradients"].size(); ++i) {
        const bool none = call["gradients"][i].is_null();
        const Tensor expected = none ? zeros_like(inputs[i].detach()) : reader.tensor(call["gradients"][i]);
        const Tensor got = gradients[i].defined() ? gradients[i] : zeros_like(inputs[i].detach());
        if (auto text = compared("gradient", i, arguments.compared_part(i, got), arguments.compared_part(i, expected),
                                 false, arguments.looseness(), 1);
            !text.empty())
            return text;
    }
    return {};
}

}  // namespace

int main(int count, char** words) try {
    if (count < 2) {
        std::cerr << "declivity_op_db: wants the file that op_db.py wrote, and names of operators, if not all\n";
        return 2;
    }
    const std::string path = words[1];
    std::set<std::string> only(words + 2, words + count);
    std::ifstream file(path);
    const Json calls = Json::parse(file);
    const Reader reader(path.substr(0, path.rfind('.')) + ".bin", default_device());
    std::map<std::string, Tally> all;
    std::map<std::string, Adapter> known = adapters();
    std::set<std::string> unknown;
    for (const Json& call : calls) {
        const std::string name = call["op"];
        if (!only.empty() && !only.contains(name)) continue;
        const auto found = known.find(name);
        if (found == known.end()) {
            unknown.insert(name);
            continue;
        }
        Tally& tally = all[name];
        try {
            const std::string wrong = tried(found->second, call, reader);
            if (wrong.empty()) {
                ++tally.right;
                continue;
            }
            if (++tally.wrong <= 3) std::cout << fmt::format("WRONG {}: {}\n    {}\n", name, wrong, said(call));
        } catch (const Untaken& reason) {
            ++tally.refused;
            tally.said.insert(std::string("(not taken) ") + reason.what());
        } catch (const Error& error) {
            ++tally.refused;
            tally.said.insert(std::string(error.what()).substr(0, 110));
        }
    }
    int right = 0, wrong = 0, refused = 0;
    for (const auto& [name, tally] : all) {
        right += tally.right, wrong += tally.wrong, refused += tally.refused;
        std::cout << fmt::format("{:42} {:4} agree {:4} not taken {:4} wrong\n", name, tally.right, tally.refused,
                                 tally.wrong);
        int shown = 0;
        for (const std::string& one : tally.said)
            if (shown++ < 4) std::cout << "      " << one << "\n";
    }
    if (only.empty() && !unknown.empty()) {
        std::cout << "Operators without an adapter:";
        for (const std::string& one : unknown) std::cout << " " << one;
        std::cout << "\n";
    }
    std::cout << fmt::format("{} operators: {} samples agree, {} are not taken, {} are wrong\n", all.size(), right,
                             refused, wrong);
    return wrong == 0 ? 0 : 1;
} catch (const std::exception& error) {
    std::cerr << "declivity_op_db: " << error.what() << "\n";
    return 2;
}
