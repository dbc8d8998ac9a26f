#pragma once

#include "messages/sanitizer.hpp"
#include "messages/verdict.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace gristmill {

/// How the process that wrote a report ended, and what is known beside the report.
struct sanitizer_circumstances {
  /// Why it was ended by us: "over the limit of 60 s". Empty when it ended by itself.
  std::string ended;
  /// Exit status, or 128 + signal.
  int status = 0;
  /// The one that was asked for when there are errors.
  int error_status = 0;
  /// Why the calls were not all made; empty when they were.
  std::string not_called;
  /// The report is longer than what was read of it.
  bool is_cut = false;
};

/// What a report of compute-sanitizer's text format says. Clean is only what says so itself: a
/// summary with no errors, of a process that ended well and has made all calls. Whatever is missing
/// is a reason for `did_not_look`. Reports that can be read are findings even where the rest is
/// missing. At most `sanitizer_findings_max` kinds are kept, and the others are counted.
sanitizer_look read_sanitizer_report(
  sanitizer_tool tool, std::string_view text, const sanitizer_circumstances& how);

constexpr size_t sanitizer_findings_max = 32;

/// What the rule `sanitizer` is told of a look that found something: one finding, about the
/// candidate as a whole.
finding finding_of(const sanitizer_record& record, const sanitizer_look& look);

/// The findings of all looks of a record.
std::vector<finding> findings_of(const sanitizer_record& record);

} // namespace gristmill
