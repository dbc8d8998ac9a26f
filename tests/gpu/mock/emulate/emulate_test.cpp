#include "gpu/mock/emulate_json.hpp"

#include <algorithm>
#include <cstring>
#include <doctest/doctest.h>

using namespace gristmill;

namespace {

constexpr int elements = 64;

/// An entry `k(x, y)` around a body; %r1 is the thread, %r2 the block, %rd3 and %rd4 the places of
/// the thread in x and y.
std::string kernel(const std::string& body) {
  return ".version 8.0\n.target sm_90a\n.address_size 64\n"
         ".visible .entry k(.param .u64 x, .param .u64 y)\n{\n"
         ".reg .pred %p<4>; .reg .b32 %r<8>; .reg .b64 %rd<8>; .reg .f32 %f<8>;\n"
         "mov.u32 %r1, %tid.x; mov.u32 %r2, %ctaid.x; ld.param.u64 %rd1, [x]; ld.param.u64 %rd2, "
         "[y];\n"
         "mul.wide.u32 %rd5, %r1, 4; add.s64 %rd3, %rd1, %rd5; add.s64 %rd4, %rd2, %rd5;\n"
    + body + "\nret;\n}\n";
}

const std::string doubled =
  kernel("ld.global.f32 %f1, [%rd3];\nadd.f32 %f2, %f1, %f1;\nst.global.f32 [%rd4], %f2;\n");

struct call {
  resolved_workload work;
  std::vector<std::vector<std::byte>> inputs;
  emulate_settings how;

  explicit call(uint32_t blocks = 1) {
    resolved_buffer x;
    x.kind = resolved_buffer::role::input;
    x.name = "x";
    x.shape = {elements};
    x.bytes = elements * 4;
    resolved_buffer y = x;
    y.kind = resolved_buffer::role::output;
    y.name = "y";
    work.buffers = {x, y};
    resolved_step step;
    step.entry = "k";
    step.grid = {blocks, 1, 1};
    step.block = {elements, 1, 1};
    for (uint32_t i = 0; i < 2; ++i) {
      resolved_argument argument;
      argument.buffer = i;
      argument.abi = "ptr";
      step.args.push_back(argument);
    }
    work.steps = {step};
    inputs.emplace_back(elements * 4);
    for (int i = 0; i < elements; ++i) {
      const float value = static_cast<float>(i);
      std::memcpy(inputs[0].data() + 4 * i, &value, 4);
    }
    how.profile = *profile("h200");
    how.instruction_limit = 100'000;
  }

  emulation must(const std::string& ptx) const {
    auto seen = emulate(ptx, {}, work, inputs, how);
    REQUIRE_MESSAGE(seen, (seen ? std::string{} : seen.error().what));
    return std::move(*seen);
  }
};

float element(const std::vector<std::byte>& bytes, size_t i) {
  float value = 0;
  std::memcpy(&value, bytes.data() + 4 * i, 4);
  return value;
}

} // namespace

TEST_CASE("a clean kernel has its outputs, its time with a label, its profile and no finding") {
  call c;
  c.how.orders = 2;
  const emulation seen = c.must(doubled);
  CHECK(seen.findings.empty());
  CHECK_FALSE(seen.has_fault());
  CHECK(seen.orders_run == 2);
  CHECK(seen.orders_agree);
  REQUIRE(seen.outputs.size() == 1);
  CHECK(element(seen.outputs[0], 5) == 10.0F);
  REQUIRE(seen.time);
  CHECK(seen.time->ns > 0);
  CHECK(seen.time_label.find("MODELLED") != std::string::npos);
  REQUIRE(seen.launches.size() == 1);
  CHECK(seen.launches[0].launch.time);
  CHECK_FALSE(seen.launches[0].profile.words.empty());
}

