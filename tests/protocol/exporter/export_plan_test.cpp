#include "protocol/exporter/export_plan.hpp"
#include "protocol/exporter/unit_choice.hpp"
#include "tests/protocol/resolve_fixture.hpp"

#include <doctest/doctest.h>

#include <algorithm>

using namespace gristmill;

namespace {

/// The fixture's problem with two workloads, M = 100 and M = 7.
struct export_fixture : resolve_fixture {
  std::vector<workload> workloads;

  export_fixture() {
    for (int64_t m : {100, 7}) {
      workload w;
      w.uuid = "m" + std::to_string(m);
      w.axes = {{"M", m}};
      w.inputs = {{"eps", input_kind::scalar, 0.5, "", ""},
        {"count", input_kind::scalar, int64_t{7}, "", ""},
        {"flag", input_kind::scalar, true, "", ""}, {"wide", input_kind::scalar, 0.1, "", ""}};
      workloads.push_back(std::move(w));
    }
  }

  result<exported_plan> exported(const std::vector<ordered_json>& more = {}) const {
    auto document = head;
    document["schema"] = "gristmill.plan/1";
    document["variants"] = ordered_json::array({variant});
    for (const auto& each : more)
      document["variants"].push_back(each);
    auto parsed = parse_plan(document.dump());
    REQUIRE_MESSAGE(parsed, (parsed ? "" : parsed.error().what));
    return export_plan({"__global__ void k(int x) {}\n", *parsed, def, workloads, device});
  }

  std::string binding(const std::vector<ordered_json>& more = {}) const {
    auto out = exported(more);
    REQUIRE_MESSAGE(out, (out ? "" : out.error().what));
    return out->sources[0].content;
  }
};

bool has(const std::string& text, const std::string& part) {
  INFO(text);
  const bool found = text.find(part) != std::string::npos;
  CAPTURE(part);
  CHECK(found);
  return found;
}

size_t units_in(const exported_plan& given) {
  return static_cast<size_t>(std::count_if(given.sources.begin(), given.sources.end(),
    [](const source_file& f) { return f.path.ends_with(".cu"); }));
}

} // namespace

TEST_CASE(
  "the binding reads axes off the tensors, numbers off the call, and computes every expression") {
  export_fixture f;
  f.head["let"] = {{"tiles", "ceil_div(M, 64)"}};
  f.head["domain"] = "K % 8 == 0";
  f.variant["steps"].push_back({{"op", "launch"}, {"id", "a"}, {"entry", "k"},
    {"grid", {"tiles * sm_count", 1, 1}}, {"block", {32, 1, 1}}, {"shared", "K * 4"},
    {"args", {"M", "x", "y", "eps", "wide", "flag", "numel(y):i64"}}});
  const auto text = f.binding();
  has(text,
    "void run(const at::Tensor& in_0, const at::Tensor& in_1, const at::Tensor& in_2, double in_3, "
    "int64_t in_4, bool in_5, double in_6, const at::Tensor& out_0) {");
  has(text, "gm::view(in_0, \"x\", at::kBFloat16, 2, true, false)");
  has(text, "gm::take_axis(size_0, buffer_in_0, 0, \"M\")");
  has(text, "gm::take_axis(size_0, buffer_out_0, 0, \"M\")");
  has(text, "const gm::value let_0 = gm::ceil_div(axis_0, gm::integer(INT64_C(64)));");
  has(text, "gm::refuse(\"outside of its domain, K % 8 == 0\")");
  has(text, "spec.grid = gm::three(gm::multiply(let_0, gm::integer(gm_facts.sm_count)), ");
  has(text, "spec.shared = gm::to_int(gm::multiply(axis_1, gm::integer(INT64_C(4))));");
  has(text, "gm::put_i32(args, axis_0);");
  has(text, "gm::put_pointer(args, buffer_in_0, gm::integer(0), 1);");
  has(text, "gm::put_f32(args, number_3);");
  has(text, "gm::put_f64(args, number_6);");
  has(text, "gm::put_b8(args, number_5);");
  has(text, "gm::put_i64(args, gm::numel(buffer_out_0));");
  has(text, "at::cuda::getCurrentCUDAStream(gm_device.index())");
  has(text, "m.def(\"run\", &run)");
}

