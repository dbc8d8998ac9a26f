#include "gpu/lease/policies/all.hpp"
#include "gpu/lease/policy_text.hpp"
#include "gpu/lease/ranked_policy.hpp"

namespace gristmill {

namespace {

/// Shortest estimated hold first. With ageing, each second of waiting takes `ageing` seconds off
/// the estimate. Since all waiters age alike, that is a fixed order: by estimate + ageing *
/// arrival.
class sept_policy final : public ranked_policy {
public:
  sept_policy(std::string name, uint64_t ageing_thousandths)
    : ranked_policy(std::move(name)), ageing_(ageing_thousandths) {}
  std::unique_ptr<lease_policy> clone() const override {
    return std::make_unique<sept_policy>(*this);
  }

private:
  wide rank(const waiter& w) const override {
    return wide{w.est_hold.count()} * 1000 + wide{w.arrived.count()} * wide{ageing_};
  }

  uint64_t ageing_;
};

} // namespace

policy_kind sept_kind() {
  policy_kind out;
  out.name = "sept";
  out.what = "shortest estimated hold first; without ageing it starves the long ones";
  out.parameters = {{"ageing", value_kind::decimal, "0",
    "seconds that each second of waiting takes off the estimate"}};
  out.make_policy = [](const policy_values& v) -> std::unique_ptr<lease_policy> {
    auto ageing = v.thousandths("ageing");
    return std::make_unique<sept_policy>(
      ageing == 0 ? "sept" : "sept(ageing=" + v.text("ageing") + ")", ageing);
  };
  return out;
}

} // namespace gristmill
