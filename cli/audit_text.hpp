#pragma once

#include "cli/stored_evidence.hpp"

#include <string>

namespace gristmill {

/// What the log says of a verdict: the `number`-th of `count` on its attempt.
std::string audit_text(const stored_verdict& was, size_t number, size_t count);

/// What compute-sanitizer said of a candidate, a line a tool and one a finding.
std::string audit_text(const sanitizer_record& record);

/// What the verdict rests on, and what each rule of this program says about it.
std::string audit_text(const evidence& seen);

} // namespace gristmill
