#include "simulation/import/trace_import.hpp"

#include "journal/event_line.hpp"
#include "messages/lease.hpp"
#include "protocol/json_document.hpp"
#include "protocol/nearest.hpp"
#include "simulation/import/readers.hpp"
#include "simulation/model/counter_stream.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <fmt/format.h>
#include <fstream>

namespace gristmill {

using nlohmann::json;
using std::chrono::nanoseconds;

namespace {

constexpr size_t line_bytes_max = 65'536;
constexpr size_t jobs_max = 2'000'000;
constexpr uint32_t gpus_max = 4096;
constexpr double load_wanted = 0.8;

result<void> check(const import_options& o) {
  if (!(o.time_scale > 0 && o.time_scale <= 1000))
    return fail(errc::invalid_input,
      fmt::format("--time-scale {}: must be above 0 and at most 1000", o.time_scale));
  if (o.gpus > gpus_max)
    return fail(errc::invalid_input, fmt::format("--gpus {}: at most {}", o.gpus, gpus_max));
  if (o.limit == 0 || o.limit > import_requests_max)
    return fail(errc::invalid_input,
      fmt::format("--limit {}: must be within 1..{}, what the simulator has room for", o.limit,
        import_requests_max));
  if (!(o.hold_cap_s >= 0 && o.hold_cap_s <= 1e9))
    return fail(
      errc::invalid_input, fmt::format("--hold-cap {}: must be within 0..1e9", o.hold_cap_s));
  if (!(o.mean_job_s > 0 && o.mean_job_s <= 1e9))
    return fail(errc::invalid_input,
      fmt::format("--mean-job {}: must be above 0 and at most 1e9", o.mean_job_s));
  return {};
}

/// The class whose usual cap holds that long.
lease_class class_of_hold(nanoseconds hold) {
  if (hold <= std::chrono::seconds{120})
    return lease_class::timing;
  return hold <= std::chrono::seconds{300} ? lease_class::profile : lease_class::official;
}

/// Makes the lines of a lease trace.
class trace_writer {
public:
  explicit trace_writer(const std::function<void(const std::string&)>& write) : write_(write) {}

