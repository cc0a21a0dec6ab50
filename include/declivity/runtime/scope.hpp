// Floor 1. Names for what the program is doing, for error messages and profiles.
#pragma once

#include <string>
#include <string_view>

#include <declivity/export.hpp>

namespace declivity {

/// While one lives, errors made by this thread say where they happened: "... (in Net/conv1)".
class DECLIVITY_API Scope {
  public:
    explicit Scope(std::string_view name);
    ~Scope();
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

    /// Names of the open scopes of this thread, outermost first, joined by '/'; empty when there is none.
    static std::string path();

  private:
    std::size_t length_before_;
};

/// While one lives, the scopes of this thread are those of `path`, as Scope::path() gave it: for what was put off.
class DECLIVITY_API ResumedScope {
  public:
    explicit ResumedScope(const std::string& path);
    ~ResumedScope();
    ResumedScope(const ResumedScope&) = delete;
    ResumedScope& operator=(const ResumedScope&) = delete;

  private:
    std::string before_;
};

}  // namespace declivity
