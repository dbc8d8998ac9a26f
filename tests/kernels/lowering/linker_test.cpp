#include "kernels/lowering/expression_rewriter.hpp"
#include "kernels/lowering/linker.hpp"
#include "kernels/lowering/scratch_pool.hpp"
#include "kernels/lowering/source_linker.hpp"
#include "protocol/plan.hpp"
#include "protocol/resolve.hpp"
#include "tests/kernels/lowering/small_program.hpp"

#include <algorithm>
#include <doctest/doctest.h>
#include <map>
#include <string>
#include <vector>

using namespace gristmill;
using namespace gristmill::test;

namespace {

size_t count_of(const std::string& text, const std::string& what) {
  size_t count = 0;
  for (size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1))
    ++count;
  return count;
}

/// Renames every name to itself in capitals, and says what it was asked.
class shouting : public name_rewriter {
public:
  result<std::string> name(const expression_name& from) const override {
    if (from.name == "missing")
      return fail(errc::not_found, "there is no missing");
    std::string text = name_text(from);
    std::transform(text.begin(), text.end(), text.begin(), [](char c) { return std::toupper(c); });
    return text;
  }
  result<std::string> call(std::string_view function, const expression_name& subject,
    std::optional<int64_t> index, const std::string& index_text) const override {
    return std::string{function} + "<" + name_text(subject) + ":"
      + (index ? std::to_string(*index) : index_text) + ">";
  }
};

/// x [M, N] -> exp -> a [M, N] -> view [M * N] -> neg -> y [T], in two stages.
struct two_stage_program {
  small_program from{{{"M", 3, 7}, {"N", 5, 11}, {"T", 15, 77, "M * N"}}};
  std::unique_ptr<const program_graph> program;
  std::vector<sub_problem> stages;

  two_stage_program() {
    from.workload_at({{"M", 4}, {"N", 6}});
    const int64_t x = from.input("x", {"M", "N"});
    const int64_t a = from.op("exp", {value(x)}, {"M", "N"});
    const int64_t flat = from.op("view", {value(a), integers({15})}, {"M * N"});
    const int64_t y = from.op("neg", {value(flat)}, {"M * N"});
    from.output("y", y, {"T"});
    auto made = program_graph::make(from.target, from.graph);
    REQUIRE_MESSAGE(made, (made ? std::string{} : made.error().what));
    program = std::move(*made);
    for (int64_t root : {a, y}) {
      auto sub = make_sub_problem(*program, cut_stage(*program, {root}, {a, y}));
      REQUIRE_MESSAGE(sub, (sub ? std::string{} : sub.error().what));
      stages.push_back(std::move(*sub));
    }
  }

  result<generated_kernel> linked(const generated_kernel& first, const generated_kernel& second) {
    program_code code;
    code.stages = {{stages.data(), first}, {stages.data() + 1, second}};
    return link(*program, {code});
  }
};

generated_kernel kernel(const std::string& plan, const std::string& body = "") {
  return {"#include <cstdint>\nextern \"C\" __global__ void work(float* p) {" + body + "}\n",
    "{\"schema\": \"gristmill.plan/1\", " + plan + "}"};
}

const std::string simple_step =
  R"j({"op": "launch", "entry": "work", "grid": [1, 1, 1], "block": [32, 1, 1], "args": []})j";
const std::string simple = R"j("variants": [{"steps": [)j" + simple_step + "]}]";

resolved_workload resolved(
  const generated_kernel& made, const problem& target, const axis_values& work_axes) {
  const auto parsed = parse_plan(made.plan);
  REQUIRE_MESSAGE(parsed, (parsed ? std::string{} : parsed.error().what));
  const auto axes = resolve_axes(target.def, work_axes);
  REQUIRE(axes);
  auto call = resolve(*parsed, target.def, *axes, {},
    {.sm_count = 132,
      .smem_per_block = 232448,
      .smem_per_sm = 233472,
      .l2_bytes = 52428800,
      .arch = 90});
  REQUIRE_MESSAGE(call, (call ? std::string{} : call.error().what));
  return *call;
}

} // namespace

