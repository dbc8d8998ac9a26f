#include "gpu/lease/policies/all.hpp"
#include "gpu/lease/ranked_policy.hpp"

namespace gristmill {

namespace {

/// Earliest deadline first. Thrashes under overload: who comes too late anyway goes first.
class edf_policy final : public ranked_policy {
public:
  using ranked_policy::ranked_policy;
  std::unique_ptr<lease_policy> clone() const override {
    return std::make_unique<edf_policy>(*this);
  }

private:
  wide rank(const waiter& w) const override { return w.deadline.count(); }
};

} // namespace

policy_kind edf_kind() {
  policy_kind out;
  out.name = "edf";
  out.what = "earliest end of patience first";
  out.make_policy = [](const policy_values&) -> std::unique_ptr<lease_policy> {
    return std::make_unique<edf_policy>("edf");
  };
  return out;
}

} // namespace gristmill
