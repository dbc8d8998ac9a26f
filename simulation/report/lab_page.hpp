#pragma once

#include "messages/event.hpp"
#include "simulation/report/lab_text.hpp"

#include <span>
#include <string>
#include <vector>

namespace gristmill {

/// What the page of a comparison is made of.
struct lab_page {
  const lab_plan& plan;
  const lab_summary& summary;
  const std::vector<lab_row>& rows;
  lab_identity who;
  /// Of the lease broker, for the Gantt chart: the first minutes of one seed of the first variant.
  /// Empty: no chart.
  std::span<const event> events{};
  double minutes = 0;
};

/// One self-contained HTML file without a script: header, tables, waits, outcomes over GPU-hours,
/// fairness, GPU states, Gantt chart, every parameter, what is modelled. Equal arguments give equal
/// bytes. Errors: `invalid_input` for events that are not those of a lease broker.
result<std::string> to_html(const lab_page& page);

} // namespace gristmill
