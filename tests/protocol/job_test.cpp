#include "protocol/job.hpp"

#include "protocol/json_document.hpp"

#include <doctest/doctest.h>
#include <functional>
#include <string>

using namespace gristmill;

namespace {

tensor_key key(uint8_t seed) {
  tensor_key made;
  for (size_t i = 0; i < made.bytes.size(); ++i)
    made.bytes[i] = static_cast<uint8_t>(seed + i);
  return made;
}

job of_kind(job_kind kind) {
  job what;
  what.kind = kind;
  what.token = UINT64_MAX;
  what.nonce = "0123456789abcdef";
  return what;
}

job compile_example() {
  auto what = of_kind(job_kind::compile);
  auto& compile = what.compile;
  compile.source_file = "kernel.cu";
  compile.options = {"c++17", true, 128, {"cccl"}};
  compile_unit unit;
  unit.key = "main{T=float}";
  unit.defines = {{"T", "float"}, {"BM", "128"}};
  unit.entries = {{"gemm<T>", {"const float*", "int32_t"}, {"weight", "M"}, {true, false}}};
  compile.units = {unit};
  compile.arch = "sm_90a";
  compile.compiler = "/usr/bin/clang++-19";
  compile.compiler_version = "clang-19.1.7";
  return what;
}

job prepare_example() {
  auto what = of_kind(job_kind::prepare);
  auto& prepare = what.prepare;
  prepare.oracle = oracle_kind::torch;
  prepare.definition_text = "{\"name\": \"x\"}";
  prepare.python = "/usr/bin/python3";
  prepare_workload work;
  work.uuid = "w1";
  work.axes = {{"M", 3}, {"K", 0}};
  work.scalars = {{"eps", {dtype::float32, 1e-5, 0, false}}, {"n", {dtype::int64, -7, -7, true}}};
  work.inputs = {{"x", "the input", dtype::bfloat16, {3, 8}, 48, key(1), "in/x.bin", 48,
    input_style::large, {}, {}, {}}};
  work.references = {{"y", dtype::float32, {3}, 12, "/refs/y.bin"}};
  work.patterns = {
    {"x", "", dtype::bfloat16, {3000, 8}, 48000, key(2), "in/p.bin", 4096, {}, {}, {}, {}}};
  drawn_tensor blob{"i", "", dtype::int32, {3}, 12, key(3), "in/i.bin", 12, {}, {}, {}, {}};
  blob.source = tensor_source::safetensors;
  blob.blob_file = "/blobs/a.safetensors";
  blob.blob_key = "kv_indices";
  drawn_tensor custom{"c", "", dtype::int8, {2}, 2, key(4), "in/c.bin", 2, {}, {}, {}, {}};
  custom.source = tensor_source::custom;
  work.inputs.push_back(blob);
  work.inputs.push_back(custom);
  entry_call call{work.axes, work.scalars, key(5), {{"c", dtype::int8, {2}, 2, "in/c.bin"}}, {}};
  call.numbers = {{"k", dtype::int32}};
  work.calls = {call, {{{"M", 3000}}, {}, key(6), {}, {}}};
  prepare.workloads = {work};
  trace_set set{
    {{"M", 3}}, work.scalars, {{"x", dtype::bfloat16, {3, 8}}}, {{"y", dtype::float32, {3}}}};
  auto other = set;
  other.axes[0].second = 5;
  prepare.trace = {{{set, other}}};
  prepare.graph_file = "graph.json";
  return what;
}

job run_example() {
  auto what = of_kind(job_kind::run);
  auto& run = what.run;
  run.device = "mock:h200";
  run.instruction_limit = 1000;
  run.samples = 3;
  run.fill = key(9);
  run.units = {{"unit", "unit_0.ptx", {{"f<1>", "_Z1f"}}}};
  run_pass in;
  in.unit = "unit";
  auto buffer = [](resolved_buffer::role role, const char* name, const char* init) {
    resolved_buffer made;
    made.kind = role;
    made.name = name;
    made.type = dtype::float32;
    made.shape = {4, 8};
    made.bytes = 128;
    made.init = init;
    return made;
  };
  in.buffers = {make_run_buffer(buffer(resolved_buffer::role::input, "x", ""), "x.bin", 128),
    make_run_buffer(buffer(resolved_buffer::role::output, "y", ""), "y.bin", 0),
    make_run_buffer(buffer(resolved_buffer::role::scratch, "s", "restored"), "", 0)};
  resolved_step launch;
  launch.id = "main";
  launch.entry = "f<1>";
  launch.grid = {2, 3, 4};
  launch.block = {32, 2, 1};
  launch.cluster = {2, 1, 1};
  launch.shared_bytes = 1024;
  launch.cooperative = true;
  launch.pdl = true;
  launch.carveout = 50;
  resolved_argument pointer;
  pointer.buffer = 1;
  pointer.offset = 16;
  pointer.abi = "ptr";
  pointer.name = "y+16";
  resolved_argument number;
  number.what = resolved_argument::kind::bytes;
  number.bytes = {0, 1, 254, 255};
  number.abi = "i32";
  number.name = "M";
  launch.args = {pointer, number};
  resolved_step memset;
  memset.what = resolved_step::op::memset;
  memset.after = {0};
  memset.buffer = 2;
  memset.offset = 4;
  memset.bytes = 8;
  memset.width = 4;
  memset.value = 0xffffffff;
  resolved_step copy;
  copy.what = resolved_step::op::copy;
  copy.after = {0, 1};
  copy.buffer = 1;
  copy.offset = 64;
  copy.bytes = 64;
  copy.src_buffer = 0;
  copy.src_offset = 32;
  in.steps = {launch, memset, copy};
  auto clock = in;
  clock.buffers[0].file_bytes = 64;
  run.workloads = {{"w1", true, {{"set 0", in}, {"set 1", in}}, true, clock, {1, 0}},
    {"w2", false, {{"set 0", in}}, false, {}, {}}};
  run.timing = {"clean", 7, 8, false, 512, 3, key(5)};
  return what;
}

job judge_example() {
  auto what = of_kind(job_kind::judge);
  tolerance allowed{1e-3, 2e-3, 0.5, 0.25, true};
  what.judge.workloads = {
    {"w1", true, allowed, {{"set 0", true, {{{"y", dtype::int8, {5}, 5, "y.bin"}, "ref.bin"}}}}},
    {"w2", false, {}, {}}};
  return what;
}

/// Changes the example's JSON and expects a refusal that names the field.
void refused(
  const job& example, const std::function<void(ordered_json&)>& change, const std::string& field) {
  CAPTURE(field);
  auto text = ordered_json::parse(to_json(example));
  change(text);
  auto read = job_from_json(text.dump());
  REQUIRE_FALSE(read);
  CHECK(read.error().code == errc::invalid_input);
  CHECK_MESSAGE(read.error().what.find(field) != std::string::npos, read.error().what);
}

} // namespace

