#include "actors/run_jobs.hpp"

#include "actors/input_cases.hpp"
#include "actors/prepare_jobs.hpp"
#include "journal/hash.hpp"
#include "protocol/child_answers.hpp"

#include <algorithm>
#include <filesystem>
#include <fmt/format.h>
#include <map>
#include <optional>
#include <set>

namespace gristmill {

namespace {

const workload* find_workload(const problem& of, const std::string& uuid) {
  for (const auto& w : of.workloads)
    if (w.uuid == uuid)
      return &w;
  return nullptr;
}

result<const problem*> find_problem(const run_context& context, const std::string& problem_name) {
  auto found = context.problems.find(problem_name);
  if (found == context.problems.end())
    return fail(errc::not_found, fmt::format("no problem is called '{}'", problem_name));
  return &found->second;
}

tensor_key secret_key(const run_context& context, const std::string& text) {
  std::string_view secret(
    reinterpret_cast<const char*>(context.secret.data()), context.secret.size());
  auto digest = hmac_sha256(secret, text);
  tensor_key key;
  std::copy_n(digest.begin(), key.bytes.size(), key.bytes.begin());
  return key;
}

/// What undefined scratch and outputs hold before a call: the same for a candidate in every run of
/// one secret, and nothing that it can foresee.
tensor_key fill_key(const run_context& context, const measure_request& request) {
  return secret_key(context, "fill/" + to_string(request.attempt) + "/" + request.candidate.hash);
}

/// Draws the order of calls and which of them are looked at: another one for each measurement.
tensor_key order_key(const run_context& context, const measure_request& request) {
  return secret_key(context,
    fmt::format(
      "order/{}/{}/{}", to_string(request.attempt), request.under.gpu, request.under.token));
}

result<run_pass> make_pass(const run_context& context, const problem& of, const std::string& uuid,
  const resolved_workload& resolved, const data_set& set, const std::string& output_label) {
  run_pass out;
  out.unit = resolved.unit.key;
  out.steps = resolved.steps;
  for (const auto& buffer : resolved.buffers) {
    std::string file;
    uint64_t file_bytes = 0;
    if (buffer.kind == resolved_buffer::role::input) {
      auto path = input_file(context, of.name, uuid, buffer.name, set);
      std::error_code error;
      auto size = std::filesystem::file_size(path, error);
      if (error)
        return fail(errc::not_found,
          fmt::format("{}, workload {}: input '{}' of {} has not been made ({}: {})", of.name, uuid,
            buffer.name, set.name, path.string(), error.message()));
      file = path.string();
      file_bytes = std::min<uint64_t>(size, buffer.bytes);
    } else if (buffer.kind == resolved_buffer::role::output && set != clock_set()
      && !output_label.empty()) {
      file = output_file(uuid, buffer.name, output_label);
    }
    out.buffers.push_back(make_run_buffer(buffer, std::move(file), file_bytes));
  }
  return out;
}

/// The cases of a measurement as the judge numbers them. How they are launched is no matter here,
/// so the plan is read for a draw alone, whose cases depend on it, and once for all workloads.
class judged_cases {
public:
  judged_cases(const run_context& context, const problem& of, const candidate_ref& candidate,
    const std::string& draw)
    : context_(context), of_(of), candidate_(candidate), draw_(draw) {}

