// Transfers under random losses, doubles, damage and deaths, from a seed.

#include "journal/blob_transfer.hpp"
#include "journal/hash.hpp"

#include <algorithm>
#include <doctest/doctest.h>
#include <map>
#include <set>
#include <string>
#include <vector>

using namespace gristmill;
using namespace std::chrono_literals;

namespace {

constexpr uint64_t piece_bytes = blob_piece_max;

struct draws {
  uint64_t state;
  uint64_t below(uint64_t n) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state % n;
  }
  bool one_in(uint64_t n) { return below(n) == 0; }
};

/// In memory, with a disk that refuses now and then.
class memory_inbox final : public blob_inbox {
public:
  bool has(const blob_ref& what) override { return whole.contains(what.sha256); }
  result<void> begin(const blob_ref& what) override {
    if (full && full->one_in(30))
      return fail(errc::io_failed, "no space");
    half[what.sha256].clear();
    return {};
  }
  result<void> append(const std::string& sha256, std::string_view data) override {
    REQUIRE(half.contains(sha256));
    if (full && full->one_in(40)) {
      half.erase(sha256);
      return fail(errc::io_failed, "no space");
    }
    half[sha256] += data;
    return {};
  }
  result<bool> finish(const std::string& sha256) override {
    REQUIRE(half.contains(sha256));
    auto text = std::move(half.extract(sha256).mapped());
    if (sha256_hex(text) != sha256)
      return false;
    whole[sha256] = std::move(text);
    return true;
  }
  void drop(const std::string& sha256) override { half.erase(sha256); }

  draws* full = nullptr;
  std::map<std::string, std::string> half;
  std::map<std::string, std::string> whole;
};

TEST_SUITE_BEGIN("blob chaos");

TEST_CASE(
  "whatever is lost, doubled or damaged, each fetch ends once, and only with the right bytes") {
  std::vector<std::string> texts;
  for (size_t n = 0; n < 6; ++n)
    texts.push_back(std::string(n * 150'000 + 1, static_cast<char>('a' + n)));
  std::map<std::string, std::string> content;
  std::vector<blob_ref> refs;
  for (const auto& text : texts) {
    refs.push_back({sha256_hex(text), text.size()});
    content[refs.back().sha256] = text;
  }
  uint64_t fetched = 0;
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    CAPTURE(seed);
    draws draw{seed * 0x9e3779b97f4a7c15};
    memory_inbox inbox;
    inbox.full = &draw;
    blob_transfer_limits limits;
    limits.fetch_deadline = 100s;
    blob_transfer transfer{inbox, limits};
    std::chrono::nanoseconds now{0};
    std::set<uint64_t> open;
    std::vector<blob_transfer::pull> wire;
    const auto take = [&](blob_transfer::steps what) {
      for (auto& pull : what.pulls) {
        CHECK(pull.what.bytes <= piece_bytes);
        wire.push_back(pull);
      }
      for (auto& ending : what.ended) {
        CHECK_MESSAGE(open.erase(ending.fetch) == 1, "ended twice: ", ending.fetch);
        fetched += ending.outcome ? 1 : 0;
      }
    };
    uint64_t next = 1;
    for (int step = 0; step < 300; ++step) {
      switch (draw.below(8)) {
      case 0:
      case 1: {
        std::vector<blob_ref> wanted;
        for (const auto& ref : refs)
          if (draw.one_in(3))
            wanted.push_back(ref);
        open.insert(next);
        take(transfer.fetch(next++, 1 + draw.below(3), {wanted, draw.one_in(4) ? 3s : 0s}, now));
        break;
      }
      case 2:
        now += std::chrono::seconds{draw.below(4)};
        take(transfer.due(now));
        break;
      case 3:
        if (draw.one_in(4))
          take(transfer.peer_gone(1 + draw.below(3), now));
        break;
      default: {
        if (wire.empty())
          break;
        const auto n = draw.below(wire.size());
        const auto asked = wire[n];
        const auto& text = content.at(asked.what.sha256);
        blob_piece piece{asked.what.sha256, asked.what.offset, text.size(),
          text.substr(asked.what.offset, asked.what.bytes), {}};
        if (draw.one_in(15))
          piece.data[0] ^= 1;
        if (draw.one_in(40))
          piece.failure_text = "gone";
        if (!draw.one_in(6)) // Else it comes a second time.
          wire.erase(wire.begin() + static_cast<std::ptrdiff_t>(n));
        if (!draw.one_in(20)) // Else it is lost.
          take(transfer.piece(asked.peer, piece, now));
      }
      }
      CHECK(transfer.fetches_open() == open.size());
      CHECK(open.empty() == (!transfer.wants(1) && !transfer.wants(2) && !transfer.wants(3)));
    }
    // In the end every deadline passes.
    for (int step = 0; step < 400 && transfer.next_due(); ++step) {
      now = std::max(now, *transfer.next_due());
      take(transfer.due(now));
    }
    CHECK(open.empty());
    CHECK_FALSE(transfer.next_due());
    CHECK(inbox.half.empty());
    for (const auto& [name, text] : inbox.whole)
      CHECK(text == content.at(name));
  }
  CHECK(fetched > 300);
}

TEST_SUITE_END();

} // namespace
