// Layer 2, private. Elementwise expressions: trees of functions over views, and the kernels made from them.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include <declivity/ops/epilogue.hpp>
#include <declivity/ops/function.hpp>
#include <declivity/ops/scalar.hpp>
#include <declivity/ops/lazy_array.hpp>
#include <declivity/ops/view.hpp>

namespace declivity::ops {

/// What a function takes and gives.
enum class Domain : std::uint8_t {
    real,     ///< floating numbers, all of one type; gives that type
    number,   ///< any numbers of one type; gives that type
    compare,  ///< any numbers of one type; gives bool
    integer,  ///< integers of one type, or bools; gives that type
    shift,    ///< integers of one type; gives that type
    choose,   ///< a bool, then numbers of one type; gives that type
    logic,    ///< bools; gives bool
};

/// What a function's gradient is, where it needs no kernel of its own and is taken up by others.
enum class GradientForm : std::uint8_t {
    none,
    g,
    minus_g,
    g_times_a,
    g_times_b,
    g_times_p,
    other,
};

/// One row of the table, and what follows from it.
struct FunctionInfo {
    std::string_view name;
    Domain domain;
    int inputs;              ///< 1: x; 2: a, b; 3: a, b, c
    int parameters;          ///< numbers that are no tensors: p, q
    std::string_view value;  ///< OpenCL C
    /// With respect to each input, from g, the inputs and the result y; "" for none, or where it is always composed.
    std::array<std::string_view, 3> gradient;

    /// Whether the value calls functions such as exp, which cost more than to store what they give.
    bool costly = false;
    /// Whether the value calls functions of cl_kernels/lib/division.clh, and of cl_kernels/lib/special.clh.
    bool divides = false, special = false;
    struct Gradient {
        GradientForm form = GradientForm::none;
        bool costly = false;
        std::array<bool, 3> needs_input{};  ///< whether it mentions this input
        bool needs_result = false;
    };
    std::array<Gradient, 3> of_gradient{};
    /// Whether there is a gradient with respect to some input.
    bool has_gradient = false;
};
DECLIVITY_API const FunctionInfo& info(Function function);

/// Whether a name of one letter stands in a text of OpenCL C or C++.
constexpr bool mentions(std::string_view text, char name) {
    const auto is_part_of_word = [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
    };
    for (std::size_t i = text.find(name); i != std::string_view::npos; i = text.find(name, i + 1))
        if ((i == 0 || !is_part_of_word(text[i - 1])) && (i + 1 == text.size() || !is_part_of_word(text[i + 1])))
            return true;
    return false;
}

/// A value for each element of a shape, not computed yet. Cheap to copy.
class DECLIVITY_API Expression {
  public:
    Expression() = default;
    /// The elements of a view.
    Expression(const View& view);  // NOLINT: a view is an expression
    /// Those of a value, computed or not.
    Expression(const LazyArray& value);  // NOLINT: and so is a value
    /// The same number everywhere; it takes the type of what it is combined with.
    static Expression constant(Scalar value, DType dtype);
    /// In an Epilogue: the value that the operator before it computed.
    static Expression operator_result(DType dtype, const Shape& shape);
    /// function(inputs...), which broadcast.
    /// @param called what errors call the function, where that is not its name in the table
    /// @throws ShapeError, TypeError, DeviceError naming the function; ValueError when an integer type cannot hold a
    /// parameter
    static Expression apply(Function function, std::span<const Expression> inputs,
                            std::span<const Scalar> parameters = {}, std::string_view called = {});
    /// The gradient of function(...) for one input: from the gradient of its result, the inputs, and the result.
    /// Those that the table's rule does not mention may be empty.
    static Expression gradient(Function function, int input, const Expression& result_gradient,
                               std::span<const Expression> inputs, const Expression& result,
                               std::span<const Scalar> parameters);
    /// Another type: to bool means "is not 0". From floating to integers the fraction is dropped, numbers out of range
    /// become the nearest in range, NaN becomes 0; between integers high bits are dropped. To f16 and bf16 to nearest,
    /// ties to even, once; from integers by way of f32.
    static Expression cast(const Expression& from, DType to);

    [[nodiscard]] explicit operator bool() const noexcept { return node_ != nullptr; }
    [[nodiscard]] const Shape& shape() const;
    [[nodiscard]] DType dtype() const;

    [[nodiscard]] const std::shared_ptr<const ExpressionNode>& node() const noexcept { return node_; }
    explicit Expression(std::shared_ptr<const ExpressionNode> node) : node_(std::move(node)) {}

  private:
    std::shared_ptr<const ExpressionNode> node_;
};

/// Computes an expression into `out`, which may have any strides without zeros. It may be one of the inputs, or
/// overlap them: then the result is as if they had been read before.
DECLIVITY_API void evaluate(const Expression& expression, const View& out);
/// Computes it into dense memory of its own.
DECLIVITY_API View evaluate(const Expression& expression, const Device& device);

/// What a heavy operator (matmul, convolution) does to each element of its result before it is stored: an expression
/// of operator_result(), or none.
inline Epilogue epilogue_of(const Expression& expression) { return Epilogue(expression.node()); }
inline Expression expression_of(const Epilogue& epilogue) { return Expression(epilogue.node()); }

}  // namespace declivity::ops
