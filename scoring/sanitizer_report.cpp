#include "scoring/sanitizer_report.hpp"

#include <algorithm>
#include <charconv>
#include <fmt/format.h>
#include <optional>

namespace gristmill {

namespace {

constexpr std::string_view prefix = "=========";
/// Of one text that is kept.
constexpr size_t text_max = 240;
constexpr size_t notes_max = 8;

std::string_view trimmed(std::string_view text) {
  const auto first = text.find_first_not_of(" \t\r");
  if (first == std::string_view::npos)
    return {};
  return text.substr(first, text.find_last_not_of(" \t\r") - first + 1);
}

/// Printable, and no longer than it may be. Names of kernels come from the candidate.
std::string kept(std::string_view text) {
  std::string out(text.substr(0, text_max));
  for (char& c : out)
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f)
      c = '?';
  return text.size() > text_max ? out + "…" : out;
}

bool has(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

/// The first number from `at` on.
std::optional<uint64_t> number_from(std::string_view text, size_t at = 0) {
  const auto first = text.find_first_of("0123456789", at);
  uint64_t value = 0;
  if (first == std::string_view::npos
    || std::from_chars(text.data() + first, text.data() + text.size(), value).ec != std::errc{})
    return std::nullopt;
  return value;
}

/// The number before a word: "(1 error, 2 warnings)" and "warning" give 2.
std::optional<uint64_t> number_before(std::string_view text, std::string_view word) {
  const auto at = text.find(word);
  if (at == std::string_view::npos)
    return std::nullopt;
  const auto end = text.find_last_of("0123456789", at);
  if (end == std::string_view::npos)
    return std::nullopt;
  const auto before = text.find_last_not_of("0123456789", end);
  return number_from(text, before == std::string_view::npos ? 0 : before + 1);
}

/// "void f<(int)4>(float *)+0x90" gives "f<(int)4>", and so does an address with file, line and
/// name behind it, as older versions write a place.
std::string kernel_of(std::string_view where) {
  auto name = where.substr(0, where.find(" in "));
  if (where.starts_with("0x")) {
    const auto colon = where.rfind(':');
    // A name of C++ has colons of its own in pairs; the one that stands alone ends the line number.
    auto at = colon;
    while (at != std::string_view::npos && at > 0 && where[at - 1] == ':')
      at = at >= 2 ? where.rfind(':', at - 2) : std::string_view::npos;
    if (at == std::string_view::npos)
      return {};
    name = where.substr(at + 1);
  }
  if (const auto offset = name.rfind("+0x"); offset != std::string_view::npos)
    name = name.substr(0, offset);
  name = trimmed(name);
  if (name.ends_with(')')) {
    int depth = 0;
    for (size_t i = name.size(); i-- > 0;) {
      depth += name[i] == ')' ? 1 : name[i] == '(' ? -1 : 0;
      if (depth == 0) {
        name = trimmed(name.substr(0, i));
        break;
      }
    }
  }
  if (name.starts_with("void "))
    name.remove_prefix(5);
  return kept(name);
}

/// A report while its lines come.
struct open_report {
  sanitizer_finding what;
  bool is_warning = false;
  /// About a call of the driver: what follows from an error, or is our own doing, as candidates
  /// call nothing.
  bool is_call = false;
};

class report_reader {
public:
  explicit report_reader(sanitizer_tool tool) { out_.tool = tool; }

  void take(std::string_view line) {
    if (!line.starts_with(prefix))
      return; // What the target prints.
    line.remove_prefix(prefix.size());
    const auto text = trimmed(line);
    if (text.empty())
      return close();
    const auto indented = line.find_first_not_of(' ');
    if (indented <= 1)
      return head(text);
    detail(text);
  }

  sanitizer_look finish(const sanitizer_circumstances& how) {
    close();
    auto why = reason(how);
    if (!out_.findings.empty() || out_.left_out > 0) {
      out_.end = look_end::found;
      // What is missing does not undo what was seen.
      if (how.ended.empty() && summary_ && !how.is_cut)
        why.clear();
      else if (why.empty())
        why = "the report is cut short";
    } else {
      out_.end = why.empty() ? look_end::clean : look_end::did_not_look;
    }
    out_.why = std::move(why);
    return std::move(out_);
  }

private:
  void head(std::string_view text) {
    close();
    if (text.starts_with("COMPUTE-SANITIZER")) {
      banner_ = true;
    } else if (text.starts_with("ERROR SUMMARY:")) {
      const auto number = number_from(text);
      if (has(text, "not printed"))
        out_.left_out += number.value_or(0);
      else
        summary_ = number;
    } else if (text.starts_with("RACECHECK SUMMARY:")) {
      // Of the hazards that are displayed only errors are refused.
      summary_ = has(text, "error") ? number_before(text, "error") : number_from(text);
      if (has(text, "not printed"))
        out_.left_out += number_from(text).value_or(0);
    } else if (has(text, " SUMMARY:")) {
      note(text);
    } else if (is_trouble(text)) {
      if (trouble_.empty())
        trouble_ = kept(text);
    } else {
      open(text);
    }
  }

  static bool is_trouble(std::string_view text) {
    if (text.starts_with("Target application") || text.starts_with("Internal")
      || has(text, "not supported") || has(text, "nsupported") || has(text, "nable to ")
      || has(text, "ould not ") || has(text, "ailed to "))
      return true;
    return text.starts_with("Error:") && !has(text, "Race reported");
  }

  void open(std::string_view text) {
    open_report next;
    next.is_call = text.starts_with("Program hit ") || text.starts_with("Host API ");
    next.is_warning = text.starts_with("Warning:") || text.starts_with("WARNING:")
      || text.starts_with("Info:") || text.starts_with("INFO:");
    for (const std::string_view word :
      {"Error: ", "ERROR: ", "Warning: ", "WARNING: ", "Info: ", "INFO: "})
      if (text.starts_with(word))
        text.remove_prefix(word.size());
    // Of a race the head names a place itself.
    if (const auto at = text.find(" at "); at != std::string_view::npos && has(text, "Race ")) {
      place(next.what, text.substr(at + 4));
      text = text.substr(0, at);
    }
    next.what.kind = kept(text);
    open_ = std::move(next);
  }

  void detail(std::string_view text) {
    if (!open_)
      return;
    auto& what = open_->what;
    if (text.starts_with("at ") && what.where.empty()) {
      place(what, text.substr(3));
    } else if (text.starts_with("and ") && has(text, " access at ")) {
      what.kind = kept(what.kind + " " + std::string(text.substr(0, text.find(" at "))));
      say(text);
      if (const auto at = text.rfind('['); at != std::string_view::npos)
        what.count = std::max<uint64_t>(1, number_from(text, at).value_or(1));
    } else if (text.starts_with("by thread") || text.starts_with("Address ")
      || text.starts_with("and is ") || text.starts_with("Access ")) {
      say(text);
    }
  }

  void say(std::string_view text) {
    auto& example = open_->what.example;
    if (example.size() < text_max)
      example += (example.empty() ? "" : ", ") + kept(text);
  }

  static void place(sanitizer_finding& what, std::string_view text) {
    what.where = kept(text);
    what.kernel = kernel_of(text);
  }

  void note(std::string_view text) {
    if (out_.notes.size() < notes_max)
      out_.notes.push_back(kept(text));
  }

  void close() {
    if (!open_)
      return;
    auto report = std::move(*open_);
    open_.reset();
    auto& what = report.what;
    if (report.is_call || report.is_warning) {
      calls_ += report.is_call ? 1 : 0;
      return note(what.where.empty() ? what.kind : what.kind + " at " + what.where);
    }
    for (auto& each : out_.findings)
      if (each.kind == what.kind && each.where == what.where) {
        each.count += what.count;
        return;
      }
    if (out_.findings.size() < sanitizer_findings_max)
      out_.findings.push_back(std::move(what));
    else
      out_.left_out += what.count;
  }

  /// Why what was read is not the whole truth; empty when it is.
  std::string reason(const sanitizer_circumstances& how) const {
    if (!how.ended.empty())
      return how.ended;
    // Of the two the summary is what counts; either shows whose text this is.
    if (!banner_ && !summary_)
      return fmt::format("no report of compute-sanitizer was written (exit status {})", how.status);
    if (!trouble_.empty())
      return trouble_ + (how.not_called.empty() ? "" : "; " + how.not_called);
    if (how.is_cut)
      return "the report is longer than what is read of one";
    if (!summary_)
      return fmt::format("the report has no summary (exit status {})", how.status);
    if (!how.not_called.empty())
      return how.not_called;
    if (*summary_ > calls_)
      return fmt::format("the summary counts {} errors, of which none can be read", *summary_);
    if (how.error_status != 0 && how.status == how.error_status && calls_ == 0)
      return "the exit status tells of errors, and the report of none";
    if (how.status != 0 && how.status != how.error_status)
      return fmt::format("it ended with exit status {}", how.status);
    return {};
  }

  sanitizer_look out_;
  std::optional<open_report> open_;
  bool banner_ = false;
  std::optional<uint64_t> summary_;
  uint64_t calls_ = 0;
  std::string trouble_;
};

} // namespace

sanitizer_look read_sanitizer_report(
  sanitizer_tool tool, std::string_view text, const sanitizer_circumstances& how) {
  report_reader reader(tool);
  while (!text.empty()) {
    const auto end = std::min(text.find('\n'), text.size());
    reader.take(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return reader.finish(how);
}

finding finding_of(const sanitizer_record& record, const sanitizer_look& look) {
  std::string said = to_string(look.tool) + ": ";
  if (look.findings.empty()) {
    said += fmt::format("{} reports", look.left_out);
  } else {
    const auto& first = look.findings.front();
    said += first.kind;
    if (!first.where.empty())
      said += " at " + first.where;
    said += fmt::format(", {} times", first.count);
    if (!first.example.empty())
      said += " (" + first.example + ")";
    if (look.findings.size() > 1)
      said += fmt::format("; and {} more places", look.findings.size() - 1);
    if (look.left_out > 0)
      said += fmt::format("; {} reports are not kept", look.left_out);
  }
  return {
    "sanitizer", "", fmt::format("{}; by {} on {}", said, record.program, record.device), false};
}

std::vector<finding> findings_of(const sanitizer_record& record) {
  std::vector<finding> out;
  for (const auto& look : record.looks)
    if (look.end == look_end::found)
      out.push_back(finding_of(record, look));
  return out;
}

} // namespace gristmill