  result<std::vector<input_case>> of(const workload& work);

private:
  const run_context& context_;
  const problem& of_;
  const candidate_ref& candidate_;
  const std::string& draw_;
  std::optional<resolved_candidate> resolved_;
};

result<std::vector<input_case>> judged_cases::of(const workload& work) {
  if (draw_.empty()) {
    auto pool = pool_cases(context_, of_, work);
    if (!pool)
      return pass(pool);
    return std::move(pool->cases);
  }
  if (!resolved_) {
    auto resolved = resolve_candidate(context_, of_.name, candidate_);
    if (!resolved)
      return pass(resolved);
    resolved_ = std::move(*resolved);
  }
  auto drawn = cases_of(context_, of_, work, draw_, *resolved_);
  if (!drawn)
    return pass(drawn);
  std::vector<input_case> out;
  for (auto& one : *drawn)
    out.push_back(std::move(one.what));
  return out;
}

/// Whether the runner itself may say this of a workload.
bool runner_may_say(verdict_status status) {
  return status == verdict_status::passed || status == verdict_status::runtime_error
    || status == verdict_status::timeout || status == verdict_status::reward_hack
    || status == verdict_status::not_checked || status == verdict_status::infrastructure;
}

/// The workloads that a measurement covers, in the order of the problem. Errors: `invalid_input`
/// for one that the problem has not, or that is named twice.
result<std::vector<const workload*>> asked_workloads(
  const problem& of, const std::vector<std::string>& asked) {
  std::set<std::string_view> wanted;
  for (const auto& uuid : asked) {
    if (find_workload(of, uuid) == nullptr)
      return fail(errc::invalid_input,
        fmt::format(
          "a measurement of {} asks for workload '{}', which the problem has not", of.name, uuid));
    if (!wanted.insert(uuid).second)
      return fail(errc::invalid_input,
        fmt::format("a measurement of {} asks for workload '{}' twice", of.name, uuid));
  }
  std::vector<const workload*> out;
  for (const auto& w : of.workloads)
    if (asked.empty() || wanted.contains(w.uuid))
      out.push_back(&w);
  return out;
}

result<std::vector<workload_measurement>> in_order(const run_context& context, const problem& of,
  const std::vector<const workload*>& asked, std::vector<workload_measurement> said) {
  std::map<std::string, workload_measurement> by_name;
  for (auto& w : said) {
    auto name = w.uuid;
    if (!by_name.emplace(name, std::move(w)).second)
      return fail(errc::child_failed, fmt::format("it answered twice for workload {}", name));
  }
  std::vector<workload_measurement> out;
  for (const auto* work : asked) {
    auto found = by_name.find(work->uuid);
    if (found == by_name.end())
      return fail(errc::child_failed, fmt::format("it did not answer for workload {}", work->uuid));
    auto& w = found->second;
    if (!runner_may_say(w.status))
      return fail(errc::child_failed,
        fmt::format("workload {}: a runner cannot know {}", w.uuid, to_string(w.status)));
    if (w.status == verdict_status::passed && w.time_ns == 0)
      return fail(
        errc::child_failed, fmt::format("workload {}: ran to its end in no time", w.uuid));
    if (w.shrunken != is_shrunken(context, of, *work))
      return fail(errc::child_failed,
        fmt::format("workload {}: ran {} twin", w.uuid, w.shrunken ? "a shrunken" : "no shrunken"));
    out.push_back(std::move(w));
    by_name.erase(found);
  }
  if (!by_name.empty())
    return fail(errc::child_failed,
      fmt::format("it answered for workload {}, which nobody asked for", by_name.begin()->first));
  return out;
}

/// Nothing was measured, for a reason of ours.
measurement nothing_measured(const run_context& context, const problem* of,
  const std::vector<const workload*>& asked, std::string why) {
  measurement out;
  out.device = context.device_label;
  out.origin = time_origin::none;
  for (const auto* work : asked) {
    workload_measurement w;
    w.uuid = work->uuid;
    w.status = verdict_status::infrastructure;
    w.shrunken = is_shrunken(context, *of, *work);
    w.detail = why;
    out.workloads.push_back(std::move(w));
  }
  out.failure_text = std::move(why);
  return out;
}

} // namespace

std::string output_file(
  const std::string& uuid, const std::string& tensor, const std::string& label) {
  // The lengths go in, so that no two triples make one text.
  auto text = fmt::format("{}:{}{}", uuid.size(), uuid, tensor);
  if (label != first_set_label)
    text = fmt::format("{}:{}{}", text.size(), text, label);
  return sha256_hex(text).substr(0, 24) + ".out.bin";
}

// ---- the runner

namespace {

/// Timed calls rotate through so many sets: values differ from call to call, and all of them lie on
/// the device.
constexpr size_t timed_sets_max = 4;
/// A secret third of the timed calls is looked at in full, as far as that is so much.
constexpr uint32_t written_share = 341;
constexpr uint64_t written_bytes_max = uint64_t{512} << 20;
/// No sample of a workload begins after so much time, and a call that takes longer is endless: what
/// is a thousand times slower than the rest must not hold a device for half a minute.
constexpr uint64_t timing_limit_ns = 5'000'000'000;
/// Blocks of each side; times of a model need no second one.
constexpr uint32_t blocks_measured = 2;
constexpr uint32_t blocks_modelled = 1;

result<std::vector<run_unit>> units_of(const run_context& context,
  const std::vector<compiled_unit>& compiled, const resolved_candidate& resolved) {
  std::vector<run_unit> out;
  std::set<std::string> there;
  for (const auto& unit : compiled) {
    if (!context.blobs->has(unit.code))
      return fail(errc::not_found, "the code of unit '" + unit.key + "' is not in the blob store");
    auto path = context.blobs->path(unit.code);
    if (!path)
      return pass(path);
    out.push_back({unit.key, path->string(), unit.entries});
    there.insert(unit.key);
  }
  for (const auto& unit : resolved.units)
    if (there.count(unit.key) == 0)
      return fail(
        errc::invalid_input, "the plan needs unit '" + unit.key + "', which was not compiled");
  return out;
}

/// One side of a measurement.
struct side {
  const run_context& context;
  const problem& of;
  const resolved_candidate& candidate;
  std::string draw;
  /// Only what is timed, which of the incumbent is all that is asked.
  bool timed_only = false;

