#include "simulation/replay/trace_file.hpp"

#include "journal/event_line.hpp"
#include "journal/event_log.hpp"

#include <array>
#include <cstdio>
#include <cstring>
#include <fmt/format.h>
#include <functional>
#include <memory>

namespace gristmill {

namespace fs = std::filesystem;

namespace {

constexpr size_t events_a_read = 5'000;

/// Gets every event, or what was wrong with its line; false ends the reading.
using event_sink = std::function<bool(result<event>&&, uint64_t line)>;

struct file_closer {
  void operator()(std::FILE* file) const { std::fclose(file); }
};
using open_file = std::unique_ptr<std::FILE, file_closer>;

result<open_file> open_to_read(const fs::path& path) {
  open_file file(std::fopen(path.c_str(), "rb"));
  if (!file)
    return fail(errc::io_failed, path.string() + ": " + std::strerror(errno));
  return file;
}

/// Lines of a file, each at most as long as an event may be. `line` counts on.
result<bool> read_lines(const fs::path& path, uint64_t& line, const event_sink& sink) {
  auto file = open_to_read(path);
  if (!file)
    return pass(file);
  std::string pending;
  bool too_long = false;
  auto end_line = [&]() -> bool {
    ++line;
    if (too_long)
      return sink(
        fail(errc::invalid_input, fmt::format("longer than {} bytes", event_line_bytes_max)), line);
    if (!pending.empty() && pending.back() == '\r')
      pending.pop_back();
    if (pending.empty())
      return true;
    return sink(parse_line(pending), line);
  };
  std::array<char, 65536> buffer;
  for (;;) {
    auto count = std::fread(buffer.data(), 1, buffer.size(), file->get());
    if (count == 0)
      break;
    size_t from = 0;
    while (from < count) {
      const auto* feed =
        static_cast<const char*>(std::memchr(buffer.data() + from, '\n', count - from));
      auto to = feed == nullptr ? count : static_cast<size_t>(feed - buffer.data());
      if (pending.size() + (to - from) > event_line_bytes_max)
        too_long = true;
      else
        pending.append(buffer.data() + from, to - from);
      from = to + 1;
      if (feed == nullptr)
        break;
      if (!end_line())
        return false;
      pending.clear();
      too_long = false;
    }
  }
  if (std::ferror(file->get()) != 0)
    return fail(errc::io_failed, path.string() + ": cannot be read");
  if (!pending.empty() || too_long)
    return end_line();
  return true;
}

result<bool> read_database(const fs::path& path, const event_sink& sink) {
  auto log = event_log::open(path, event_log::mode::read);
  if (!log) {
    // For whoever replays it, a file that is no log is an input that is wrong.
    auto code = log.error().code == errc::io_failed ? errc::invalid_input : log.error().code;
    return fail(code, log.error().what);
  }
  uint64_t from = 1;
  for (;;) {
    auto more = log->read(from, events_a_read);
    if (!more)
      return fail(errc::invalid_input, more.error().what);
    if (more->empty())
      return true;
    from = more->back().seq + 1;
    for (auto& e : *more) {
      auto line = e.seq;
      if (!sink(std::move(e), line))
        return false;
    }
  }
}

bool is_database(const fs::path& path) {
  auto file = open_to_read(path);
  if (!file)
    return false;
  std::array<char, 16> head{};
  return std::fread(head.data(), 1, head.size(), file->get()) == head.size()
    && std::memcmp(head.data(), "SQLite format 3", 16) == 0;
}

result<void> for_each_event(const fs::path& path, const event_sink& sink) {
  std::error_code error;
  auto status = fs::status(path, error);
  if (!fs::exists(status))
    return fail(errc::not_found, path.string() + ": no such file or folder");
  std::vector<fs::path> files{path};
  if (fs::is_directory(status)) {
    files.clear();
    if (fs::exists(path / "run.db", error))
      files.push_back(path / "run.db");
    else
      for (const auto* name : {"journal.1.jsonl", "journal.jsonl"})
        if (fs::exists(path / name, error))
          files.push_back(path / name);
    if (files.empty())
      return fail(errc::not_found,
        path.string() + ": neither a run directory (run.db) nor that of a broker (journal.jsonl)");
  } else if (!fs::is_regular_file(status) && !fs::is_fifo(status)) {
    return fail(errc::invalid_input, path.string() + ": not a file");
  }
  uint64_t line = 0;
  for (const auto& file : files) {
    auto done = fs::is_regular_file(file, error) && is_database(file)
      ? read_database(file, sink)
      : read_lines(file, line, sink);
    if (!done)
      return pass(done);
    if (!*done)
      break;
  }
  return {};
}

/// The messages of the reader begin with "line N"; those of a line that is no event do not.
std::string placed(const fs::path& path, uint64_t line, const std::string& what) {
  return what.starts_with("line ") ? fmt::format("{}: {}", path.string(), what)
                                   : fmt::format("{}: line {}: {}", path.string(), line, what);
}

} // namespace

result<lease_trace> read_lease_trace(const fs::path& path, const lease_trace_limits& limits) {
  lease_trace_reader reader(limits);
  std::optional<failure> wrong;
  auto done = for_each_event(path, [&](result<event>&& e, uint64_t line) {
    auto taken = e ? reader.take(*e, line) : result<void>{tl::unexpected<failure>(e.error())};
    if (!taken)
      wrong = failure{taken.error().code, placed(path, line, taken.error().what)};
    return taken && !reader.over();
  });
  if (!done)
    return pass(done);
  if (wrong)
    return tl::unexpected<failure>(*wrong);
  auto trace = reader.finish();
  if (!trace)
    return fail(trace.error().code, path.string() + ": " + trace.error().what);
  return trace;
}

result<trace_findings> check_lease_trace(const fs::path& path, const lease_trace_limits& limits) {
  constexpr size_t told_max = 100;
  trace_findings out;
  auto found = [&](std::string what) {
    if (++out.faults_total <= told_max)
      out.faults.push_back(std::move(what));
  };
  lease_trace_reader reader(limits);
  auto done = for_each_event(path, [&](result<event>&& e, uint64_t line) {
    auto taken = e ? reader.take(*e, line) : result<void>{tl::unexpected<failure>(e.error())};
    if (!taken)
      found(placed(path, line, taken.error().what));
    // Beyond a limit every line would say the same.
    return (taken || taken.error().code != errc::refused) && !reader.over();
  });
  if (!done)
    return pass(done);
  auto trace = reader.finish();
  if (trace)
    out.trace = std::move(*trace);
  else
    found(path.string() + ": " + trace.error().what);
  return out;
}

} // namespace gristmill
