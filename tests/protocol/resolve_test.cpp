#include "tests/protocol/resolve_fixture.hpp"

#include <cstring>

using namespace gristmill;

namespace {

template <class T>
T value_of(const resolved_argument& argument) {
  REQUIRE(argument.bytes.size() == sizeof(T));
  T out;
  std::memcpy(&out, argument.bytes.data(), sizeof out);
  return out;
}

} // namespace

TEST_CASE_FIXTURE(resolve_fixture, "buffers are inputs, outputs, then scratch, with their bytes") {
  head["scratch"] = {{"part", {{"dtype", "float32"}, {"shape", {"M", 2}}, {"align", 512}}}};
  const auto out = good();
  REQUIRE(out.buffers.size() == 5);
  CHECK(out.variant == "v");
  CHECK(out.buffers[0]
    == resolved_buffer{
      resolved_buffer::role::input, "x", dtype::bfloat16, {100, 64}, 12800, "", 256});
  CHECK(out.buffers[2].bytes == 100);
  CHECK(out.buffers[3].kind == resolved_buffer::role::output);
  CHECK(out.buffers[4]
    == resolved_buffer{
      resolved_buffer::role::scratch, "part", dtype::float32, {100, 2}, 800, "undefined", 512});
}

TEST_CASE_FIXTURE(resolve_fixture, "tensors become pointers, and inputs const ones") {
  head["scratch"] = {{"part", {{"dtype", "int32"}, {"shape", {4}}}}};
  add_launch("a", {"x", "in.w", "bits", "y", "part", {{"ptr", "y"}, {"offset", "K*4"}}, "null"});
  const auto out = good();
  const auto& args = out.steps[0].args;
  REQUIRE(args.size() == 7);
  for (size_t i = 0; i < 5; ++i) {
    CHECK(args[i].what == resolved_argument::kind::buffer);
    CHECK(args[i].buffer == i);
    CHECK(args[i].abi == "ptr");
  }
  CHECK(args[5].buffer == 3);
  CHECK(args[5].offset == 256);
  CHECK(value_of<uint64_t>(args[6]) == 0);
  const auto& use = out.unit.entries.at(0);
  CHECK(use.parameter_abi
    == std::vector<std::string>{"const __nv_bfloat16*", "const __half*", "const bool*", "float*",
      "int32_t*", "float*", "void*"});
  CHECK(use.parameter_const == std::vector<bool>{true, true, true, false, false, false, false});
  CHECK(use.argument_names[1] == "in.w");
}

TEST_CASE_FIXTURE(resolve_fixture, "scalars have the parameter type of the table") {
  add_launch("a", {"eps", "count", "flag", "wide", "eps:f64", "eps:bf16", "eps:f16"});
  const auto out = good();
  const auto& args = out.steps[0].args;
  CHECK(value_of<float>(args[0]) == 0.5f);
  CHECK(value_of<int32_t>(args[1]) == 7);
  CHECK(value_of<uint8_t>(args[2]) == 1);
  CHECK(value_of<double>(args[3]) == 0.1);
  CHECK(value_of<double>(args[4]) == 0.5);
  CHECK(value_of<uint16_t>(args[5]) == 0x3f00);
  CHECK(value_of<uint16_t>(args[6]) == 0x3800);
  CHECK(out.unit.entries[0].parameter_abi
    == std::vector<std::string>{
      "float", "int32_t", "bool", "double", "double", "__nv_bfloat16", "__half"});
  CHECK(args[5].abi == "bf16");
}

TEST_CASE_FIXTURE(resolve_fixture, "integers are int32 and checked, wider ones say so") {
  add_launch("a", {"M", "M*K:i64", "M:u8", "-1:i8", 7, "flag:b8", "M > 3:b8", "int(flag)"});
  const auto out = good();
  const auto& args = out.steps[0].args;
  CHECK(value_of<int32_t>(args[0]) == 100);
  CHECK(value_of<int64_t>(args[1]) == 6400);
  CHECK(value_of<uint8_t>(args[2]) == 100);
  CHECK(value_of<int8_t>(args[3]) == -1);
  CHECK(value_of<int32_t>(args[4]) == 7);
  CHECK(value_of<uint8_t>(args[6]) == 1);
  CHECK(value_of<int32_t>(args[7]) == 1);
}

