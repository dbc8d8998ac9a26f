#include "protocol/program/candidate_rules.hpp"
#include "protocol/program/device_tokens.hpp"
#include "tests/protocol/program/small_program.hpp"

#include <doctest/doctest.h>

using namespace gristmill;
using namespace gristmill::test;

namespace {

std::string check(const std::string& program_text, const std::string& source) {
  const auto program = parsed(program_text);
  const auto out = check_candidate(program, source, good_plan, good_hypothesis);
  return out ? "accepted" : out.error().what;
}

std::string forbidding(const std::string& list) {
  return edited(small_program_text(), "candidate.forbidden", list);
}

} // namespace

TEST_CASE("a candidate within the rules is accepted") {
  CHECK(check(small_program_text(), good_source) == "accepted");
}

TEST_CASE("all that is wrong comes in one message") {
  const auto program = parsed(forbidding(R"(["fmaxf", "blockIdx"])"));
  const auto out = check_candidate(program, good_source, "{", "no");
  REQUIRE_FALSE(out);
  CHECK(out.error().code == errc::refused);
  CHECK(contains(out.error().what, "`fmaxf`"));
  CHECK(contains(out.error().what, "`blockIdx`"));
  CHECK(contains(out.error().what, "plan: "));
  CHECK(contains(out.error().what, "hypothesis: 2 bytes"));
  CHECK_FALSE(check_candidate(program, "", good_plan, good_hypothesis));
}

TEST_CASE("comments and texts are no code, whatever stands in them") {
  const std::string text = forbidding(R"(["printf"])");
  for (const char* line : {"// printf\n", "/* printf\n */", "// a \\\n printf\n",
         "__device__ const char* a = \"printf(\\\"\";\n",
         "__device__ const char* a = R\"x(printf)y)x\";\n",
         "__device__ char c = '\"'; // printf \"\n"}) {
    CAPTURE(line);
    CHECK(check(text, line + std::string(good_source)) == "accepted");
  }
}