TEST_CASE("a compile job survives the way to the child") {
  auto read = job_from_json(to_json(compile_example()));
  REQUIRE_MESSAGE(read, read.error().what);
  CHECK(read->kind == job_kind::compile);
  CHECK(read->token == UINT64_MAX);
  CHECK(read->nonce == "0123456789abcdef");
  const auto sent = compile_example().compile;
  const auto& got = read->compile;
  CHECK(got.source_file == sent.source_file);
  CHECK(got.options == sent.options);
  CHECK(got.units == sent.units);
  CHECK(got.arch == sent.arch);
  CHECK(got.compiler == sent.compiler);
  CHECK(got.compiler_version == sent.compiler_version);
}

TEST_CASE("a prepare job survives the way to the child") {
  auto read = job_from_json(to_json(prepare_example()));
  REQUIRE_MESSAGE(read, read.error().what);
  const auto sent = prepare_example().prepare;
  const auto& got = read->prepare;
  CHECK(got.oracle == oracle_kind::torch);
  CHECK(got.definition_text == sent.definition_text);
  CHECK(got.python == sent.python);
  CHECK(got.trace == sent.trace);
  CHECK(got.graph_file == sent.graph_file);
  REQUIRE(got.workloads.size() == 1);
  const auto& work = got.workloads[0];
  CHECK(work.uuid == "w1");
  CHECK(work.axes == sent.workloads[0].axes);
  CHECK(work.scalars == sent.workloads[0].scalars);
  REQUIRE(work.inputs.size() == 3);
  CHECK(work.inputs[0].source == tensor_source::generator);
  CHECK(work.inputs[1].source == tensor_source::safetensors);
  CHECK(work.inputs[1].blob_file == "/blobs/a.safetensors");
  CHECK(work.inputs[1].blob_key == "kv_indices");
  CHECK(work.inputs[2].source == tensor_source::custom);
  REQUIRE(work.calls.size() == 2);
  CHECK(work.calls[0].axes == work.axes);
  CHECK(work.calls[0].scalars == work.scalars);
  CHECK(work.calls[0].key == key(5));
  REQUIRE(work.calls[0].tensors.size() == 1);
  CHECK(work.calls[0].tensors[0].file == "in/c.bin");
  CHECK(work.calls[0].numbers == std::vector<custom_number>{{"k", dtype::int32}});
  CHECK(work.calls[1].axes == axis_values{{"M", 3000}});
  CHECK(work.inputs[0].name == "x");
  CHECK(work.inputs[0].description == "the input");
  CHECK(work.inputs[0].type == dtype::bfloat16);
  CHECK(work.inputs[0].shape == std::vector<int64_t>{3, 8});
  CHECK(work.inputs[0].bytes == 48);
  CHECK(work.inputs[0].key == key(1));
  CHECK(work.inputs[0].file == "in/x.bin");
  CHECK(work.inputs[0].file_bytes == 48);
  REQUIRE(work.references.size() == 1);
  CHECK(work.references[0].name == "y");
  CHECK(work.references[0].type == dtype::float32);
  CHECK(work.references[0].shape == std::vector<int64_t>{3});
  CHECK(work.references[0].bytes == 12);
  CHECK(work.references[0].file == "/refs/y.bin");
  REQUIRE(work.patterns.size() == 1);
  CHECK(work.patterns[0].file_bytes == 4096);
}

