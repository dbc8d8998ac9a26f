// The small structures below the table and the policies, each against a plain one of the standard
// library that does the same.

#include "gpu/lease/boxed.hpp"
#include "gpu/lease/flat_index.hpp"
#include "gpu/lease/gpu_set.hpp"
#include "gpu/lease/indexed_heap.hpp"
#include "gpu/lease/lazy_queue.hpp"
#include "tests/gpu/lease/lease_world.hpp"

#include <doctest/doctest.h>
#include <map>
#include <set>
#include <string>
#include <vector>

using namespace gristmill;
using gristmill::test::chance;

TEST_CASE("a flat index finds what a map finds, also where many hashes end alike") {
  for (uint64_t alike : {1, 8, 1024}) {
    chance draw{alike};
    flat_index index;
    std::map<uint64_t, uint32_t> model;
    for (int i = 0; i < 20'000; ++i) {
      auto key = uint64_t{draw.below(300)} * alike;
      auto known = model.find(key);
      REQUIRE(index.find(key) == (known == model.end() ? flat_index::none : known->second));
      if (known != model.end()) {
        index.erase(key, known->second);
        model.erase(known);
      } else if (draw.below(3) != 0) {
        index.insert(key, static_cast<uint32_t>(i));
        model[key] = static_cast<uint32_t>(i);
      }
      REQUIRE(index.size() == model.size());
    }
    for (const auto& [key, slot] : model)
      REQUIRE(index.find(key) == slot);
  }
}

TEST_CASE("a flat index tells keys of one hash apart by what stands in their slots") {
  flat_index index;
  CHECK(index.find(7) == flat_index::none);
  index.erase(7, 0);
  for (uint32_t slot = 0; slot < 20; ++slot)
    index.insert(7, slot);
  for (uint32_t slot = 0; slot < 20; slot += 2)
    index.erase(7, slot);
  for (uint32_t slot = 0; slot < 20; ++slot)
    CHECK(index.find(7, [&](uint32_t s) { return s == slot; })
      == (slot % 2 == 0 ? flat_index::none : slot));
  index.erase(7, 4);
  CHECK(index.size() == 10);
}

TEST_CASE(
  "a lazy queue has the smallest key of those that are left in front, whatever their order") {
  // 0: keys grow; 1: mostly; 2: any order.
  for (uint32_t disorder : {0, 1, 2}) {
    chance draw{disorder};
    lazy_queue<uint64_t> queue;
    std::vector<uint32_t> versions(64);
    std::map<uint64_t, uint32_t> model;
    std::set<uint32_t> vacant;
    for (uint32_t slot = 0; slot < versions.size(); ++slot)
      vacant.insert(slot);
    uint64_t last = 1000;
    for (int i = 0; i < 20'000; ++i) {
      if (!vacant.empty() && draw.below(2) == 0) {
        ++last;
        auto key = last * 1000;
        if (disorder == 2 || (disorder == 1 && draw.below(10) == 0))
          key -= draw.below(999'000);
        while (model.contains(key))
          ++key;
        auto slot = *vacant.begin();
        vacant.erase(slot);
        queue.push({key, slot, versions[slot]});
        model[key] = slot;
      } else if (!model.empty()) {
        auto it = model.begin();
        if (draw.below(3) == 0)
          std::advance(it, draw.below(static_cast<uint32_t>(model.size())));
        ++versions[it->second];
        vacant.insert(it->second);
        model.erase(it);
        queue.removed([&](const auto& e) { return versions[e.slot] == e.version; });
      }
      REQUIRE(queue.size() == model.size());
      REQUIRE(queue.empty() == model.empty());
      if (!model.empty()) {
        REQUIRE(queue.front().key == model.begin()->first);
        REQUIRE(queue.front().slot == model.begin()->second);
      }
    }
  }
}

TEST_CASE("an indexed heap has the smallest key on top while keys change, equal ones by number") {
  chance draw{5};
  auto less = [](uint32_t a, uint32_t id_a, uint32_t b, uint32_t id_b) {
    return a == b ? id_a < id_b : a < b;
  };
  indexed_heap<uint32_t> heap;
  std::map<uint32_t, uint32_t> keys;
  for (int i = 0; i < 20'000; ++i) {
    auto id = draw.below(50);
    if (draw.below(4) == 0) {
      heap.erase(id, less);
      keys.erase(id);
    } else {
      auto key = draw.below(40);
      heap.set(id, key, less);
      keys[id] = key;
    }
    REQUIRE(heap.size() == keys.size());
    REQUIRE(heap.contains(id) == keys.contains(id));
    if (keys.empty())
      continue;
    std::set<std::pair<uint32_t, uint32_t>> model;
    for (auto [each, key] : keys)
      model.insert({key, each});
    REQUIRE(heap.top().key == model.begin()->first);
    REQUIRE(heap.top().id == model.begin()->second);
    if (keys.contains(id))
      REQUIRE(*heap.key_of(id) == keys[id]);
  }
  CHECK(heap.key_of(1000) == nullptr);
}

TEST_CASE("a set of GPUs is the set of their indices") {
  chance draw{9};
  gpu_set a;
  gpu_set b;
  std::set<uint32_t> model_a;
  std::set<uint32_t> model_b;
  for (int i = 0; i < 20'000; ++i) {
    auto gpu = draw.below(200);
    auto& s = draw.below(2) == 0 ? a : b;
    auto& m = &s == &a ? model_a : model_b;
    if (draw.below(2) == 0) {
      s.insert(gpu);
      m.insert(gpu);
    } else {
      s.erase(gpu);
      m.erase(gpu);
    }
    REQUIRE(s.size() == m.size());
    REQUIRE(s.contains(gpu) == m.contains(gpu));
    if (m.empty())
      continue;
    REQUIRE(s.first() == *m.begin());
    auto next = m.upper_bound(gpu);
    REQUIRE(s.next(gpu) == (next == m.end() ? 0 : *next));
    if (i % 50 != 0)
      continue;
    std::set<uint32_t> rest;
    for (auto each : model_a)
      if (!model_b.contains(each))
        rest.insert(each);
    REQUIRE(a.exceeds(b) == !rest.empty());
    auto left = a;
    left -= b;
    REQUIRE(left.size() == rest.size());
    for (auto each : rest)
      REQUIRE(left.contains(each));
  }
}

TEST_CASE("an empty box reads as a default value, and a copy of a full one is its own") {
  boxed<std::string> box;
  CHECK_FALSE(box);
  CHECK(box->empty());
  box = std::string{"text"};
  auto copy = box;
  CHECK(copy.take() == "text");
  CHECK_FALSE(copy);
  CHECK(copy.take().empty());
  CHECK(*box == "text");
}
