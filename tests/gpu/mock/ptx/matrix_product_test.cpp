#include "gpu/mock/ptx/matrix_shapes.hpp"
#include "tests/gpu/mock/ptx/ptx_run.hpp"

#include <cmath>
#include <map>
#include <set>

using namespace gristmill::ptx;
using namespace gristmill::ptx::testing;

namespace {

struct shape {
  uint32_t m, n, k;
};

/// Bits of a small whole number in a format of matrices; all of -4..4 are exact in each.
uint64_t encoded(element_type type, int x) {
  const auto floating = [&](int mantissa, int bias, int bits) -> uint64_t {
    if (x == 0)
      return 0;
    const int magnitude = std::abs(x);
    const int exponent = std::ilogb(magnitude);
    const int fraction = ((magnitude << mantissa) >> exponent) & ((1 << mantissa) - 1);
    const uint64_t sign = x < 0 ? uint64_t{1} << (bits - 1) : 0;
    return sign | static_cast<uint64_t>(exponent + bias) << mantissa
      | static_cast<uint64_t>(fraction);
  };
  switch (type) {
  case element_type::f16:
    return floating(10, 15, 16);
  case element_type::bf16:
    return floating(7, 127, 16);
  case element_type::e4m3:
    return floating(3, 7, 8);
  case element_type::e5m2:
    return floating(2, 15, 8);
  case element_type::tf32:
  case element_type::f32:
    return std::bit_cast<uint32_t>(static_cast<float>(x));
  case element_type::f64:
    return std::bit_cast<uint64_t>(static_cast<double>(x));
  default:
    return static_cast<uint64_t>(static_cast<int64_t>(x)) & ((1ULL << bits_of(type)) - 1);
  }
}

/// Element (row, column) of a made-up matrix that fits the type.
int number(element_type type, uint32_t row, uint32_t column, uint32_t seed) {
  const int x = static_cast<int>((row * 7 + column * 13 + seed * 5 + row * column) % 9) - 4;
  return type == element_type::b1                          ? x & 1
    : type == element_type::u8 || type == element_type::u4 ? x + 4
                                                           : x;
}

/// The registers of all lanes, as PTX describes the layout, written out once more.
std::vector<uint64_t> fragment(element_type type, matrix_role role, const shape& s, uint32_t seed) {
  const uint32_t bits = bits_of(type);
  const uint32_t each = bits >= 32 ? 1 : 32 / bits;
  const uint32_t count = matrix_registers(s.m, s.n, s.k, role, type);
  std::vector<uint64_t> result(size_t{32} * count);
  for (uint32_t lane = 0; lane < 32; ++lane)
    for (uint32_t i = 0; i < count; ++i)
      for (uint32_t j = 0; j < each; ++j) {
        const matrix_place at = place_in_matrix(s.m, s.n, s.k, role, type, lane, i, j);
        result[size_t{lane} * count + i] |= encoded(type, number(type, at.row, at.column, seed))
          << (j * bits % 64);
      }
  return result;
}

int expected(const shape& s, element_type a, element_type b, element_type c, uint32_t row,
  uint32_t column, bool by_and) {
  int sum = number(c, row, column, 3);
  for (uint32_t k = 0; k < s.k; ++k) {
    const int x = number(a, row, k, 1);
    const int y = number(b, k, column, 2);
    sum += a == element_type::b1 ? (by_and ? x & y : x ^ y) : x * y;
  }
  return sum;
}

std::string registers(const std::string& letter, size_t count) {
  std::string result = "{";
  for (size_t i = 0; i < count; ++i)
    result += (i ? "," : "") + ("%" + letter) + std::to_string(i);
  return result + "}";
}

/// Loads fragments, multiplies, stores the result; all registers through 64-bit cells.
void check_product(const std::string& form, const shape& s, element_type a, element_type b,
  element_type c, bool by_and = false) {
  CAPTURE(form);
  std::vector<uint64_t> parts[3] = {fragment(a, matrix_role::left, s, 1),
    fragment(b, matrix_role::right, s, 2), fragment(c, matrix_role::sum, s, 3)};
  std::vector<uint64_t> d(parts[2].size());
  const std::string type = a == element_type::f64 ? "b64" : "b32";
  std::string body = "mov.u32 %r1, %tid.x;\n";
  const char* const letters[] = {"ma", "mb", "mc"};
  for (size_t i = 0; i < 3; ++i) {
    const size_t count = parts[i].size() / 32;
    body += ".reg ." + type + " %" + letters[i] + "<" + std::to_string(count)
      + ">; ld.param.u64 %rd1, [p" + std::to_string(i) + "]; mad.wide.u32 %rd2, %r1, "
      + std::to_string(8 * count) + ", %rd1;\n";
    for (size_t r = 0; r < count; ++r)
      body += "ld.global." + type + " %" + letters[i] + std::to_string(r) + ", [%rd2+"
        + std::to_string(8 * r) + "];\n";
  }
  const size_t results = d.size() / 32;
  body += form + " " + registers("mc", results) + ", " + registers("ma", parts[0].size() / 32)
    + ", " + registers("mb", parts[1].size() / 32) + ", " + registers("mc", results)
    + ";\nld.param.u64 %rd1, [p3]; mad.wide.u32 %rd2, %r1, " + std::to_string(8 * results)
    + ", %rd1;\n";
  for (size_t r = 0; r < results; ++r)
    body += "st.global." + type + " [%rd2+" + std::to_string(8 * r) + "], %mc" + std::to_string(r)
      + ";\n";
  setup launch;
  launch.block(32).buffer(parts[0]).buffer(parts[1]).buffer(parts[2]).buffer(d);
  must_pass(launch.run(entry(body, 4)));
  const uint32_t each = c == element_type::f16 ? 2 : 1;
  for (uint32_t lane = 0; lane < 32; ++lane)
    for (uint32_t i = 0; i < results; ++i)
      for (uint32_t j = 0; j < each; ++j) {
        const matrix_place at = place_in_matrix(s.m, s.n, s.k, matrix_role::sum, c, lane, i, j);
        const uint64_t bits = d[size_t{lane} * results + i] >> (16 * j);
        const uint64_t mask = each == 2 ? 0xffff : type == "b64" ? UINT64_MAX : UINT32_MAX;
        CAPTURE(lane);
        REQUIRE((bits & mask) == encoded(c, expected(s, a, b, c, at.row, at.column, by_and)));
      }
}

void check_all(const std::string& a, const std::string& b, const std::string& c,
  const std::vector<shape>& shapes) {
  for (const shape& s : shapes)
    check_product("mma.sync.aligned.m" + std::to_string(s.m) + "n" + std::to_string(s.n) + "k"
        + std::to_string(s.k) + ".row.col." + c + "." + a + "." + b + "." + c,
      s, element_type_of(a), element_type_of(b), element_type_of(c));
}

} // namespace

