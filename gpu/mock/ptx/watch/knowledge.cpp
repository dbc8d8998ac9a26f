#include "gpu/mock/ptx/watch/knowledge.hpp"

#include <algorithm>

namespace gristmill::ptx {
namespace {

struct by_actor {
  bool operator()(const std::pair<actor, uint32_t>& entry, actor who) const {
    return entry.first < who;
  }
};

} // namespace

bool knowledge::knows(actor who, uint32_t time) const {
  if (!known_)
    return false;
  const auto found = std::lower_bound(known_->begin(), known_->end(), who, by_actor{});
  return found != known_->end() && found->first == who && found->second >= time;
}

void knowledge::learn(actor who, uint32_t time) {
  if (time == 0 || knows(who, time))
    return;
  auto now = known_ ? std::make_shared<table>(*known_) : std::make_shared<table>();
  const auto found = std::lower_bound(now->begin(), now->end(), who, by_actor{});
  if (found != now->end() && found->first == who)
    found->second = time;
  else
    now->insert(found, {who, time});
  known_ = std::move(now);
}

void knowledge::join(const knowledge& other) {
  if (!other.known_ || known_ == other.known_)
    return;
  if (!known_) {
    known_ = other.known_;
    return;
  }
  auto now = std::make_shared<table>();
  now->reserve(std::max(known_->size(), other.known_->size()));
  auto a = known_->begin();
  auto b = other.known_->begin();
  bool news = false;
  while (a != known_->end() || b != other.known_->end()) {
    if (b == other.known_->end() || (a != known_->end() && a->first < b->first)) {
      now->push_back(*a++);
    } else if (a == known_->end() || b->first < a->first) {
      now->push_back(*b++);
      news = true;
    } else {
      news = news || b->second > a->second;
      now->emplace_back(a->first, std::max(a->second, b->second));
      ++a;
      ++b;
    }
  }
  if (news)
    known_ = std::move(now);
}

} // namespace gristmill::ptx
