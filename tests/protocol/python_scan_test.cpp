#include "protocol/python_scan.hpp"

#include <doctest/doctest.h>

using namespace gristmill;

namespace {

std::vector<std::string> parameters(const char* source) {
  auto outline = scan_python(source);
  CAPTURE(source);
  REQUIRE_MESSAGE(outline, (outline ? "" : outline.error().what));
  const auto* run = outline->find("run");
  REQUIRE(run != nullptr);
  return run->parameters;
}

bool has_run(const char* source) {
  auto outline = scan_python(source);
  REQUIRE_MESSAGE(outline, (outline ? "" : outline.error().what));
  return outline->find("run") != nullptr;
}

using list = std::vector<std::string>;

} // namespace

TEST_CASE("parameters are the positional ones, in order") {
  CHECK(parameters("def run(a, b): pass") == list{"a", "b"});
  CHECK(parameters("def run(): pass") == list{});
  CHECK(parameters("def run(a, /, b, *, c=1): pass") == list{"a", "b"});
  CHECK(parameters("def run(a, *args, **kw): pass") == list{"a"});
  CHECK(parameters("def run(*args): pass") == list{});
  CHECK(parameters("def run(a: Dict[str, int] = {1: 2, 3: 4}, b=(1, 2),): pass") == list{"a", "b"});
  CHECK(parameters("def run(a=lambda x, y: x, b=1): pass") == list{"a", "b"});
  CHECK(parameters("def run(a=\"x, y):\", b='\\'c, d'): pass") == list{"a", "b"});
  CHECK(
    parameters("def run(\n    a,  # first, not b\n    c,\n) -> int:\n  pass") == list{"a", "c"});
  CHECK(parameters("def run(a): return a\ndef run(b): return b") == list{"a"});
}

TEST_CASE("only a plain def at the left margin counts") {
  CHECK(has_run("@dec(1)\ndef run(a): return a"));
  CHECK(has_run("import torch\r\n\r\ndef run(a):\r\n  return a"));
  CHECK(has_run("x = 1 \\\n  + 2\ndef run(a): pass"));
  CHECK_FALSE(has_run("async def run(a): return a"));
  CHECK_FALSE(has_run("class A:\n  def run(a): pass"));
  CHECK_FALSE(has_run("if True:\n  def run(a): return a"));
  CHECK_FALSE(has_run("run = lambda a: a"));
  CHECK_FALSE(has_run("text = '''\ndef run(a): pass\n'''"));
  CHECK_FALSE(has_run("# def run(a): pass"));
  CHECK_FALSE(has_run("f(\ndef_ = 1)"));
  CHECK_FALSE(has_run(""));
}

TEST_CASE("what no Python reads is refused, with its line") {
  for (const char* wrong : {"def run(: x", "print 1", "x = 1\nprint x", "f(x) y", "x = 'open",
         "x = '''open", "f(]", ")", "  x = 1", "'a' b", "def (a): pass", "x = [1 2]"}) {
    CAPTURE(wrong);
    CHECK_FALSE(scan_python(wrong));
  }
  CHECK(scan_python("x = 1\ny = (\n").error().what.find("line 2") != std::string::npos);
  CHECK_FALSE(scan_python(std::string(1000, '(')));
}

TEST_CASE("real Python is not refused") {
  for (const char* fine :
    {"x = 1if y else 2", "x = 'a' 'b'", "x = f'{a} b' if c else rb'd'", "match x:\n  case 1: pass",
      "type X = int", "x = not y", "x = a if b else c", "x = [i for i in y if i]",
      "x = 0x1f + 1_000 + 1.5e-3j", "return_ = lambda: None", "x = 'it\\'s'",
      "x = \"\"\"a\"b\"\"\"", "def f(x): yield x", "x = ...", "del x", "x: int = 3",
      "from a import b as c", "assert x, 'y'", "print(*a, **b)", "x = 1.", "名 = 1"}) {
    auto outline = scan_python(fine);
    CAPTURE(fine);
    CHECK_MESSAGE(outline, (outline ? "" : outline.error().what));
  }
}

TEST_CASE("a function name is an identifier and no keyword") {
  CHECK(is_python_name("gen_1"));
  for (const char* wrong : {"", "a b", "1a", "class", "a.b", "None"})
    CHECK_FALSE(is_python_name(wrong));
}