TEST_CASE("a run job survives the way to the child") {
  auto read = job_from_json(to_json(run_example()));
  REQUIRE_MESSAGE(read, read.error().what);
  const auto sent = run_example().run;
  const auto& got = read->run;
  CHECK(got.device == "mock:h200");
  CHECK(got.instruction_limit == 1000);
  CHECK(got.samples == 3);
  CHECK(got.fill == key(9));
  REQUIRE(got.units.size() == 1);
  CHECK(got.units[0].key == "unit");
  CHECK(got.units[0].file == "unit_0.ptx");
  REQUIRE(got.units[0].entries.size() == 1);
  CHECK(got.units[0].entries[0].expression == "f<1>");
  CHECK(got.units[0].entries[0].symbol == "_Z1f");
  CHECK(got.timing.flush == "clean");
  CHECK(got.timing.warm_up_ns == 7);
  CHECK(got.timing.limit_ns == 8);
  CHECK_FALSE(got.timing.trace);
  CHECK(got.timing.written_share == 512);
  CHECK(got.timing.written_max == 3);
  CHECK(got.timing.order == key(5));
  CHECK(got.against.empty());
  REQUIRE(got.workloads.size() == 2);
  CHECK(got.workloads[0].timed_on == std::vector<uint32_t>{1, 0});
  CHECK(got.workloads[0].uuid == "w1");
  CHECK(got.workloads[0].shrunken);
  CHECK(got.workloads[0].has_clock);
  CHECK_FALSE(got.workloads[1].has_clock);
  for (size_t i = 0; i < 2; ++i) {
    const auto& pass = got.workloads[i].cases.at(0).pass;
    CHECK(pass.unit == "unit");
    REQUIRE(pass.buffers.size() == 3);
    for (size_t k = 0; k < 3; ++k) {
      CHECK(pass.buffers[k].what == sent.workloads[i].cases.at(0).pass.buffers[k].what);
      CHECK(pass.buffers[k].file == sent.workloads[i].cases.at(0).pass.buffers[k].file);
      CHECK(pass.buffers[k].file_bytes == sent.workloads[i].cases.at(0).pass.buffers[k].file_bytes);
    }
    CHECK(pass.steps == sent.workloads[i].cases.at(0).pass.steps);
  }
  CHECK(got.workloads[0].clock.buffers[0].file_bytes == 64);
}

TEST_CASE("a job with an incumbent to compare with survives the way to the child") {
  auto what = run_example();
  auto other = what.run;
  other.units[0].file = "other.ptx";
  what.run.against = {other};
  what.run.blocks = 6;
  auto read = job_from_json(to_json(what));
  REQUIRE_MESSAGE(read, read.error().what);
  REQUIRE(read->run.against.size() == 1);
  CHECK(read->run.blocks == 6);
  CHECK(read->run.against[0].units[0].file == "other.ptx");
  what.run.against[0].workloads.pop_back();
  read = job_from_json(to_json(what));
  REQUIRE_FALSE(read);
  CHECK(read.error().what.find("its workloads are not the same") != std::string::npos);
}

TEST_CASE("a timed call is the clock's call on the buffers of a case") {
  auto what = run_example();
  what.run.workloads[0].timed_on = {2};
  CHECK(job_from_json(to_json(what)).error().what.find("there is no case 2") != std::string::npos);
  what.run.workloads[0].timed_on = {1};
  what.run.workloads[0].cases[1].pass.steps.pop_back();
  CHECK(job_from_json(to_json(what)).error().what.find("case 1 is not the clock's call")
    != std::string::npos);
}

