#pragma once

#include "messages/result.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace gristmill {

/// A workload of a corpus problem: small, so that a modelled device runs it in a moment.
struct corpus_workload {
  std::vector<std::pair<std::string, int64_t>> axes;
  double atol = 0.01;
  double rtol = 0.01;
  double matched_ratio = 0.99;
};

/// A built-in problem with workloads of the corpus instead of its own.
struct corpus_problem {
  std::string name;
  std::vector<corpus_workload> workloads;
};

/// A candidate of the corpus: device code and launch plan.
struct corpus_candidate {
  std::string name;
  std::string problem;
  /// Of a cheat: the rule that has to catch it, or "compile" when no code may come of it, or
  /// "fault" when the device stops it. Empty for an honest one.
  std::string caught_by;
  /// Of a cheat: the honest candidate that uses the same means.
  std::string twin;
  /// Of a cheat: runs on modelled devices alone, because on a real one its outcome is chance.
  bool modelled_only = false;
  std::string source;
  std::string plan_text;

  bool is_cheat() const { return !caught_by.empty(); }
};

enum class row_class : uint8_t {
  /// No candidate can do it: there is nothing to do it with.
  impossible = 0,
  caught,
  not_applicable,
};

std::string to_string(row_class what);

/// One known way to cheat.
struct catalogue_row {
  uint32_t row = 0;
  std::string trick;
  row_class what = row_class::impossible;
  /// Of `caught`: names of cheats of the corpus.
  std::vector<std::string> cheats;
  /// Why, or what remains.
  std::string why;
  /// Names of the tests that show it, with commas between; empty where the cheats do.
  std::string shown_by;
};

struct hack_catalogue {
  std::vector<corpus_problem> problems;
  /// Honest ones first.
  std::vector<corpus_candidate> candidates;
  std::vector<catalogue_row> rows;

  const corpus_candidate* find(std::string_view name) const;
};

/// Reads the catalogue that the program carries (tests/corpus/hacks). Errors: `invalid_input` for a
/// text that does not hold together, naming the place.
result<hack_catalogue> read_hack_catalogue();

/// The same from a text; `file` answers the content of a path below the corpus, empty for none.
result<hack_catalogue> hack_catalogue_from_json(
  std::string_view text, std::string_view (*file)(std::string_view));

} // namespace gristmill