TEST_CASE("mma.sync multiplies in every shape of floating-point types") {
  check_all("f16", "f16", "f32", {{16, 8, 8}, {16, 8, 16}});
  check_all("f16", "f16", "f16", {{16, 8, 8}, {16, 8, 16}});
  check_all("bf16", "bf16", "f32", {{16, 8, 8}, {16, 8, 16}});
  check_all("tf32", "tf32", "f32", {{16, 8, 4}, {16, 8, 8}});
  for (const char* a : {"e4m3", "e5m2"})
    for (const char* b : {"e4m3", "e5m2"})
      for (const char* c : {"f32", "f16"})
        check_all(a, b, c, {{16, 8, 16}, {16, 8, 32}});
  check_all("f64", "f64", "f64", {{8, 8, 4}, {16, 8, 4}, {16, 8, 8}, {16, 8, 16}});
}

TEST_CASE("mma.sync multiplies in every shape of integer types") {
  for (const char* a : {"s8", "u8"})
    for (const char* b : {"s8", "u8"})
      check_all(a, b, "s32", {{8, 8, 16}, {16, 8, 16}, {16, 8, 32}});
  for (const char* a : {"s4", "u4"})
    for (const char* b : {"s4", "u4"})
      check_all(a, b, "s32", {{8, 8, 32}, {16, 8, 32}, {16, 8, 64}});
  for (const shape& s : {shape{8, 8, 128}, shape{16, 8, 128}, shape{16, 8, 256}})
    for (const bool by_and : {false, true})
      check_product("mma.sync.aligned.m" + std::to_string(s.m) + "n8k" + std::to_string(s.k)
          + ".row.col.s32.b1.b1.s32." + (by_and ? "and" : "xor") + ".popc",
        s, element_type::b1, element_type::b1, element_type::s32, by_and);
}

TEST_CASE("each element of a matrix has one place in the registers") {
  using enum element_type;
  const std::pair<element_type, std::vector<shape>> all[] = {
    {f16, {{16, 8, 8}, {16, 8, 16}, {16, 16, 16}, {32, 8, 16}, {8, 32, 16}}},
    {tf32, {{16, 8, 4}, {16, 8, 8}, {16, 16, 8}}}, {s8, {{8, 8, 16}, {16, 8, 32}, {16, 16, 16}}},
    {s4, {{8, 8, 32}, {16, 8, 64}}}, {b1, {{8, 8, 128}, {16, 8, 256}}},
    {f64, {{8, 8, 4}, {16, 8, 16}}}};
  for (const auto& [type, shapes] : all)
    for (const shape& s : shapes)
      for (const matrix_role role : {matrix_role::left, matrix_role::right, matrix_role::sum}) {
        const element_type stored = role == matrix_role::sum && type != f64 ? f32 : type;
        const uint32_t rows = role == matrix_role::right ? s.k : s.m;
        const uint32_t columns = role == matrix_role::left ? s.k : s.n;
        std::set<std::pair<uint32_t, uint32_t>> seen;
        for (uint32_t lane = 0; lane < 32; ++lane)
          for (uint32_t i = 0; i < matrix_registers(s.m, s.n, s.k, role, stored); ++i)
            for (uint32_t j = 0; j < std::max(1U, 32 / bits_of(stored)); ++j) {
              const matrix_place at = place_in_matrix(s.m, s.n, s.k, role, stored, lane, i, j);
              REQUIRE(at.row < rows);
              REQUIRE(at.column < columns);
              seen.emplace(at.row, at.column);
            }
        CHECK(seen.size() == size_t{rows} * columns);
      }
}

