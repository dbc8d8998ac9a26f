#include "gpu/lease/policies/all.hpp"
#include "gpu/lease/policy_text.hpp"

#include <algorithm>

namespace gristmill {

namespace {

/// Least attained service: a flow sinks a level each time what it has had passes a threshold, and
/// the highest level goes first, within it the oldest request. Nothing is ever forgiven, so a
/// newcomer goes before everybody who has had more.
class las_rule final : public flow_rule {
public:
  las_rule(std::string text, std::vector<wide> thresholds)
    : text_(std::move(text)), thresholds_(std::move(thresholds)) {}

  std::string text() const override { return text_; }

  wide on_grant(
    level_clock&, flow_account& flow, const flow_lease& lease, const flow_key&) const override {
    auto charge = weighted_time(lease.est_hold, lease.weight);
    flow.value += charge;
    return charge;
  }

  void on_release(level_clock&, flow_account& flow, const flow_lease& lease,
    std::chrono::nanoseconds held, std::chrono::nanoseconds) const override {
    flow.value += weighted_time(held, lease.weight) - lease.charged;
  }

  flow_key key(const flow_account& flow, std::string_view, const flow_head& oldest) const override {
    auto level = std::upper_bound(thresholds_.begin(), thresholds_.end(), flow.value);
    return {wide{level - thresholds_.begin()}, oldest.ticket};
  }

  bool forgettable(const level_clock&, const flow_account&) const override { return false; }

private:
  std::string text_;
  std::vector<wide> thresholds_;
};

} // namespace

policy_kind las_kind() {
  policy_kind out;
  out.name = "las";
  out.what = "least attained service first, in levels; newcomers go before the old";
  out.place = policy_place::flows;
  out.parameters = {{"levels", value_kind::natural, "64", "how many, 2 to 1024"},
    {"first", value_kind::time, "60s", "what a flow may have before it leaves the first level"},
    {"factor", value_kind::decimal, "1.25", "each later threshold over the one before, above 1"}};
  out.make_rule = [](const policy_values& v) -> result<std::shared_ptr<const flow_rule>> {
    auto levels = v.natural("levels");
    auto first = v.time("first");
    auto factor = v.thousandths("factor");
    if (levels < 2 || levels > 1024)
      return fail(errc::invalid_input, "lease policy 'las': levels must be from 2 to 1024");
    if (first.count() == 0)
      return fail(errc::invalid_input, "lease policy 'las': first must be above 0");
    if (factor <= 1000 || factor > 1'000'000)
      return fail(errc::invalid_input, "lease policy 'las': factor must be above 1, at most 1000");
    std::vector<wide> thresholds;
    auto limit = weighted_time(std::chrono::nanoseconds{INT64_MAX}, 1);
    for (auto at = weighted_time(first, 1); thresholds.size() + 1 < levels && at < limit;
         at = std::max(at * wide{factor} / 1000, at + 1))
      thresholds.push_back(at);
    auto text = "las " + v.text("levels") + " " + v.text("first") + " " + v.text("factor");
    return std::make_shared<const las_rule>(std::move(text), std::move(thresholds));
  };
  return out;
}

} // namespace gristmill
