#include "cli/read_run.hpp"

#include "journal/event_line.hpp"
#include "journal/event_log.hpp"
#include "journal/run_directory.hpp"

namespace gristmill {

namespace {

constexpr size_t events_a_read = 10'000;

} // namespace

result<std::vector<event>> read_events(const std::filesystem::path& folder) {
  auto directory = run_directory::open(folder);
  if (!directory)
    return pass(directory);
  auto log = event_log::open(directory->database_file(), event_log::mode::read);
  if (!log)
    return pass(log);
  std::vector<event> events;
  for (;;) {
    auto from = events.empty() ? 1 : events.back().seq + 1;
    auto more = log->read(from, events_a_read);
    if (!more)
      return pass(more);
    if (more->empty())
      return events;
    events.insert(events.end(), more->begin(), more->end());
  }
}

result<read_back> read_run(const std::filesystem::path& folder) {
  auto events = read_events(folder);
  if (!events)
    return pass(events);
  auto table = make_run_table(*events);
  if (!table)
    return fail(table.error().code, folder.string() + ": " + table.error().what);
  table->digest = digest(*events);
  return read_back{std::move(*table)};
}

} // namespace gristmill
