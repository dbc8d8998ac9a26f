#include "actors/verdict_book.hpp"

namespace gristmill {

bool verdict_book::decided(const event& verdict) {
  std::lock_guard lock{guard_};
  if (given_up_.contains(verdict.attempt))
    return false;
  decided_[verdict.attempt] = verdict;
  return true;
}

bool verdict_book::is_given_up(const std::string& attempt) const {
  std::lock_guard lock{guard_};
  return given_up_.contains(attempt);
}

void verdict_book::counted(const std::string& attempt) {
  std::lock_guard lock{guard_};
  decided_.erase(attempt);
}

std::optional<event> verdict_book::give_up(const std::string& attempt) {
  std::lock_guard lock{guard_};
  if (auto found = decided_.extract(attempt); !found.empty())
    return std::move(found.mapped());
  if (given_up_.insert(attempt).second)
    in_order_.push_back(attempt);
  if (in_order_.size() > given_up_max) {
    given_up_.erase(in_order_.front());
    in_order_.pop_front();
  }
  return std::nullopt;
}

} // namespace gristmill
