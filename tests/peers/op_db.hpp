// What adapters of op_db.cpp are made with.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include <declivity/declivity.hpp>
#include <nlohmann/json.hpp>

namespace declivity::peers {

using Json = nlohmann::json;

/// A sample that the function does not take by design.
struct Untaken : std::runtime_error {
    using std::runtime_error::runtime_error;
};

/// The elements of tensors.
class Reader {
  public:
    Reader(const std::string& path, const Device& device);
    [[nodiscard]] Tensor tensor(const Json& json) const;

  private:
    std::vector<char> bytes_;
    Device device_;
};

/// A call's arguments, by place or by name; those that nobody asked for make the sample untaken.
class Arguments {
  public:
    Arguments(const Json& call, const Reader& reader);

    [[nodiscard]] bool has(std::size_t place, const char* name = nullptr);
    /// And is not null.
    [[nodiscard]] bool given(std::size_t place, const char* name = nullptr);
    Tensor tensor(std::size_t place, const char* name = nullptr);
    /// Undefined where there is none.
    Tensor tensor_or_none(std::size_t place, const char* name = nullptr);
    std::vector<Tensor> tensors(std::size_t place, const char* name = nullptr);
    TensorOrScalar tensor_or_number(std::size_t place, const char* name = nullptr);
    std::int64_t integer(std::size_t place, const char* name, std::optional<std::int64_t> otherwise = std::nullopt);
    double number(std::size_t place, const char* name, std::optional<double> otherwise = std::nullopt);
    Scalar scalar(std::size_t place, const char* name, std::optional<Scalar> otherwise = std::nullopt);
    bool flag(std::size_t place, const char* name, bool otherwise);
    std::string word(std::size_t place, const char* name, const std::string& otherwise);
    /// A list of integers, or one; None among them is -1.
    Dims dims(std::size_t place, const char* name, const std::optional<Dims>& otherwise = std::nullopt);
    /// A list of numbers, or one.
    std::vector<double> numbers(std::size_t place, const char* name);
    /// As it stands in the file; null where there is none.
    [[nodiscard]] const Json& raw(std::size_t place, const char* name = nullptr);
    /// Of what op_db.py writes for a dtype.
    static DType dtype(const Json& json);
    /// Named so, whatever it is: does not matter.
    void ignore(const char* name);
    [[nodiscard]] std::size_t places() const { return args_.size(); }

    /// Results behind the first are not compared: which of equal elements is meant is left open.
    void compare_first() { first_ = true; }
    [[nodiscard]] bool compares_first() const { return first_; }
    /// What PyTorch gave, where several results are right and one has to be chosen, such as the sign of a vector.
    [[nodiscard]] Tensor wanted(std::size_t place) const { return reader_->tensor(results_.at(place)); }
    [[nodiscard]] bool has_wanted(std::size_t place) const { return place < results_.size(); }
    /// Gradients may differ more than results: PyTorch's own in f32 are not exact.
    void loosen(double factor) { loose_ = factor; }
    /// Those of f16 and bf16.
    void loosen_reduced_precision(double factor) {
        if (reduced_precision_) loose_ = factor;
    }
    void set_reduced_precision(bool on) { reduced_precision_ = on; }
    [[nodiscard]] double looseness() const { return loose_; }
    /// Of the gradient of the i-th differentiable tensor only one triangle is compared: PyTorch's has numbers in the
    /// other one, too, which the function does not read.
    void compare_triangle(std::size_t i, bool upper) { triangles_[i] = upper; }
    /// A gradient as far as it is compared.
    [[nodiscard]] Tensor compared_part(std::size_t i, const Tensor& gradient) const {
        const auto found = triangles_.find(i);
        if (found == triangles_.end() || gradient.numel() == 0) return gradient;
        return found->second ? triu(gradient) : tril(gradient);
    }
    /// No gradients: PyTorch's are wrong, which central differences show.
    void compare_values_alone() { values_alone_ = true; }
    [[nodiscard]] bool compares_values_alone() const { return values_alone_; }
    /// Those that a gradient is wanted for, in PyTorch's order.
    [[nodiscard]] const std::vector<Tensor>& attach_backward() const { return differentiable_; }
    /// @throws Untaken where arguments were not asked for
    void require_all_used() const;

  private:
    const Json* find(std::size_t place, const char* name);
    Tensor made(const Json& json);

    std::vector<Json> args_, results_;
    std::map<std::string, Json> kwargs_;
    std::vector<bool> used_;
    std::map<std::string, bool> used_names_;
    std::map<std::string, Tensor> tensors_;  // by their text, so that each is made once
    std::vector<Tensor> differentiable_;
    const Reader* reader_;
    std::map<std::size_t, bool> triangles_;
    bool first_ = false, values_alone_ = false, reduced_precision_ = false;
    double loose_ = 1;
};

using Adapter = std::function<std::vector<Tensor>(Arguments&)>;
using Table = std::map<std::string, Adapter>;
Table adapters();
/// What a file op_db_<name>.cpp ends in: `const Adapters own{add_name};`
struct Adapters {
    explicit Adapters(void (*add)(Table& all));
};
/// reduction, and the words for it that came before.
Reduction reduction_of(Arguments& a);
/// The call as text.
std::string said(const Json& call);

}  // namespace declivity::peers