TEST_CASE("an output of a timed call is written beside that of the check") {
  CHECK(written_file("y.out.bin", "check") == "y.out.bin");
  CHECK(written_file("y.out.bin", "timed 17") == "y.out.bin.timed-17");
}

TEST_CASE("a judge job survives the way to the child") {
  auto read = job_from_json(to_json(judge_example()));
  REQUIRE_MESSAGE(read, read.error().what);
  const auto& got = read->judge.workloads;
  REQUIRE(got.size() == 2);
  CHECK(got[0].uuid == "w1");
  CHECK(got[0].shrunken);
  CHECK(got[0].allowed == judge_example().judge.workloads[0].allowed);
  CHECK(got[1].allowed == tolerance{});
  CHECK(got[0].calls.at(0).nan_positions);
  REQUIRE(got[0].calls.at(0).outputs.size() == 1);
  CHECK(got[0].calls.at(0).outputs[0].solution.name == "y");
  CHECK(got[0].calls.at(0).outputs[0].solution.type == dtype::int8);
  CHECK(got[0].calls.at(0).outputs[0].solution.bytes == 5);
  CHECK(got[0].calls.at(0).outputs[0].solution.file == "y.bin");
  CHECK(got[0].calls.at(0).outputs[0].reference_file == "ref.bin");
}

TEST_CASE("a text that is no job is refused") {
  for (const char* text : {"", "{", "[]", "null", "{}", R"({"schema":"gristmill.job/2"})"})
    CHECK_FALSE(job_from_json(text));
  CHECK_FALSE(job_from_json(std::string(1'000'000, '[')));
}

TEST_CASE("a job is strict about its frame") {
  const auto good = judge_example();
  refused(
    good, [](auto& j) { j["extra"] = 1; }, "job.extra");
  refused(
    good, [](auto& j) { j.erase("token"); }, "job.token");
  refused(
    good, [](auto& j) { j["token"] = -1; }, "job.token");
  refused(
    good, [](auto& j) { j["token"] = 1.5; }, "job.token");
  refused(
    good, [](auto& j) { j["nonce"] = "short"; }, "job.nonce");
  refused(
    good, [](auto& j) { j["nonce"] = std::string(200, 'n'); }, "job.nonce");
  refused(
    good, [](auto& j) { j["kind"] = "judging"; }, "judging");
  refused(
    good, [](auto& j) { j["kind"] = "run"; }, "job.run");
  refused(
    good, [](auto& j) { j["schema"] = "gristmill.job/2"; }, "gristmill.job/2");
  refused(
    good, [](auto& j) { j["run"] = ordered_json::object(); }, "job.run");
}

TEST_CASE("a run job points at nothing that is not there") {
  const auto good = run_example();
  auto check = [](ordered_json& j) -> ordered_json& {
    return j["run"]["workloads"][0]["cases"][0]["pass"];
  };
  auto step = [&](ordered_json& j, size_t i) -> ordered_json& { return check(j)["steps"][i]; };
  refused(
    good, [&](auto& j) { check(j)["unit"] = "other"; }, "other");
  refused(
    good, [&](auto& j) { step(j, 0)["args"][0]["buffer"] = 3; }, "buffer");
  refused(
    good, [&](auto& j) { step(j, 0)["args"][0]["offset"] = 129; }, "buffer");
  refused(
    good, [&](auto& j) { step(j, 0)["args"][1]["bytes"] = "000"; }, "bytes");
  refused(
    good, [&](auto& j) { step(j, 0)["args"][1]["bytes"] = "000000"; }, "bytes");
  refused(
    good, [&](auto& j) { step(j, 0)["args"][1]["bytes"] = "0G"; }, "bytes");
  refused(
    good,
    [&](auto& j) {
      step(j, 0)["grid"] = {1, 2};
    },
    "grid");
  refused(
    good,
    [&](auto& j) {
      step(j, 0)["grid"] = {0, 1, 1};
    },
    "grid");
  refused(
    good,
    [&](auto& j) {
      step(j, 0)["grid"] = {1, 1, 1ull << 40};
    },
    "grid");
  refused(
    good, [&](auto& j) { step(j, 1)["dst"] = 7; }, "dst");
  refused(
    good, [&](auto& j) { step(j, 1)["dst"] = 0; }, "read-only");
  refused(
    good, [&](auto& j) { step(j, 1)["offset"] = 124; }, "outside");
  refused(
    good, [&](auto& j) { step(j, 1)["offset"] = UINT64_MAX; }, "outside");
  refused(
    good, [&](auto& j) { step(j, 1)["width"] = 3; }, "width");
  refused(
    good, [&](auto& j) { step(j, 1)["bytes"] = 7; }, "width");
  refused(
    good, [&](auto& j) { step(j, 2)["src_offset"] = 65; }, "outside");
  refused(
    good, [&](auto& j) { step(j, 2)["after"] = {2}; }, "earlier");
  refused(
    good, [&](auto& j) { step(j, 2)["after"] = {-1}; }, "earlier");
}

