#include "report/score_traces.hpp"

#include "protocol/nearest.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <map>
#include <set>

namespace gristmill {

namespace {

/// Where a trace stands.
struct placed_trace {
  const trace* what = nullptr;
  const trace_file* file = nullptr;
};

/// Problem -> workload -> trace.
using trace_index = std::map<std::string, std::map<std::string, placed_trace>>;

/// Traces that say it of themselves: `correctness.extra.origin` is "MODELLED".
bool is_modelled(const trace& one) {
  if (!one.evaluation || !one.evaluation->correctness)
    return false;
  const auto& extra = one.evaluation->correctness->extra;
  if (!extra.is_object())
    return false;
  const auto origin = extra.find("origin");
  return origin != extra.end() && origin->is_string() && origin->get<std::string>() == "MODELLED";
}

std::string reduced(std::string_view device) {
  std::string out;
  for (char c : device) {
    if (c == ' ' || c == '\t' || c == '_' || c == '-')
      continue;
    out += c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
  }
  return out.starts_with("nvidia") ? out.substr(6) : out;
}

class scorer {
public:
  explicit scorer(const score_request& request) : request_(request) {}

  result<trace_score> run() {
    for (const auto stage : {&scorer::check_table, &scorer::choose_suite, &scorer::place_traces,
           &scorer::check_hardware, &scorer::check_audits})
      if (auto done = (this->*stage)(); !done)
        return pass(done);
    auto problems = timed_problems();
    if (!problems)
      return pass(problems);
    auto suite = score_suite(std::move(*problems));
    if (!suite)
      return pass(suite);
    out_.suite = std::move(*suite);
    out_.bounds_file = request_.bounds_file;
    out_.bounds_sha256 = request_.bounds_sha256;
    out_.provenance = request_.bounds;
    for (const auto& key : request_.audited)
      if (auto used = check_audit_used(key); !used)
        return pass(used);
    return std::move(out_);
  }

private:
  result<void> check_table() {
    const auto& table = request_.bounds;
    if (table.clock.empty())
      return fail(errc::refused,
        fmt::format("{}: clock: missing; a score says in what state the clocks were, so write the "
                    "table as `gristmill.bounds/2` with \"clock\"",
          request_.bounds_file));
    if (request_.bounds_sha256.empty())
      return fail(errc::refused,
        fmt::format(
          "{}: a score names its table by hash, and none was given", request_.bounds_file));
    if (table.problems.empty())
      return fail(errc::invalid_input, fmt::format("{}: problems: empty", request_.bounds_file));
    return {};
  }

  /// Which problems and workloads there are: the denominators.
  result<void> choose_suite() {
    const auto& table = request_.bounds;
    if (request_.problems.empty()) {
      for (const auto& problem_name : table.order) {
        suite_problem one{problem_name, "", {}};
        for (const auto& [uuid, times] : table.problems.at(problem_name))
          one.uuids.push_back(uuid);
        suite_.push_back(std::move(one));
      }
      return {};
    }
    std::set<std::string> seen;
    std::vector<std::string> known;
    for (const auto& [problem_name, rows] : table.problems)
      known.push_back(problem_name);
    for (const auto& one : request_.problems) {
      if (!seen.insert(one.name).second)
        return fail(
          errc::invalid_input, fmt::format("{}: given twice among the problems", one.name));
      if (table.problems.count(one.name) == 0)
        return fail(errc::refused,
          fmt::format("{}: problems.{}: missing{}", request_.bounds_file, one.name,
            suggestion(one.name, known)));
      std::set<std::string> uuids;
      for (const auto& uuid : one.uuids) {
        if (!uuids.insert(uuid).second)
          return fail(errc::invalid_input,
            fmt::format("{}: two workloads have the uuid {}", one.name, excerpt(uuid)));
        if (table.find(one.name, uuid) == nullptr)
          return fail(errc::refused,
            fmt::format("{}: problems.{}.{}: missing, and a table must cover the whole problem",
              request_.bounds_file, one.name, excerpt(uuid)));
      }
      suite_.push_back(one);
    }
    return {};
  }

