#include "gpu/lease/external_policy.hpp"

#include "gpu/lease/policies/all.hpp"

namespace gristmill {

policy_kind external_kind() {
  policy_kind out;
  out.name = "external";
  out.what = "a process of your own decides, over JSON lines; fifo where it does not answer";
  out.place = policy_place::alone;
  out.parameters = {{"cmd", value_kind::text, "", "what /bin/sh -c runs, between double quotes"},
    {"timeout", value_kind::time, "50ms", "for one answer; 1ms to 1s"}};
  out.make_policy = [](const policy_values& v) -> result<std::unique_ptr<lease_policy>> {
    auto timeout = v.time("timeout");
    if (v.text("cmd").empty())
      return fail(errc::invalid_input, "lease policy 'external': cmd must not be empty");
    if (timeout < std::chrono::milliseconds{1} || timeout > std::chrono::seconds{1})
      return fail(errc::invalid_input,
        "lease policy 'external': timeout must be from 1ms to 1s: the broker waits for it");
    external_policy_config config;
    config.command = v.text("cmd");
    config.timeout = timeout;
    return make_external_policy(std::move(config));
  };
  return out;
}

} // namespace gristmill
