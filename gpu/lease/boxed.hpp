#pragma once

#include <memory>
#include <utility>

namespace gristmill {

/// A value that is seldom there and large when it is: one pointer, copied with its owner. Reading
/// an empty box gives a value as it is made by default.
template <class T>
class boxed {
public:
  boxed() = default;
  boxed(T what) : what_(std::make_unique<T>(std::move(what))) {}
  boxed(const boxed& other) : what_(other.what_ ? std::make_unique<T>(*other.what_) : nullptr) {}
  boxed(boxed&&) noexcept = default;
  boxed& operator=(boxed other) noexcept {
    what_ = std::move(other.what_);
    return *this;
  }

  explicit operator bool() const { return what_ != nullptr; }
  const T& operator*() const { return what_ ? *what_ : nothing(); }
  const T* operator->() const { return &**this; }

  /// Takes the value out and leaves the box empty.
  T take() {
    T out = what_ ? std::move(*what_) : T{};
    what_.reset();
    return out;
  }

private:
  static const T& nothing() {
    static const T empty{};
    return empty;
  }

  std::unique_ptr<T> what_;
};

} // namespace gristmill
