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
         "x = '''open", "f(]", ")", "  x = 1", "'a' b", "def (a): pass", "x = [1 2]",
         "def f(a) return a", "def f(a):", "def f(a):\nreturn a", "x = 1\n  y = 2",
         "if x:\n    a\n  b", "if x:\n        a\n\tb", "x = 1 +", "x = = 1", "x = (1,, 2)",
         "x = (, 1)", "else: pass", "try: pass\nx = 1", "@dec\nx = 1", "for x: pass", "if: pass",
         "if x: if y: pass", "x = 1; def f(): pass", "def f(a=1, b): pass", "def f(a, *): pass",
         "def f(/, a): pass", "def f((a, b)): pass", "def f(a.b): pass", "def f(**k, a): pass",
         "def f(a, *b, *c): pass", "async x", "class: pass", "pass pass", "1 = x", "None = x",
         "x = 1__0", "x = 0b2", "x = 0o8", "x = 007", "x = a \xc3\x97 b",
         "x = \xe2\x80\x9c"
         "a\xe2\x80\x9d",
         "x = a $ b", "x = a ? b : c", "x = !a", "x = a\\", "x:", "f(x", "return and x"}) {
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
      "from a import b as c", "assert x, 'y'", "print(*a, **b)", "x = 1.", "名 = 1",
      "if x:\n\ta\n\tb\nelif y: c\nelse:\n  d", "try:\n  a\nexcept X as e: b\nelse: c\nfinally: d",
      "for i, (j, k) in x: pass\nelse: pass", "async def f():\n  async with a as b: await c",
      "def f(a, /, b=1, *c, d, e=2, **k) -> int: return a", "def f(*, a): pass",
      "def f(a, *, b=1): pass", "x = lambda a, *b, c=1, **d: (a, b)", "f = lambda *, k: k",
      "x = y[1:, ..., ::2, :]", "x, = y", "*x, y = z", "x: 'T' = 1", "x = {1: 2, **y}", "match = 1",
      "match x:\n  case {'a': [1, *_]} if y: pass", "from . import a", "from ...b import (c, d,)",
      "def f(): from . import a", "with (a as b, c): pass",
      "@dec\n\n# c\n@dec2(1)\nclass A(B, metaclass=C):\n  x = 1\n\n  def f(self): ...",
      "x = (\n1 +\n  2\n)", "if x:\n  a\n  # c\n\n# d\n  b", "x = a if b else -c", "x = not a in b",
      "x = a is not b", "x = a not in b", "print(*a, sep='')", "x = 1 if y else lambda: 0",
      "x = 00 + 0_0", "x = 07.5", "while (y := f()): pass", "def f(): return *a, b", "x = yield_",
      "def f():\n  x = yield", "raise X from None", "import a.b as c, d", "\\\nx = 1",
      "if x:\n\\\n  y", "x = a @ b\nx @= c", "x = ~-+a ** -b", "for x in *a, b: pass",
      "x = [*a, *b]", "def f(a: int | None = None): pass"}) {
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

TEST_CASE("formatted strings may hold quotes, braces and each other") {
  CHECK(has_run("x = f\"{a['k']} {{ {b!r:>{w}} }}\"\ndef run(a): pass"));
  CHECK(has_run("x = f\"{a[\"k\"]} and {f\"{b}\"}\"\ndef run(a): pass"));
  CHECK(has_run("x = rf'''{a}\n{\"\"}'''\ndef run(a): pass"));
  CHECK(has_run("x = rf'(\\{{%)({a})'\ndef run(a): pass"));
  CHECK(has_run("x = f'\\N{DASH} \\'{a}'\ndef run(a): pass"));
  CHECK_FALSE(scan_python("x = f\"{a\"\ndef run(a): pass"));
  std::string deep;
  for (int i = 0; i < 100'000; ++i)
    deep += "f\"{";
  CHECK_FALSE(scan_python(deep));
}

TEST_CASE("every line end of Python ends a line, and a null byte is none") {
  CHECK(has_run("import torch\rdef run(a):\r  return a"));
  CHECK(has_run("# note\rdef run(a): pass"));
  CHECK(has_run("x = 1 \\\r\n  + 2\r\ndef run(a): pass"));
  CHECK_FALSE(scan_python(std::string_view{"x = 1\0\ndef run(a): pass", 23}));
  CHECK_FALSE(scan_python(std::string_view{"x = '\0'", 7}));
}

TEST_CASE("type parameters of a function are not its parameters") {
  CHECK(parameters("def run[T: (int, float)](a: T, b): pass") == list{"a", "b"});
  CHECK_FALSE(scan_python("def run[T: pass"));
}