TEST_CASE("a run job's buffers fit their shapes and roles") {
  const auto good = run_example();
  auto buffer = [](ordered_json& j, size_t i) -> ordered_json& {
    return j["run"]["workloads"][0]["cases"][0]["pass"]["buffers"][i];
  };
  refused(
    good, [&](auto& j) { buffer(j, 0)["bytes"] = 127; }, "bytes");
  refused(
    good,
    [&](auto& j) {
      buffer(j, 0)["shape"] = {-1, 8};
    },
    "shape");
  refused(
    good,
    [&](auto& j) {
      buffer(j, 0)["shape"] = {1ll << 40, 1ll << 40};
    },
    "shape");
  refused(
    good, [&](auto& j) { buffer(j, 0)["dtype"] = "float31"; }, "dtype");
  refused(
    good, [&](auto& j) { buffer(j, 0)["file"] = ""; }, "file");
  refused(
    good, [&](auto& j) { buffer(j, 0)["file_bytes"] = 129; }, "file_bytes");
  refused(
    good, [&](auto& j) { buffer(j, 0)["file_bytes"] = 0; }, "file_bytes");
  refused(
    good, [&](auto& j) { buffer(j, 1)["file_bytes"] = 1; }, "file_bytes");
  refused(
    good, [&](auto& j) { buffer(j, 1)["init"] = "zero"; }, "init");
  refused(
    good, [&](auto& j) { buffer(j, 2)["init"] = ""; }, "init");
  refused(
    good, [&](auto& j) { buffer(j, 2)["align"] = 48; }, "align");
  refused(
    good, [&](auto& j) { j["run"]["instruction_limit"] = 0; }, "instruction_limit");
  refused(
    good, [&](auto& j) { j["run"]["samples"] = 0; }, "samples");
  refused(
    good, [&](auto& j) { j["run"]["fill"] = "00"; }, "fill");
  refused(
    good, [&](auto& j) { j["run"]["units"].push_back(j["run"]["units"][0]); }, "twice");
}

TEST_CASE("a prepare job says what the oracle needs") {
  const auto good = prepare_example();
  refused(
    good, [](auto& j) { j["prepare"]["python"] = ""; }, "python");
  refused(
    good, [](auto& j) { j["prepare"]["graph_file"] = ""; }, "graph_file");
  refused(
    good, [](auto& j) { j["prepare"]["oracle"] = "numpy"; }, "numpy");
  auto work = [](ordered_json& j) -> ordered_json& { return j["prepare"]["workloads"][0]; };
  refused(
    good, [&](auto& j) { work(j)["axes"]["M"] = -1; }, "axes.M");
  refused(
    good, [&](auto& j) { work(j)["inputs"][0]["file_bytes"] = 47; }, "file_bytes");
  refused(
    good, [&](auto& j) { work(j)["inputs"][0]["key"] = "00"; }, "key");
  refused(
    good, [&](auto& j) { work(j)["references"][0]["file"] = ""; }, "file");
  refused(
    good, [&](auto& j) { work(j)["scalars"][0]["number"] = "big"; }, "number");
  refused(
    good, [&](auto& j) { work(j)["inputs"][1]["blob_key"] = ""; }, "blob_file");
  refused(
    good, [&](auto& j) { work(j)["inputs"][0]["blob_file"] = "/a"; }, "blob_file");
  refused(
    good, [&](auto& j) { work(j)["inputs"][2]["source"] = "torch"; }, "torch");
  refused(
    good, [&](auto& j) { work(j)["calls"].push_back(work(j)["calls"][0]); }, "calls");
  refused(
    good, [&](auto& j) { work(j)["calls"][0]["tensors"][0]["bytes"] = 3; }, "bytes");
  refused(
    good, [&](auto& j) { work(j)["calls"][0]["key"] = "zz"; }, "key");
  refused(
    good, [](auto& j) { j["prepare"]["oracle"] = "native"; }, "entry point");
}

TEST_CASE("no list of a job grows without bound") {
  auto what = judge_example();
  what.judge.workloads.resize(job_limits::workloads + 1, what.judge.workloads[1]);
  auto read = job_from_json(to_json(what));
  REQUIRE_FALSE(read);
  CHECK(read.error().what.find("workloads") != std::string::npos);
}