  const suite_problem* in_suite(const std::string& problem_name) const {
    const auto found = std::find_if(suite_.begin(), suite_.end(),
      [&](const suite_problem& one) { return one.name == problem_name; });
    return found == suite_.end() ? nullptr : &*found;
  }

  result<void> place_trace(const trace_file& file, const trace& one) {
    const auto refuse = [&](const std::string& why) {
      return fail(errc::refused, fmt::format("{}: {}", file.name, why));
    };
    const auto* target = in_suite(one.definition_name);
    if (target == nullptr) {
      std::vector<std::string> known;
      for (const auto& each : suite_)
        known.push_back(each.name);
      return refuse(fmt::format("a trace of {}, which is no problem of the suite{}",
        excerpt(one.definition_name), suggestion(one.definition_name, known)));
    }
    const auto& uuid = one.work.uuid;
    if (std::find(target->uuids.begin(), target->uuids.end(), uuid) == target->uuids.end())
      return refuse(
        fmt::format("a trace of workload {}, which {} does not have", excerpt(uuid), target->name));
    const auto [known, is_new] = solution_of_.emplace(target->name, one.solution_name);
    if (!is_new && known->second != one.solution_name)
      return refuse(fmt::format("{} has traces of two solutions, {} and {}; a score is about one: "
                                "choose with --solution",
        target->name, excerpt(known->second), excerpt(one.solution_name)));
    auto& place = index_[target->name][uuid];
    if (place.what != nullptr)
      return refuse(fmt::format("a second trace of {}, workload {}; the first is in {}, and nobody "
                                "may choose between them afterwards",
        target->name, excerpt(uuid), place.file->name));
    place = {&one, &file};
    return {};
  }

  result<void> place_traces() {
    const auto& wanted = request_.solutions;
    std::set<std::string> met;
    uint64_t without = 0;
    uint64_t others = 0;
    for (const auto& file : request_.files)
      for (const auto& one : file.traces) {
        if (!one.evaluation) {
          ++without;
          continue;
        }
        met.insert(one.solution_name);
        if (!wanted.empty()
          && std::find(wanted.begin(), wanted.end(), one.solution_name) == wanted.end()) {
          ++others;
          continue;
        }
        if (auto placed = place_trace(file, one); !placed)
          return placed;
      }
    for (const auto& each : wanted)
      if (met.count(each) == 0)
        return fail(errc::invalid_input,
          fmt::format("--solution {}: no trace is of it{}", excerpt(each),
            suggestion(each, {met.begin(), met.end()})));
    if (without > 0)
      out_.notes.push_back(
        fmt::format("{} traces without an evaluation: nothing to score", without));
    if (others > 0)
      out_.notes.push_back(fmt::format("{} traces of solutions that were not asked for", others));
    out_.solutions.assign(solution_of_.begin(), solution_of_.end());
    return {};
  }

  result<void> check_hardware() {
    const placed_trace* first = nullptr;
    bool is_first_modelled = false;
    const placed_trace* timed = nullptr;
    for (const auto& [problem_name, rows] : index_)
      for (const auto& [uuid, place] : rows) {
        const auto& hardware = place.what->evaluation->environment.hardware;
        if (first == nullptr) {
          first = &place;
          out_.hardware = hardware;
        } else if (!is_same_device(hardware, out_.hardware)) {
          return fail(errc::refused,
            fmt::format("traces of two devices, {} ({}) and {} ({}); a score is of one",
              excerpt(out_.hardware), first->file->name, excerpt(hardware), place.file->name));
        }
        if (!place.what->evaluation->performance)
          continue;
        const bool modelled = is_modelled(*place.what);
        if (timed != nullptr && modelled != is_first_modelled)
          return fail(errc::refused,
            fmt::format(
              "{}, workload {}: modelled times beside measured ones", problem_name, uuid));
        timed = &place;
        is_first_modelled = modelled;
        out_.modelled = modelled;
      }
    if (first == nullptr)
      return {};
    const auto& device = request_.bounds.device;
    if (is_same_device(out_.hardware, device)) {
      if (!request_.other_device.empty())
        return fail(errc::invalid_input,
          fmt::format(
            "--device {}: the traces are of the table's own device", request_.other_device));
      return {};
    }
    if (request_.other_device.empty())
      return fail(errc::refused,
        fmt::format("the traces are of {}, the table is for {}; scores of two devices do not "
                    "compare (name the traces' device with --device to see one all the same)",
          excerpt(out_.hardware), excerpt(device)));
    if (!is_same_device(request_.other_device, out_.hardware))
      return fail(errc::refused,
        fmt::format(
          "--device {}: the traces are of {}", request_.other_device, excerpt(out_.hardware)));
    out_.other_device = true;
    return {};
  }

