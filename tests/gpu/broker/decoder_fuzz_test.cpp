// Whatever a client sends, the broker refuses it or obeys it, and goes on.

#include "tests/gpu/broker/core_fixture.hpp"

using namespace gristmill;
using namespace gristmill::test;
using namespace std::chrono_literals;

namespace {

/// A small generator of our own, so that a failure repeats everywhere.
class dice {
public:
  explicit dice(uint64_t seed) : state_(seed * 2654435761u + 88172645463325252u) {}
  uint64_t next() {
    state_ ^= state_ << 13;
    state_ ^= state_ >> 7;
    state_ ^= state_ << 17;
    return state_;
  }
  uint64_t below(uint64_t n) { return next() % n; }

private:
  uint64_t state_;
};

std::string damaged(std::string text, dice& d) {
  for (auto n = 1 + d.below(4); n > 0 && !text.empty(); --n) {
    auto at = d.below(text.size());
    switch (d.below(4)) {
    case 0:
      text[at] = static_cast<char>(d.below(256));
      break;
    case 1:
      text.erase(at, 1 + d.below(8));
      break;
    case 2:
      text.insert(at, std::string(1 + d.below(3), "{}[],:\"0\\u-e\x80"[d.below(13)]));
      break;
    case 3:
      text.insert(at, text.substr(0, d.below(text.size())));
      break;
    }
  }
  return text;
}

} // namespace

TEST_CASE("damaged lines never crash the decoder, and what it reads it can write") {
  dice d(1);
  const std::vector<std::string> seeds = {R"({"line":"hello","protocol":1,"as":"a/b"})",
    R"({"line":"request","request":1,"class":"timing","need":"h200","term_ns":60000000000,"guarded":true})",
    R"({"line":"ended","gpu":0,"token":1,"lease":"lease-1","outcome":"fine","reason":"exit 0"})",
    R"({"line":"adopt","gpu":0,"token":1,"lease":"lease-1","request":1,"session":5,"held_ns":1})",
    R"({"line":"quota","user":"a","weight":2})", R"({"line":"status","waiters":10})"};
  int read_count = 0;
  for (int n = 0; n < 20000; ++n) {
    auto text = damaged(seeds[d.below(seeds.size())], d);
    if (auto read = parse_client_line(text)) {
      ++read_count;
      CHECK(parse_client_line(write_client_line(*read)).has_value());
    }
    (void)parse_broker_line(text);
  }
  CHECK(read_count > 0);
}

TEST_CASE("whatever clients say and whenever they go, every GPU comes back") {
  for (uint64_t seed = 1; seed <= 30; ++seed) {
    CAPTURE(seed);
    dice d(seed);
    broker_fixture b(settings_of(2));
    std::vector<connection_id> clients;
    std::vector<broker_line> grants;
    for (int step = 0; step < 300; ++step) {
      if (clients.empty() || d.below(8) == 0)
        clients.push_back(b.connect());
      auto at = d.below(clients.size());
      auto who = clients[at];
      if (auto line = b.heard(who, broker_say::granted))
        grants.push_back(*line);
      client_line line = grants.empty()
        ? client_line{}
        : broker_fixture::of(grants[d.below(grants.size())], client_verb::hello);
      switch (d.below(9)) {
      case 0:
      case 1:
        b.request(who, d.below(2) == 0, std::chrono::seconds{d.below(20)}, d.below(3));
        continue;
      case 2:
        line.verb = client_verb::started;
        line.session = static_cast<int64_t>(d.below(5000));
        break;
      case 3:
        line.verb = client_verb::ended;
        line.outcome = static_cast<lease_outcome>(d.below(4));
        break;
      case 4:
        line.verb = client_verb::renew;
        break;
      case 5:
        line.verb = client_verb::adopt;
        break;
      case 6:
        line.verb = client_verb::cancel;
        line.request = d.below(3);
        break;
      case 7:
        b.gone(who);
        clients.erase(clients.begin() + static_cast<ptrdiff_t>(at));
        while (!b.outside.cleaning.empty())
          b.cleaned();
        continue;
      case 8:
        b.wait(std::chrono::seconds{d.below(10)});
        continue;
      }
      b.say(who, line);
      while (!b.outside.cleaning.empty())
        b.cleaned();
    }
    for (auto who : clients)
      b.gone(who);
    while (!b.outside.cleaning.empty())
      b.cleaned();
    b.wait(10min);
    while (!b.outside.cleaning.empty())
      b.cleaned();
    CHECK(b.core.at_rest());
    CHECK(b.phase(0) == "free");
    CHECK(b.phase(1) == "free");
    auto last = b.connect();
    b.request(last);
    CHECK(b.heard(last, broker_say::granted).has_value());
  }
}
