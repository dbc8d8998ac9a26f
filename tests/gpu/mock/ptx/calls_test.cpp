#include "tests/gpu/mock/ptx/ptx_run.hpp"

#include <cmath>

using namespace gristmill::ptx;
using namespace gristmill::ptx::testing;

namespace {

std::string library(const std::string& name, const std::string& bits, int parameters) {
  std::string text = ".extern .func (.param ." + bits + " func_retval0) " + name + "(";
  for (int i = 0; i < parameters; ++i)
    text += (i ? ", " : "") + (".param ." + bits + " " + name) + "_param_" + std::to_string(i);
  return text + ");\n";
}

} // namespace

TEST_CASE("calls of the mathematical library are served by name") {
  const auto x = interesting<float>(1);
  std::vector<float> in = x, out(x.size());
  const std::pair<const char*, double (*)(double)> functions[] = {{"expf", std::exp},
    {"logf", std::log}, {"tanhf", std::tanh}, {"erff", std::erf}, {"sinf", std::sin},
    {"cosf", std::cos}, {"exp2f", std::exp2}, {"log2f", std::log2}, {"log1pf", std::log1p},
    {"expm1f", std::expm1}, {"floorf", std::floor}, {"sqrtf", std::sqrt}, {"fabsf", std::fabs},
    {"__nv_expf", std::exp}};
  for (const auto& [name, reference] : functions) {
    std::string text(head);
    text += library(name, "b32", 1)
      + entry(R"(
      mov.u32 %r1, %ctaid.x; mul.wide.u32 %rd3, %r1, 4; ld.param.u64 %rd1, [p0]; ld.param.u64 %rd2, [p1];
      add.s64 %rd1, %rd1, %rd3; add.s64 %rd2, %rd2, %rd3; ld.global.f32 %f1, [%rd1];
      { .param .b32 param0; st.param.f32 [param0+0], %f1; .param .b32 retval0;
        call.uni (retval0), )"
          + std::string(name) + R"(, (param0); ld.param.f32 %f2, [retval0+0]; }
      st.global.f32 [%rd2], %f2;)",
        2)
          .substr(head.size());
    setup s;
    s.buffer(in, false).buffer(out).grid(static_cast<uint32_t>(in.size()));
    must_pass(s.run(text));
    for (size_t i = 0; i < x.size(); ++i) {
      const auto want = static_cast<float>(reference(static_cast<double>(x[i])));
      CAPTURE(name);
      CAPTURE(x[i]);
      if (std::isnan(want))
        REQUIRE(std::isnan(out[i]));
      else if (std::isfinite(want))
        REQUIRE(std::fabs(out[i] - want) <= std::fabs(want) * 1e-6F + 1e-44F);
      else
        REQUIRE(out[i] == want);
    }
  }
}

TEST_CASE("functions with two parameters and in double precision") {
  std::vector<double> out(2);
  std::string text(head);
  text += library("pow", "b64", 2) + library("fmaxf", "b32", 2)
    + entry(R"(
    ld.param.u64 %rd1, [p0];
    { .param .b64 param0; .param .b64 param1; .param .b64 retval0; st.param.f64 [param0], 0d4000000000000000;
      st.param.f64 [param1], 0d4024000000000000; call.uni (retval0), pow, (param0, param1);
      ld.param.f64 %fd1, [retval0]; }
    { .param .b32 param0; .param .b32 param1; .param .b32 retval0; st.param.f32 [param0], 0f3F800000;
      st.param.f32 [param1], 0f40400000; call.uni (retval0), fmaxf, (param0, param1);
      ld.param.f32 %f1, [retval0]; }
    cvt.f64.f32 %fd2, %f1; st.global.v2.f64 [%rd1], {%fd1, %fd2};)")
        .substr(head.size());
  setup s;
  s.buffer(out);
  must_pass(s.run(text));
  CHECK(out == std::vector<double>{1024, 3});
}

