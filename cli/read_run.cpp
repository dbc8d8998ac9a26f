#include "cli/read_run.hpp"

#include "journal/event_line.hpp"
#include "journal/event_log.hpp"
#include "journal/hash.hpp"
#include "journal/run_directory.hpp"
#include "protocol/json_document.hpp"
#include "protocol/nearest.hpp"

#include <algorithm>
#include <fstream>
#include <sstream>

namespace gristmill {

namespace {

namespace fs = std::filesystem;

constexpr size_t events_a_read = 10'000;
constexpr size_t text_max = size_t{64} << 20;

/// Runs beside the folder that was named, and those in the usual place.
std::vector<std::string> runs_near(const fs::path& folder) {
  std::vector<std::string> out;
  for (const auto& place :
    {folder.parent_path().empty() ? fs::path(".") : folder.parent_path(), fs::path("runs")}) {
    std::error_code error;
    for (const auto& entry : fs::directory_iterator(place, error)) {
      std::error_code ignored;
      if (fs::exists(entry.path() / "run.db", ignored))
        out.push_back(entry.path().lexically_normal().string());
    }
  }
  std::sort(out.begin(), out.end());
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

} // namespace

result<run_directory> open_run(const std::filesystem::path& folder) {
  auto directory = run_directory::open(folder);
  if (directory || directory.error().code != errc::not_found)
    return directory;
  auto named = folder.lexically_normal();
  if (!named.has_filename())
    named = named.parent_path(); // Of "runs/mine/".
  return fail(
    errc::not_found, directory.error().what + suggestion(named.string(), runs_near(named)));
}

result<run_settings> read_settings(const run_directory& directory) {
  auto file = directory.config_file();
  std::ifstream in(file, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  if (!in)
    return fail(errc::not_found, file.string() + ": cannot be read, and the settings are in it");
  run_settings settings;
  if (auto applied = apply_toml(settings, text.str(), file.string()); !applied)
    return pass(applied);
  return settings;
}

result<std::vector<event>> read_events(const std::filesystem::path& folder) {
  auto directory = open_run(folder);
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

result<std::string> stored_text(const blob_store& blobs, const std::string& sha256) {
  auto path = blobs.path({sha256, 0});
  if (!path)
    return pass(path);
  auto text = read_text_file(*path, text_max);
  if (text && sha256_hex(*text) != sha256)
    return fail(errc::io_failed, path->string() + ": its content is not what its name says");
  return text;
}

} // namespace gristmill
