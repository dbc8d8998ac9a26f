#include "simulation/import/import_fields.hpp"
#include "simulation/import/readers.hpp"

#include <fmt/format.h>

namespace gristmill {

namespace {

// Fields of the standard workload format, in their order; -1 means "not known".
constexpr size_t swf_fields = 18;
constexpr const char* field_names[swf_fields] = {"1 (job number)", "2 (submit time)",
  "3 (wait time)", "4 (run time)", "5 (allocated processors)", "6 (average CPU time)",
  "7 (used memory)", "8 (requested processors)", "9 (requested time)", "10 (requested memory)",
  "11 (status)", "12 (user)", "13 (group)", "14 (executable)", "15 (queue)", "16 (partition)",
  "17 (preceding job)", "18 (think time)"};

class swf_reader final : public import_reader {
public:
  result<void> take(std::string_view line, uint64_t, imported_trace& out) override {
    auto first = line.find_first_not_of(" \t");
    if (first == std::string_view::npos || line[first] == ';')
      return {};
    auto parts = split_blanks(line, swf_fields + 1);
    if (!parts || parts->size() != swf_fields)
      return fail(errc::invalid_input,
        fmt::format("a job has 18 fields between blanks, not {}",
          parts ? fmt::format("{}", parts->size()) : std::string{"more"}));
    double value[swf_fields];
    for (size_t i = 0; i < swf_fields; ++i) {
      auto number = number_field((*parts)[i], field_names[i]);
      if (!number)
        return pass(number);
      value[i] = *number;
    }
    if (value[1] < 0)
      return fail(errc::invalid_input, "field 2 (submit time): must not be negative");
    if (value[3] <= 0) {
      ++out.lost["jobs without a run time (cancelled before they ran, or not known) are left out"];
      return {};
    }
    imported_job job;
    job.arrival_s = value[1];
    job.hold_s = value[3];
    job.estimate_s = value[8] > 0 ? value[8] : 0;
    job.name = fmt::format("job-{}", (*parts)[0]);
    job.name = name_field(job.name);
    job.owner = value[11] < 0 ? "user-unknown" : name_field(fmt::format("user-{}", (*parts)[11]));
    if (value[4] > 1 || value[7] > 1)
      ++out.lost["jobs on several processors hold one GPU: processors are not GPUs"];
    if (value[16] > 0)
      ++out.lost["jobs that waited for another job come at their recorded time"];
    out.jobs.push_back(std::move(job));
    return {};
  }

  result<void> finish(imported_trace&, const import_options&) override { return {}; }
};

} // namespace

std::unique_ptr<import_reader> make_swf_reader() {
  return std::make_unique<swf_reader>();
}

} // namespace gristmill
