#include "tests/gpu/mock/ptx/ptx_run.hpp"

#include <algorithm>
#include <fstream>
#include <iterator>

using namespace gristmill::ptx;
using namespace gristmill::ptx::testing;
using gristmill::errc;

namespace {

std::string corpus(const std::string& name) {
  const char* source = std::getenv("GRISTMILL_SOURCE");
  std::ifstream in(std::string(source ? source : ".") + "/tests/corpus/ptx/" + name);
  return {std::istreambuf_iterator<char>(in), {}};
}

std::string error_of(const std::string& text) {
  const auto m = parse(text);
  if (m) {
    FAIL("the text was accepted: " << text.substr(0, 300));
    return {};
  }
  return m.error().what;
}

bool contains(const std::string& text, std::string_view part) {
  if (text.find(part) != std::string::npos)
    return true;
  MESSAGE(text);
  return false;
}

} // namespace

TEST_CASE("an entry tells its parameters, memory, limits and registers") {
  const auto m = must_parse(std::string(head)
    + "// comment\n.file 1 \"a.cu\"\n.pragma \"x\";\n.section .debug_str { .b8 1, 2 { } }\n"
      ".visible .entry first(.param .u64 a, .param .f32 b) .reqntid 32, 4 .minnctapersm 2\n"
      "{ .reg .b32 %r<9>; .shared .align 16 .b8 s[100]; .local .align 4 .b8 l[12];\n"
      ".loc 1 2 3\n ld.param.u32 %r1, [b]; st.shared.u32 [s], %r1; /* more */ ret; }\n"
      ".entry second() .maxntid 64 .maxnreg 40 .pragma \"nounroll\"; { ret; }\n");
  const auto all = entries(*m);
  REQUIRE(all.size() == 2);
  CHECK(all[0].name == "first");
  CHECK(all[0].line == 8);
  CHECK(all[0].max_threads == 128);
  CHECK(all[0].required_block == std::array<uint32_t, 3>{32, 4, 1});
  CHECK(all[0].blocks_per_sm_min == 2);
  CHECK(all[0].registers_max == 0);
  CHECK(all[1].max_threads == 64);
  CHECK(all[1].required_block == std::array<uint32_t, 3>{});
  CHECK(all[1].registers_max == 40);
  CHECK(all[0].static_shared == 100);
  CHECK(all[0].local_bytes == 12);
  CHECK(all[0].parameters[1] == parameter{"b", 8, 4, 4, "f32"});
  CHECK(all[1].parameters.empty());
  CHECK(target(*m) == "sm_90a");
  const auto directives = directives_used(*m);
  for (const char* d : {".entry", ".section", ".pragma", ".reqntid", ".loc", ".shared"})
    CHECK(std::count(directives.begin(), directives.end(), d) == 1);
}

TEST_CASE("special registers that tell time or place are listed") {
  const auto m = must_parse(
    entry("mov.u64 %rd1, %clock64; mov.u32 %r1, %smid; mov.u32 %r2, %tid.x; mov.u32 %r3, %clock;"));
  CHECK(special_registers_used(*m) == std::vector<std::string>{"%clock", "%clock64", "%smid"});
}

TEST_CASE("what is not supported is one error that names the line and the instruction") {
  const std::pair<const char*, const char*> cases[] = {
    {"tcgen05.shift.cta_group::1.down [%r1];", "this form of tcgen05"},
    {"frobnicate.b32 %r1, %r2;", "instruction 'frobnicate.b32' is not supported"},
    {"add.rn.strange.f32 %f1, %f2, %f3;", "'add.strange.f32'"},
    {"ld.global.weird.u32 %r1, [%rd1];", "'.weird' is not supported"},
    {"tex.2d.v4.f32.s32 {%f1,%f2,%f3,%f4}, [%rd1];", "tex"},
    {"cp.async.bulk.tensor.3d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes [%r1], "
     "[%rd1, {%r2, %r3, %r4}], [%r2], {%h1};",
      "in mode .im2col"},
    {"mma.sync.aligned.m16n8k48.row.col.s32.s8.s8.s32 {%r1,%r2,%r3,%r4}, {%r1,%r2,%r3,%r4}, "
     "{%r1,%r2}, {%r1,%r2,%r3,%r4};",
      "this shape of matrices"},
    {"cvt.rn.e4m3.f32 %h1, %f1;", "a conversion from"},
    {"mov.u32 %r1, %pm0;", "special register '%pm0' is not supported"},
    {"shfl.bfly.b32 %r1, %r2, 1, 31;", "without .sync"},
    {"atom.global.add.s8 %r1, [%rd1], %r2;", "atomic operation"},
    {"bar.strange 0;", "this form of barrier"}, {"call (%r1), %rd1, (%r2);", "indirect"}};
  for (const auto& [text, want] : cases) {
    const auto m = parse(entry(std::string("ret;\n") + text));
    REQUIRE_FALSE(m);
    CHECK(m.error().code == errc::unsupported);
    CHECK(contains(m.error().what, want));
    CHECK(contains(m.error().what, "PTX line 9"));
  }
}

