#include "protocol/problem_files.hpp"

#include "protocol/nearest.hpp"
#include "protocol/strict_json.hpp"
#include "tensors/safetensors.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <fcntl.h>
#include <fmt/format.h>
#include <set>
#include <system_error>
#include <unistd.h>

namespace gristmill {

namespace fs = std::filesystem;

namespace {

struct known_file {
  const char* name;
  bool needed;
};

/// Those of `load_problem`. No other name is taken from another machine, so none can be a path.
constexpr std::array<known_file, 3> known_files{
  {{"definition.json", true}, {"workload.jsonl", true}, {"graph.json", false}}};

std::vector<std::string> known_names() {
  std::vector<std::string> out;
  for (const auto& file : known_files)
    out.emplace_back(file.name);
  return out;
}

/// It becomes a folder on another machine.
result<void> check_name(const std::string& name) {
  const bool plain = std::none_of(name.begin(), name.end(),
    [](char c) { return c == '/' || static_cast<unsigned char>(c) < 0x20 || c == 0x7f; });
  if (name.empty() || name.size() > 255 || name == "." || name == ".." || !plain)
    return fail(errc::invalid_input,
      fmt::format("problem {}: the name must be that of one folder, of 1 to 255 bytes without "
                  "slashes and control characters",
        excerpt(name)));
  return {};
}

result<void> check_size(const std::string& problem_name, const std::string& file, uint64_t bytes) {
  if (bytes <= problem_file_bytes_max)
    return {};
  return fail(errc::invalid_input,
    fmt::format("problem {}: {} has {} bytes; files of at most {} travel to nodes",
      excerpt(problem_name), excerpt(file), bytes, problem_file_bytes_max));
}

bool is_lower_hex(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
}

result<void> write_text(const fs::path& file, std::string_view text) {
  const int fd = ::open(file.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0644);
  int error = fd < 0 ? errno : 0;
  while (error == 0 && !text.empty()) {
    const ssize_t count = ::write(fd, text.data(), text.size());
    if (count >= 0)
      text.remove_prefix(static_cast<size_t>(count));
    else if (errno != EINTR)
      error = errno;
  }
  if (fd >= 0 && ::close(fd) != 0 && error == 0)
    error = errno;
  if (error == 0)
    return {};
  return fail(errc::io_failed,
    fmt::format("cannot write '{}': {}", file.string(), std::generic_category().message(error)));
}

result<void> write_all(const fs::path& folder, std::span<const problem_text> texts) {
  std::error_code error;
  fs::remove_all(folder, error); // Of a link, the link itself.
  if (!error)
    fs::create_directories(folder.parent_path(), error);
  if (!error)
    fs::create_directory(folder, error);
  if (error)
    return fail(errc::io_failed,
      fmt::format("cannot make the problem folder '{}': {}", folder.string(), error.message()));
  for (const auto& each : texts)
    if (auto written = write_text(folder / each.name, each.text); !written)
      return written;
  return {};
}

} // namespace

result<std::vector<problem_text>> problem_texts(const problem& from) {
  std::vector<problem_text> out;
  if (from.folder.empty())
    return out;
  if (auto fine = check_name(from.name); !fine)
    return pass(fine);
  out.push_back({"definition.json", from.definition_text});
  out.push_back({"workload.jsonl", from.workload_text});
  if (!from.graph_json.empty())
    out.push_back({"graph.json", from.graph_json});
  for (const auto& each : out)
    if (auto fine = check_size(from.name, each.name, each.text.size()); !fine)
      return pass(fine);
  return out;
}

result<void> check_listing(const problem_listing& listing) {
  if (auto fine = check_name(listing.name); !fine)
    return fine;
  const auto refuse = [&](const std::string& what) {
    return fail(errc::invalid_input, fmt::format("problem {}: {}", excerpt(listing.name), what));
  };
  if (listing.files.size() > problem_files_max)
    return refuse(
      fmt::format("{} files; at most {} travel", listing.files.size(), problem_files_max));
  std::set<std::string> seen;
  const auto names = known_names();
  for (const auto& file : listing.files) {
    if (std::find(names.begin(), names.end(), file.name) == names.end())
      return refuse(fmt::format(
        "{} is no file of a problem{}", excerpt(file.name), suggestion(file.name, names)));
    if (!seen.insert(file.name).second)
      return refuse(file.name + " comes twice");
    if (auto fine = check_size(listing.name, file.name, file.content.bytes); !fine)
      return fine;
    const auto& hash = file.content.sha256;
    if (hash.size() != 64 || !std::all_of(hash.begin(), hash.end(), is_lower_hex))
      return refuse(fmt::format(
        "{}: {} is no SHA-256 in lower-case hexadecimal", file.name, excerpt(hash, 80)));
  }
  for (const auto& known : known_files)
    if (known.needed && !listing.files.empty() && !seen.contains(known.name))
      return refuse(fmt::format("{} is missing", known.name));
  return {};
}

ordered_json to_json(const problem_listing& listing) {
  ordered_json out{{"name", listing.name}, {"files", ordered_json::array()}};
  for (const auto& file : listing.files)
    out["files"].push_back(
      {{"name", file.name}, {"sha256", file.content.sha256}, {"bytes", file.content.bytes}});
  return out;
}

result<problem_listing> parse_listing(const ordered_json& from, const std::string& where) {
  problem_listing out;
  std::optional<failure> first;
  {
    strict_object object(from, where, first);
    out.name = object.text("name", 255);
    object.each("files", problem_files_max, [&](const ordered_json& value, std::string path) {
      strict_object file(value, std::move(path), first);
      auto name = file.text("name", 255);
      auto sha256 = file.text("sha256", 64);
      const auto bytes = file.natural("bytes");
      out.files.push_back({std::move(name), {std::move(sha256), bytes}});
    });
  }
  if (first)
    return tl::unexpected<failure>(*first);
  if (auto fine = check_listing(out); !fine)
    return fail(errc::invalid_input, where + ": " + fine.error().what);
  return out;
}

result<problem> write_problem(
  const fs::path& root, const problem_listing& listing, std::span<const problem_text> texts) {
  if (auto fine = check_listing(listing); !fine)
    return pass(fine);
  if (listing.files.empty())
    return fail(errc::unsupported,
      fmt::format("problem {} has no files: it is built in", excerpt(listing.name)));
  const bool fits = std::equal(listing.files.begin(), listing.files.end(), texts.begin(),
    texts.end(), [](const problem_file& file, const problem_text& text) {
      return file.name == text.name && file.content.bytes == text.text.size();
    });
  if (!fits)
    return fail(errc::invalid_input,
      fmt::format("problem {}: the texts are not those of its listing", excerpt(listing.name)));
  const auto folder = root / listing.name;
  auto written = write_all(folder, texts);
  auto loaded = written ? load_problem(folder) : result<problem>{pass(written)};
  if (!loaded) {
    std::error_code ignored;
    fs::remove_all(folder, ignored);
  }
  return loaded;
}

std::vector<std::string> missing_data(const problem& of, std::span<const fs::path> roots) {
  std::vector<fs::path> places{of.folder};
  places.insert(places.end(), roots.begin(), roots.end());
  std::vector<std::string> out;
  std::set<std::string> seen;
  for (const auto& work : of.workloads)
    for (const auto& input : work.inputs) {
      if (input.kind != input_kind::safetensors || !seen.insert(input.path).second)
        continue;
      const auto found = find_blob(input.path, places, [](const fs::path& place) {
        std::error_code error;
        return fs::is_regular_file(place, error);
      });
      if (!found)
        out.push_back(fmt::format("problem {}, input {}: {}; data files do not travel to "
                                  "nodes: put them below FLASHINFER_TRACE_DIR on this machine",
          excerpt(of.name), excerpt(input.name), found.error().what));
    }
  return out;
}

} // namespace gristmill
