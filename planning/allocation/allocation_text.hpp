#pragma once

#include "messages/result.hpp"
#include "planning/allocation/allocation.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace gristmill {

inline constexpr size_t allocation_text_bytes_max = 4096;
/// A rule within a rule within a rule …
inline constexpr size_t allocation_levels_max = 6;

/// The rule that a text describes, such as `equal`, `ucb(a=0.01)` or
/// `gate(0.05, floor(0.5, rising(prior=0.1)))`; docs/planner.md has the grammar. A value without a
/// name is the first parameter. At most 4 KiB and six levels.
///
/// Errors: `invalid_input` for an unknown rule, parameter or value, with the nearest valid one, for
/// a rule that lacks or cannot have another one within it, and with the place for a text of another
/// form.
result<allocation_factory> allocation_from_text(std::string_view text);

struct allocation_parameter_info {
  std::string name;
  /// One line.
  std::string what;
  /// As one would write it.
  std::string fallback;
  /// From … to, as one would write them.
  std::string least;
  std::string most;
  /// No fractions.
  bool whole = false;
};

struct allocation_info {
  std::string name;
  /// One line.
  std::string what;
  std::vector<allocation_parameter_info> parameters;
  /// It changes what another rule does, which stands within its brackets.
  bool has_inner = false;
};

/// Every rule there is, registered ones included, sorted by name: for documents and `--help`.
std::vector<allocation_info> allocation_catalogue();

/// Adds a rule of one's own, which `allocation_from_text` then knows, also within others. It is
/// watched: where it names nobody, or somebody who cannot use an attempt, equal share decides and
/// the log says so. Call it before the first run starts. `refused` when the name is taken,
/// `invalid_input` when it is not of the form [a-z][a-z0-9_]{0,31} or there is no `make`.
result<void> register_allocation(
  std::string name, allocation_factory make, std::string description);

/// Makes the rule of `external(cmd="…", timeout=50ms)`, a process, from both texts. Errors are for
/// the user.
using external_allocation_maker =
  std::function<result<allocation_factory>(const std::string& cmd, const std::string& timeout)>;

/// Planning is pure and starts no processes: a program that may (gpu/planner) says how, before it
/// reads the first text. Without it `external` is refused.
void install_external_allocation(external_allocation_maker make);

} // namespace gristmill
