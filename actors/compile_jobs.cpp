#include "actors/compile_jobs.hpp"

#include "actors/child_job.hpp"
#include "protocol/child_answers.hpp"

namespace gristmill {

namespace {

/// Device code of one unit; more is no kernel of a person or an agent.
constexpr uint64_t code_bytes_max = uint64_t{16} << 20;
constexpr size_t log_bytes_max = 8192;

} // namespace

std::vector<keyed_unit> keyed_units(const run_context& context, const resolved_candidate& candidate,
  const device_compiler& compiler) {
  std::vector<keyed_unit> out;
  for (const auto& unit : candidate.units) {
    compile_input input;
    input.source = candidate.source;
    input.unit = unit;
    input.options = candidate.parsed.options;
    input.arch = context.arch;
    out.push_back({unit, cache_key(input, compiler)});
  }
  return out;
}

compile_job build_compile_job(const run_context& context, const resolved_candidate& candidate,
  const device_compiler& compiler, const std::vector<compile_unit>& units) {
  compile_job out;
  out.source_file = "candidate.cu";
  out.options = candidate.parsed.options;
  out.units = units;
  out.arch = context.arch;
  out.compiler = compiler.path;
  out.compiler_version = compiler.version;
  return out;
}

result<std::map<std::string, cached_unit>> read_compile_result(const run_context& context,
  const child_result& ended, const std::string& nonce, const std::string& job_folder) {
  auto answers = read_compile_answers(ended.lines, nonce);
  if (!answers)
    return fail(errc::child_failed, "compiler: " + answers.error().what);
  std::map<std::string, cached_unit> out;
  for (const auto& a : *answers) {
    cached_unit made;
    made.status = a.status;
    made.log = a.log;
    made.findings = a.findings;
    made.unit.key = a.unit;
    made.unit.entries = a.entries;
    if (a.status == verdict_status::passed) {
      auto code = read_child_file(job_folder, a.file, code_bytes_max);
      if (!code)
        return pass(code);
      auto stored = context.blobs->put(*code);
      if (!stored)
        return pass(stored);
      made.unit.code = *stored;
    }
    out[a.unit] = std::move(made);
  }
  return out;
}

compiled_candidate assemble(
  const std::string& candidate_hash, const std::vector<cached_unit>& units, bool all_cached) {
  compiled_candidate out;
  out.candidate = candidate_hash;
  out.cached = all_cached;
  out.status = verdict_status::passed;
  for (const auto& unit : units) {
    out.findings.insert(out.findings.end(), unit.findings.begin(), unit.findings.end());
    if (unit.status != verdict_status::passed) {
      out.status = unit.status;
      out.log = unit.log;
      out.units.clear();
      return out;
    }
    out.units.push_back(unit.unit);
    if (out.log.size() + unit.log.size() <= log_bytes_max)
      out.log += unit.log;
  }
  return out;
}

} // namespace gristmill