TEST_CASE_FIXTURE(resolve_fixture, "a value that does not fit its type is an error") {
  const std::pair<ordered_json, const char*> wrong[] = {{"M*K*1000000", "write `:i64`"},
    {"300:u8", "uint8_t"}, {"-1:u32", "uint32_t"}, {"eps*2", "`:f32` or `:f64`"},
    {"M > 3", "`:b8`"}, {"1:b8", "takes a bool"}, {"flag:i32", "int("}, {"eps:i32", "int("},
    {"1e39:f32", "range of float"}, {"70000.0:f16", "range of __half"}, {"ctype(x)", "C++ type"},
    {"x:f32", "pointer"}, {1.5, "`:f32`"}, {{{"ptr", "x"}, {"offset", "-2"}}, "outside of x"},
    {{{"ptr", "x"}, {"offset", "12802"}}, "outside of x"},
    {{{"ptr", "x"}, {"offset", 1}}, "multiple of the 2 bytes"},
    {{{"ptr", "M"}, {"offset", 0}}, "not a tensor"}, {"xx", "did you mean `x`?"},
    {"x + 1", "is a tensor"}};
  add_launch("a", ordered_json::array({0}));
  for (const auto& [argument, part] : wrong) {
    step(0)["args"][0] = argument;
    CAPTURE(argument.dump());
    CHECK(refuses({"variant `v`", "step 0 (`a`)", "args.0", part}));
  }
}

TEST_CASE_FIXTURE(resolve_fixture, "what this build cannot do is said to be unsupported") {
  add_launch("a", ordered_json::array({0}));
  step(0)["args"][0] = ordered_json{{"struct", {"M"}}};
  CHECK(bad().code == errc::unsupported);
  step(0)["args"][0] = 0;
  add_step(R"({"op":"read","from":"x","at":[0],"as":["n"]})");
  CHECK(bad().code == errc::unsupported);
  step(1)["when"] = "false";
  CHECK(resolved());
}

TEST_CASE_FIXTURE(
  resolve_fixture, "the domain and the variants decide, the first that holds alone") {
  ordered_json document{{"schema", "gristmill.plan/1"}, {"domain", "K == 64"},
    {"variants",
      {{{"name", "small"}, {"when", "M <= 16"}, {"steps", ordered_json::array()}},
        {{"name", "big"}, {"when", "M > 64"}, {"steps", ordered_json::array()}},
        {{"name", "any"}, {"when", "M > 20"}, {"steps", ordered_json::array()}}}}};
  CHECK(resolved(document)->variant == "big");
  axes[1].second = 50;
  CHECK(resolved(document)->variant == "any");
  axes[1].second = 18;
  CHECK(resolved(document).error().code == errc::refused);
  document["domain"] = "K == 65";
  const auto outside = resolved(document);
  CHECK(outside.error().code == errc::refused);
  CHECK(outside.error().what.find("K == 65") != std::string::npos);
}

TEST_CASE_FIXTURE(resolve_fixture, "defines are literals, and integer ones are names below") {
  head["let"] = {{"half", "K // 2"}};
  variant["defines"] = {{"BM", "half * 4"}, {"TWICE", "BM * 2"}, {"T", "ctype(x)"},
    {"CAUSAL", "M > 16"}, {"SCALE", "rsqrt(64)"}, {"BIG", "1e20"}, {"TENTH", "0.1"},
    {"WHOLE", "2.0"}, {"K", "K"}};
  add_launch("a", {"BM", "TWICE"}, "k<T>");
  step(0)["block"][0] = "BM";
  const auto out = good();
  using pair = std::pair<std::string, std::string>;
  CHECK(out.unit.defines
    == std::vector<pair>{{"BM", "128"}, {"TWICE", "256"}, {"T", "__nv_bfloat16"}, {"CAUSAL", "1"},
      {"SCALE", "0.125f"}, {"BIG", "1e+20f"}, {"TENTH", "0.1f"}, {"WHOLE", "2.0f"}, {"K", "64"}});
  CHECK(out.unit.key
    == "v|BM=128|TWICE=256|T=__nv_bfloat16|CAUSAL=1|SCALE=0.125f|BIG=1e+20f|TENTH=0.1f|WHOLE=2.0f|"
       "K=64|k<T>");
  CHECK(out.steps[0].block[0] == 128);
  // A float define is no name.
  variant["steps"][0]["args"][0] = "SCALE:f32";
  CHECK(refuses({"no name `SCALE`"}));
}