TEST_CASE("a kernel that faults has a finding, no time, and says why") {
  const emulation seen = call().must(kernel("st.global.f32 [%rd4+256], 0f00000000;"));
  REQUIRE(seen.findings.size() == 1);
  CHECK(seen.findings[0].what.kind == ptx::fault_kind::out_of_bounds);
  CHECK_FALSE(seen.time);
  CHECK(seen.time_refused == "the call did not come to its end");
}

TEST_CASE("what keeps a kernel from running is a failure, not a finding") {
  const call c;
  CHECK(emulate("no PTX", {}, c.work, c.inputs, c.how).error().code == errc::unsupported);
  call other;
  other.work.steps[0].entry = "kk";
  const auto missing = emulate(doubled, {}, other.work, other.inputs, other.how);
  REQUIRE_FALSE(missing);
  CHECK(missing.error().what.find("did you mean") != std::string::npos);
  call large;
  large.work.steps[0].block = {2048, 1, 1};
  CHECK_FALSE(emulate(doubled, {}, large.work, large.inputs, large.how));
  call short_input;
  short_input.inputs[0].resize(4);
  CHECK_FALSE(emulate(doubled, {}, short_input.work, short_input.inputs, short_input.how));
  call few;
  few.work.steps[0].args.pop_back();
  CHECK_FALSE(emulate(doubled, {}, few.work, few.inputs, few.how));
}

TEST_CASE("results that depend on the order name the first element that differs") {
  call c(8);
  c.how.orders = 4;
  c.how.checks = 0;
  c.how.time = false;
  // The block that comes last has the last word.
  const emulation seen = c.must(kernel("cvt.rn.f32.u32 %f1, %r2; st.global.f32 [%rd2+12], %f1;"));
  REQUIRE(seen.findings.size() == 1);
  CHECK(seen.findings[0].is_fault);
  CHECK(seen.findings[0].what.kind == ptx::fault_kind::order_dependent);
  CHECK(seen.findings[0].what.what.find("`y`[3] is 7 in the natural order") != std::string::npos);
  CHECK_FALSE(seen.orders_agree);
}

TEST_CASE("sums of floats by atomics may differ by their rounding, which is a remark") {
  call c(8);
  c.how.orders = 8;
  c.how.checks = 0;
  c.how.time = false;
  // Block 0 adds a large number, the others small ones.
  const std::string sum = kernel("setp.ne.u32 %p2, %r1, 0; @%p2 ret; setp.eq.u32 %p1, %r2, 0;\n"
                                 "selp.f32 %f1, 0f4B800000, 0f3F800000, %p1;\n"
                                 "red.global.add.f32 [%rd2], %f1;");
  c.work.steps.insert(c.work.steps.begin(), resolved_step{});
  c.work.steps[0].what = resolved_step::op::memset;
  c.work.steps[0].buffer = 1;
  c.work.steps[0].bytes = elements * 4;
  const emulation seen = c.must(sum);
  REQUIRE(seen.findings.size() == 1);
  CHECK_FALSE(seen.findings[0].is_fault);
  CHECK_FALSE(seen.has_fault());
  CHECK(seen.orders_agree);
  c.how.allowed.atol = c.how.allowed.rtol = 0;
  CHECK(c.must(sum).has_fault());
}

TEST_CASE("how many orders run at once says nothing about what is found") {
  // The last one to come has the last word: some orders differ from the natural one, some do not.
  const std::string last = kernel("cvt.rn.f32.u32 %f1, %r2; st.global.f32 [%rd2+12], %f1;");
  // Block 1 may come before block 0 has raised its flag, and then it is out of bounds.
  const std::string faulty =
    kernel("setp.eq.u32 %p1, %r2, 0; @%p1 st.global.f32 [%rd2], 0f3F800000;\n"
           "@%p1 ret; ld.global.f32 %f1, [%rd2]; setp.eq.f32 %p2, %f1, 0f3F800000;\n"
           "@!%p2 st.global.f32 [%rd4+4096], %f1;");
  for (const std::string& ptx : {doubled, last, faulty})
    for (const uint64_t first : {uint64_t{1}, UINT64_MAX - 2}) {
      call c(2);
      c.how.orders = 7;
      c.how.order_seed = first;
      c.how.checks = 0;
      const emulate_request asked;
      const auto document = [&](uint32_t jobs) {
        c.how.jobs = jobs;
        return to_json(asked, c.must(ptx), {});
      };
      const ordered_json one = document(1);
      CHECK(document(2) == one);
      CHECK(document(3) == one);
      CHECK(document(16) == one);
      CHECK(one["orders"]["run"].get<int>() >= 1);
      CHECK(one["findings"].empty() == (ptx == doubled));
    }
}

