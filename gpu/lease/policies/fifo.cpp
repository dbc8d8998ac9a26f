#include "gpu/lease/policies/all.hpp"
#include "gpu/lease/ranked_policy.hpp"

namespace gristmill {

namespace {

/// Oldest first: equal counts, not equal seconds.
class fifo_policy final : public ranked_policy {
public:
  using ranked_policy::ranked_policy;
  std::unique_ptr<lease_policy> clone() const override {
    return std::make_unique<fifo_policy>(*this);
  }

private:
  // Tickets grow, so the smallest waiting ticket is the oldest request.
  wide rank(const waiter&) const override { return 0; }
};

} // namespace

std::unique_ptr<lease_policy> make_fifo_policy() {
  return std::make_unique<fifo_policy>("fifo");
}

policy_kind fifo_kind() {
  policy_kind out;
  out.name = "fifo";
  out.what = "oldest request first; equal counts, not equal seconds";
  out.make_policy = [](const policy_values&) { return make_fifo_policy(); };
  return out;
}

} // namespace gristmill
