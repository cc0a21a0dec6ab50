// Layer 1, for the library's own use. Objects that each thread has one of.
#pragma once

#include <utility>

namespace declivity::detail {

/// One T for each thread and Tag. It is destroyed with the thread's other objects; whoever asks for it later, such as
/// the destructor of an object in static storage, gets a new one, where a plain thread_local would give a destroyed
/// one.
template <class T, class Tag>
class PerThread {
  public:
    static T& get() {
        if (value_ == nullptr) {
            value_ = new T();
            static thread_local const End end;
            (void)end;
        }
        return *value_;
    }

  private:
    struct End {
        End() = default;
        End(const End&) = delete;
        End& operator=(const End&) = delete;
        ~End() { delete std::exchange(value_, nullptr); }
    };
    inline static thread_local constinit T* value_ = nullptr;
};

}  // namespace declivity::detail