  result<run_workload> workload_of(const workload& work, const candidate_workload& mine) const {
    run_workload out;
    out.uuid = mine.uuid;
    out.shrunken = mine.shrunken;
    auto cases = cases_of(context, of, work, draw, candidate);
    if (!cases)
      return pass(cases);
    const bool on_cases = context.measured && !mine.shrunken;
    size_t timed = 0;
    for (const auto& one : *cases) {
      const bool is_timed = on_cases && one.what.clock_shape && timed < timed_sets_max;
      if (timed_only && !is_timed)
        continue;
      auto made = make_pass(context, of, mine.uuid, one.resolved, one.what.set, one.what.label);
      if (!made)
        return pass(made);
      if (is_timed) {
        out.timed_on.push_back(static_cast<uint32_t>(out.cases.size()));
        ++timed;
      }
      out.cases.push_back({one.what.label, std::move(*made)});
    }
    out.has_clock = true;
    const auto& clock_inputs = on_cases && !cases->empty() ? cases->front().what.set : clock_set();
    auto clock = make_pass(context, of, mine.uuid, mine.full, clock_inputs, {});
    if (!clock)
      return pass(clock);
    out.clock = std::move(*clock);
    return out;
  }
};

/// How many timed calls of a workload may be written out, all outputs of it together.
uint32_t written_max_of(const run_workload& work) {
  uint64_t bytes = 0;
  for (const auto& buffer : work.clock.buffers)
    if (buffer.what.kind == resolved_buffer::role::output)
      bytes += buffer.what.bytes;
  return static_cast<uint32_t>(
    std::clamp<uint64_t>(written_bytes_max / std::max<uint64_t>(1, bytes), 1, 4));
}

result<run_job> build_side(const side& from, const measure_request& request,
  const std::string& device, const std::vector<compiled_unit>& compiled,
  const std::vector<const workload*>& asked) {
  const auto& context = from.context;
  run_job out;
  out.device = device;
  out.instruction_limit = context.instruction_limit;
  out.samples = context.samples;
  out.fill = fill_key(context, request);
  out.timing.flush = context.flush;
  out.timing.limit_ns = timing_limit_ns;
  out.timing.written_share = context.measured ? written_share : 0;
  out.timing.order = order_key(context, request);
  auto units = units_of(context, compiled, from.candidate);
  if (!units)
    return pass(units);
  out.units = std::move(*units);
  for (const auto* work : asked)
    for (const auto& mine : from.candidate.workloads) {
      if (mine.uuid != work->uuid)
        continue;
      auto made = from.workload_of(*work, mine);
      if (!made)
        return pass(made);
      out.timing.written_max = std::min(out.timing.written_max, written_max_of(*made));
      out.workloads.push_back(std::move(*made));
    }
  return out;
}

/// What a runner may call a call of a case; it becomes part of a file's name.
bool is_call(const std::string& text) {
  constexpr std::string_view timed = "timed ";
  if (text == "check")
    return true;
  return text.starts_with(timed) && text.size() > timed.size() && text.size() < 24
    && std::all_of(
      text.begin() + timed.size(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

/// Every case of a workload that ran to its end must have been checked, once, in its order.
result<void> check_written(const workload_measurement& said, size_t cases) {
  if (said.status != verdict_status::passed)
    return {};
  size_t checked = 0;
  std::set<std::pair<uint32_t, std::string>> seen;
  for (const auto& call : said.written) {
    if (call.check >= cases || !is_call(call.call) || !seen.emplace(call.check, call.call).second)
      return fail(errc::child_failed,
        fmt::format("workload {}: it cannot have written call '{}' of case {}", said.uuid,
          call.call, call.check));
    checked += call.call == "check" ? 1 : 0;
  }
  if (checked != cases)
    return fail(errc::child_failed,
      fmt::format("workload {}: it has checked {} of {} cases", said.uuid, checked, cases));
  return {};
}

} // namespace

result<run_job> build_run_job(
  const run_context& context, const measure_request& request, const std::string& device) {
  auto of = find_problem(context, request.attempt.problem);
  if (!of)
    return pass(of);
  auto asked = asked_workloads(**of, request.workloads);
  if (!asked)
    return pass(asked);
  auto resolved = resolve_candidate(context, request.attempt.problem, request.candidate);
  if (!resolved)
    return pass(resolved);
  auto out = build_side(
    {context, **of, *resolved, request.draw, false}, request, device, request.units, *asked);
  if (!out || !request.against)
    return out;
  auto other = resolve_candidate(context, request.attempt.problem, request.against->candidate);
  if (!other)
    return pass(other);
  auto against = build_side(
    {context, **of, *other, request.draw, true}, request, device, request.against->units, *asked);
  if (!against)
    return pass(against);
  out->against.push_back(std::move(*against));
  out->blocks = context.measured ? blocks_measured : blocks_modelled;
  return out;
}

result<child_job> make_runner_child(const run_context& context, const measure_request& request,
  const std::string& device, std::chrono::nanoseconds deadline) {
  auto work = build_run_job(context, request, device);
  if (!work)
    return pass(work);
  job what;
  what.kind = job_kind::run;
  what.token = request.under.token;
  what.run = std::move(*work);
  return make_child_job(
    context, child_profile::runner, "gristmill-runner", std::move(what), deadline);
}

measurement read_run_result(const run_context& context, const measure_request& request,
  std::string_view nonce, const child_result& ended) {
  auto of = find_problem(context, request.attempt.problem);
  if (!of)
    return nothing_measured(context, nullptr, {}, of.error().what);
  auto asked = asked_workloads(**of, request.workloads);
  if (!asked)
    return nothing_measured(context, *of, {}, asked.error().what);
  if (ended.end != child_end::done)
    return nothing_measured(context, *of, *asked, describe_end("runner", ended));
  auto said = read_run_answers(ended.lines, nonce);
  if (!said)
    return nothing_measured(context, *of, *asked, "runner: " + said.error().what);
  auto workloads = in_order(context, **of, *asked, std::move(said->workloads));
  if (!workloads)
    return nothing_measured(context, *of, *asked, "runner: " + workloads.error().what);
  judged_cases known(context, **of, request.candidate, request.draw);
  for (size_t i = 0; i < workloads->size(); ++i) {
    auto cases = known.of(*(*asked)[i]);
    if (!cases)
      return nothing_measured(context, *of, *asked, cases.error().what);
    if (auto fine = check_written((*workloads)[i], cases->size()); !fine)
      return nothing_measured(context, *of, *asked, "runner: " + fine.error().what);
  }
  measurement out;
  out.device = context.device_label;
  out.origin = context.measured ? time_origin::measured : time_origin::modelled;
  out.workloads = std::move(*workloads);
  out.findings = std::move(said->findings);
  return out;
}

// ---- the judge

namespace {

/// All outputs of one call, each with the reference of its case.
result<judge_call> judged_call(const run_context& context, const problem& of,
  const std::string& uuid, const std::string& folder, const input_case& from,
  const written_call& written) {
  judge_call out;
  out.label = written.call == "check" ? from.label : from.label + ", " + written.call;
  out.nan_positions = from.style == input_style::nan_rows;
  for (const auto& spec : of.def.outputs) {
    auto shape = resolve_shape(spec, from.axes);
    if (!shape)
      return pass(shape);
    auto bytes = storage_bytes(spec.type, *shape);
    if (!bytes)
      return pass(bytes);
    auto file = folder + "/" + written_file(output_file(uuid, spec.name, from.label), written.call);
    out.outputs.push_back({{spec.name, spec.type, *shape, *bytes, std::move(file)},
      reference_file(context, of.name, uuid, spec.name, from.set).string()});
  }
  return out;
}

} // namespace

result<judge_job> build_judge_job(const run_context& context, const judge_request& request) {
  auto of = find_problem(context, request.attempt.problem);
  if (!of)
    return pass(of);
  judged_cases known(context, **of, request.candidate, request.draw);
  judge_job out;
  for (const auto& measured : request.measured.workloads) {
    if (measured.status != verdict_status::passed)
      continue; // Nothing was written, or nothing that means anything.
    const auto* work = find_workload(**of, measured.uuid);
    if (work == nullptr)
      return fail(errc::not_found,
        fmt::format("{} has no workload {}", request.attempt.problem, measured.uuid));
    if (request.measured.output_folder.empty())
      return fail(errc::invalid_input,
        fmt::format(
          "measurement.output_folder is empty, but workload {} ran to its end", measured.uuid));
    auto cases = known.of(*work);
    if (!cases)
      return pass(cases);
    judge_workload judged;
    judged.uuid = measured.uuid;
    judged.shrunken = measured.shrunken;
    judged.allowed = work->allowed;
    for (const auto& written : measured.written) {
      if (written.check >= cases->size())
        return fail(errc::invalid_input,
          fmt::format("workload {}: there is no case {}", measured.uuid, written.check));
      auto call = judged_call(context, **of, measured.uuid, request.measured.output_folder,
        (*cases)[written.check], written);
      if (!call)
        return pass(call);
      judged.calls.push_back(std::move(*call));
    }
    out.workloads.push_back(std::move(judged));
  }
  return out;
}

result<evaluation> read_judge_result(const child_result& ended, std::string_view nonce) {
  if (ended.end != child_end::done)
    return fail(errc::child_failed, describe_end("judge", ended));
  auto said = read_judge_answers(ended.lines, nonce);
  if (!said)
    return fail(errc::child_failed, "judge: " + said.error().what);
  return std::move(*said);
}

} // namespace gristmill
