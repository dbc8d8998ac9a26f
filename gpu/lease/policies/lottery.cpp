#include "gpu/lease/fixed_log.hpp"
#include "gpu/lease/policies/all.hpp"

#include <algorithm>

namespace gristmill {

namespace {

/// Number `index` of the stream of a seed: SplitMix64 (Steele, Lea, Flood 2014) as a function of
/// the counter, so nothing but the counter has to be kept.
uint64_t random_word(uint64_t seed, uint64_t index) {
  auto mixed = [](uint64_t z) {
    z = (z ^ z >> 30) * 0xbf58'476d'1ce4'e5b9;
    z = (z ^ z >> 27) * 0x94d0'49bb'1331'11eb;
    return z ^ z >> 31;
  };
  return mixed(mixed(seed + 0x9e37'79b9'7f4a'7c15) + (index + 1) * 0x9e37'79b9'7f4a'7c15);
}

/// Each flow that waits is drawn with a chance in proportion to its weight. Drawn as a race: a flow
/// runs for an exponential time, divided by its weight, and the first to arrive wins; that has the
/// same chances as a draw from an urn, and since such a time has no memory only the winner runs
/// anew. A flow that leaves and comes back goes on with its old time: leaving gains nothing.
class lottery_rule final : public flow_rule {
public:
  explicit lottery_rule(uint64_t seed) : seed_(seed) {}

  std::string text() const override { return "lottery " + state_number(wide{seed_}); }

  void on_join(level_clock& race, flow_account& flow) const override {
    if (flow.value <= race.value)
      flow.value = race.value + draw(race, flow);
  }

  wide on_grant(
    level_clock& race, flow_account& flow, const flow_lease&, const flow_key&) const override {
    race.value = std::max(race.value, flow.value);
    flow.value = race.value + draw(race, flow);
    return 0;
  }

  flow_key key(const flow_account& flow, std::string_view, const flow_head&) const override {
    return {flow.value, 0};
  }

  bool forgettable(const level_clock& race, const flow_account& flow) const override {
    return flow.value <= race.value;
  }

private:
  // At least 1, so that a time ahead can be told from one that is over.
  wide draw(level_clock& race, const flow_account& flow) const {
    auto word = static_cast<unsigned __int128>(random_word(seed_, race.count++)) + 1;
    auto exponential = wide{(int64_t{64} << 32) - log2_q32(word)};
    return (exponential << 20) / wide{flow.weight} + 1;
  }

  uint64_t seed_;
};

} // namespace

policy_kind lottery_kind() {
  policy_kind out;
  out.name = "lottery";
  out.what = "a draw between flows, by weight; equal counts in the mean, not equal seconds";
  out.place = policy_place::flows;
  out.parameters = {{"seed", value_kind::natural, "1", "makes the draws repeatable"}};
  out.make_rule = [](const policy_values& v) {
    return std::make_shared<const lottery_rule>(v.natural("seed"));
  };
  return out;
}

} // namespace gristmill
