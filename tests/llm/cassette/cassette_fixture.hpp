#pragma once

#include "llm/cassette/cassette.hpp"
#include "tests/journal/temporary_folder.hpp"
#include "tests/llm/transport/collector.hpp"

#include <doctest/doctest.h>
#include <fstream>
#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

namespace gristmill {

/// A port that sends nothing; the test says what comes back. Used by one thread.
struct hand_port final : http_port {
  explicit hand_port(http_sink to) : sink(std::move(to)) {}
  ~hand_port() override {
    for (const auto id : std::exchange(open, {})) {
      http_report last;
      last.id = id;
      last.ended = true;
      last.how = http_end::cancelled;
      sink(last);
    }
  }

  void start(http_call call) override {
    open.push_back(call.id);
    started.push_back(std::move(call));
  }
  void cancel(uint64_t id) override { end(id, http_end::cancelled); }
  void finished(uint64_t) override { ++finishes; }

  void head(uint64_t id, uint32_t status, http_headers headers = {}) {
    http_report out;
    out.id = id;
    out.status = status;
    out.headers = std::move(headers);
    sink(out);
  }
  void event(uint64_t id, const std::string& data, const std::string& name = "") {
    http_report out;
    out.id = id;
    out.status = 200;
    out.events = {{name, data}};
    sink(out);
  }
  void end(uint64_t id, http_end how = http_end::complete, const std::string& body = "",
    const std::string& why = "") {
    if (std::erase(open, id) == 0)
      return;
    http_report out;
    out.id = id;
    out.ended = true;
    out.how = how;
    out.body = body;
    out.why = why;
    sink(out);
  }
  /// A whole answer.
  void answer(uint64_t id, const std::string& data) {
    head(id, 200);
    event(id, data);
    end(id);
  }

  http_sink sink;
  std::vector<http_call> started;
  std::vector<uint64_t> open;
  int finishes = 0;
};

struct cassette_fixture {
  /// The next port of `factory`, owned by what wraps it.
  hand_port* hand = nullptr;
  http_port_factory factory = [this](http_sink sink) {
    auto out = std::make_unique<hand_port>(std::move(sink));
    hand = out.get();
    return out;
  };
  temporary_folder folder;
  std::filesystem::path file = folder.path / "run.jsonl";
  collector reports;
  int64_t clock_ms = 0;

  recording_options recording() {
    recording_options out;
    out.file = file;
    out.now = [this] { return std::chrono::nanoseconds{std::chrono::milliseconds{clock_ms}}; };
    return out;
  }
  std::unique_ptr<http_port> recorder() {
    auto out = make_recording_port(recording(), factory, reports.sink());
    REQUIRE_MESSAGE(out, (out ? "" : out.error().what));
    return std::move(*out);
  }
  std::unique_ptr<http_port> appender() {
    auto out = make_append_port(recording(), factory, reports.sink());
    REQUIRE_MESSAGE(out, (out ? "" : out.error().what));
    return std::move(*out);
  }
  std::unique_ptr<http_port> player(collector& to, replay_options options = {}) {
    options.file = file;
    auto out = make_replay_port(options, to.sink());
    REQUIRE_MESSAGE(out, (out ? "" : out.error().what));
    return std::move(*out);
  }

  static http_call call(uint64_t id, const std::string& body) {
    http_call out;
    out.id = id;
    out.url = "https://api.example.com/v1/chat";
    out.body = body;
    return out;
  }
  static http_call prompt(uint64_t id, const std::string& text) {
    return call(id, R"({"model":"m","messages":[{"role":"user","content":")" + text + "\"}]}");
  }

  std::string content() const {
    std::ostringstream out;
    out << std::ifstream(file, std::ios::binary).rdbuf();
    return out.str();
  }
  void write(const std::string& text) const { std::ofstream(file, std::ios::binary) << text; }
  size_t lines() const {
    const auto all = content();
    return static_cast<size_t>(std::count(all.begin(), all.end(), '\n'));
  }
};

} // namespace gristmill
