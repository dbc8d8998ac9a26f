#include "tests/gpu/mock/ptx/map_setup.hpp"
#include "tests/gpu/mock/ptx/ptx_run.hpp"

#include <algorithm>
#include <array>
#include <functional>

using namespace gristmill;
using namespace gristmill::ptx;
using namespace gristmill::ptx::testing;

namespace {

constexpr uint32_t tile_bytes = 16384;
using place = std::array<int, 5>;

std::string coordinates(uint32_t rank) {
  std::string out = "{%r10";
  for (uint32_t i = 1; i < rank; ++i)
    out += ", %r" + std::to_string(10 + i);
  return out + "}";
}

/// Parameters: two buffers, five coordinates, a number of bytes, a tensor map. `inner` is the copy.
std::string kernel(const std::string& body) {
  return std::string(head) + R"(
.visible .entry k(.param .u64 p0, .param .u64 p1, .param .u32 c0, .param .u32 c1, .param .u32 c2,
  .param .u32 c3, .param .u32 c4, .param .u32 count, .param .u64 e0, .param .u64 e1,
  .param .u64 e2, .param .u64 e3, .param .align 64 .b8 map[128])
{
  .reg .pred %p<4>; .reg .b16 %h<4>; .reg .b32 %r<32>; .reg .b64 %rd<16>;
  .shared .align 1024 .b8 tile[16384]; .shared .align 8 .b64 bar;
  ld.param.u64 %rd1, [p0]; ld.param.u64 %rd2, [p1];
  ld.param.u32 %r10, [c0]; ld.param.u32 %r11, [c1]; ld.param.u32 %r12, [c2];
  ld.param.u32 %r13, [c3]; ld.param.u32 %r14, [c4]; ld.param.u32 %r15, [count];
  mov.b64 %rd3, map; cvta.param.u64 %rd3, %rd3;
  mov.u32 %r2, tile; mov.u32 %r3, bar;
  mbarrier.init.shared.b64 [%r3], 1;
)" + body
    + "\nret;\n}\n";
}

const std::string wait = R"(
again: mbarrier.try_wait.parity.shared.b64 %p2, [%r3], 0;
  @!%p2 bra again;
)";

/// The tile is filled from the second buffer first, and goes there afterwards.
std::string load_text(uint32_t rank) {
  return kernel(R"(
  mbarrier.arrive.expect_tx.shared.b64 _, [%r3], 16384;
  cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r2], [%rd2], 16384, [%r3];)"
    + wait + R"(
  mbarrier.arrive.expect_tx.shared.b64 _, [%r3], %r15;
  cp.async.bulk.tensor.)"
    + std::to_string(rank) + "d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%r2], "
    + "[%rd3, " + coordinates(rank) + "], [%r3];" + R"(
once: mbarrier.try_wait.parity.shared.b64 %p2, [%r3], 1;
  @!%p2 bra once;
  cp.async.bulk.global.shared::cta.bulk_group [%rd2], [%r2], 16384;
  cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;)");
}

std::string store_text(uint32_t rank, const std::string& reduction = "") {
  return kernel(R"(
  mbarrier.arrive.expect_tx.shared.b64 _, [%r3], 16384;
  cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r2], [%rd2], 16384, [%r3];)"
    + wait + "fence.proxy.async.shared::cta;\n" + (reduction.empty() ? "cp" : "cp.reduce")
    + ".async.bulk.tensor." + std::to_string(rank) + "d.global.shared::cta" + reduction
    + ".tile.bulk_group [%rd3, " + coordinates(rank) + "], [%r2];" + R"(
  cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;)");
}

struct copy_case {
  tensor_map_spec spec;
  place at{};
};

uint32_t count_of(const tensor_map_spec& s, size_t i) {
  if (i >= s.box.size())
    return 1;
  return i == 0 ? s.box[0] : (s.box[i] + s.element_strides[i] - 1) / s.element_strides[i];
}

uint32_t box_bytes(const tensor_map_spec& s) {
  uint32_t bytes = bytes_of(s.type);
  for (size_t i = 0; i < 5; ++i)
    bytes *= count_of(s, i);
  return bytes;
}