TEST_CASE("satfinite clamps a sum of integers instead of wrapping it") {
  for (const bool clamps : {false, true}) {
    std::vector<int32_t> d(64);
    setup launch;
    launch.block(32).buffer(d);
    must_pass(launch.run(
      entry("ld.param.u64 %rd1, [p0]; mov.u32 %r1, %tid.x; mad.wide.u32 %rd2, %r1, 8, %rd1;\n"
            "mov.b32 %r2, 0x7f7f7f7f; mov.b32 %r3, 0x7fffffff; mov.b32 %r4, -5;\n"
            "mma.sync.aligned.m8n8k16.row.col"
        + std::string(clamps ? ".satfinite" : "")
        + ".s32.s8.s8.s32 {%r5,%r6}, {%r2}, {%r2}, {%r3,%r4};\n"
          "st.global.v2.b32 [%rd2], {%r5,%r6};")));
    const int32_t product = 16 * 127 * 127;
    CHECK(d[0]
      == (clamps ? INT32_MAX : static_cast<int32_t>(0x7fffffffU + static_cast<uint32_t>(product))));
    CHECK(d[1] == product - 5);
  }
}

TEST_CASE("wmma loads, multiplies and stores whole matrices in every layout") {
  const std::vector<shape> big{{16, 16, 16}, {32, 8, 16}, {8, 32, 16}};
  struct kind {
    const char* operand;
    const char* sum;
    std::vector<shape> shapes;
  };
  const kind kinds[] = {{"f16", "f32", big}, {"f16", "f16", big}, {"bf16", "f32", big},
    {"s8", "s32", big}, {"u8", "s32", big}, {"tf32", "f32", {{16, 16, 8}}},
    {"f64", "f64", {{8, 8, 4}}}};
  for (const kind& x : kinds)
    for (const shape& s : x.shapes)
      for (int layouts = 0; layouts < 4; ++layouts) {
        const element_type type = element_type_of(x.operand);
        const element_type sum = element_type_of(x.sum);
        const bool columns[3] = {(layouts & 1) != 0, (layouts & 2) == 0, layouts == 3};
        const uint32_t extents[3][2] = {{s.m, s.k}, {s.k, s.n}, {s.m, s.n}};
        const element_type types[3] = {type, type, sum};
        // One element more from row to row than a row has, to see that the stride counts.
        std::vector<uint8_t> memory[3];
        uint32_t strides[3];
        for (size_t i = 0; i < 3; ++i) {
          const uint32_t across = extents[i][columns[i] ? 0 : 1];
          const uint32_t along = extents[i][columns[i] ? 1 : 0];
          const uint32_t bytes = bits_of(types[i]) / 8;
          strides[i] = across + 8;
          memory[i].assign(size_t{strides[i]} * along * bytes + 16, 0x55);
          for (uint32_t r = 0; r < extents[i][0]; ++r)
            for (uint32_t c = 0; c < extents[i][1]; ++c) {
              const uint64_t value =
                encoded(types[i], number(types[i], r, c, static_cast<uint32_t>(i) + 1));
              const size_t at = columns[i] ? c * strides[i] + r : r * strides[i] + c;
              std::memcpy(memory[i].data() + at * bytes, &value, bytes);
            }
        }
        const std::string reg = type == element_type::f64 ? "b64" : "b32";
        const std::string name =
          "m" + std::to_string(s.m) + "n" + std::to_string(s.n) + "k" + std::to_string(s.k);
        const auto layout = [&](size_t i) { return std::string(columns[i] ? ".col." : ".row."); };
        const size_t counts[3] = {
          type == element_type::f16 ? 8 : matrix_registers(s.m, s.n, s.k, matrix_role::left, type),
          type == element_type::f16 ? 8 : matrix_registers(s.m, s.n, s.k, matrix_role::right, type),
          matrix_registers(s.m, s.n, s.k, matrix_role::sum, sum)};
        const char* const letters[3] = {"ma", "mb", "mc"};
        std::string body;
        for (size_t i = 0; i < 3; ++i) {
          const std::string number_text = std::to_string(i);
          body += ".reg ." + reg + " %" + letters[i] + "<" + std::to_string(counts[i])
            + ">; ld.param.u64 %rd" + number_text + ", [p" + number_text + "];\nwmma.load."
            + "abc"[i] + ".sync.aligned" + layout(i) + name + ".global."
            + (i == 2 ? x.sum : x.operand) + " " + registers(letters[i], counts[i]) + ", [%rd"
            + number_text + "], " + std::to_string(strides[i]) + ";\n";
        }
        const bool halves = type == element_type::f16;
        body += "wmma.mma.sync.aligned" + std::string(columns[0] ? ".col" : ".row")
          + (columns[1] ? ".col." : ".row.") + name + "." + x.sum
          + (halves ? "" : "." + std::string(x.operand) + "." + x.operand) + "." + x.sum + " "
          + registers("mc", counts[2]) + ", " + registers("ma", counts[0]) + ", "
          + registers("mb", counts[1]) + ", " + registers("mc", counts[2])
          + ";\nwmma.store.d.sync.aligned" + layout(2) + name + ".global." + x.sum + " [%rd2], "
          + registers("mc", counts[2]) + ", " + std::to_string(strides[2]) + ";\n";
        setup launch;
        launch.block(32).buffer(memory[0]).buffer(memory[1]).buffer(memory[2]);
        CAPTURE(body);
        must_pass(launch.run(entry(body, 3)));
        const uint32_t bytes = bits_of(sum) / 8;
        for (uint32_t r = 0; r < s.m; ++r)
          for (uint32_t c = 0; c < s.n; ++c) {
            const size_t at = columns[2] ? c * strides[2] + r : r * strides[2] + c;
            uint64_t value = 0;
            std::memcpy(&value, memory[2].data() + at * bytes, bytes);
            REQUIRE(value == encoded(sum, expected(s, type, type, sum, r, c, false)));
          }
      }
}

