// Layer 1. Names for what the program is doing, for error messages and profiles.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include <declivity/export.hpp>

namespace declivity {

namespace detail {
struct OperatorRun;
}

/// Names of scopes, outermost first, joined by '/'. Copies share the text.
class DECLIVITY_API ScopePath {
  public:
    ScopePath() = default;
    explicit ScopePath(std::string_view text);
    [[nodiscard]] const std::string& str() const noexcept;
    operator const std::string&() const noexcept { return str(); }  // NOLINT: it is a text
    [[nodiscard]] bool empty() const noexcept { return text_ == nullptr; }
    friend bool operator==(const ScopePath& a, std::string_view b) { return a.str() == b; }

  private:
    std::shared_ptr<const std::string> text_;
};

/// While one lives, errors made by this thread say where they happened: "... (in Net/conv1)". A running Profiler shows
/// it as a span of this thread.
class DECLIVITY_API Scope {
  public:
    explicit Scope(std::string_view name);
    ~Scope();
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

    /// The open scopes of this thread.
    static ScopePath path();

  private:
    ScopePath path_before_;  // where somebody asked for it
    std::size_t length_before_;
    std::int64_t begin_;  // ns; 0 where nobody profiles
};

class FunctionScope;

/// While one lives, the scopes of this thread are those of `path`, as Scope::path() gave it, and it is in no function:
/// for what was put off.
class DECLIVITY_API ResumedScope {
  public:
    /// @param waiting what was put off, which errors name, as another call may run into them; outlives the scope
    explicit ResumedScope(const ScopePath& path, std::string_view waiting = {});
    ~ResumedScope();
    ResumedScope(const ResumedScope&) = delete;
    ResumedScope& operator=(const ResumedScope&) = delete;

    /// What was put off and runs now; empty when nothing is.
    static std::string_view waiting() noexcept;

  private:
    ScopePath before_;
    std::string_view waiting_before_;
    const FunctionScope* function_before_;
};

/// Whether a Profiler runs somewhere, so that making a name for a span is worth while.
DECLIVITY_API bool profiling() noexcept;

/// What a span is: the category of its event in a trace.
enum class SpanKind : std::uint8_t { module, function, backward, operator_, wait };

/// While one lives, a running Profiler shows a span of this thread. Errors do not speak of it. Where nobody profiles it
/// costs a look at a flag.
class DECLIVITY_API Span {
  public:
    /// @param name must outlive the span
    explicit Span(std::string_view name, SpanKind kind = SpanKind::function);
    ~Span();
    Span(const Span&) = delete;
    Span& operator=(const Span&) = delete;

  private:
    std::string_view name_;
    std::int64_t begin_;
    SpanKind kind_;
};

/// While one lives, this thread is in a call of this function, or on its way back (SpanKind::backward). An error that
/// a function within it throws under its own name says by which it was called: "linear: expected ... (called by
/// lstm_cell)". It is a Span, too.
class DECLIVITY_API FunctionScope {
  public:
    /// @param name must outlive the scope
    explicit FunctionScope(std::string_view name, SpanKind kind = SpanKind::function);
    ~FunctionScope();
    FunctionScope(const FunctionScope&) = delete;
    FunctionScope& operator=(const FunctionScope&) = delete;

    [[nodiscard]] std::string_view name() const noexcept { return name_; }
    [[nodiscard]] SpanKind kind() const noexcept { return kind_; }
    /// The one around it, null for the outermost.
    [[nodiscard]] const FunctionScope* caller() const noexcept { return caller_; }
    /// The innermost of this thread, null outside of functions.
    static const FunctionScope* current() noexcept;

  private:
    std::string_view name_;
    SpanKind kind_;
    const FunctionScope* caller_;
    Span span_;
};

/// What an operator does, by its formula: an estimate of what a device must do at least, not a count of what it did.
struct Work {
    double flops = 0;  ///< additions, multiplications and functions
    double bytes = 0;  ///< of operands and results, each once
    bool f64 = false;  ///< in double precision
};

/// While one lives, what this thread launches is one operator that does so much work. Of several kernels the one that
/// took most of the time carries all of it in a profile, and scopes within this one add nothing. It is a Span, too.
class DECLIVITY_API WorkScope {
  public:
    /// @param name must outlive the scope
    WorkScope(std::string_view name, const Work& work);
    ~WorkScope();
    WorkScope(const WorkScope&) = delete;
    WorkScope& operator=(const WorkScope&) = delete;

  private:
    Span span_;
    std::shared_ptr<detail::OperatorRun> run_;  // of the outermost, while somebody profiles
};

}  // namespace declivity
