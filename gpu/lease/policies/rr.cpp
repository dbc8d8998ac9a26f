#include "gpu/lease/policies/all.hpp"

namespace gristmill {

namespace {

/// Round robin: who was served, or has come back, goes to the end of the ring. Equal counts for
/// flows that always wait, not equal seconds; weights do not matter.
class rr_rule final : public flow_rule {
public:
  std::string text() const override { return "rr"; }

  void on_join(level_clock& ring, flow_account& flow) const override {
    flow.value = wide{++ring.count};
  }

  wide on_grant(
    level_clock& ring, flow_account& flow, const flow_lease&, const flow_key&) const override {
    flow.value = wide{++ring.count};
    return 0;
  }

  flow_key key(const flow_account& flow, std::string_view, const flow_head&) const override {
    return {flow.value, 0};
  }
};

} // namespace

policy_kind rr_kind() {
  policy_kind out;
  out.name = "rr";
  out.what = "round robin over flows; equal counts, not equal seconds";
  out.place = policy_place::flows;
  out.make_rule = [](const policy_values&) { return std::make_shared<const rr_rule>(); };
  return out;
}

} // namespace gristmill
