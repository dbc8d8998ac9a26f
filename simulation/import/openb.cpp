#include "simulation/import/import_fields.hpp"
#include "simulation/import/readers.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>

namespace gristmill {

namespace {

constexpr std::string_view columns[] = {"name", "cpu_milli", "memory_mib", "num_gpu", "gpu_milli",
  "gpu_spec", "qos", "pod_phase", "creation_time", "deletion_time", "scheduled_time"};
constexpr size_t column_count = std::size(columns);
/// GPUs of one machine of that cluster.
constexpr double gpus_max = 64;

class openb_reader final : public import_reader {
public:
  result<void> take(std::string_view line, uint64_t number, imported_trace& out) override {
    if (line.empty())
      return {};
    if (line.find('"') != std::string_view::npos)
      return fail(errc::invalid_input, "fields between quotes are not read");
    auto parts = split_fields(line, ',', column_count + 1);
    if (number == 1) {
      if (!parts
        || !std::equal(parts->begin(), parts->end(), std::begin(columns), std::end(columns)))
        return fail(
          errc::invalid_input, fmt::format("the header must be {}", fmt::join(columns, ",")));
      return {};
    }
    if (!parts || parts->size() != column_count)
      return fail(errc::invalid_input,
        fmt::format("a pod has {} fields between commas, not {}", column_count,
          parts ? fmt::format("{}", parts->size()) : std::string{"more"}));
    const auto& p = *parts;
    auto gpus = number_field(p[3], "num_gpu");
    auto share = number_field(p[4], "gpu_milli");
    auto created = number_field(p[8], "creation_time");
    for (const auto* bad : {&gpus, &share, &created})
      if (!*bad)
        return pass(*bad);
    if (*gpus < 0 || *gpus > gpus_max)
      return fail(errc::invalid_input, fmt::format("field num_gpu: {} is not within 0..64", *gpus));
    if (*created < 0)
      return fail(errc::invalid_input, "field creation_time: must not be negative");
    if (*gpus < 1) {
      ++out.lost["pods without a GPU are left out"];
      return {};
    }
    if (p[7] != "Succeeded" && p[7] != "Failed") {
      // Their deletion is the end of the recording.
      ++out.lost[p[7] == "Running" ? "pods that still ran at the end are left out"
                                   : "pods that never ran are left out"];
      return {};
    }
    if (p[10].empty()) {
      ++out.lost["pods that never ran are left out"];
      return {};
    }
    auto deleted = number_field(p[9], "deletion_time");
    auto scheduled = number_field(p[10], "scheduled_time");
    for (const auto* bad : {&deleted, &scheduled})
      if (!*bad)
        return pass(*bad);
    if (*deleted <= *scheduled) {
      ++out.lost["pods with no time between start and end are left out"];
      return {};
    }
    imported_job job;
    job.arrival_s = *created;
    job.hold_s = *deleted - *scheduled;
    job.gpus = static_cast<uint32_t>(*gpus);
    job.name = name_field(p[0]);
    job.owner = p[6].empty() ? "none" : name_field(p[6]);
    if (*share < 1000)
      ++out.lost["pods that shared a GPU have one of their own"];
    if (job.gpus > 1)
      ++out.lost["pods with several GPUs ask for each by itself, at the same time"];
    if (!p[5].empty())
      ++out.lost["pods that wanted certain models of GPU take any"];
    out.jobs.push_back(std::move(job));
    return {};
  }

  result<void> finish(imported_trace&, const import_options&) override { return {}; }
};

} // namespace

std::unique_ptr<import_reader> make_openb_reader() {
  return std::make_unique<openb_reader>();
}

} // namespace gristmill