TEST_CASE_FIXTURE(resolve_fixture, "a name never changes its meaning") {
  variant["defines"] = {{"K", 3}};
  CHECK(refuses({"defines.K", "already means something else"}));
  variant["defines"] = {{"x", 3}};
  CHECK(refuses({"defines.x"}));
  variant.erase("defines");
  for (const char* taken : {"M", "x", "eps", "y"}) {
    head["let"] = {{taken, 1}};
    CHECK(refuses({"let.", taken, "has this name already"}));
  }
  head.erase("let");
  head["scratch"] = {{"M", {{"dtype", "int32"}, {"shape", {1}}}}};
  CHECK(refuses({"scratch.M", "taken"}));
}

TEST_CASE_FIXTURE(resolve_fixture, "an ambiguous bare name is an error, a qualified one is not") {
  def.outputs[0].name = "M"; // An output may have the name of an axis.
  add_launch("a", {"axis.M", "out.M"});
  const auto out = good();
  CHECK(value_of<int32_t>(out.steps[0].args[0]) == 100);
  CHECK(out.steps[0].args[1].buffer == 3);
  step(0)["args"][0] = "M";
  CHECK(refuses({"ambiguous: write axis.M or out.M"}));
}

TEST_CASE_FIXTURE(resolve_fixture, "tensor functions and device names have their values") {
  add_launch("a",
    {"numel(x)", "bytes(y)", "dim(x, 1)", "dim(x, -2)", "sm_count", "smem_per_block", "smem_per_sm",
      "l2_bytes", "arch"});
  const int32_t wanted[] = {6400, 25600, 64, 100, 132, 232448, 233472, 50 << 20, 90};
  const auto out = good();
  for (size_t i = 0; i < 9; ++i)
    CHECK(value_of<int32_t>(out.steps[0].args[i]) == wanted[i]);
  step(0)["args"][0] = "dim(x, 2)";
  CHECK(refuses({"2 dimensions"}));
}

