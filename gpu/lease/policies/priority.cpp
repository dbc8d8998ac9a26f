#include "gpu/lease/policies/all.hpp"
#include "gpu/lease/policy_text.hpp"

#include <algorithm>
#include <map>

namespace gristmill {

namespace {

/// The flows that are named first go first. With ageing a waiter overtakes the rank above it by
/// having waited so much longer; since all waiters age alike, that is a fixed order: by
/// rank * ageing + arrival.
class priority_rule final : public flow_rule {
public:
  priority_rule(std::string text, std::map<std::string, uint32_t, std::less<>> ranks,
    std::chrono::nanoseconds ageing)
    : text_(std::move(text)), ranks_(std::move(ranks)), ageing_(ageing) {}

  std::string text() const override { return text_; }

  flow_key key(const flow_account&, std::string_view name, const flow_head& oldest) const override {
    auto it = ranks_.find(name);
    auto rank = wide{it == ranks_.end() ? static_cast<uint32_t>(ranks_.size()) : it->second};
    if (ageing_.count() == 0)
      return {rank, oldest.ticket};
    return {rank * ageing_.count() + oldest.arrived.count(), oldest.ticket};
  }

private:
  std::string text_;
  std::map<std::string, uint32_t, std::less<>> ranks_;
  std::chrono::nanoseconds ageing_;
};

result<std::shared_ptr<const flow_rule>> make_priority_rule(const policy_values& v) {
  auto names = v.order("order");
  bool classes = v.text("by") == "class";
  if (names.empty() && !classes)
    return fail(errc::invalid_input,
      "lease policy 'priority': order must be given, such as order=first>second, unless by=class");
  if (names.empty())
    names = {"correctness", "timing", "profile"};
  std::vector<std::string> known;
  for (int i = 0; i <= static_cast<int>(lease_class::official); ++i)
    known.push_back(to_string(static_cast<lease_class>(i)));
  std::map<std::string, uint32_t, std::less<>> ranks;
  std::string text = "priority " + v.text("ageing");
  for (const auto& name : names) {
    if (classes && std::find(known.begin(), known.end(), name) == known.end())
      return fail(errc::invalid_input,
        "lease policy 'priority': order: there is no class '" + shown(name) + "'"
          + known_choices(name, known));
    if (!ranks.emplace(name, static_cast<uint32_t>(ranks.size())).second)
      return fail(
        errc::invalid_input, "lease policy 'priority': order names '" + shown(name) + "' twice");
    text += " " + state_hex(name);
  }
  return std::make_shared<const priority_rule>(std::move(text), std::move(ranks), v.time("ageing"));
}

} // namespace

policy_kind priority_kind() {
  policy_kind out;
  out.name = "priority";
  out.what = "named flows first, in their order; without ageing it starves the last";
  out.place = policy_place::flows;
  out.parameters = {{"order", value_kind::order, "",
                      "first to last; those not named come after all; by class: "
                      "correctness>timing>profile when not given",
                      true},
    {"ageing", value_kind::time, "0s", "longer wait that makes up for one rank; 0s: nothing does"}};
  out.make_rule = make_priority_rule;
  out.by_fallback = {"class"};
  return out;
}

} // namespace gristmill