TEST_CASE("workloads that come to other defines get units of their own, and others are refused at "
          "run time") {
  export_fixture f;
  f.variant["defines"] = {{"BM", "select(M > 64, 128, 16)"}};
  f.add_launch("a", {"M"});
  const auto out = f.exported();
  REQUIRE(out);
  CHECK(units_in(*out) == 2);
  const auto& text = out->sources[0].content;
  has(text,
    "if (gm_entry == nullptr && gm::same_define(define_0, gm::integer(INT64_C(128)))) gm_entry = "
    "&gm_unit_0::gm_entry;");
  has(
    text, "gm::same_define(define_0, gm::integer(INT64_C(16)))) gm_entry = &gm_unit_1::gm_entry;");
  has(text, "variant v: no unit was compiled for");
  f.variant["defines"] = {{"BM", "64"}};
  CHECK(units_in(*f.exported()) == 1);
}

TEST_CASE("the first variant that fits is used; a call that fits none is refused") {
  export_fixture f;
  f.variant["when"] = "M > 64";
  f.add_launch("a", {"M"});
  const ordered_json other{{"name", "small"}, {"steps", f.variant["steps"]}};
  const auto text = f.binding({other});
  const auto first =
    text.find("if (gm::to_flag(gm::flag(gm::less(gm::integer(INT64_C(64)), axis_0)))) {");
  REQUIRE(first != std::string::npos);
  CHECK(text.find("gm_unit_1::gm_entry", first) != std::string::npos);
  has(text, "no variant's `when` holds");
}

TEST_CASE("scratch is allocated as its `init` says") {
  export_fixture f;
  for (const char* init : {"undefined", "restored", "zero"})
    f.head["scratch"][init + std::string("_s")] = {
      {"dtype", "float32"}, {"shape", {"M"}}, {"init", init}, {"align", 512}};
  f.add_launch("a", {"M", "zero_s"});
  const auto text = f.binding();
  has(text, "gm_memory.allocate(scratch_0, 512, gm_device);");
  has(text, "gm::scratch_memory::keep(scratch_1, 512, gm_device, gm_stream);");
  has(text,
    "gm::set(gm_stream, \"scratch.zero_s\", scratch_2, gm::integer(0), gm::bytes(scratch_2), 1, "
    "0);");
  has(text, "scratch_0.bytes = gm::storage_bytes(scratch_0, 32);");
}

TEST_CASE("plans that this build's devices refuse are exported: maps, structs, reads, occupancy") {
  export_fixture f;
  f.head["tensor_maps"] = {
    {"m", {{"of", "x"}, {"box", {"64", "8"}}, {"swizzle", "128B"}, {"l2", "256B"}}}};
  f.add_step(R"({"op":"read","from":"bits","at":["0"],"as":["first"]})");
  f.variant["steps"].push_back({{"op", "launch"}, {"id", "a"}, {"entry", "k"},
    {"grid", {"sm_count * occupancy(a)", "first + 1", 1}}, {"block", {32, 1, 1}},
    {"cluster", {2, 1, 1}}, {"cooperative", true},
    {"args", {{{"map", "m"}}, {{"struct", {"M", "K:i64", "wide"}}}, "null"}}});
  REQUIRE_FALSE(f.resolved());
  const auto text = f.binding();
  has(text, "CU_TENSOR_MAP_DATA_TYPE_BFLOAT16");
  has(text, "spec.swizzle = CU_TENSOR_MAP_SWIZZLE_128B;");
  has(text, "spec.l2 = CU_TENSOR_MAP_L2_PROMOTION_L2_256B;");
  has(text, "gm::put_maps(args, map_0());");
  has(text, "gm::put_fields(args, fields_");
  has(text, "gm::put_null(args);");
  has(text, "occupancy_a()");
  has(text, "read_0 = gm::read(gm_stream, \"step 0\", buffer_in_2, 1, {gm::integer(INT64_C(0))});");
  has(text, "read_0.at(0)");
  has(text, "spec.cooperative = true;");
}

TEST_CASE("what a call cannot tell is refused by name") {
  export_fixture f;
  f.def.axes.push_back({"hidden", axis_kind::variable, 0, "", ""});
  for (auto& w : f.workloads)
    w.axes.emplace_back("hidden", 3);
  f.add_launch("a", {"hidden"});
  auto out = f.exported();
  REQUIRE_FALSE(out);
  CHECK(out.error().code == errc::unsupported);
  CHECK(out.error().what.find("`hidden`") != std::string::npos);
  CHECK(out.error().what.find("variant") != std::string::npos);

  export_fixture g;
  g.add_step(R"({"op":"read","from":"x","at":["0"],"as":["first"]})");
  out = g.exported();
  REQUIRE_FALSE(out);
  CHECK(out.error().what.find("no integers to read") != std::string::npos);
}

