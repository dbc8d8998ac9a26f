#pragma once

#include "messages/event.hpp"

#include <cstddef>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>

namespace gristmill {

/// What scorer and planner must agree on when the machine of a worker is lost between them: either
/// the attempt has its verdict, which then counts although nobody brought it, or it never gets one
/// and is given out again. Without it a candidate could be judged twice. Any thread may call.
class verdict_book {
public:
  /// Of the scorer, with the event of a verdict that is about to be kept. False when the attempt
  /// was given up: no verdict is kept then.
  bool decided(const event& verdict);
  /// Whether `decided` would say no.
  bool is_given_up(const std::string& attempt) const;
  /// Of the planner: the summary has come, or the attempt has ended otherwise.
  void counted(const std::string& attempt);
  /// Of the planner: whoever would bring the summary is lost. Its verdict, if there is one; from
  /// now on there will be none.
  std::optional<event> give_up(const std::string& attempt);

private:
  /// Enough for every attempt that can still be on its way to a verdict.
  static constexpr size_t given_up_max = 65536;

  mutable std::mutex guard_;
  std::map<std::string, event> decided_;
  std::set<std::string> given_up_;
  std::deque<std::string> in_order_;
};

} // namespace gristmill
