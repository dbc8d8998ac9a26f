#include "gpu/mock/ptx/printed_text.hpp"
#include "tests/gpu/mock/ptx/ptx_run.hpp"

#include <map>

using namespace gristmill::ptx;

namespace {

/// A format at 1000, arguments at 2000, a string at 3000.
class fake_memory final : public memory_reader {
public:
  explicit fake_memory(std::string format) { put(1000, format.c_str(), format.size() + 1); }

  template <class T>
  fake_memory& argument(T value) {
    next_ = (next_ + sizeof(T) - 1) / sizeof(T) * sizeof(T);
    put(2000 + next_, &value, sizeof(T));
    next_ += sizeof(T);
    return *this;
  }
  void put(uint64_t at, const void* from, size_t count) {
    for (size_t i = 0; i < count; ++i)
      bytes_[at + i] = static_cast<const char*>(from)[i];
  }
  bool read(uint64_t address, void* to, uint64_t count) override {
    for (uint64_t i = 0; i < count; ++i) {
      const auto found = bytes_.find(address + i);
      if (found == bytes_.end())
        return false;
      static_cast<char*>(to)[i] = found->second;
    }
    return true;
  }
  std::string text() { return format_printed(*this, 1000, 2000); }

private:
  std::map<uint64_t, char> bytes_;
  uint64_t next_ = 0;
};

} // namespace

TEST_CASE("printf prints every conversion from a buffer of aligned arguments") {
  CHECK(fake_memory("%d|%5u|%-4x|").argument(-7).argument(9U).argument(255U).text()
    == "-7|    9|ff  |");
  CHECK(fake_memory("%d %lld %c").argument(1).argument(int64_t{-1} << 40).argument(65).text()
    == "1 -1099511627776 A");
  CHECK(fake_memory("%.3f %e").argument(1.5).argument(0.25).text() == "1.500 2.500000e-01");
  CHECK(fake_memory("100%% %*d").argument(4).argument(12).text() == "100%   12");
  fake_memory with_string("<%s>");
  with_string.put(3000, "me", 3);
  CHECK(with_string.argument(uint64_t{3000}).text() == "<me>");
}

TEST_CASE("a format that means harm prints something short and reads nothing it must not") {
  CHECK(fake_memory("%s").argument(uint64_t{0xdead'beef}).text().empty());
  CHECK(fake_memory("%n%q").text() == "%n%q");
  CHECK(fake_memory("ends in %").text() == "ends in ");
  CHECK(fake_memory("%d and no argument").text() == "0 and no argument");
  CHECK(fake_memory("%999999999d").argument(1).text().size() == 256);
  CHECK(fake_memory("%*d").argument(-2'000'000'000).argument(1).text().size() <= 4096);
  std::string wide;
  for (int i = 0; i < 100; ++i)
    wide += "%250d";
  CHECK(fake_memory(wide).text().size() <= 4096);
}

TEST_CASE("printed text is kept up to its limit and counted beyond") {
  printed_text text(10);
  text.add("12345678");
  text.add("abcdef");
  CHECK(text.take() == "12345678ab");
  CHECK(text.left_out() == 4);
}

TEST_CASE("device code prints lane by lane, and only what is asked for is kept") {
  using namespace gristmill::ptx::testing;
  std::string text(head);
  text += ".extern .func (.param .b32 r) vprintf(.param .b64 a, .param .b64 b);\n"
          ".global .align 1 .b8 format[8] = {91, 37, 100, 93, 0};\n";
  text += entry(
    ".local .align 8 .b8 buffer[8];\n"
    "mov.u32 %r1, %tid.x; mov.u64 %rd1, buffer; cvta.local.u64 %rd2, %rd1; st.u32 [%rd2], %r1;\n"
    "mov.u64 %rd3, format; cvta.global.u64 %rd4, %rd3;\n"
    "{ .param .b64 a; .param .b64 b; .param .b32 r; st.param.b64 [a], %rd4; st.param.b64 [b], "
    "%rd2;\n"
    "call.uni (r), vprintf, (a, b); }\n")
            .substr(head.size());
  std::vector<uint32_t> one(1);
  setup s;
  s.buffer(one).block(3);
  s.what.printed_bytes_max = 100;
  const outcome result = s.run(text);
  must_pass(result);
  CHECK(result.printed == "[0][1][2]");
  CHECK(result.done.warnings.empty());
  s.what.printed_bytes_max = 4;
  CHECK(s.run(text).printed == "[0][");
  CHECK(s.run(text).printed_left_out == 5);
}
