#pragma once

#include "llm/transport/curl_port.hpp"
#include "tests/llm/transport/collector.hpp"
#include "tests/llm/transport/test_server.hpp"

#include <memory>
#include <string>
#include <utility>

namespace gristmill {

/// A server with a script, a port and what it reports. The port goes first, as in a program.
struct served {
  explicit served(std::function<void(test_connection&)> script, curl_port_options options = {})
    : server(std::move(script)), port(make_curl_port(std::move(options), reports.sink())) {}

  http_call call(uint64_t id = 1) const {
    http_call out;
    out.id = id;
    out.url = server.url();
    out.body = R"({"stream":true})";
    // Long enough for a machine that is busy; a test that wants to see one end sets it.
    out.deadlines = {std::chrono::seconds{15}, std::chrono::seconds{15}, std::chrono::seconds{15},
      std::chrono::seconds{15}};
    return out;
  }
  collected run(http_call what) {
    const auto id = what.id;
    port->start(std::move(what));
    return reports.ended(id);
  }

  collector reports;
  test_server server;
  std::unique_ptr<http_port> port;
};

} // namespace gristmill