TEST_CASE("movmatrix transposes a matrix of 8x8 values") {
  std::vector<uint32_t> d(32);
  setup launch;
  launch.block(32).buffer(d);
  must_pass(launch.run(
    entry("ld.param.u64 %rd1, [p0]; mov.u32 %r1, %tid.x; mad.wide.u32 %rd2, %r1, 4, %rd1;\n"
          "shl.b32 %r2, %r1, 1; add.u32 %r3, %r2, 1; shl.b32 %r3, %r3, 16; or.b32 %r2, %r2, %r3;\n"
          "movmatrix.sync.aligned.m8n8.trans.b16 %r4, %r2; st.global.b32 [%rd2], %r4;")));
  for (uint32_t lane = 0; lane < 32; ++lane)
    for (uint32_t h = 0; h < 2; ++h) {
      const uint32_t row = lane / 4, column = lane % 4 * 2 + h;
      CHECK((d[lane] >> (16 * h) & 0xffff) == column * 8 + row);
    }
}

TEST_CASE("shapes and types that no GPU has, and fragments of the wrong size, are refused") {
  for (const char* text : {"mma.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32 {%f1,%f2,%f3,%f4}, "
                           "{%r1,%r2,%r3,%r4}, {%r1,%r2}, {%f1,%f2,%f3,%f4};",
         "mma.sync.aligned.m16n8k16.row.col.f32.bf16.f16.f32 {%f1,%f2,%f3,%f4}, "
         "{%r1,%r2,%r3,%r4}, {%r1,%r2}, {%f1,%f2,%f3,%f4};",
         "mma.sync.aligned.m16n8k16.row.row.f32.f16.f16.f32 {%f1,%f2,%f3,%f4}, "
         "{%r1,%r2,%r3,%r4}, {%r1,%r2}, {%f1,%f2,%f3,%f4};",
         "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%f1,%f2,%f3,%f4}, "
         "{%r1,%r2,%r3}, {%r1,%r2}, {%f1,%f2,%f3,%f4};",
         "mma.sync.aligned.m16n8k256.row.col.s32.b1.b1.s32 {%r1,%r2,%r3,%r4}, "
         "{%r1,%r2,%r3,%r4}, {%r1,%r2}, {%r1,%r2,%r3,%r4};",
         "wmma.load.a.sync.aligned.row.m16n16k8.global.f16 {%r1,%r2,%r3,%r4}, [%rd1], 16;",
         "wmma.load.b.sync.aligned.row.m8n8k32.global.s4 {%r1}, [%rd1], 32;",
         "mma.sp.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%f1,%f2,%f3,%f4}, {%r1,%r2}, "
         "{%r1,%r2}, {%f1,%f2,%f3,%f4}, %r1, 0;"}) {
    CAPTURE(text);
    CHECK_FALSE(parse(entry(text)));
  }
}