TEST_CASE("functions are called with values, arrays and results, also within each other") {
  std::vector<uint32_t> out(32);
  std::string text(head);
  text += R"(
    .visible .func (.param .b32 func_retval0) twice(.param .b32 twice_param_0)
    { .reg .b32 %r<3>; ld.param.u32 %r1, [twice_param_0]; add.s32 %r2, %r1, %r1;
      st.param.b32 [func_retval0], %r2; ret; }
    // Element i of an array by value, i = 0..3, twice; above that, it leaves early with 1.
    .func (.param .b32 func_retval0) pick(.param .align 4 .b8 pick_param_0[16], .param .b32 pick_param_1)
    { .reg .b32 %r<5>; .reg .b64 %rd<5>; .reg .pred %p<2>;
      ld.param.u32 %r1, [pick_param_1]; st.param.b32 [func_retval0+0], 1; setp.gt.u32 %p1, %r1, 3; @%p1 ret;
      mov.b64 %rd1, pick_param_0; mul.wide.u32 %rd2, %r1, 4; add.s64 %rd3, %rd1, %rd2;
      ld.param.u32 %r2, [%rd3];
      { .param .b32 param0; st.param.b32 [param0], %r2; .param .b32 retval0;
        call.uni (retval0), twice, (param0); ld.param.b32 %r3, [retval0]; }
      st.param.b32 [func_retval0+0], %r3; ret; })";
  text += entry(R"(
    mov.u32 %r1, %tid.x; mul.wide.u32 %rd2, %r1, 4; ld.param.u64 %rd1, [p0]; add.s64 %rd1, %rd1, %rd2;
    mov.u32 %r9, 7; setp.lt.u32 %p1, %r1, 30;
    { .param .align 4 .b8 param0[16]; st.param.b32 [param0+0], %r1; st.param.b32 [param0+4], 10; st.param.b32 [param0+8], 20;
      st.param.b32 [param0+12], 30; .param .b32 param1; and.b32 %r2, %r1, 7; st.param.b32 [param1], %r2;
      .param .b32 retval0; st.param.b32 [retval0], 7; @%p1 call (retval0), pick, (param0, param1);
      ld.param.b32 %r9, [retval0]; }
    st.global.u32 [%rd1], %r9;)")
            .substr(head.size());
  setup s;
  s.buffer(out).block(32);
  must_pass(s.run(text));
  for (uint32_t l = 0; l < 32; ++l) {
    const uint32_t array[] = {l, 10, 20, 30};
    CAPTURE(l);
    CHECK(out[l] == (l >= 30 ? 7 : l % 8 > 3 ? 1 : 2 * array[l % 8]));
  }
}

TEST_CASE(
  "recursion, indirect calls of nothing and unknown functions are refused by name and line") {
  const std::string recursive = std::string(head) + ".func again() { call again; ret; }\n"
    + entry("call again;").substr(head.size());
  const auto a = parse(recursive);
  REQUIRE_FALSE(a);
  CHECK(a.error().code == gristmill::errc::unsupported);
  CHECK(a.error().what.find("PTX line 4: function 'again' calls itself") != std::string::npos);
  const auto b = parse(entry("call (%r1), %rd1, (%r2), proto;"));
  REQUIRE_FALSE(b);
  CHECK(b.error().what.find("indirect calls") != std::string::npos);
  const std::string unknown = std::string(head)
    + ".extern .func (.param .b64 r) malloc(.param .b64 n);\n"
    + entry("{ .param .b64 n; .param .b64 r; st.param.b64 [n], 8; call (r), malloc, (n); }")
        .substr(head.size());
  const auto c = parse(unknown);
  REQUIRE_FALSE(c);
  CHECK(c.error().what.find("function 'malloc' is not defined") != std::string::npos);
  CHECK_FALSE(parse(entry("call nowhere;")));
}

TEST_CASE("printf is ignored with a warning, a failed assertion is a fault with its text") {
  std::vector<uint32_t> in{1, 1, 0, 1};
  std::string text(head);
  text += R"(
    .extern .func (.param .b32 func_retval0) vprintf(.param .b64 a, .param .b64 b);
    .extern .func __assertfail(.param .b64 a, .param .b64 b, .param .b32 c, .param .b64 d, .param .b64 e);
    .global .align 1 .b8 message[6] = {120, 32, 33, 61, 32, 48};
    .global .align 1 .b8 file[5] = {97, 46, 99, 117, 0};)";
  text += entry(R"(
    ld.param.u64 %rd1, [p0]; mov.u32 %r1, %tid.x; mul.wide.u32 %rd2, %r1, 4; add.s64 %rd1, %rd1, %rd2;
    mov.u64 %rd3, message; cvta.global.u64 %rd4, %rd3; mov.u64 %rd5, file; cvta.global.u64 %rd6, %rd5;
    { .param .b64 param0; .param .b64 param1; .param .b32 retval0; st.param.b64 [param0], %rd4;
      st.param.b64 [param1], 0; call.uni (retval0), vprintf, (param0, param1); ld.param.b32 %r5, [retval0]; }
    ld.global.u32 %r2, [%rd1]; setp.ne.u32 %p1, %r2, 0; @%p1 bra FINE;
    { .param .b64 a; .param .b64 b; .param .b32 c; .param .b64 d; .param .b64 e; st.param.b64 [a], %rd4;
      st.param.b64 [b], %rd6; st.param.b32 [c], 12; st.param.b64 [d], 0; st.param.b64 [e], 1;
      call.uni __assertfail, (a, b, c, d, e); }
    FINE: )")
            .substr(head.size());
  setup s;
  s.buffer(in).block(4);
  const outcome result = s.run(text);
  REQUIRE(result.failed);
  CHECK(result.failed->kind == fault_kind::assertion);
  CHECK(result.failed->what.find("assertion `x != 0` failed (a.cu:12)") != std::string::npos);
  CHECK(result.failed->thread[0] == 2);
  REQUIRE(result.done.warnings.size() == 1);
  CHECK(result.done.warnings[0] == "4 calls of printf were ignored");
}