  void line(event e) {
    e.seq = ++seq_;
    e.incarnation = 1;
    write_(canonical_line(e));
  }

private:
  const std::function<void(const std::string&)>& write_;
  uint64_t seq_ = 0;
};

} // namespace

std::string to_string(import_form form) {
  switch (form) {
  case import_form::swf:
    return "swf";
  case import_form::openb:
    return "openb";
  case import_form::gavel:
    return "gavel";
  }
  return "?";
}

result<import_form> parse_import_form(std::string_view text) {
  for (auto form : {import_form::swf, import_form::openb, import_form::gavel})
    if (to_string(form) == text)
      return form;
  return fail(errc::invalid_input,
    std::string(text.substr(0, 60)) + ": not a form that can be imported"
      + suggestion(text, {"swf", "openb", "gavel"}) + " (swf, openb or gavel)");
}

std::unique_ptr<import_reader> make_import_reader(import_form form) {
  switch (form) {
  case import_form::swf:
    return make_swf_reader();
  case import_form::openb:
    return make_openb_reader();
  case import_form::gavel:
    return make_gavel_reader();
  }
  return nullptr;
}

result<imported_trace> read_import(
  import_form form, const std::filesystem::path& file, const import_options& options) {
  if (auto good = check(options); !good)
    return pass(good);
  std::error_code error;
  auto status = std::filesystem::status(file, error);
  if (!std::filesystem::exists(status))
    return fail(errc::not_found, file.string() + ": no such file");
  if (std::filesystem::is_directory(status))
    return fail(errc::invalid_input, file.string() + ": a folder, not a file");
  std::ifstream in(file, std::ios::binary);
  if (!in)
    return fail(errc::io_failed, file.string() + ": " + std::strerror(errno));
  auto reader = make_import_reader(form);
  imported_trace out;
  std::string line(line_bytes_max + 2, '\0');
  for (;;) {
    in.getline(line.data(), static_cast<std::streamsize>(line.size()));
    if (in.eof() && in.gcount() == 0)
      break;
    ++out.lines;
    auto placed = [&](const std::string& what) {
      return fmt::format("{}: line {}: {}", file.string(), out.lines, what);
    };
    if (in.bad())
      return fail(errc::io_failed, file.string() + ": cannot be read");
    if (in.fail())
      return fail(errc::invalid_input, placed(fmt::format("longer than {} bytes", line_bytes_max)));
    // The line feed is counted, and absent at the end of the file.
    std::string_view text(line.data(), static_cast<size_t>(in.gcount()) - (in.eof() ? 0 : 1));
    if (!text.empty() && text.back() == '\r')
      text.remove_suffix(1);
    if (auto taken = reader->take(text, out.lines, out); !taken)
      return fail(taken.error().code, placed(taken.error().what));
    if (out.jobs.size() > jobs_max)
      return fail(errc::refused, placed(fmt::format("more than {} jobs", jobs_max)));
    if (in.eof())
      break;
  }
  if (auto finished = reader->finish(out, options); !finished)
    return fail(finished.error().code, file.string() + ": " + finished.error().what);
  if (out.jobs.empty())
    return fail(errc::invalid_input,
      fmt::format(
        "{}: no job with a GPU and a run time in its {} lines", file.string(), out.lines));
  return out;
}

result<import_summary> write_lease_trace(imported_trace in, import_form form,
  const std::string& source, const import_options& options,
  const std::function<void(const std::string& line)>& write) {
  if (auto good = check(options); !good)
    return pass(good);
  auto& jobs = in.jobs;
  if (jobs.empty())
    return fail(errc::invalid_input, source + ": no job to write");
  std::stable_sort(jobs.begin(), jobs.end(),
    [](const imported_job& a, const imported_job& b) { return a.arrival_s < b.arrival_s; });

  import_summary out;
  auto first = jobs.front().arrival_s;
  auto cap = options.hold_cap_s > 0 ? time_of(options.hold_cap_s) : nanoseconds::max();
  uint64_t cut = 0;
  uint64_t over = 0;
  double held = 0;
  struct request {
    const imported_job* job = nullptr;
    nanoseconds at{0};
    nanoseconds hold{0};
  };
  std::vector<request> requests;
  for (const auto& job : jobs) {
    if (requests.size() + job.gpus > options.limit) {
      over = jobs.size() - out.jobs;
      break;
    }
    ++out.jobs;
    request r{&job, time_of((job.arrival_s - first) * options.time_scale),
      std::max(time_of(job.hold_s * options.time_scale), nanoseconds{1})};
    if (r.hold > cap) {
      ++cut;
      r.hold = cap;
    }
    out.span_s = seconds_of(r.at);
    out.hold_max_s = std::max(out.hold_max_s, seconds_of(r.hold));
    held += seconds_of(r.hold) * job.gpus;
    requests.insert(requests.end(), job.gpus, r);
  }
  if (requests.empty())
    return fail(errc::invalid_input,
      fmt::format(
        "--limit {}: the first job alone asks for {} GPUs", options.limit, jobs.front().gpus));
  out.requests = requests.size();
  out.hold_mean_s = held / static_cast<double>(out.requests);
  auto wanted = out.span_s > 0 ? std::ceil(held / (out.span_s * load_wanted)) : 1.0;
  out.gpus = options.gpus != 0
    ? options.gpus
    : static_cast<uint32_t>(std::clamp(wanted, 1.0, static_cast<double>(gpus_max)));
  out.offered_load = out.span_s > 0 ? held / (out.span_s * out.gpus) : 0;
  for (const auto& [what, count] : in.lost)
    out.lost.push_back(fmt::format("{} {}", count, what));
  if (cut != 0)
    out.lost.push_back(
      fmt::format("{} holds are cut to {} s (--hold-cap)", cut, options.hold_cap_s));
  if (over != 0)
    out.lost.push_back(fmt::format("{} later jobs are beyond --limit", over));

  trace_writer writer(write);
  writer.line({.kind = "trace_started",
    .data = json{{"gpus", out.gpus}, {"hold_cap_s", options.hold_cap_s}, {"lost", out.lost},
      {"source", to_string(form)}, {"file", source}, {"time_scale", options.time_scale},
      {"trace", "gristmill.lease-trace/1"}}
              .dump(-1, ' ', false, json::error_handler_t::replace)});
  for (uint32_t gpu = 0; gpu < out.gpus; ++gpu)
    writer.line({.kind = "gpu_up", .gpu = fmt::format("gpu#{}", gpu)});
  uint64_t ticket = 0;
  for (const auto& r : requests) {
    ++ticket;
    json data{{"agent", r.job->name}, {"class", to_string(class_of_hold(r.hold))},
      {"estimate_ns", std::min(time_of(r.job->estimate_s * options.time_scale), cap).count()},
      {"hold_ns", r.hold.count()}, {"request", ticket}, {"ticket", ticket}};
    if (r.job->weight != 1)
      data["weight"] = r.job->weight;
    writer.line({.t = r.at,
      .kind = "lease_request",
      .problem = r.job->owner,
      .attempt = fmt::format("{}/{}", r.job->owner, r.job->name),
      .data = data.dump(-1, ' ', false, json::error_handler_t::replace)});
  }
  return out;
}

} // namespace gristmill