/// Calls `f(inside, offset in the tensor, offset in the tile)` for each element of the box.
template <class F>
void each_element(const copy_case& c, F&& f) {
  const tensor_map_spec& s = c.spec;
  const uint32_t span = span_of(s.swizzle);
  const uint32_t size = bytes_of(s.type);
  const uint32_t pitch = std::max(s.box[0] * size, span);
  std::array<uint32_t, 5> j{};
  uint32_t row = 0;
  for (j[4] = 0; j[4] < count_of(s, 4); ++j[4])
    for (j[3] = 0; j[3] < count_of(s, 3); ++j[3])
      for (j[2] = 0; j[2] < count_of(s, 2); ++j[2])
        for (j[1] = 0; j[1] < count_of(s, 1); ++j[1], ++row)
          for (j[0] = 0; j[0] < count_of(s, 0); ++j[0]) {
            bool inside = true;
            int64_t offset = 0;
            for (size_t i = 0; i < s.dims.size(); ++i) {
              const int64_t step = i == 0 ? 1 : s.element_strides[i];
              const int64_t x = c.at[i] + j[i] * step;
              inside = inside && x >= 0 && x < static_cast<int64_t>(s.dims[i]);
              offset += x * (i == 0 ? size : static_cast<int64_t>(s.strides[i - 1]));
            }
            const uint32_t byte = j[0] * size;
            const uint32_t line = row * pitch / 128;
            const uint32_t phase = span == 0 ? 0 : line % (span / 16);
            const uint32_t chunk = (row * pitch % 128 + byte) / 16 ^ phase;
            f(inside, static_cast<uint64_t>(offset), line * 128 + chunk * 16 + byte % 16);
          }
}

std::vector<uint8_t> noise(size_t bytes, uint64_t seed) {
  std::vector<uint8_t> out(bytes);
  numbers random(seed);
  for (uint8_t& x : out)
    x = static_cast<uint8_t>(random.next() >> 40);
  return out;
}

outcome run_copy(const copy_case& c, const std::string& text, std::vector<uint8_t>& tensor,
  std::vector<uint8_t>& tile) {
  setup s;
  s.buffer(tensor).buffer(tile).block(1);
  for (const int x : c.at)
    s.value(x);
  s.value(box_bytes(c.spec));
  for (int i = 0; i < 4; ++i)
    s.value(uint64_t{0}); // Takes the map to a multiple of 128.
  pass_map(s, 0, c.spec);
  return s.run(text);
}

void check_load(const copy_case& c) {
  auto tensor = noise(reach_of(c.spec), 1);
  auto tile = noise(tile_bytes, 2);
  auto want = tile;
  each_element(c, [&](bool inside, uint64_t from, uint32_t to) {
    for (uint32_t i = 0; i < bytes_of(c.spec.type); ++i)
      want[to + i] = inside ? tensor[from + i] : uint8_t{0};
  });
  must_pass(run_copy(c, load_text(static_cast<uint32_t>(c.spec.dims.size())), tensor, tile));
  // Between the rows of a box that is narrower than its swizzle nothing is promised.
  if (span_of(c.spec.swizzle) > c.spec.box[0] * bytes_of(c.spec.type)) {
    size_t wrong = 0;
    each_element(c, [&](bool, uint64_t, uint32_t to) { wrong += tile[to] != want[to]; });
    CHECK(wrong == 0);
    return;
  }
  CHECK(tile == want);
}

void check_store(const copy_case& c) {
  auto tensor = noise(reach_of(c.spec), 1);
  auto tile = noise(tile_bytes, 2);
  auto want = tensor;
  each_element(c, [&](bool inside, uint64_t to, uint32_t from) {
    for (uint32_t i = 0; inside && i < bytes_of(c.spec.type); ++i)
      want[to + i] = tile[from + i];
  });
  must_pass(run_copy(c, store_text(static_cast<uint32_t>(c.spec.dims.size())), tensor, tile));
  CHECK(tensor == want);
}

/// A store has no negative coordinates.
bool may_store(const copy_case& c) {
  return *std::min_element(c.at.begin(), c.at.end()) >= 0;
}

tensor_map_spec spec_of(tensor_map_type type, std::vector<uint64_t> dims, std::vector<uint32_t> box,
  tensor_map_swizzle swizzle = tensor_map_swizzle::none) {
  tensor_map_spec s;
  s.type = type;
  s.dims = std::move(dims);
  s.box = std::move(box);
  s.element_strides.assign(s.dims.size(), 1);
  s.swizzle = swizzle;
  uint64_t stride = bytes_of(type);
  for (size_t i = 0; i + 1 < s.dims.size(); ++i)
    s.strides.push_back(stride = (stride * s.dims[i] + 15) / 16 * 16);
  return s;
}

} // namespace