TEST_CASE("a forbidden name is found however it is spelt") {
  const std::string text = forbidding(R"(["printf", "##"])");
  for (const char* line :
    {"void f() { printf(\"\"); }\n", "#define LOG printf\n", "void f() { pri\\\nntf(); }\n",
      "#define JOIN(a, b) a##b\n", "%:define JOIN(a, b) a %:%: b\n",
      "void f() { /**/printf/**/(); }\n", "void f() { pr\\u0069ntf(); }\n",
      "int a = 1'000; void f() { printf(); } char c = '1';\n"}) {
    CAPTURE(line);
    CHECK(check(text, line + std::string(good_source)) != "accepted");
  }
  CHECK(check(text, "void my_printf(); int printf_;\n" + std::string(good_source)) == "accepted");
}

TEST_CASE("a pattern names a prefix or a name within a namespace") {
  CHECK(contains(check(forbidding(R"(["fma*"])"), good_source), "`fma*`"));
  const std::string grid =
    "void f() { cooperative_groups::this_grid(); }\n" + std::string(good_source);
  CHECK(contains(check(forbidding(R"(["cooperative_groups::this_grid"])"), grid),
    "source:1: `cooperative_groups::this_grid` is forbidden"));
  CHECK(check(forbidding(R"(["cooperative_groups::sync"])"), grid) == "accepted");
}

TEST_CASE("only the allowed headers may be included") {
  const auto text = small_program_text();
  CHECK(check(text, "#include <cstdint>\n" + std::string(good_source)) == "accepted");
  CHECK(contains(check(text, "#  include \"cstdin\"\n" + std::string(good_source)),
    "source:1: the header 'cstdin' is not allowed (candidate.allowed_headers); did you mean"));
  CHECK(check(text, "%:include <mma.h>\n" + std::string(good_source)) != "accepted");
}

TEST_CASE("assembly is found in each of its spellings") {
  const auto text = edited(small_program_text(), "candidate.inline_ptx", "false");
  for (const char* word : {"asm", "__asm__", "__asm"})
    CHECK(contains(
      check(text, "void f() { " + std::string(word) + "(\"\"); }\n" + good_source), "inline PTX"));
}

TEST_CASE("a kernel counts by its name, behind attributes and as a template") {
  const auto text = small_program_text();
  for (const char* extra :
    {"__global__ void __launch_bounds__(128, 2) other(int) {}\n",
      "extern \"C\" __global__ void other() {}\n", "template <int N> __global__ void other() {}\n",
      "namespace n { void __global__ other() {} }\n",
      "__global__ __cluster_dims__(2, 1, 1) void other() {}\n",
      "[[nodiscard]] __global__ [[x]] void other() {}\n",
      "template __global__ void other<4>();\n"}) {
    CAPTURE(extra);
    CHECK(contains(check(text, extra + std::string(good_source)), "launches the kernel `other`"));
  }
  const auto program = parsed(text);
  const std::string plan = replaced(good_plan, "\"relu\"", "\"n::relu<4, float>\"");
  CHECK(check_candidate(program, good_source, plan, good_hypothesis));
}

TEST_CASE("a language without an evaluator is told as such") {
  const auto program = parsed(edited(replaced(small_program_text(), "and a plan.",
                                       "and a plan, or\n\n```python\ndef run(): ...\n```\n"),
    "candidate.languages", R"(["cuda", "cute_dsl"])"));
  const auto out = check_candidate(program, "def run(): ...", "{}", good_hypothesis, "cute_dsl");
  REQUIRE_FALSE(out);
  CHECK(out.error().code == errc::unsupported);
  CHECK(contains(out.error().what, "no evaluator of this build can run 'cute_dsl'"));
}

TEST_CASE("other names, comments and blanks make no other source") {
  const std::string renamed =
    "// the same\n__global__ void relu(const float* in, float* out, int count) {\n"
    "  const int at = blockIdx.x * 256 + threadIdx.x;\n"
    "  if (at < count) out[at] = fmaxf(in[at], 0.0f);\n}\n";
  CHECK(source_similarity(good_source, renamed) == 1);
  CHECK(source_similarity(good_source, good_source) == 1);
}

TEST_CASE("another number, operator or intrinsic makes another source") {
  for (const auto& [from, to] : {std::pair{"256", "128"}, std::pair{"0.0f", "0.5f"},
         std::pair{"fmaxf", "fminf"}, std::pair{"<", "<="}, std::pair{"float* y", "double* y"}}) {
    CAPTURE(from);
    const double share = source_similarity(good_source, replaced(good_source, from, to));
    CHECK(share < 1);
    CHECK(share > 0.5);
  }
  CHECK(source_similarity(good_source, "int a;") < 0.2);
  CHECK(source_similarity("", "") == 1);
}

TEST_CASE("two names that change places make another source") {
  const std::string other =
    replaced(good_source, "const float* x, float* y", "float* x, const float* y");
  CHECK(source_similarity(good_source, other) < 1);
}

TEST_CASE("the same source under another plan is no duplicate, under the same plan it is") {
  const auto rules = parsed(small_program_text()).rules;
  const std::string blanks = replaced(good_plan, ", \"variants\"", ",\n   \"variants\"");
  CHECK_FALSE(check_duplicate(rules, good_source, blanks, {{"3", good_source, good_plan}}));
  const std::string larger = replaced(good_plan, "[256, 1, 1]", "[128, 1, 1]");
  CHECK(check_duplicate(rules, good_source, larger, {{"3", good_source, good_plan}}));
  CHECK(check_duplicate(rules, good_source, good_plan, {}));
}

TEST_CASE("tokens carry the line on which they begin") {
  const auto tokens = device_tokens("int a; // x\n\n/* y\n */ b\\\nc 1'0.5e+3F '\\'' \"s\"");
  REQUIRE(tokens.size() == 7);
  CHECK(tokens[3].text == "bc");
  CHECK(tokens[3].line == 4);
  CHECK(tokens[4].text == "10.5e+3f");
  CHECK(tokens[4].what == device_token::kind::number);
  CHECK(tokens[5].text == "'\\''");
  CHECK(tokens[6].text == "\"s\"");
}
