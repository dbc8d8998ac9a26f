#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace gristmill {

/// Smallest key first, where most keys come in growing order: those stand in a plain row, the
/// others in a heap. What is removed is only counted and goes when it reaches the front, or when
/// more is gone than is left; so everything is O(1) for keys that grow, and O(log n) for others.
///
/// An entry names a slot of the owner and the slot's version: the owner raises the version when
/// the slot's content leaves, calls `removed`, and answers with `alive(entry)` which entries are
/// still there. The front is always alive.
template <class Key>
class lazy_queue {
public:
  struct entry {
    Key key;
    uint32_t slot = 0;
    uint32_t version = 0;

    friend bool operator<(const entry& a, const entry& b) { return a.key < b.key; }
  };

  bool empty() const { return alive_ == 0; }
  size_t size() const { return alive_; }

  const entry& front() const {
    if (head_ == row_.size())
      return heap_.front();
    return heap_.empty() || row_[head_] < heap_.front() ? row_[head_] : heap_.front();
  }

  void push(const entry& what) {
    ++alive_;
    if (head_ == row_.size() || !(what < row_.back())) {
      row_.push_back(what);
      return;
    }
    heap_.push_back(what);
    std::push_heap(heap_.begin(), heap_.end(), later);
  }

  template <class Function>
  void removed(Function alive) {
    if (--alive_ == 0) {
      row_.clear();
      heap_.clear();
      head_ = 0;
      return;
    }
    while (head_ < row_.size() && !alive(row_[head_]))
      ++head_;
    while (!heap_.empty() && !alive(heap_.front())) {
      std::pop_heap(heap_.begin(), heap_.end(), later);
      heap_.pop_back();
    }
    if (row_.size() + heap_.size() > 2 * alive_ + 32)
      sweep(alive);
  }

private:
  static bool later(const entry& a, const entry& b) { return b < a; }

  template <class Function>
  void sweep(Function alive) {
    auto gone = [&](const entry& e) { return !alive(e); };
    row_.erase(row_.begin(), row_.begin() + static_cast<std::ptrdiff_t>(head_));
    head_ = 0;
    std::erase_if(row_, gone);
    std::erase_if(heap_, gone);
    std::make_heap(heap_.begin(), heap_.end(), later);
  }

  /// In order, from `head_` on.
  std::vector<entry> row_;
  size_t head_ = 0;
  std::vector<entry> heap_;
  size_t alive_ = 0;
};

} // namespace gristmill
