#include "gpu/children/sanitized_calls.hpp"

#include "gpu/children/runner_devices.hpp"
#include "gpu/children/runner_pass.hpp"
#include "gpu/children/unit_store.hpp"
#include "gpu/mock/emulate.hpp"
#include "gpu/mock/profile.hpp"
#include "protocol/device_name.hpp"
#include "protocol/json_document.hpp"
#include "protocol/nearest.hpp"
#include "protocol/sanitizer_record.hpp"

#include <algorithm>
#include <cstdlib>
#include <fcntl.h>
#include <filesystem>
#include <fmt/format.h>
#include <fstream>

namespace gristmill {

namespace {

using ptx::fault_kind;

constexpr size_t example_max = 400;

/// What of the interpreter stands for a tool.
struct stand_in {
  sanitizer_tool tool;
  /// Looked for besides what every run sees.
  ptx::check_set checks;
  std::vector<fault_kind> kinds;
};

constexpr ptx::check_set set_of(std::initializer_list<ptx::check> all) {
  ptx::check_set out = 0;
  for (const auto one : all)
    out |= static_cast<ptx::check_set>(one);
  return out;
}

const std::vector<stand_in>& stand_ins() {
  static const std::vector<stand_in> all{
    {sanitizer_tool::memcheck, 0,
      {fault_kind::out_of_bounds, fault_kind::misaligned, fault_kind::write_to_read_only,
        fault_kind::tensor_memory}},
    {sanitizer_tool::racecheck,
      set_of({ptx::check::shared_races, ptx::check::global_races, ptx::check::fences,
        ptx::check::wgmma}),
      {fault_kind::shared_race, fault_kind::global_race, fault_kind::missing_proxy_fence,
        fault_kind::missing_wgmma_fence, fault_kind::missing_wgmma_wait,
        fault_kind::missing_tensor_wait, fault_kind::missing_tensor_fence}},
    {sanitizer_tool::synccheck, set_of({ptx::check::mbarriers}),
      {fault_kind::barrier_divergence, fault_kind::bad_mask, fault_kind::deadlock,
        fault_kind::mbarrier_phase}},
    {sanitizer_tool::initcheck, set_of({ptx::check::uninitialised, ptx::check::outputs}),
      {fault_kind::uninitialised, fault_kind::read_before_write}},
  };
  return all;
}

result<const stand_in*> find_stand_in(const std::string& name) {
  std::vector<std::string> known;
  for (const auto& each : stand_ins()) {
    known.push_back(to_string(each.tool));
    if (known.back() == name)
      return &each;
  }
  return fail(errc::invalid_input,
    fmt::format("{}: there is no such tool{}", excerpt(name), suggestion(name, known)));
}

sanitizer_finding finding_of(const ptx::fault& what) {
  sanitizer_finding out;
  out.kind = ptx::to_string(what.kind);
  out.kernel = what.entry;
  out.where = fmt::format("PTX line {}", what.ptx_line);
  if (!what.source.file.empty())
    out.where += fmt::format(" ({}:{})", what.source.file, what.source.line);
  out.example = what.what.substr(0, example_max);
  out.count = what.times;
  return out;
}

result<std::string> code_of(const child_context& context, const std::string& key) {
  for (const auto& unit : context.what.run.units)
    if (unit.key == key)
      return read_text_file(context.path(unit.file), size_t{64} << 20);
  return fail(errc::invalid_input, "the job has no unit '" + key + "'");
}

result<std::vector<std::byte>> content_of(const child_context& context, const run_buffer& buffer) {
  auto file = mapped_file::open(context.path(buffer.file), buffer.what.bytes);
  if (!file)
    return fail(errc::io_failed, file.error().what);
  const auto bytes = file->bytes();
  return std::vector<std::byte>(bytes.begin(), bytes.end());
}

result<emulation> emulated(const child_context& context, const run_pass& pass_of,
  const stand_in& by, const gpu_profile& model) {
  auto code = code_of(context, pass_of.unit);
  if (!code)
    return pass(code);
  resolved_workload work;
  work.unit.key = pass_of.unit;
  work.steps = pass_of.steps;
  std::vector<std::vector<std::byte>> inputs;
  for (const auto& buffer : pass_of.buffers) {
    work.buffers.push_back(buffer.what);
    if (buffer.what.kind != resolved_buffer::role::input)
      continue;
    auto content =
      buffer.what.bytes == 0 ? result<std::vector<std::byte>>{} : content_of(context, buffer);
    if (!content)
      return pass(content);
    inputs.push_back(std::move(*content));
  }
  const auto unit = std::find_if(context.what.run.units.begin(), context.what.run.units.end(),
    [&](const run_unit& one) { return one.key == pass_of.unit; });
  emulate_settings how;
  how.profile = model;
  how.checks = by.checks;
  how.instruction_limit = context.what.run.instruction_limit;
  how.time = false;
  return emulate(*code, unit->entries, work, inputs, how);
}

/// By the interpreter.
sanitized_calls::call modelled_call(const child_context& context, const run_workload& work,
  const stand_in& by, const gpu_profile& model) {
  sanitized_calls::call out;
  out.uuid = work.uuid;
  auto seen = emulated(context, work.cases.front().pass, by, model);
  if (!seen) {
    out.failed = seen.error().what;
    return out;
  }
  out.left_out = seen->findings_left_out;
  for (const auto& each : seen->findings) {
    if (!each.is_fault)
      continue;
    if (std::find(by.kinds.begin(), by.kinds.end(), each.what.kind) != by.kinds.end())
      out.findings.push_back(finding_of(each.what));
    else
      out.failed = "the call did not come to its end: " + each.what.what.substr(0, example_max);
  }
  for (const auto& warning : seen->warnings)
    if (warning.find("not checked") != std::string::npos)
      out.not_seen.push_back(warning);
  return out;
}

result<void> write_calls(const std::string& folder, const sanitized_calls& calls) {
  const auto file = folder + "/" + sanitized_calls_file;
  std::ofstream out(file, std::ios::binary | std::ios::trunc);
  out << to_json(calls);
  out.close();
  if (!out)
    return fail(errc::io_failed, file + ": cannot be written");
  return {};
}

/// A case of each workload, or what is wrong with the job.
result<void> check_cases(const run_job& run) {
  for (const auto& work : run.workloads)
    if (work.cases.empty())
      return fail(errc::invalid_input, "workload " + work.uuid + " has no case to be called on");
  return {};
}

result<void> call_modelled(const child_context& context, const stand_in& by) {
  const auto& run = context.what.run;
  auto groups = parse_devices(run.device, known_profiles());
  if (!groups)
    return pass(groups);
  auto model = profile(groups->front().model);
  if (!model)
    return pass(model);
  sanitized_calls calls;
  for (const auto& work : run.workloads)
    calls.calls.push_back(modelled_call(context, work, by, *model));
  return write_calls(context.folder, calls);
}

result<void> call_measured(const child_context& context) {
  const auto& run = context.what.run;
  // Of the user's environment: it would number the devices otherwise.
  unsetenv("CUDA_VISIBLE_DEVICES");
  auto gpu = open_device(run.device, {.sanitized = true});
  if (!gpu)
    return pass(gpu);
  auto units = unit_store::read(context);
  if (!units)
    return pass(units);
  sanitized_calls calls;
  for (const auto& work : run.workloads) {
    sanitized_calls::call call;
    call.uuid = work.uuid;
    runner_pass in(gpu->use, context, work.cases.front().pass, *units, run.fill);
    if (auto done = in.call(); !done)
      call.failed = done.error().detail.empty() ? "the call failed" : done.error().detail;
    calls.calls.push_back(call);
    // After each, because the next one may end this process.
    if (auto written = write_calls(context.folder, calls); !written)
      return written;
    if (!call.failed.empty())
      break; // The context is lost with it.
  }
  return {};
}

} // namespace

result<void> run_sanitized(const std::string& tool, const std::string& folder) {
  auto by = find_stand_in(tool);
  if (!by)
    return pass(by);
  auto text = read_text_file(folder + "/job.json", job_limits::text_bytes);
  if (!text)
    return pass(text);
  auto what = job_from_json(*text);
  if (!what)
    return pass(what);
  if (what->kind != job_kind::run)
    return fail(errc::invalid_input, "the job is no run");
  if (auto fine = check_cases(what->run); !fine)
    return fine;
  // Nobody listens: the caller of the sanitizer reads files.
  const int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
  auto channel = child_channel::open(what->nonce, nowhere);
  if (!channel)
    return pass(channel);
  child_context context{std::filesystem::absolute(folder).string(), std::move(*what), **channel};
  if (context.what.run.device.starts_with("cuda:"))
    return call_measured(context);
  return call_modelled(context, **by);
}

} // namespace gristmill