TEST_CASE("expression axes are computed and compared with the tensors") {
  export_fixture f;
  f.def.axes.push_back({"half", axis_kind::expression, 0, "K / 2", ""});
  f.add_launch("a", {"half"});
  const auto text = f.binding();
  has(text,
    "gm::settle_axis(size_2, gm::to_axis(gm::axis_divide(axis_1, gm::integer(INT64_C(2)))), "
    "\"half\");");
  has(text, "gm::put_i32(args, axis_2);");
}

TEST_CASE("the flags are explicit: standard, architecture, and what the plan asks for") {
  export_fixture f;
  f.head["options"] = {{"fast_math", true}, {"maxrregcount", 64}};
  f.add_launch("a", {"M"});
  const auto out = f.exported();
  REQUIRE(out);
  CHECK(out->options.cuda_cflags
    == std::vector<std::string>{"-O3", "-std=c++20", "-gencode=arch=compute_90a,code=sm_90a",
      "--use_fast_math", "-maxrregcount=64"});
  CHECK(out->options.cflags == std::vector<std::string>{"-O3", "-std=c++20"});
  CHECK(out->entry_point == "binding.cpp::run");
}

TEST_CASE("an exported solution passes the check of solutions, and reading it gives it back") {
  export_fixture f;
  f.add_launch("a", {"M"});
  const auto built = f.exported();
  REQUIRE(built);
  solution s;
  s.name = "mine";
  s.definition_name = "p";
  s.author = "gristmill";
  s.languages = {"cuda_cpp"};
  s.target_hardware = {"LOCAL"};
  s.entry_point = built->entry_point;
  s.binding = "torch";
  s.options = built->options;
  s.sources = built->sources;
  std::vector<std::string> warnings;
  const auto again = parse_solution(to_json(s), "solution.json", &warnings);
  REQUIRE_MESSAGE(again, (again ? "" : again.error().what));
  CHECK(*again == s);
  CHECK(warnings.empty());
}

TEST_CASE(
  "the operator makes its outputs from the inputs' shapes and refuses what does not follow") {
  export_fixture f;
  f.def.axes.push_back({"half", axis_kind::expression, 0, "K // 2", ""});
  f.def.outputs.push_back({"z", dtype::float4_e2m1fn_x2, false, {"M", "half", "16"}, ""});
  f.add_launch("a", {"M"});
  const auto built = f.exported();
  REQUIRE(built);
  const auto text = operator_text(f.def, "my_op", "# about", *built);
  REQUIRE(text);
  has(*text,
    "def my_op(x: torch.Tensor, w: torch.Tensor, bits: torch.Tensor, eps: float, count: int, flag: "
    "bool, "
    "wide: float) -> Tuple[torch.Tensor, torch.Tensor]:");
  has(*text,
    "@torch.library.custom_op(\"gristmill::my_op\", mutates_args=(), device_types=\"cuda\")");
  has(*text, "axis_0 = x.shape[0]");
  has(*text, "axis_2 = ((axis_1 // 2))");
  has(
    *text, "torch.empty([axis_0, axis_2, 16 // 2], dtype=torch.float4_e2m1fn_x2, device=x.device)");
  has(*text, "@my_op.register_fake");
  f.def.axes.push_back({"other", axis_kind::variable, 0, "", ""});
  f.def.outputs.push_back({"q", dtype::float32, false, {"other"}, ""});
  const auto refused = operator_text(f.def, "my_op", "# about", *built);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().what.find("output q: axis `other`") != std::string::npos);
}

TEST_CASE("an axis that a multiple of it tells is known to the operator") {
  export_fixture f;
  f.def.axes.push_back({"width", axis_kind::variable, 0, "", ""});
  f.def.axes.push_back({"fused", axis_kind::expression, 0, "2 * width", ""});
  f.def.inputs.push_back({"f", dtype::float32, false, {"M", "fused"}, ""});
  f.def.outputs[0].shape = {"M", "width"};
  for (auto& w : f.workloads)
    w.axes.emplace_back("width", 3);
  f.add_launch("a", {"M"});
  const auto built = f.exported();
  REQUIRE_MESSAGE(built, (built ? "" : built.error().what));
  const auto text = operator_text(f.def, "my_op", "# about", *built);
  REQUIRE(text);
  has(*text, "torch.empty([axis_0, (axis_3 // 2)]");
}

TEST_CASE("a name becomes an identifier") {
  CHECK(identifier_of("L1/016 RMS-Norm") == "l1_016_rms_norm");
  CHECK(identifier_of("3mm") == "op_3mm");
  CHECK(identifier_of("--") == "op_");
}
