#pragma once

#include "messages/compile.hpp"
#include "messages/verdict.hpp"
#include "protocol/plan.hpp"
#include "protocol/resolve.hpp"

#include <string>
#include <vector>

namespace gristmill {

/// One unit to compile: the same source gives one unit for each set of defines.
struct compile_input {
  /// The candidate's .cu text.
  std::string source;
  compile_unit unit;
  plan_options options;
  /// "sm_90a"
  std::string arch;
  /// Lets the PTX name lines of the source, for faults and profiles.
  bool line_info = false;
};

/// What came of it. A candidate that does not compile is an answer, not an error.
struct compile_output {
  /// passed, compile_error or reward_hack.
  verdict_status status = verdict_status::compile_error;
  /// Text of the module; empty unless passed.
  std::string ptx;
  std::vector<compiled_entry> entries;
  /// The first lines of what the compiler or our checks said, without host paths: places look like
  /// "kernel.cu:12:5", or "kernel.cu:12" where the compiler counts no columns. Of a unit that
  /// passed: a line "resources: …" for each entry, where the assembler told, and notes.
  std::string log;
  /// Not forbidden by itself, but worth a look: clock registers, writable module globals.
  std::vector<finding> findings;
};

} // namespace gristmill