TEST_CASE("an expression is written again with brackets only where they are needed") {
  const std::map<std::string, std::string> cases = {{"a + b * c", "A + B * C"},
    {"(a + b) * c", "(A + B) * C"}, {"a - (b - c)", "A - (B - C)"}, {"a - b - c", "A - B - C"},
    {"not (a and b) or c", "not (A and B) or C"}, {"-(a + 1)", "-(A + 1)"},
    {"a // (b % 2)", "A // (B % 2)"}, {"2 ** a ** 3", "2 ** A ** 3"},
    {"(2 ** a) ** 3", "(2 ** A) ** 3"}, {"-a ** 2", "-A ** 2"}, {"(-a) ** 2", "(-A) ** 2"},
    {"(a < b) == (c < 1)", "(A < B) == (C < 1)"},
    {"select(a > 1, min(a, b, 3), 0.5)", "select(A > 1, min(A, B, 3), 0.5)"},
    {"1.0 + 1e30", "1.0 + 1e+30"}, {"true and axis.M", "true and AXIS.M"},
    {"dim(in.x, -1) + numel(y)", "dim<in.x:-1> + numel<y:>"}, {"dim(x, a + 1)", "dim<x:A + 1>"}};
  for (const auto& [from, to] : cases) {
    CAPTURE(from);
    const auto text = rewritten(from, shouting{});
    REQUIRE(text);
    CHECK(*text == to);
    CHECK(parse_expression(from, expression_mode::plan));
  }
  std::string chain = "a";
  for (int i = 0; i < 200; ++i)
    chain += " and a";
  const auto text = rewritten(chain, shouting{});
  REQUIRE(text);
  CHECK(text->find('(') == std::string::npos);
  CHECK_FALSE(rewritten("a + missing", shouting{}));
  CHECK_FALSE(rewritten("a +", shouting{}));
}

TEST_CASE("renaming leaves strings, characters, comments and the letters in numbers alone") {
  const std::string text =
    "N + 1N; 0xN 1e5 N'N' \"N \\\" N\" // N\n/* N */ R\"x(N)\" N)x\" aN N_ (N)";
  CHECK(with_renamed_identifiers(text, {{"N", "Q"}})
    == "Q + 1N; 0xN 1e5 Q'N' \"N \\\" N\" // N\n/* N */ R\"x(N)\" N)x\" aN N_ (Q)");
}

TEST_CASE("sources come together: headers once, macros renamed, kernels in their own namespace") {
  source_part a{
    "#include <cstdint>\n#define SIZE 4\nextern \"C\" __global__ void f() { int x = SIZE + "
    "VEC; }\n",
    "p0_", {{"VEC", "8"}}, "stage_0", ""};
  source_part b{"#include <math.h>\n#include <cstdint>\n#if VEC\nextern \"C\" {\n__global__ void "
                "f() {}\n}\n#endif\n",
    "p1_", {{"VEC", ""}}, "stage_1", "PROGRAM == 1"};
  const std::string text = linked_source({a, b});
  CHECK(count_of(text, "#include <cstdint>") == 1);
  CHECK(text.rfind("#include") < text.find("namespace stage_0"));
  CHECK(text.find("#define p0_VEC 8\nnamespace stage_0 {") != std::string::npos);
  CHECK(text.find("#define p0_SIZE 4") != std::string::npos);
  CHECK(text.find("p0_SIZE + p0_VEC") != std::string::npos);
  CHECK(text.find("#if p1_VEC") != std::string::npos);
  CHECK(text.find("#define p1_VEC") == std::string::npos);
  CHECK(text.find("#if PROGRAM == 1\n") != std::string::npos);
  // A linkage block is no prefix.
  CHECK(count_of(text, "extern \"C\"") == 1);
}

TEST_CASE("what stages pass to each other is scratch, and a reshape is the same scratch") {
  two_stage_program p;
  const auto made = p.linked(kernel(
                               R"j("variants": [{"steps": [{
      "op": "launch", "entry": "work", "grid": ["numel(out.r0)", 1, 1],
      "block": [32, 1, 1], "args": ["in.x", "out.r0", "dim(out.r0, 1):i64", "bytes(out.r0):i64"]}]}])j"),
    kernel(
      R"j("variants": [{"steps": [{
      "op": "launch", "entry": "work", "grid": ["dim(in.t0, 0)", 1, 1],
      "block": [32, 1, 1], "args": [
        "t0", "y", {"ptr": "in.t0", "offset": "4 * axis.N"}, "axis.T:i32"]}]}])j",
      "return;"));
  REQUIRE_MESSAGE(made, (made ? std::string{} : made.error().what));
  const auto call = resolved(*made, p.from.target, {{"M", 4}, {"N", 6}});
  REQUIRE(call.buffers.size() == 3);
  CHECK(call.buffers[2].kind == resolved_buffer::role::scratch);
  CHECK(call.buffers[2].shape == std::vector<int64_t>{4, 6});
  REQUIRE(call.steps.size() == 2);
  CHECK(call.steps[0].grid[0] == 24);
  CHECK(call.steps[0].args[1].buffer == 2);
  CHECK(call.steps[0].args[2].bytes[0] == 6);
  CHECK(call.steps[0].args[3].bytes[0] == 96);
  CHECK(call.steps[1].grid[0] == 24);
  CHECK(call.steps[1].args[0].buffer == 2);
  CHECK(call.steps[1].args[1].buffer == 1);
  CHECK(call.steps[1].args[2].buffer == 2);
  CHECK(call.steps[1].args[2].offset == 24);
  CHECK(call.steps[1].args[3].bytes[0] == 24);
  CHECK(call.steps[0].entry == "stage_0::work");
  CHECK(call.steps[1].entry == "stage_1::work");
}