TEST_CASE("memory that an earlier step has written counts as written in a later one") {
  call c;
  resolved_buffer scratch = c.work.buffers[1];
  scratch.kind = resolved_buffer::role::scratch;
  scratch.name = "t";
  scratch.init = "undefined";
  c.work.buffers.push_back(scratch);
  c.work.steps.push_back(c.work.steps[0]);
  c.work.steps[0].args[1].buffer = 2;
  c.work.steps[1].args[0].buffer = 2;
  CHECK(c.must(doubled).findings.empty());
  // Without the first step nobody has given the values.
  c.work.steps.erase(c.work.steps.begin());
  const emulation seen = c.must(doubled);
  REQUIRE(seen.findings.size() == 1);
  CHECK(seen.findings[0].what.kind == ptx::fault_kind::uninitialised);
}

TEST_CASE("the JSON document has every key of its schema, clean, faulty and refused") {
  emulate_request asked{
    "k.ptx", "plan.json", "ptx", "h200", "p", "w", {{"N", 64}}, ptx::all_checks, 1};
  const emulation clean = call().must(doubled);
  const ordered_json a = to_json(asked, clean, {{"y", "float32", {64}, 256, ""}});
  const ordered_json b =
    to_json(asked, call().must(kernel("st.global.f32 [%rd4+256], 0f00000000;")), {});
  const ordered_json c = refused_to_json(asked, "it does not compile");
  CHECK(a["verdict"] == "clean");
  CHECK(b["verdict"] == "fault");
  CHECK(c["verdict"] == "refused");
  CHECK(c["error"] == "it does not compile");
  for (const char* key : {"schema", "verdict", "error", "kernel", "plan", "toolchain", "device",
         "problem", "workload", "axes", "checks", "orders", "findings", "findings_left_out", "time",
         "time_refused", "launches", "words", "warnings", "printed", "printed_left_out", "outputs"})
    for (const ordered_json* each : {&a, &b, &c})
      CHECK_MESSAGE(each->contains(key), key);
  CHECK(a["schema"] == "gristmill.emulate/1");
  CHECK(a["axes"]["N"] == 64);
  CHECK(a["time"]["label"].get<std::string>().find("MODELLED") == 0);
  const ordered_json& launch = a["launches"][0];
  for (const char* key : {"step", "entry", "grid", "block", "cluster", "shared_bytes", "blocks",
         "warp_instructions", "time", "occupancy", "divergence", "memory", "barriers", "lines"})
    CHECK_MESSAGE(launch.contains(key), key);
  for (const char* key : {"ptx_line", "source", "instruction", "warp_instructions", "share",
         "lanes", "memory", "passes", "passes_ideal", "diverged"})
    CHECK_MESSAGE(launch["lines"][0].contains(key), key);
  const ordered_json& finding = b["findings"][0];
  for (const char* key : {"kind", "severity", "text", "kernel", "step", "ptx_line", "instruction",
         "source", "block", "thread", "other", "times"})
    CHECK_MESSAGE(finding.contains(key), key);
  CHECK(finding["kind"] == "out of bounds");
  CHECK(finding["source"].is_null());
  CHECK(to_text(asked, clean).find("nothing found") == 0);
}