TEST_CASE("boxes of 1 to 5 dimensions are loaded and stored at every edge of the tensor") {
  const std::vector<uint64_t> dims{21, 5, 4, 3, 3};
  const std::vector<uint32_t> box{8, 3, 2, 2, 2};
  for (size_t rank = 1; rank <= 5; ++rank) {
    copy_case c;
    c.spec =
      spec_of(tensor_map_type::float32, {dims.begin(), dims.begin() + static_cast<long>(rank)},
        {box.begin(), box.begin() + static_cast<long>(rank)});
    for (size_t axis = 0; axis < rank; ++axis)
      for (const int at : {-300, -4, 0, 4, 16, 300}) {
        c.at = {};
        c.at[axis] = axis == 0 || at < 0 || at == 300 ? at : at % static_cast<int>(dims[axis]);
        INFO(rank << " axis " << axis << " at " << c.at[axis]);
        check_load(c);
        if (may_store(c))
          check_store(c);
      }
    c.at = {16, 3, 3, 2, 2}; // A corner.
    check_load(c);
    check_store(c);
  }
}

TEST_CASE("a swizzle permutes chunks of 16 bytes by the address, for every element size") {
  using enum tensor_map_type;
  for (const tensor_map_type type : {uint8, float16, bfloat16, float32, int64, float64})
    for (const auto swizzle :
      {tensor_map_swizzle::by_32, tensor_map_swizzle::by_64, tensor_map_swizzle::by_128}) {
      copy_case c;
      c.spec = spec_of(type, {300, 40}, {span_of(swizzle) / bytes_of(type), 19}, swizzle);
      INFO(name(type) << " " << span_of(swizzle));
      for (const int x : {0, 16, -16, 240}) {
        c.at = {x / static_cast<int>(bytes_of(type)), 30, 0, 0, 0};
        check_load(c);
        if (may_store(c))
          check_store(c);
      }
    }
}

TEST_CASE("rows of a box that is narrower than its swizzle keep the swizzle's pitch") {
  copy_case c;
  c.spec = spec_of(tensor_map_type::float32, {64, 64}, {8, 16}, tensor_map_swizzle::by_128);
  check_load(c);
  check_store(c);
}

TEST_CASE("element strides take every n-th element of all dimensions but the first") {
  copy_case c;
  c.spec = spec_of(tensor_map_type::float32, {32, 20, 9}, {8, 7, 4});
  c.spec.element_strides = {1, 3, 2};
  for (const int y : {0, 1, 15}) {
    c.at = {4, y, 3, 0, 0};
    check_load(c);
    check_store(c);
  }
}

TEST_CASE("elements outside are NaN where the map says so") {
  copy_case c;
  c.spec = spec_of(tensor_map_type::float32, {16, 4}, {8, 4});
  c.spec.oob_nan = true;
  c.at = {12, 2, 0, 0, 0};
  std::vector<uint8_t> tensor(reach_of(c.spec), 0);
  auto tile = noise(tile_bytes, 2);
  must_pass(run_copy(c, load_text(2), tensor, tile));
  each_element(c, [&](bool inside, uint64_t, uint32_t at) {
    float x = 0;
    std::memcpy(&x, tile.data() + at, 4);
    CHECK((x != x) == !inside);
  });
}

TEST_CASE("reductions by a tensor map combine what is inside and leave the rest alone") {
  using enum tensor_map_type;
  const auto integers = [](auto how) {
    return [=](uint32_t a, uint32_t b) -> uint32_t { return how(a, b); };
  };
  const std::vector<std::pair<std::string, std::function<uint32_t(uint32_t, uint32_t)>>> all{
    {".add", integers([](uint32_t a, uint32_t b) { return a + b; })},
    {".min", integers([](uint32_t a, uint32_t b) { return std::min(a, b); })},
    {".max", integers([](uint32_t a, uint32_t b) { return std::max(a, b); })},
    {".inc", integers([](uint32_t a, uint32_t b) { return a >= b ? 0 : a + 1; })},
    {".dec", integers([](uint32_t a, uint32_t b) { return a == 0 || a > b ? b : a - 1; })},
    {".and", integers([](uint32_t a, uint32_t b) { return a & b; })},
    {".or", integers([](uint32_t a, uint32_t b) { return a | b; })},
    {".xor", integers([](uint32_t a, uint32_t b) { return a ^ b; })}};
  for (const auto& [text, combine] : all) {
    CAPTURE(text);
    copy_case c;
    c.spec = spec_of(uint32, {16, 6}, {8, 4});
    c.at = {12, 4, 0, 0, 0};
    auto tensor = noise(reach_of(c.spec), 1);
    auto tile = noise(tile_bytes, 2);
    auto want = tensor;
    each_element(c, [&, &f = combine](bool inside, uint64_t to, uint32_t from) {
      if (!inside)
        return;
      uint32_t a = 0;
      uint32_t b = 0;
      std::memcpy(&a, want.data() + to, 4);
      std::memcpy(&b, tile.data() + from, 4);
      a = f(a, b);
      std::memcpy(want.data() + to, &a, 4);
    });
    must_pass(run_copy(c, store_text(2, text), tensor, tile));
    CHECK(tensor == want);
  }
  copy_case c;
  c.spec = spec_of(float16, {16}, {8});
  std::vector<uint8_t> tensor(32);
  std::vector<uint8_t> tile(tile_bytes);
  for (size_t i = 0; i < 8; ++i) {
    tensor[2 * i + 1] = 0x3c; // 1
    tile[2 * i + 1] = 0x40;   // 2
  }
  must_pass(run_copy(c, store_text(1, ".add"), tensor, tile));
  CHECK(tensor[1] == 0x42); // 3
  CHECK(tensor[17] == 0);
}

