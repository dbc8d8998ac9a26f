#include "cli/verb.hpp"

#include "cli/checked_path.hpp"
#include "protocol/convert.hpp"
#include "protocol/json_document.hpp"

#include <CLI/CLI.hpp>
#include <cstdio>
#include <fmt/format.h>
#include <fstream>
#include <map>
#include <memory>

namespace gristmill {

namespace {

namespace fs = std::filesystem;

constexpr size_t text_max = size_t{64} << 20;

struct conversion {
  checked_path checked;
  std::vector<std::string> notes;
  /// Empty when the file was refused.
  std::string text;
  std::string written_to;
};

/// The name that a converted file has in a problem folder. A problem has one definition and one
/// list of workloads, but may have many solutions.
std::string file_name(document_kind kind, const fs::path& source) {
  switch (kind) { // no default: the compiler reports a missing case
  case document_kind::definition:
    return "definition.json";
  case document_kind::workloads:
    return "workload.jsonl";
  case document_kind::solution:
    break;
  }
  return source.filename().string();
}

/// Writes a file that must not be there yet.
result<void> write_new(const fs::path& path, const std::string& text) {
  std::error_code code;
  if (fs::exists(fs::symlink_status(path, code)))
    return fail(
      errc::invalid_input, fmt::format("{}: exists, and is not overwritten", path.string()));
  std::ofstream out(path, std::ios::binary);
  out << text;
  out.close();
  if (!out)
    return fail(errc::io_failed, fmt::format("{}: cannot be written", path.string()));
  return {};
}

/// Where the files of one call go, so that no two of them go to one place.
class target_folder {
public:
  explicit target_folder(std::string folder) : folder_(std::move(folder)) {}

  void write(conversion& one, document_kind kind) {
    const auto& source = one.checked.path;
    const auto path = fs::path(folder_) / file_name(kind, source);
    if (const auto [at, fresh] = writers_.emplace(path.string(), source); !fresh) {
      one.checked.refuse({errc::invalid_input,
                           fmt::format("{}: would go to {}, where {} goes already; convert one "
                                       "problem at a time",
                             source, path.string(), at->second)},
        source);
      return;
    }
    if (auto written = write_new(path, one.text); !written)
      one.checked.refuse({written.error().code, source + ": " + written.error().what}, source);
    else
      one.written_to = path.string();
  }

private:
  std::string folder_;
  std::map<std::string, std::string> writers_;
};

conversion convert_file(const std::string& file, std::optional<document_kind>& kind) {
  conversion out;
  out.checked.path = file;
  out.checked.kind = "file";
  if (const auto why = unreadable(file, ".json")) {
    out.checked.refuse(*why, file);
    return out;
  }
  const auto text = read_text_file(file, text_max);
  if (!text) {
    out.checked.refuse(text.error(), file);
    return out;
  }
  kind = recognise_document(*text);
  if (!kind) {
    out.checked.refuse(
      {errc::invalid_input,
        file
          + ": neither a definition (`axes`, `reference`) nor workloads (`uuid` or "
            "`workload` on each line) nor a solution (`spec`, `sources`)"},
      file);
    return out;
  }
  out.checked.kind = name(*kind);
  auto made = convert_document(*kind, *text, file);
  if (!made) {
    out.checked.refuse(made.error(), file);
    return out;
  }
  out.text = std::move(made->text);
  out.notes = std::move(made->notes);
  return out;
}

void print_text(const std::vector<conversion>& all, bool to_stdout) {
  for (const auto& each : all) {
    for (const auto& error : each.checked.errors)
      std::fprintf(stderr, "gristmill: %s\n", printable(error.text()).c_str());
    for (const auto& note : each.notes) {
      const auto text =
        note.starts_with(each.checked.path) ? note : each.checked.path + ": " + note;
      std::fprintf(stderr, "gristmill: note: %s\n", printable(text).c_str());
    }
    if (!each.written_to.empty())
      std::fputs(fmt::format("ok       {}  {}, written to {}\n", printable(each.checked.path),
                   each.checked.kind, printable(each.written_to))
                   .c_str(),
        stdout);
    else if (!each.checked.errors.empty() && !to_stdout)
      std::fputs(
        fmt::format("refused  {}  {}\n", printable(each.checked.path), each.checked.kind).c_str(),
        stdout);
    else if (to_stdout)
      std::fwrite(each.text.data(), 1, each.text.size(), stdout);
  }
}

exit_code convert_command(
  const std::vector<std::string>& files, const std::string& folder, bool json) {
  if (folder.empty() && files.size() > 1)
    return complain({errc::invalid_input,
      "--out DIR is needed to convert several files; one file goes to stdout without it"});
  if (!folder.empty()) {
    std::error_code code;
    fs::create_directories(folder, code);
    if (!fs::is_directory(folder))
      return complain({errc::invalid_input,
        fmt::format("--out {}: cannot be made{}", folder,
          code ? ": " + code.message() : "; it is no folder")});
  }
  target_folder target(folder);
  std::vector<conversion> all;
  bool fine = true;
  for (const auto& file : files) {
    std::optional<document_kind> kind;
    auto one = convert_file(file, kind);
    if (kind && one.checked.errors.empty() && !folder.empty())
      target.write(one, *kind);
    fine = fine && one.checked.errors.empty();
    all.push_back(std::move(one));
  }
  if (json) {
    auto rows = nlohmann::ordered_json::array();
    for (auto& each : all) {
      each.checked.facts["notes"] = each.notes;
      if (!each.written_to.empty())
        each.checked.facts["written_to"] = each.written_to;
      else if (each.checked.errors.empty())
        each.checked.facts["text"] = each.text;
      rows.push_back(checked_to_json(each.checked));
    }
    print_json({{"ok", fine}, {"files", std::move(rows)}});
  } else {
    print_text(all, folder.empty());
  }
  return fine ? exit_code::ok : exit_code::usage;
}

} // namespace

void add_convert_verb(CLI::App& root, verbs& all) {
  struct flags {
    std::vector<std::string> files;
    std::string out;
    bool json = false;
  };
  auto* app = root.add_subcommand(
    "convert", "turn files of the FlashInfer-Bench form into SOL-ExecBench form");
  auto given = std::make_shared<flags>();
  app->add_option("file", given->files, "definitions, workloads and solutions of one problem")
    ->required();
  app->add_option("--out", given->out, "the folder that they go to; default: one file to stdout");
  app->add_flag("--json", given->json, "as JSON");
  all.push_back({app, [given] { return convert_command(given->files, given->out, given->json); }});
}

} // namespace gristmill
