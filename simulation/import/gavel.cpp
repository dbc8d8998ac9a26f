#include "simulation/import/import_fields.hpp"
#include "simulation/import/readers.hpp"

#include <cmath>
#include <fmt/format.h>

namespace gristmill {

namespace {

constexpr size_t field_count = 10;
constexpr double gpus_max = 64;
constexpr double weight_max = 1'000'000;

/// The file says how many steps a job has and not how long a step takes, so the steps tell only how
/// long a job is among those of its type: the mean job of every type takes the time that the
/// options say.
class gavel_reader final : public import_reader {
public:
  result<void> take(std::string_view line, uint64_t number, imported_trace& out) override {
    if (line.empty())
      return {};
    auto parts = split_fields(line, '\t', field_count + 1);
    if (!parts || parts->size() != field_count)
      return fail(errc::invalid_input,
        fmt::format("a job has {} fields between tabs, not {}", field_count,
          parts ? fmt::format("{}", parts->size()) : std::string{"more"}));
    const auto& p = *parts;
    auto steps = number_field(p[5], "6 (total steps)");
    auto gpus = number_field(p[6], "7 (scale factor)");
    auto weight = number_field(p[7], "8 (priority weight)");
    auto slo = number_field(p[8], "9 (SLO)");
    auto arrival = number_field(p[9], "10 (arrival time)");
    for (const auto* bad : {&steps, &gpus, &weight, &slo, &arrival})
      if (!*bad)
        return pass(*bad);
    if (*steps <= 0)
      return fail(errc::invalid_input, "field 6 (total steps): must be above 0");
    if (*gpus < 1 || *gpus > gpus_max || *gpus != std::floor(*gpus))
      return fail(
        errc::invalid_input, "field 7 (scale factor): must be a whole number within 1..64");
    if (*weight <= 0 || *weight > weight_max)
      return fail(errc::invalid_input, "field 8 (priority weight): must be above 0, at most 1e6");
    if (*arrival < 0)
      return fail(errc::invalid_input, "field 10 (arrival time): must not be negative");
    imported_job job;
    job.arrival_s = *arrival;
    job.hold_s = *steps;
    job.gpus = static_cast<uint32_t>(*gpus);
    job.weight = static_cast<uint32_t>(std::max(1.0, std::round(*weight)));
    job.owner = name_field(p[0]);
    job.name = fmt::format("job-{}", number);
    if (job.weight != *weight)
      ++out.lost["weights that are not whole numbers are rounded"];
    if (job.gpus > 1)
      ++out.lost["jobs on several GPUs ask for each by itself, at the same time"];
    if (*slo > 0)
      ++out.lost["deadlines (SLO) are dropped"];
    auto& type = types_[job.owner];
    type.first += *steps;
    ++type.second;
    out.jobs.push_back(std::move(job));
    return {};
  }

  result<void> finish(imported_trace& out, const import_options& options) override {
    for (auto& job : out.jobs) {
      const auto& [steps, count] = types_.at(job.owner);
      job.hold_s *= options.mean_job_s * static_cast<double>(count) / steps;
    }
    if (!out.jobs.empty())
      out.lost["jobs have steps and no times: the mean job of each type takes the time given "
               "(--mean-job)"] = out.jobs.size();
    return {};
  }

private:
  /// Steps of all jobs of a type, and how many they are.
  std::map<std::string, std::pair<double, uint64_t>> types_;
};

} // namespace

std::unique_ptr<import_reader> make_gavel_reader() {
  return std::make_unique<gavel_reader>();
}

} // namespace gristmill
