// Layer 1, private. Thread-local objects.
#pragma once

#include <utility>

namespace declivity::detail {

/// One T for each thread and Tag. It is destroyed with the other thread-local objects; a later access, for example by
/// the destructor of a static object, creates a new one, whereas a plain thread_local would return a destroyed one.
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
