#pragma once

#include "messages/blob.hpp"
#include "messages/candidate.hpp"
#include "messages/verdict.hpp"
#include "messages/wire.hpp"

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <iterator>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace gristmill {

/// How much of a measurement an attempt asks for.
enum class attempt_effort : uint8_t {
  /// Every workload: the only effort whose verdict can make an incumbent.
  full = 0,
  /// A few workloads, to find out cheaply whether the candidate is worth more.
  probe,
};

std::string to_string(attempt_effort effort);

/// Median time of one workload, in nanoseconds.
struct workload_time {
  std::string uuid;
  uint64_t ns = 0;
};

/// What is known about a candidate that was tried before on the same problem.
struct trial {
  std::string key;
  verdict_status status = verdict_status::not_checked;
  /// `verdict::objective_ns`; 0 unless passed.
  uint64_t objective_ns = 0;
  /// `verdict::floor_share`; 0 unless passed.
  f64 floor_share;
  /// A probe and a full trial of one point have different keys.
  attempt_effort effort = attempt_effort::full;
  /// Of the workloads that were measured, in the problem's order; empty unless passed.
  std::vector<workload_time> times;
  candidate_ref candidate;
  /// As in `verdict`.
  blob_ref feedback;
};

/// The trials of a problem, oldest first. A trial never changes once it is here, and copies of a
/// history share their trials: a run keeps each once, however many assignments carry it. Between
/// machines it travels as a plain sequence.
class trial_history {
public:
  class iterator {
  public:
    using iterator_category = std::random_access_iterator_tag;
    using value_type = trial;
    using difference_type = std::ptrdiff_t;
    using pointer = const trial*;
    using reference = const trial&;

    iterator() = default;
    iterator(const trial_history* of, difference_type place) : of_(of), place_(place) {}
    reference operator*() const { return (*of_)[static_cast<size_t>(place_)]; }
    pointer operator->() const { return &**this; }
    reference operator[](difference_type n) const { return *(*this + n); }
    iterator& operator+=(difference_type n) {
      place_ += n;
      return *this;
    }
    iterator& operator-=(difference_type n) { return *this += -n; }
    iterator& operator++() { return *this += 1; }
    iterator& operator--() { return *this += -1; }
    iterator operator++(int) { return {of_, place_++}; }
    iterator operator--(int) { return {of_, place_--}; }
    friend iterator operator+(iterator a, difference_type n) { return a += n; }
    friend iterator operator+(difference_type n, iterator a) { return a += n; }
    friend iterator operator-(iterator a, difference_type n) { return a -= n; }
    friend difference_type operator-(const iterator& a, const iterator& b) {
      return a.place_ - b.place_;
    }
    friend bool operator==(const iterator& a, const iterator& b) { return a.place_ == b.place_; }
    friend auto operator<=>(const iterator& a, const iterator& b) { return a.place_ <=> b.place_; }

  private:
    const trial_history* of_ = nullptr;
    difference_type place_ = 0;
  };

  /// One trial of it, for the reader and writer of messages.
  struct row {
    std::shared_ptr<const trial> seen;
  };

  trial_history() = default;
  trial_history(std::initializer_list<trial> trials) {
    for (const auto& t : trials)
      push_back(t);
  }

  size_t size() const { return rows_.size(); }
  bool empty() const { return rows_.empty(); }
  const trial& operator[](size_t place) const { return *rows_[place].seen; }
  const trial& front() const { return *rows_.front().seen; }
  const trial& back() const { return *rows_.back().seen; }
  iterator begin() const { return {this, 0}; }
  iterator end() const { return {this, static_cast<std::ptrdiff_t>(size())}; }

  void push_back(trial seen) { rows_.push_back({std::make_shared<const trial>(std::move(seen))}); }
  /// Another trial in the place of one; copies made before keep the old one.
  void replace(size_t place, trial seen) {
    rows_[place].seen = std::make_shared<const trial>(std::move(seen));
  }
  void erase(size_t place) { rows_.erase(rows_.begin() + static_cast<std::ptrdiff_t>(place)); }
  /// Also gives the memory back.
  void clear() { rows_ = std::vector<row>{}; }

  template <class Inspector>
  friend typename Inspector::result_type inspect(Inspector& f, trial_history& x) {
    return f(x.rows_);
  }

private:
  std::vector<row> rows_;
};

} // namespace gristmill