TEST_CASE_FIXTURE(
  resolve_fixture, "scratch is bounded by eight times the workload, or 64 MiB where that is more") {
  const auto fill = [&](int64_t bytes) {
    head["scratch"] = {{"s", {{"dtype", "int8"}, {"shape", {bytes}}}}};
  };
  fill(int64_t{64} << 20);
  CHECK(resolved());
  head["scratch"]["t"] = {{"dtype", "int8"}, {"shape", {1}}};
  CHECK(refuses({"scratch.t", "64 MiB", "8 times"}));
  CHECK(bad().code == errc::refused);
  axes = {{"K", 64}, {"M", 100'000}};
  const int64_t total = 100 * (12800 + 100 + 25600) * 10 + 128;
  fill(total * 8);
  CHECK(resolved());
  fill(total * 8 + 1);
  CHECK(bad().code == errc::refused);
  axes = {{"K", 64}, {"M", 100}};
  head["scratch"] = {{"s", {{"dtype", "int8"}, {"shape", {"-1"}}}}};
  CHECK(refuses({"scratch.s.shape", "negative"}));
  head["scratch"] = {{"s", {{"dtype", "int8"}, {"shape", {"M", int64_t{1} << 62}}}}};
  CHECK_FALSE(resolved());
}

TEST_CASE_FIXTURE(resolve_fixture, "occupancy comes from the caller with the launch it is about") {
  variant["defines"] = {{"BLOCK", 128}};
  head["scratch"] = {{"s", {{"dtype", "int8"}, {"shape", {"occupancy(gemm)"}}}}};
  add_launch("gemm", ordered_json::array());
  step(0)["grid"][0] = "sm_count * occupancy(gemm)";
  step(0)["block"][0] = "BLOCK";
  step(0)["shared"] = 1024;
  CHECK(bad().code == errc::unsupported);
  occupancy = [](const occupancy_query& query) -> result<int64_t> {
    CHECK(query.step == "gemm");
    CHECK(query.entry == "k");
    CHECK(query.block[0] == 128);
    CHECK(query.shared_bytes == 1024);
    return 3;
  };
  const auto out = good();
  CHECK(out.steps[0].grid[0] == 396);
  CHECK(out.buffers.back().bytes == 3);
  step(0)["grid"][0] = "occupancy(gem)";
  CHECK(refuses({"grid.0", "did you mean `gemm`?"}));
}

TEST_CASE_FIXTURE(resolve_fixture, "a launch stays within what a device can start") {
  add_launch("a", ordered_json::array());
  const auto launch = variant["steps"][0];
  const std::tuple<const char*, ordered_json, const char*> wrong[] = {
    {"block", {1025, 1, 1}, "block.0"}, {"block", {64, 32, 1}, "more than 1024 threads"},
    {"block", {0, 1, 1}, "block.0"}, {"block", {1, 1, 65}, "block.2"},
    {"grid", {-1, 1, 1}, "grid.0"}, {"grid", {1, 65536, 1}, "grid.1"},
    {"grid", {int64_t{1} << 31, 1, 1}, "grid.0"}, {"grid", {"1.5", 1, 1}, "integer is needed"},
    {"shared", 232449, "shared"}, {"shared", -1, "shared"},
    {"cluster", {2, 1, 1}, "not a multiple"}, {"cluster", {4, 4, 1}, "at most 8"},
    {"pdl", true, "pdl: the first launch"}};
  for (const auto& [key, value, part] : wrong) {
    variant["steps"][0] = launch;
    step(0)[key] = value;
    CAPTURE(value.dump());
    CHECK(refuses({"step 0 (`a`)", part}));
  }
  variant["steps"][0] = launch;
  step(0)["grid"][0] = 4;
  step(0)["cluster"] = {2, 1, 1};
  CHECK(good().steps[0].cluster[0] == 2);
  device.arch = 89;
  CHECK(bad().code == errc::unsupported);
}

TEST_CASE_FIXTURE(resolve_fixture, "parameters are bounded in bytes") {
  add_launch("a", std::vector<ordered_json>(256, ordered_json("M:i64")));
  CHECK(good().steps[0].args.size() == 256);
}

TEST_CASE_FIXTURE(resolve_fixture, "an entry is launched with one signature only") {
  add_launch("a", {"x", "M"});
  add_launch("b", {"y", "K"});
  const auto out = good();
  REQUIRE(out.unit.entries.size() == 1);
  // The first is an input, so the parameter must be const for both.
  CHECK(out.unit.entries[0].parameter_abi[0] == "const __nv_bfloat16*");
  step(1)["args"] = {"y", "K:i64"};
  CHECK(refuses({"argument 1", "int64_t here and int32_t before"}));
  step(1)["args"] = {"y"};
  CHECK(refuses({"1 arguments here and 2 before"}));
  step(1)["args"] = {"K", "M"};
  CHECK(refuses({"argument 0"}));
}

TEST_CASE_FIXTURE(resolve_fixture, "a missing scalar and a missing axis are named") {
  scalars.pop_back();
  CHECK(refuses({"scalar input wide has no value"}));
  axes.pop_back();
  CHECK(refuses({"axis `M` no value"}));
}

TEST_CASE("a scalar takes the numbers of its type and no others") {
  CHECK(make_scalar(dtype::int32, 3.0)->integer == 3);
  CHECK(make_scalar(dtype::int64, true)->integer == 1);
  CHECK(make_scalar(dtype::float32, int64_t{3})->number == 3);
  CHECK(make_scalar(dtype::boolean, int64_t{1})->integer == 1);
  CHECK_FALSE(make_scalar(dtype::int32, 3.5));
  CHECK_FALSE(make_scalar(dtype::int8, int64_t{128}));
  CHECK_FALSE(make_scalar(dtype::boolean, int64_t{2}));
  CHECK_FALSE(make_scalar(dtype::float16, 70000.0));
  CHECK_FALSE(make_scalar(dtype::int64, 1e19));
  CHECK(make_scalar(dtype::float32, -std::numeric_limits<double>::infinity()));
}