  static std::string key_of(const std::string& problem_name, const std::string& uuid) {
    return problem_name + ":" + uuid;
  }

  result<void> check_audits() {
    out_.audited = request_.audited;
    std::set<std::string> known;
    for (const auto& one : suite_)
      for (const auto& uuid : one.uuids)
        known.insert(key_of(one.name, uuid));
    for (const auto& key : request_.audited)
      if (known.count(key) == 0)
        return fail(errc::invalid_input,
          fmt::format("--audited {}: no workload of the suite; write PROBLEM:UUID{}", excerpt(key),
            suggestion(key, {known.begin(), known.end()})));
    return {};
  }

  result<void> check_audit_used(const std::string& key) const {
    for (const auto& p : out_.suite.problems)
      for (const auto& w : p.workloads)
        if (key_of(p.name, w.from.uuid) == key && w.from.passed && w.from.t_k < w.from.t_sol)
          return {};
    return fail(errc::invalid_input,
      fmt::format("--audited {}: its time is not below the bound, so there is nothing to audit",
        excerpt(key)));
  }

  result<std::vector<timed_problem>> timed_problems() const {
    std::vector<timed_problem> out;
    for (const auto& one : suite_) {
      timed_problem p;
      p.name = one.name;
      const auto category = request_.bounds.categories.find(one.name);
      p.category = category != request_.bounds.categories.end() ? category->second
        : !one.category.empty()                                 ? one.category
                                                                : category_of(one.name);
      const auto rows = index_.find(one.name);
      for (const auto& uuid : one.uuids) {
        timed_workload w;
        w.uuid = uuid;
        const auto* bound = request_.bounds.find(one.name, uuid);
        w.t_b = bound->t_b_ns;
        w.t_sol = bound->t_sol_ns;
        const auto key = key_of(one.name, uuid);
        w.audited = std::find(request_.audited.begin(), request_.audited.end(), key)
          != request_.audited.end();
        if (rows != index_.end())
          if (const auto place = rows->second.find(uuid); place != rows->second.end()) {
            const auto& evaluation = *place->second.what->evaluation;
            w.status = name(evaluation.status);
            w.passed = evaluation.status == trace_status::passed;
            if (w.passed && !(evaluation.performance && evaluation.performance->latency_ms > 0))
              return fail(errc::refused,
                fmt::format("{}: {}, workload {}: PASSED without a positive latency",
                  place->second.file->name, one.name, excerpt(uuid)));
            if (w.passed)
              w.t_k = evaluation.performance->latency_ms * 1e6;
          }
        p.workloads.push_back(std::move(w));
      }
      out.push_back(std::move(p));
    }
    return out;
  }

  const score_request& request_;
  std::vector<suite_problem> suite_;
  trace_index index_;
  std::map<std::string, std::string> solution_of_;
  trace_score out_;
};

} // namespace

bool is_same_device(std::string_view a, std::string_view b) {
  return reduced(a) == reduced(b);
}

std::string category_of(std::string_view problem_name) {
  const auto slash = problem_name.find('/');
  if (slash == std::string_view::npos || slash == 0)
    return "uncategorised";
  return std::string{problem_name.substr(0, slash)};
}

result<trace_score> score_traces(const score_request& request) {
  return scorer{request}.run();
}

} // namespace gristmill
