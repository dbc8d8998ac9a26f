#include "cli/sanitizer_evidence.hpp"

#include "journal/hash.hpp"
#include "protocol/json_document.hpp"
#include "protocol/sanitizer_record.hpp"
#include "scoring/sanitizer_report.hpp"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <unistd.h>
#include <utility>

namespace gristmill {

namespace {

namespace fs = std::filesystem;

constexpr const char* folder_name = "sanitizer";

} // namespace

result<std::string> keep_record(const fs::path& run, const sanitizer_record& what) {
  const auto text = to_json(what);
  const auto folder = run / folder_name;
  std::error_code error;
  fs::create_directories(folder, error);
  if (error)
    return fail(errc::io_failed, folder.string() + ": " + error.message());
  const auto file = folder / (sha256_hex(text) + ".json");
  // Not yet a name that is read.
  const auto unfinished = folder / ("unfinished-" + std::to_string(getpid()));
  std::ofstream out(unfinished, std::ios::binary | std::ios::trunc);
  out << text;
  out.close();
  if (out)
    fs::rename(unfinished, file, error);
  if (!out || error) {
    std::error_code ignored;
    fs::remove(unfinished, ignored);
    return fail(errc::io_failed, file.string() + ": cannot be written");
  }
  return file.string();
}

result<std::vector<sanitizer_record>> read_records(const fs::path& run) {
  std::vector<fs::path> files;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(run / folder_name, error))
    if (entry.path().extension() == ".json")
      files.push_back(entry.path());
  // A run that nobody has looked at has no such folder.
  if (error && error != std::errc::no_such_file_or_directory)
    return fail(errc::io_failed, (run / folder_name).string() + ": " + error.message());
  std::sort(files.begin(), files.end());
  std::vector<sanitizer_record> out;
  for (const auto& file : files) {
    auto text = read_text_file(file, sanitizer_record_bytes_max);
    if (!text)
      return pass(text);
    if (sha256_hex(*text) != file.stem())
      return fail(errc::invalid_input, file.string() + ": its content is not what its name says");
    auto record = sanitizer_record_from_json(*text);
    if (!record)
      return fail(record.error().code, file.string() + ": " + record.error().what);
    out.push_back(std::move(*record));
  }
  std::stable_sort(out.begin(), out.end(),
    [](const sanitizer_record& a, const sanitizer_record& b) { return a.at < b.at; });
  return out;
}

evidence with_records(evidence of, const std::vector<sanitizer_record>& records) {
  auto& findings = of.measured.findings;
  for (const auto& record : records)
    for (auto& found :
      record.candidate == of.candidate.hash ? findings_of(record) : std::vector<finding>{})
      if (std::none_of(findings.begin(), findings.end(), [&](const finding& known) {
            return known.rule == found.rule && known.detail == found.detail;
          }))
        findings.push_back(std::move(found));
  return of;
}

std::vector<sanitizer_record> records_of(
  const std::vector<sanitizer_record>& records, const std::string& candidate) {
  std::vector<sanitizer_record> out;
  std::copy_if(records.begin(), records.end(), std::back_inserter(out),
    [&](const sanitizer_record& each) { return each.candidate == candidate; });
  return out;
}

} // namespace gristmill