TEST_CASE("what is malformed is an error that says what was expected") {
  const std::pair<const char*, const char*> cases[] = {
    {"add.s32 %r1, %r2;", "2 operands instead of 3"},
    {"add.s32 %r1, %r2, %r3, %r4;", "4 operands instead of 3"},
    {"add.s64 %rd1, %r2, %rd3;", "register '%r2' has 32 bits where 64 are needed"},
    {"add.s32 %rd1, %r2, %r3;", "where 32 are written"},
    {"add.s32 5, %r2, %r3;", "the destination is not a register"},
    {"add.s32 %r1, %r2, 0x1ffffffff;", "does not fit into 32 bits"},
    {"add.s32 %r1, %r99, 1;", "'%r99'"}, {"add.s32 %r1, [%rd1], 1;", "cannot be read here"},
    {"bra NOWHERE;", "label 'NOWHERE' is not defined"},
    {"X: X: ret;", "label 'X' is defined twice"}, {"@%r1 bra X; X: ", "'%r1' is not a predicate"},
    {"ld.global.u32 %r1, [nothing];", "'nothing' is not declared"},
    {"ld.global.v4.u32 {%r1, %r2}, [%rd1];", "a vector of 4 registers is needed"},
    {"ld.global.u64 %r1, [%rd1];", "a load of type 'u64'"},
    {"ld.param.u64 %rd1, [p0+4];", "past the end of the parameter"},
    {"st.param.u64 [p0], %rd1;", "cannot be written"},
    {"st.const.u32 [%rd1], %r1;", "constant memory"}, {"mov.u32 %r1, 12abc;", "is not a number"},
    {"mov.u32 %r1, 99999999999999999999;", "is not a number"},
    {"mov.f32 %f1, 0f3F8;", "is not a number"}, {"mov.u32 %r1, %r2 %r3;", "expected ','"},
    {"mov.u32 %r1, {{{{{{{{%r2}}}}}}}};", "nested too deeply"},
    {".reg .b32 %z<99999999>;", "is more than"}, {".reg .b99 %z;", "registers of type"},
    {".local .b8 z[99999999];", "at most"}, {".shared .align 3 .b8 z[4];", "power of two"},
    {"setp.lt.s32 %p1, %r1, %r2", "expected"}, {"\x01", "a character that PTX does not have"},
    {"\"abc", "a string is not closed"}, {"/* abc", "a comment is not closed"},
    {"cp.async.cg.shared.global [%r1], [%rd1], 12;", "4, 8 or 16 bytes"},
    {"bar.sync 16;", "a number from 0 to 15"}};
  for (const auto& [text, want] : cases) {
    CAPTURE(text);
    CHECK(contains(error_of(entry(text)), want));
  }
  CHECK(contains(error_of("xyz"), "unexpected 'xyz'"));
  CHECK(contains(error_of(std::string(head) + ".address_size 32"), "64"));
  CHECK(contains(
    error_of(std::string(head) + ".entry a() { ret; } .entry a() { ret; }"), "defined twice"));
  CHECK(
    contains(error_of(std::string(head) + ".global .u32 a; .global .u32 a;"), "declared twice"));
  CHECK(contains(
    error_of(std::string(head) + ".global .u32 a[2] = {1, 2, 3};"), "more initial values"));
  CHECK(contains(error_of(std::string(head) + ".extern .global .u32 a;"), "another module"));
  CHECK(
    contains(error_of(std::string(head) + ".global .u64 a = nobody;"), "'nobody' is not declared"));
  CHECK(parse("")); // An empty module is one.
}

