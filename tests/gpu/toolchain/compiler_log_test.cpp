#include "gpu/toolchain/compiler_log.hpp"

#include <doctest/doctest.h>

#include <algorithm>

using namespace gristmill;

namespace {

compile_unit two_entries() {
  compile_unit unit;
  unit.entries.push_back({"first<T>", {}, {}, {}});
  unit.entries.push_back({"second", {}, {}, {}});
  return unit;
}

std::string log(std::string_view output) {
  return readable_log(output, two_entries(), "/job/7");
}

} // namespace

TEST_CASE("places in the source stay, paths of the host go") {
  CHECK(log("kernel.cu:12:5: error: bad\n   12 | a /b/c\n      | ^\n")
    == "kernel.cu:12:5: error: bad\n   12 | a /b/c\n      | ^\n");
  CHECK(log("/job/7/unit.cu:1:2: error: x\n") == "unit.cu:1:2: error: x\n");
  CHECK(log("In file included from include/gristmill/all.h:3:\n")
    == "In file included from gristmill/all.h:3:\n");
  CHECK(log("error: cannot open '/usr/lib/llvm/x.bc': no\n") == "error: cannot open 'x.bc': no\n");
  CHECK(log("note: 1 / 2 and a/b stay\n") == "note: 1 / 2 and a/b stay\n");
}

TEST_CASE("a failed assertion of ours is its message alone") {
  CHECK(log("launch-plan:1000:15: error: static assertion failed due to requirement 'x != 6': "
            "argument 1\n"
            " 1000 | static_assert(x != 6);\n      |  ^\n"
            "launch-plan:1000:15: note: expression evaluates to '6 != 6'\n"
            "1 error generated when compiling for sm_90a.\n")
    == "error: argument 1\n");
  CHECK(log("launch-plan:1000:15: error: static assertion failed: plain\n") == "error: plain\n");
}

TEST_CASE("another error behind the source names the entry, once") {
  CHECK(log("launch-plan:2000:5: error: use of undeclared identifier 'second'\n 2000 | x\n"
            "launch-plan:2000:9: error: use of undeclared identifier 'second'\n")
    == "error: entry 'second' of the launch plan: use of undeclared identifier 'second'\n");
  CHECK(log("launch-plan:9:5: error: expected '}'\n")
    == "error: behind the end of the source: expected '}'\n");
}

TEST_CASE("a real diagnostic after one of ours is shown again") {
  CHECK(log("launch-plan:1000:1: error: static assertion failed: a\n  1 | x\nkernel.cu:1:1: error: "
            "b\n  1 | y\n")
    == "error: a\nkernel.cu:1:1: error: b\n  1 | y\n");
}

TEST_CASE("the log is cut at forty lines and says how much is missing") {
  std::string output;
  for (int i = 0; i < 100; ++i)
    output += "kernel.cu:1:1: error: again\n";
  const std::string text = log(output);
  CHECK(std::count(text.begin(), text.end(), '\n') == 41);
  CHECK(text.ends_with("(60 more lines)\n"));
  CHECK(log(std::string(100000, 'x')).size() < 100);
  CHECK(log("").empty());
}

TEST_CASE("NVRTC's places and words are brought into the same form") {
  CHECK(log("kernel.cu(12): error: identifier \"x\" is undefined\n    int y = x;\n            ^\n\n"
            "1 error detected in the compilation of \"kernel.cu\".\n")
    == "kernel.cu:12: error: identifier \"x\" is undefined\n    int y = x;\n            ^\n\n");
  CHECK(log("launch-plan(1000): error: static assertion failed with \"argument 1\"\n  x\n  ^\n\n")
    == "error: argument 1\n");
  CHECK(log("f(a): error: no number\n") == "f(a): error: no number\n");
  CHECK(log("(3): error: no file\n") == "(3): error: no file\n");
}

TEST_CASE("what NVRTC says about a name expression is said about the entry, once") {
  CHECK(log("launch-plan(1000): error: identifier \"first\" is undefined\n\n"
            "__nv_name_map(2): error: expected an expression\n  #pragma x\n\n")
    == "error: entry 'first<T>' of the launch plan: identifier \"first\" is undefined\n");
  CHECK(log("__nv_name_map(3): error: Name expression cannot form address of a non-__global__ "
            "function. Input name expression was: \" second\"\n  #pragma x\n    ^\n")
    == "error: entry 'second' is not a __global__ function\n");
  CHECK(log("__nv_name_map(99): error: what\n").empty());
  CHECK(log("__nv_name_map(x): error: what\n").empty());
}