TEST_CASE("stages with equal code share it; their launches stay apart") {
  two_stage_program p;
  const auto made = p.linked(kernel(simple), kernel(simple));
  REQUIRE(made);
  CHECK(
    count_of(made->source, "namespace stage_") == 2); // Opened once, and the comment at its end.
  const auto call = resolved(*made, p.from.target, {{"M", 4}, {"N", 6}});
  CHECK(call.steps.size() == 2);
  CHECK(call.unit.entries.size() == 1);
}

TEST_CASE("variants of a stage become steps with conditions, their defines choices") {
  two_stage_program p;
  const std::string variants = R"j("let": {"wide": "axis.N % 4 == 0", "rows": "axis.M * 2"},
    "domain": "axis.M > 0", "variants": [
    {"when": "wide", "defines": {"VEC": 4, "ROWS": "rows", "KEEP": true},
     "steps": [{"op": "launch", "entry": "work", "grid": ["VEC", 1, 1], "block": [32, 1, 1],
                "args": [], "when": "ROWS > 1"}]},
    {"when": "axis.N > 4", "defines": {"VEC": 1, "ROWS": "rows", "KEEP": true}, "steps": [)j"
    + simple_step + "]}]";
  const auto made = p.linked(kernel(variants), kernel(simple));
  REQUIRE_MESSAGE(made, (made ? std::string{} : made.error().what));
  const auto wide = resolved(*made, p.from.target, {{"M", 3}, {"N", 8}});
  REQUIRE(wide.steps.size() == 2);
  CHECK(wide.steps[0].grid[0] == 4);
  std::map<std::string, std::string> defines(wide.unit.defines.begin(), wide.unit.defines.end());
  CHECK(defines == std::map<std::string, std::string>{{"p0_ROWS", "6"}, {"p0_VEC", "4"}});
  CHECK(made->source.find("#define p0_KEEP 1") != std::string::npos);
  const auto odd = resolved(*made, p.from.target, {{"M", 3}, {"N", 7}});
  CHECK(odd.steps[0].grid[0] == 1);
  defines = {odd.unit.defines.begin(), odd.unit.defines.end()};
  CHECK(defines["p0_VEC"] == "1");
  // Where no variant of a stage fits, no program does.
  const auto parsed = parse_plan(made->plan);
  REQUIRE(parsed);
  CHECK_FALSE(resolve(*parsed, p.from.target.def, {{"M", 3}, {"N", 3}, {"T", 9}}, {}, {}));
}

TEST_CASE("a stage's own scratch, ids, repeats and orders keep to themselves") {
  two_stage_program p;
  const std::string plan =
    R"j("scratch": {"sums": {"dtype": "float32", "shape": ["axis.M", 2], "init": "zero"}},
    "variants": [{"steps": [
      {"op": "memset", "dst": "scratch.sums", "bytes": "bytes(scratch.sums)", "offset": 0,
       "width": 4, "value": 7, "id": "clear"},
      {"op": "launch", "entry": "work", "grid": ["occupancy(main)", 1, 1],
       "block": [32, 1, 1], "args": ["sums"], "id": "main", "after": []},
      {"op": "repeat", "var": "i", "count": 2, "after": ["clear", "main"], "steps": [
        {"op": "copy", "dst": "sums", "src": "sums", "dst_offset": "4 * i", "src_offset": "8",
         "bytes": 4}]}]}])j";
  // `occupancy` is known from the step itself on.
  auto without = plan;
  without.replace(without.find("\"occupancy(main)\""), 17, "1");
  const auto made = p.linked(kernel(without), kernel(without));
  REQUIRE_MESSAGE(made, (made ? std::string{} : made.error().what));
  const auto call = resolved(*made, p.from.target, {{"M", 4}, {"N", 6}});
  size_t own = 0;
  for (const auto& buffer : call.buffers)
    own += buffer.init == "zero" ? 1 : 0;
  CHECK(own == 2);
  // Two zeroings by the plan, then memset, launch and two copies of each stage.
  REQUIRE(call.steps.size() == 10);
  const auto& second_launch = call.steps[7];
  CHECK(second_launch.what == resolved_step::op::launch);
  // It waits for the end of the stage before it, though it waits for nothing of its own stage.
  CHECK_FALSE(second_launch.after.empty());
  CHECK(*std::max_element(second_launch.after.begin(), second_launch.after.end()) == 5);
}

TEST_CASE(
  "tensor maps of two stages keep apart, each of its own tensor and in the problem's sizes") {
  two_stage_program p;
  const auto with_map = [&](const std::string& of, const std::string& rows) {
    return kernel(R"j("tensor_maps": {"m": {"of": ")j" + of + R"j(", "dims": [4, ")j" + rows
      + R"j("], "strides": [16], "box": [4, 2]}}, "variants": [{"steps": [{"op": "launch",
      "entry": "work", "grid": [1, 1, 1], "block": [32, 1, 1], "args": [{"map": "m"}]}]}])j");
  };
  const auto made = p.linked(with_map("in.x", "axis.M"), with_map("in.t0", "dim(in.t0, 0) // 4"));
  REQUIRE_MESSAGE(made, (made ? std::string{} : made.error().what));
  const auto call = resolved(*made, p.from.target, {{"M", 4}, {"N", 6}});
  REQUIRE(call.steps.size() == 2);
  const std::vector<std::vector<uint64_t>> dims{{4, 4}, {4, 6}};
  for (size_t i = 0; i < 2; ++i) {
    CAPTURE(i);
    REQUIRE(call.steps[i].args.size() == 1);
    const auto& argument = call.steps[i].args[0];
    REQUIRE(argument.maps.size() == 1);
    CHECK(argument.maps[0].spec.dims == dims[i]);
    CHECK((call.buffers[argument.buffer].name == "x") == (i == 0));
  }
}