TEST_CASE("bulk reductions without a map go to global memory") {
  const std::string text = kernel(R"(
  mbarrier.arrive.expect_tx.shared.b64 _, [%r3], 16384;
  cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r2], [%rd2], 16384, [%r3];)"
    + wait + R"(fence.proxy.async.shared::cta;
  cp.reduce.async.bulk.global.shared::cta.bulk_group.add.f32 [%rd1], [%r2], 64;
  cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;)");
  std::vector<float> sums(32, 1.0F);
  std::vector<float> tile(4096, 2.5F);
  setup s;
  s.buffer(sums).buffer(tile).block(1);
  for (int i = 0; i < 14; ++i)
    s.value(0);
  copy_case c;
  c.spec = spec_of(tensor_map_type::float32, {32}, {8});
  pass_map(s, 0, c.spec);
  must_pass(s.run(text));
  for (size_t i = 0; i < sums.size(); ++i)
    CHECK(sums[i] == (i < 16 ? 3.5F : 1.0F));
}

namespace {

/// The words of the fault when a load is done with another text.
std::string fault_with(
  const copy_case& c, std::string text, const std::string& from, const std::string& to) {
  const size_t at = text.rfind(from);
  REQUIRE(at != std::string::npos);
  text.replace(at, from.size(), to);
  std::vector<uint8_t> tensor(reach_of(c.spec));
  std::vector<uint8_t> tile(tile_bytes);
  const outcome result = run_copy(c, text, tensor, tile);
  return result.failed ? result.failed->what : "";
}

} // namespace

TEST_CASE("a tile that leaves shared memory or is not aligned is a fault with its line") {
  copy_case c;
  c.spec = spec_of(tensor_map_type::float32, {32, 64}, {32, 64});
  const std::string load = load_text(2);
  for (const auto& [place, words] : {std::pair("[%r2+64], [%rd3", "not a multiple of 128"),
         {"[%r2+8320], [%rd3", "shared memory out of bounds"},
         {"[%r2+2147483648], [%rd3", "in no block of the cluster"}}) {
    CAPTURE(place);
    const std::string what = fault_with(c, load, "[%r2], [%rd3", place);
    CHECK(what.find(words) != std::string::npos);
    CHECK(what.find("cp.async.bulk.tensor") != std::string::npos);
  }
  CHECK(fault_with(c, load, "[%rd3, {", "[%rd3+8, {").find("multiple of 64") != std::string::npos);
  CHECK(fault_with(c, load, "[%rd3, {", "[%rd1, {").find("no tensor map") != std::string::npos);
  CHECK(fault_with(c, load, "[%rd3, {", "[64, {").find("out of bounds") != std::string::npos);
}

TEST_CASE("a map of another rank, and one that reaches outside the buffer, are faults") {
  copy_case c;
  c.spec = spec_of(tensor_map_type::float32, {32, 8}, {32, 8});
  CHECK(fault_with(c, load_text(3), "%r12", "%r12").find("3 dimensions by a tensor map of 2")
    != std::string::npos);
  std::vector<uint8_t> tensor(512);
  std::vector<uint8_t> tile(tile_bytes);
  const outcome result = run_copy(c, load_text(2), tensor, tile);
  REQUIRE(result.failed);
  CHECK(result.failed->kind == fault_kind::out_of_bounds);
}

