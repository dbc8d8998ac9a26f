#pragma once

#include "llm/transport/http_port.hpp"

#include <chrono>
#include <condition_variable>
#include <doctest/doctest.h>
#include <map>
#include <mutex>
#include <string>
#include <vector>

namespace gristmill {

/// Everything that was reported of one call.
struct collected {
  uint32_t status = 0;
  http_headers headers;
  std::vector<sse_event> events;
  std::string body;
  int reports = 0;
  int ends = 0;
  http_end how = http_end::complete;
  std::string why;

  std::string data() const {
    std::string out;
    for (const auto& each : events)
      out += (out.empty() ? "" : "|") + each.data;
    return out;
  }
  std::string header(const std::string& name) const {
    for (const auto& [key, value] : headers)
      if (key == name)
        return value;
    return "(none)";
  }
};

/// What a port reports, from whatever thread, and a way to wait for it that always ends.
class collector {
public:
  http_sink sink() {
    return [this](http_report report) {
      const std::lock_guard guard(mutex_);
      auto& call = calls_[report.id];
      ++call.reports;
      if (report.status != 0)
        call.status = report.status;
      if (!report.headers.empty())
        call.headers = report.headers;
      for (auto& each : report.events)
        call.events.push_back(std::move(each));
      if (report.ended) {
        ++call.ends;
        call.how = report.how;
        call.why = report.why;
        call.body = report.body;
      }
      changed_.notify_all();
    };
  }

  /// Waits for the end of the call; 20 s are more than any test needs.
  collected ended(uint64_t id) {
    std::unique_lock lock(mutex_);
    const bool came = changed_.wait_for(
      lock, std::chrono::seconds{20}, [&] { return calls_.contains(id) && calls_[id].ends > 0; });
    REQUIRE_MESSAGE(came, "call " << id << " has no end");
    return calls_[id];
  }
  /// Waits for that many events of it.
  collected with_events(uint64_t id, size_t count) {
    std::unique_lock lock(mutex_);
    const bool came = changed_.wait_for(lock, std::chrono::seconds{20},
      [&] { return calls_.contains(id) && calls_[id].events.size() >= count; });
    REQUIRE_MESSAGE(came, "call " << id << " has no " << count << " events");
    return calls_[id];
  }
  collected so_far(uint64_t id) {
    const std::lock_guard guard(mutex_);
    return calls_[id];
  }

private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<uint64_t, collected> calls_;
};

} // namespace gristmill