TEST_CASE("what cannot stand in a common plan is refused by name") {
  two_stage_program p;
  const auto refusal = [&](const std::string& plan) {
    const auto made = p.linked(kernel(plan), kernel(simple));
    return made ? std::string{} : made.error().what;
  };
  CHECK(
    refusal(R"j("tensor_maps": {"m": {"of": "in.z", "dims": [4], "strides": [], "box": [4]}}, )j"
      + simple)
      .find("in.z")
    != std::string::npos);
  CHECK(refusal(R"j("variants": [{"steps": [{"op": "launch", "entry": "work", "grid": [1, 1, 1],
    "block": [1, 1, 1], "args": [{"map": "nowhere"}]}]}])j")
          .find("nowhere")
    != std::string::npos);
  const auto mixed =
    p.linked(kernel(R"j("options": {"fast_math": true}, )j" + simple), kernel(simple));
  REQUIRE_FALSE(mixed);
  CHECK(mixed.error().what.find("compiler options") != std::string::npos);
  CHECK(
    refusal(
      R"j("variants": [{"steps": [{"op": "launch", "entry": "work", "grid": ["dim(in.z, 0)", 1, 1],
    "block": [1, 1, 1], "args": []}]}])j")
      .find("in.z")
    != std::string::npos);
  CHECK(
    refusal(R"j("variants": [{"steps": [{"op": "launch", "entry": "work", "grid": ["axis.Q", 1, 1],
    "block": [1, 1, 1], "args": []}]}])j")
      .find("axis.Q")
    != std::string::npos);
  CHECK(
    refusal(R"j("variants": [{"steps": [{"op": "launch", "entry": "work", "gird": [1, 1, 1]}]}])j")
      .find("gird")
    != std::string::npos);
  std::string many;
  for (int i = 0; i < 260; ++i)
    many += (i == 0 ? "" : ", ") + simple_step;
  CHECK(refusal(R"j("variants": [{"steps": [)j" + many + "]}]").find("256") != std::string::npos);
}

TEST_CASE("scratch is shared by values that never live at once, only where a limit asks for it") {
  for (const size_t count : {4U, 60U}) {
    small_program from({{"M", 3, 7}});
    from.workload_at({{"M", 64}});
    int64_t last = from.input("x", {"M"});
    value_set all;
    std::vector<int64_t> roots;
    for (size_t i = 0; i < count; ++i) {
      last = from.op("exp", {value(last)}, {"M"});
      all.insert(last);
      roots.push_back(last);
    }
    from.output("y", last, {"M"});
    const auto program = program_graph::make(from.target, from.graph);
    REQUIRE(program);
    std::vector<sub_problem> stages;
    for (int64_t root : roots)
      stages.push_back(*make_sub_problem(**program, cut_stage(**program, {root}, all)));
    program_code code;
    for (const auto& stage : stages)
      code.stages.push_back({&stage, {}});
    const auto layout = lay_out_scratch(**program, code);
    CHECK(layout.slot_of.size() == count - 1);
    CHECK(layout.slots.size() == (count == 4 ? 3 : 2));
    for (size_t i = 0; i + 2 < count; ++i)
      CHECK(layout.slot_of.at(roots[i]) != layout.slot_of.at(roots[i + 1]));
  }
}
