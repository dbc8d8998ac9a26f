#pragma once

#include "report/export_run.hpp"
#include "report/run_table.hpp"
#include "report/run_timeline.hpp"

#include <map>
#include <string>
#include <utility>

namespace gristmill {

/// Device code and launch plan of a candidate as texts; where one cannot be read, why.
struct winner_texts {
  std::string source;
  std::string plan;
};

/// What the page of a run is made of. All from the log, but for the texts of the winners.
struct run_page {
  /// The directory's name.
  std::string name;
  run_table table;
  run_timeline timeline;
  run_winners winners;
  /// By hash of the candidate.
  std::map<std::string, winner_texts> texts;
};

/// One self-contained HTML file: what the run was, its table, geomean against GPU-seconds, what the
/// devices did, how long leases were waited for, and the best candidate of each problem with
/// verdict, plan and source. Every time says where it comes from. Equal arguments give equal bytes.
std::string to_html(const run_page& page);

} // namespace gristmill
