#pragma once

#include "llm/dialects/dialect.hpp"
#include "llm/traffic/gateway_core.hpp"
#include "llm/transport/http_port.hpp"

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>

namespace gristmill {

/// Turns the reports of one transfer into the one `try_result` that the core decides on. Pure.
class call_reader {
public:
  /// `cap`: the most tokens that the call allows for its answer.
  call_reader(uint64_t id, const dialect& how, uint32_t cap);

  /// The result, once, with the report that has `ended`. `now_utc` is for instants in headers.
  std::optional<try_result> take(const http_report& report, std::chrono::nanoseconds since_sent,
    std::chrono::sys_seconds now_utc);

  /// True once: the dialect's terminal event has come, and the port is to be told.
  bool just_finished();

private:
  try_result end(const http_report& last, std::chrono::sys_seconds now_utc);

  uint64_t id_;
  const dialect& how_;
  uint32_t cap_;
  std::unique_ptr<reply_decoder> decoder_;
  uint32_t status_ = 0;
  http_headers headers_;
  bool any_event_ = false;
  bool finished_told_ = false;
  std::chrono::nanoseconds first_event_{0};
};

} // namespace gristmill