TEST_CASE("an image is a map or nothing: random bytes and single changed bytes never crash") {
  tensor_map map;
  numbers random(3);
  for (int i = 0; i < 2000; ++i) {
    tensor_map_image image;
    for (uint8_t& x : image)
      x = static_cast<uint8_t>(random.next() >> 40);
    CHECK(!decode_tensor_map(image.data(), map).empty());
  }
  const auto spec = spec_of(tensor_map_type::float16, {64, 9, 4}, {64, 4, 2});
  const tensor_map_image good = encode_tensor_map(4096, spec);
  CHECK(decode_tensor_map(good.data(), map).empty());
  CHECK(map.box_bytes() == 1024);
  for (size_t i = 0; i < good.size(); ++i)
    for (const uint8_t x : {uint8_t{0}, uint8_t{1}, uint8_t{127}, uint8_t{255}}) {
      tensor_map_image changed = good;
      changed[i] = x;
      (void)decode_tensor_map(changed.data(), map);
    }
}

TEST_CASE("tensormap.replace changes each field, and what a map cannot hold is said") {
  const auto spec = spec_of(tensor_map_type::float16, {64, 9}, {64, 4});
  tensor_map_image image = encode_tensor_map(4096, spec);
  using enum tensor_map_field;
  tensor_map map;
  CHECK(replace_field(image.data(), global_address, 0, 8192).empty());
  CHECK(replace_field(image.data(), global_dim, 1, 77).empty());
  CHECK(replace_field(image.data(), global_stride, 0, 256).empty());
  CHECK(replace_field(image.data(), box_dim, 1, 16).empty());
  CHECK(replace_field(image.data(), element_stride, 1, 2).empty());
  CHECK(replace_field(image.data(), elemtype, 0, 10).empty());
  CHECK(replace_field(image.data(), swizzle_mode, 0, 3).empty());
  CHECK(replace_field(image.data(), fill_mode, 0, 1).empty());
  REQUIRE(decode_tensor_map(image.data(), map).empty());
  CHECK(map.address == 8192);
  CHECK(map.dims[1] == 77);
  CHECK(map.strides[1] == 256);
  CHECK(map.count(1) == 8);
  CHECK(map.type == tensor_map_type::bfloat16);
  CHECK(map.swizzle == tensor_map_swizzle::by_128);
  CHECK(map.oob_nan);
  CHECK(replace_field(image.data(), rank, 0, 0).empty());
  REQUIRE(decode_tensor_map(image.data(), map).empty());
  CHECK(map.rank == 1);
  CHECK(!replace_field(image.data(), global_stride, 4, 16).empty());
  CHECK(!replace_field(image.data(), box_dim, 0, 70000).empty());
  CHECK(replace_field(image.data(), interleave_layout, 0, 1).empty());
  CHECK(decode_tensor_map(image.data(), map).find("interleave") != std::string::npos);
}

TEST_CASE("forms of tensor copies that are not supported are refused with their line") {
  for (const auto& [from, to] : {std::pair(".tile.mbarrier", ".im2col.mbarrier"),
         {"tensor.2d", "tensor.6d"}, {".tile.mbarrier", ".tile::gather4.mbarrier"},
         {"::bytes [%r2], [%rd3", "::bytes.cta_group::2 [%r2], [%rd3"}, {"{%r10, %r11}", "{%r10}"},
         {"[%rd3, {%r10, %r11}]", "[%rd3]"}}) {
    std::string text = load_text(2);
    text.replace(text.rfind(from), std::string(from).size(), to);
    CAPTURE(to);
    const auto refused = parse(text);
    REQUIRE(!refused);
    CHECK(refused.error().what.find("cp.async.bulk.tensor") != std::string::npos);
  }
}

TEST_CASE("innermost coordinates off 16 bytes, and negative ones of a store, are faults") {
  copy_case c;
  c.spec = spec_of(tensor_map_type::float32, {32, 8}, {8, 4});
  std::vector<uint8_t> tensor(reach_of(c.spec));
  std::vector<uint8_t> tile(tile_bytes);
  const auto fault_at = [&](const place& at, const std::string& text) {
    c.at = at;
    const outcome result = run_copy(c, text, tensor, tile);
    return result.failed ? result.failed->kind : fault_kind::none;
  };
  for (const int x : {-2, 1, 18})
    for (const std::string& text : {load_text(2), store_text(2), store_text(2, ".add")})
      CHECK(fault_at({x, 0, 0, 0, 0}, text) == fault_kind::misaligned);
  for (const place& at : {place{-4, 0, 0, 0, 0}, place{0, -1, 0, 0, 0}}) {
    CHECK(fault_at(at, load_text(2)) == fault_kind::none);
    CHECK(fault_at(at, store_text(2)) == fault_kind::out_of_bounds);
    CHECK(fault_at(at, store_text(2, ".add")) == fault_kind::out_of_bounds);
  }
}
