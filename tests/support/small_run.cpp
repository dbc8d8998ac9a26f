#include "tests/support/small_run.hpp"

#include "gpu/children/job_directory.hpp"
#include "kernels/builtin.hpp"
#include "protocol/child_answers.hpp"
#include "protocol/job.hpp"

#include <filesystem>
#include <fstream>
#include <stdexcept>

namespace gristmill::test {

namespace {

constexpr const char* workloads =
  R"({"axes":{"rows":4,"classes":8},"inputs":{"logits":{"type":"random"}},"uuid":"even-4x8","tolerance":{"max_atol":1e-06,"max_rtol":0.0001,"required_matched_ratio":1.0}}
{"axes":{"rows":3,"classes":5},"inputs":{"logits":{"type":"random"}},"uuid":"odd-3x5","tolerance":{"max_atol":1e-06,"max_rtol":0.0001,"required_matched_ratio":1.0}}
)";

template <class T>
T must(result<T> made) {
  if (!made)
    throw std::runtime_error(made.error().what);
  return std::move(*made);
}

void write_zeros(const std::string& file, uint64_t bytes) {
  std::ofstream out{file, std::ios::binary};
  out << std::string(bytes, '\0');
}

void add_compile(
  const compile_job& work, const std::string& folder, verdict_status status, ordered_json& all) {
  for (size_t i = 0; i < work.units.size(); ++i) {
    compile_answer a;
    a.unit = work.units[i].key;
    a.status = status;
    a.toolchain = work.compiler_version;
    if (status == verdict_status::passed) {
      a.file = std::to_string(i) + ".ptx";
      std::ofstream{folder + "/" + a.file} << "// code of " << a.unit << "\n" << work.source_file;
      for (const auto& use : work.units[i].entries)
        a.entries.push_back({use.expression, "symbol_of_" + std::to_string(i)});
    } else {
      a.log = "candidate.cu:1: it does not compile\nmore";
    }
    all.push_back(to_json(a));
  }
}

void add_prepare(const prepare_job& work, verdict_status status, ordered_json& all) {
  for (const auto& w : work.workloads) {
    for (const auto& t : w.inputs)
      write_zeros(t.file, t.file_bytes);
    for (const auto& t : w.patterns)
      write_zeros(t.file, t.file_bytes);
    for (const auto& t : w.references)
      write_zeros(t.file, t.bytes);
    all.push_back(to_json(prepare_answer{
      w.uuid, status, status == verdict_status::passed ? "" : "the reference raised", {}}));
  }
}

void add_run(const run_job& work, const child_manner& manner, ordered_json& all) {
  for (const auto& w : work.workloads) {
    workload_measurement m;
    m.uuid = w.uuid;
    m.status = manner.run;
    m.shrunken = w.shrunken;
    if (m.status == verdict_status::passed) {
      m.time_ns = manner.time_ns;
      m.samples_ns = {manner.time_ns};
      m.terms = {{"dram", static_cast<double>(manner.time_ns)}};
      m.bound = "dram";
      for (uint32_t i = 0; i < w.cases.size(); ++i)
        m.written.push_back({i, "check"});
      if (!work.against.empty())
        m.blocks = {{false, manner.time_ns, 0, 1}, {true, manner.rival_ns, 0, 1}};
    } else {
      m.detail = "it did not end well";
    }
    all.push_back(to_json(m));
  }
}

void add_judge(const judge_job& work, verdict_status status, ordered_json& all) {
  for (const auto& w : work.workloads) {
    workload_evaluation e;
    e.uuid = w.uuid;
    e.status = status;
    e.call = w.calls.at(0).label;
    e.shrunken = w.shrunken;
    e.calls = static_cast<uint32_t>(w.calls.size());
    for (const auto& o : w.calls.at(0).outputs) {
      output_evaluation one;
      one.output = o.solution.name;
      one.passed = status == verdict_status::passed;
      one.elements = 1;
      one.mismatches = one.passed ? 0 : 1;
      one.matched_ratio = one.passed ? 1.0 : 0.0;
      one.miss_tiles = std::vector<uint32_t>(64, 0);
      e.outputs.push_back(std::move(one));
    }
    all.push_back(to_json(e));
  }
}

} // namespace

small_run::small_run(const std::vector<std::string>& problems) {
  auto made = std::make_shared<run_context>();
  made->directory = folder.path;
  made->programs = folder.path;
  made->blobs = std::make_shared<blob_store>(must(blob_store::open(folder.path / "blobs")));
  auto softmax = must(builtin_problem("softmax"));
  for (const auto& name : problems)
    made->problems.emplace(
      name, must(problem_from_texts(name, softmax.definition_text, workloads, softmax.graph_json)));
  made->secret.fill(7);
  made->seed = 1;
  made->device_model = "h200";
  made->device_label = "mock:h200";
  made->facts = {132, 232448, 233472, uint64_t{50} << 20, 90};
  made->floor_bytes_per_second = 4'800'000'000'000;
  made->floor_flops_per_second = 67'000'000'000'000;
  made->arch = "sm_90a";
  context = made;
}

std::string child_line_text(
  const std::string& nonce, const std::string& kind, const std::string& body) {
  ordered_json line{{"line", kind}, {"nonce", nonce}};
  line.update(ordered_json::parse(body));
  return line.dump();
}

std::vector<std::string> child_lines(const child_request& request, const child_manner& manner) {
  auto what = must(job_from_json(
    must(read_whole_file(request.job_directory + "/job.json", job_limits::text_bytes))));
  if (what.nonce != request.nonce)
    throw std::runtime_error("job.json and the request disagree on the nonce");
  auto samples = ordered_json::array();
  switch (what.kind) { // no default: the compiler reports a missing case
  case job_kind::compile:
    add_compile(what.compile, request.job_directory, manner.compile, samples);
    break;
  case job_kind::prepare:
    add_prepare(what.prepare, manner.prepare, samples);
    break;
  case job_kind::run:
    add_run(what.run, manner, samples);
    break;
  case job_kind::judge:
    add_judge(what.judge, manner.judge, samples);
    break;
  }
  std::vector<std::string> lines;
  for (const auto& body : samples)
    lines.push_back(child_line_text(request.nonce, "sample", body.dump()));
  lines.push_back(child_line_text(request.nonce, "done"));
  return lines;
}

} // namespace gristmill::test
