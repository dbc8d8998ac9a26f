#include "gpu/mock/ptx/expansion.hpp"
#include "tests/gpu/mock/ptx/ptx_run.hpp"

#include <cmath>
#include <fstream>
#include <sstream>

using namespace gristmill::ptx;
using namespace gristmill::ptx::testing;

namespace {

/// What one warp executes of a body beyond the rest.
machine_counts machine(const std::string& body) {
  const auto run = [](const std::string& text) {
    setup s;
    s.block(32);
    const outcome result = s.run(entry(text, 0));
    must_pass(result);
    return result.done.machine;
  };
  const machine_counts whole = run(body), nothing = run("");
  return {whole.issue - nothing.issue, whole.alu - nothing.alu, whole.fma - nothing.fma,
    whole.heavy - nothing.heavy, whole.xu - nothing.xu, whole.fp64 - nothing.fp64};
}

uint64_t cycles(const std::string& body) {
  std::vector<uint32_t> data(4096, 1);
  setup s;
  s.buffer(data).block(32);
  s.what.caches = s.what.timing = true;
  const outcome result = s.run(entry("ld.param.u64 %rd1, [p0]; mov.u32 %r1, %tid.x; " + body, 1));
  must_pass(result);
  return result.done.block_critical_cycles;
}

std::string repeated(const std::string& text, int times) {
  std::string out;
  for (int i = 0; i < times; ++i)
    out += text;
  return out;
}

} // namespace

TEST_CASE("a division counts as the instructions that it becomes, on their pipes") {
  // Eighths: 17 instructions of rem.u32, three of them on the special function unit's pipe.
  const machine_counts c = machine("rem.u32 %r2, %r3, 7;");
  CHECK(c.issue == 8 * 17);
  CHECK(c.xu == 8 * 3);
  CHECK(c.alu + c.fma + c.xu <= c.issue);
  CHECK(machine("div.rn.f32 %f1, %f2, %f3;").issue > 8 * 5);
  CHECK(machine("div.approx.ftz.f32 %f1, %f2, %f3;").issue == 8 * 2);
}

TEST_CASE("plain instructions are one, on the pipe of their kind") {
  CHECK(machine("add.s32 %r2, %r3, 1;") == machine_counts{8, 5, 3, 3, 0, 0});
  CHECK(machine("fma.rn.f32 %f1, %f2, %f3, %f4;") == machine_counts{8, 0, 8, 0, 0, 0});
  CHECK(machine("ex2.approx.ftz.f32 %f1, %f2;") == machine_counts{8, 0, 0, 0, 8, 0});
  CHECK(machine("fma.rn.f64 %fd1, %fd2, %fd3, %fd4;") == machine_counts{8, 0, 0, 0, 0, 8});
  // Signed and unsigned products are the same, and an addend costs nothing.
  CHECK(machine("mul.lo.s32 %r2, %r3, 5;") == machine_counts{8, 0, 8, 8, 0, 0});
  CHECK(machine("mad.lo.s32 %r2, %r3, 5, %r4;") == machine("mul.lo.u32 %r2, %r3, 5;"));
}

TEST_CASE(
  "moves between registers are names and not instructions; reading a special register is one") {
  CHECK(machine("mov.u32 %r2, %r3; mov.f32 %f1, 0f3F800000;") == machine_counts{});
  CHECK(machine("setp.eq.u32 %p1, %r2, 1; and.pred %p2, %p1, %p1;").issue == 8);
  CHECK(machine("mov.u32 %r2, %laneid;").issue == 8);
}

TEST_CASE("a call of the math library counts as what the toolkit's own becomes") {
  const std::string call =
    "{ .param .b32 a; .param .b32 r; st.param.f32 [a], %f2; call.uni (r), tanhf, (a); "
    "ld.param.f32 %f1, [r]; }";
  setup s;
  s.block(32);
  const outcome result =
    s.run(".extern .func (.param .b32 r) tanhf (.param .b32 x);\n" + entry(call, 0));
  must_pass(result);
  // Two of its fifteen are special functions.
  CHECK(result.done.machine.xu == 8 * 2);
  CHECK(result.done.machine.issue >= 8 * 15);
}

TEST_CASE("the table in the source is the measurement") {
  std::ifstream file(GRISTMILL_EXPANSION_CSV);
  REQUIRE(file);
  std::string line;
  std::getline(file, line);
  REQUIRE(line == "name,issue,alu,fma,fmaheavy,fp16,fp64,xu,lsu,uniform,cbu,adu,cycles");
  size_t rows = 0, found = 0;
  while (std::getline(file, line)) {
    std::istringstream fields(line);
    std::vector<std::string> row;
    for (std::string field; std::getline(fields, field, ',');)
      row.push_back(field);
    REQUIRE(row.size() == 13);
    ++rows;
    for (const expansion& one : expansions())
      if (one.name == row[0]) {
        ++found;
        CAPTURE(row[0]);
        CHECK(one.issue == std::lround(8 * std::stod(row[1])));
        CHECK(one.xu == std::lround(8 * std::stod(row[7])));
        CHECK(one.cycles == std::max(0L, std::lround(std::stod(row[12]))));
      }
  }
  // Six rows stand there to be compared with only, one row and the empty one are not measured.
  CHECK(found == expansions().size() - 2);
  CHECK(rows == found + 6);
}

TEST_CASE("a branch over a few instructions is a predicate: loads behind it are not kept waiting") {
  const auto guarded = [](const std::string& inside) {
    std::string out;
    for (int i = 0; i < 4; ++i) {
      const std::string n = std::to_string(i);
      out += "setp.lt.u32 %p1, %r1, 64; @!%p1 bra L" + n + "; ld.global.u32 %r2, [%rd1+"
        + std::to_string(4096 * i) + "]; add.s32 %r5, %r5, %r2; " + inside + " L" + n + ": ";
    }
    return cycles(out + "bar.sync 0;");
  };
  // Four loads of DRAM beside each other, and one after the other.
  const uint64_t few = guarded("");
  const uint64_t many = guarded(repeated("add.s32 %r6, %r6, 1; ", 10));
  CHECK(few < 1000);
  CHECK(many > 4 * 600);
}

TEST_CASE(
  "arithmetic is moved only so far: a chain starts when the one before it is a window ahead") {
  const auto chains = [](int length, int count) {
    const std::string chain = repeated("fma.rn.f32 %f1, %f1, %f2, %f3; ", length);
    return cycles(repeated("mov.f32 %f1, 0f3F800000; " + chain, count) + "bar.sync 0;");
  };
  // Half a window each: beside each other.
  CHECK(chains(32, 2) < chains(32, 1) + 32);
  // Two windows each: the second begins when half of the first is done.
  const uint64_t one = chains(128, 1), two = chains(128, 2);
  CHECK(two > one + 60 * 4);
  CHECK(two < one + 70 * 4);
}