TEST_CASE("a second entry that inline text opens is seen") {
  const auto m = must_parse(entry("ret; } .visible .entry evil() { "));
  CHECK(entries(*m).size() == 2);
}

TEST_CASE("every truncation of a valid text is an error or a module, never a crash") {
  for (const char* name : {"bulk_scale.clang.ptx", "softmax_row.nvcc.ptx"}) {
    const std::string text = corpus(name);
    REQUIRE(text.size() > 1000);
    REQUIRE(parse(text));
    size_t accepted = 0;
    for (size_t i = 0; i < text.size(); ++i)
      accepted += parse(text.substr(0, i)) ? 1 : 0;
    CHECK(accepted < text.size() / 2);
  }
}

TEST_CASE("texts with bytes changed, removed or repeated do not crash, and run to an end") {
  const std::string text = corpus("block_sum.clang.ptx");
  REQUIRE(text.size() > 1000);
  numbers random(7);
  for (int round = 0; round < 3000; ++round) {
    CAPTURE(round);
    std::string changed = text;
    for (uint64_t i = 0, n = 1 + random.next() % 4; i < n; ++i) {
      const size_t at = random.next() % changed.size();
      switch (random.next() % 4) {
      case 0:
        changed[at] = static_cast<char>(random.next() % 128);
        break;
      case 1:
        changed.erase(at, random.next() % 20);
        break;
      case 2:
        changed.insert(at, changed.substr(random.next() % changed.size(), random.next() % 40));
        break;
      default:
        changed[at] = "0123456789,;.[]{}%$_"[random.next() % 20];
        break;
      }
    }
    const auto m = parse(changed);
    if (!m) {
      CHECK(m.error().what.find("PTX line ") == 0);
      continue;
    }
    std::vector<float> in(64), out(1);
    for (const entry_info& e : entries(**m)) {
      setup s(e.name);
      s.buffer(in, false).buffer(out).value(int32_t{64}).block(64);
      s.what.instruction_limit = 20000;
      s.what.parameters.resize(256);
      s.run(*m);
    }
  }
}

TEST_CASE("huge and deep texts are refused in time") {
  CHECK_FALSE(parse(std::string((16U << 20) + 1, ' ')));
  CHECK(contains(
    error_of(std::string(head) + ".entry k() " + std::string(5000, '{')), "nested too deeply"));
  CHECK(contains(
    error_of(entry("mov.u32 %r1, " + std::string(100000, '(') + ";")), "nested too deeply"));
  CHECK(contains(
    error_of(entry("mov.u32 %r1, " + std::string(100000, '!') + "%p1;")), "nested too deeply"));
  std::string wide = "mov.u32 %r1, {";
  for (int i = 0; i < 10000; ++i)
    wide += "%r1,";
  CHECK(contains(error_of(entry(wide + "%r1};")), "too many operands"));
  // Calls that double with each level: expanded, they would be a billion instructions.
  std::string text(head);
  text += ".func f0() { .reg .b32 %r<2>; add.s32 %r1, %r1, 1; ret; }\n";
  for (int i = 1; i < 31; ++i) {
    const std::string call = "call f" + std::to_string(i - 1) + "; ";
    text += ".func f" + std::to_string(i) + "() { " + call + call + "ret; }\n";
  }
  CHECK(contains(error_of(text + ".entry k() { call f30; ret; }"), "too many"));
  std::string many(head);
  for (int i = 0; i < 40; ++i)
    many += ".entry k" + std::to_string(i) + "() { .reg .b64 %r<60000>; ret; }\n";
  CHECK(contains(error_of(many), "too many registers"));
}

TEST_CASE("a wait for fewer than no groups of copies is refused") {
  CHECK(parse(entry("cp.async.wait_group 0;")));
  CHECK_FALSE(parse(entry("cp.async.wait_group -9223372036854775808;")));
  CHECK_FALSE(parse(entry("cp.async.bulk.wait_group.read -1;")));
}
