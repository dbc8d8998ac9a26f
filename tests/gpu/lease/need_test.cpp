#include "gpu/lease/need.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

using namespace gristmill;

namespace {

constexpr uint64_t gib = uint64_t{1} << 30;
const gpu_attributes h200{"h200", "sm_90a", "a", 141 * gib};
const gpu_attributes plain{"mock", "", "", 0};

bool satisfies(const char* text, const gpu_attributes& gpu) {
  auto need = parse_need(text);
  REQUIRE(need);
  return fits(*need, gpu);
}

} // namespace

TEST_CASE("a need is a device model, or demands in any order") {
  CHECK(satisfies("", h200));
  CHECK(satisfies("", plain));
  CHECK(satisfies("h200", h200));
  CHECK_FALSE(satisfies("b200", h200));
  CHECK(satisfies("memory>=80GiB,node=a,model=h200,arch=sm_90a", h200));
  CHECK_FALSE(satisfies("memory>=142GiB", h200));
  CHECK(satisfies("memory>=151397597184B", h200));
  CHECK_FALSE(satisfies("memory>=151397597185B", h200));
  CHECK_FALSE(satisfies("node=b", h200));
  // What is not known of a GPU fits no demand.
  CHECK_FALSE(satisfies("arch=sm_90a", plain));
  CHECK_FALSE(satisfies("memory>=1B", plain));
}

TEST_CASE("the same need has one text, which is read as the same need") {
  for (const char* text : {"", "h200", "node=a,arch=x", "arch=sm_90a,memory>=80GiB,model=h,node=n",
         "memory>=1025MiB", "memory>=7B"}) {
    auto need = parse_need(text);
    REQUIRE(need);
    CHECK(*parse_need(to_string(*need)) == *need);
  }
  CHECK(to_string(*parse_need("node=a,memory>=1024MiB,arch=x")) == "arch=x,memory>=1GiB,node=a");
  CHECK(*parse_need("model=h200") == *parse_need("h200"));
}

TEST_CASE("a need that cannot be read is refused with what is known") {
  for (const char* text : {"colour=red", "h200,", "memory>=80", "memory>=80GB", "memory>=GiB",
         "memory>=-1GiB", "memory>=99999999999999999999B", "memory>=18014398509481984TiB",
         "model=a,model=b", "memory>=1B,memory>=2B", "model=", "model=a b", "memory>=0B",
         "memory=80GiB", ",", "=", "node=a;rm"}) {
    CAPTURE(text);
    auto need = parse_need(text);
    REQUIRE_FALSE(need);
    CHECK(need.error().code == errc::invalid_input);
  }
  CHECK(parse_need("colour=red").error().what.find("memory>=") != std::string::npos);
  CHECK_FALSE(parse_need(std::string(257, 'a')));
  CHECK(parse_need(std::string(256, 'a')));
  CHECK_FALSE(parse_need(std::string("a\0b", 3)));
  CHECK(parse_need("\x1b[31m=x").error().what.find('\x1b') == std::string::npos);
}

TEST_CASE("needs have numbers as long as somebody waits with them") {
  need_index index;
  auto any = index.acquire({}, need_index::nothing_excluded);
  CHECK(any->id == any_need);
  auto a = index.acquire(*parse_need("h200"), need_index::nothing_excluded);
  CHECK(a->fresh);
  auto again = index.acquire(*parse_need("model=h200"), need_index::nothing_excluded);
  CHECK_FALSE(again->fresh);
  CHECK(again->id == a->id);
  CHECK(index.fits_of(0, h200) == (need_set{1} << a->id | 1));
  CHECK(index.fits_of(0, plain) == 1);
  index.release(a->id);
  CHECK(index.satisfied(a->id, 0, h200));
  index.release(a->id);
  CHECK_FALSE(index.satisfied(a->id, 0, h200));
  index.release(a->id);
  CHECK(index.size() == 0);
}

TEST_CASE("a need may leave out one GPU") {
  need_index index;
  auto elsewhere = index.acquire({}, 3);
  CHECK_FALSE(index.satisfied(elsewhere->id, 3, h200));
  CHECK(index.satisfied(elsewhere->id, 4, h200));
  CHECK(index.acquire({}, 4)->id != elsewhere->id);
}

TEST_CASE("more than 63 different needs at a time are refused, and numbers are used again") {
  need_index index;
  for (int i = 0; i < 63; ++i)
    REQUIRE(index.acquire(*parse_need(fmt::format("m{}", i)), need_index::nothing_excluded));
  auto full = index.acquire(*parse_need("one-more"), need_index::nothing_excluded);
  REQUIRE_FALSE(full);
  CHECK(full.error().code == errc::queue_full);
  CHECK(index.acquire(*parse_need("m5"), need_index::nothing_excluded));
  index.release(7);
  auto after = index.acquire(*parse_need("one-more"), need_index::nothing_excluded);
  REQUIRE(after);
  CHECK(after->id == 7);
  CHECK(after->fresh);
}
