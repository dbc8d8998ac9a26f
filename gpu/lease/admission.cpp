#include "gpu/lease/admission.hpp"

#include <fmt/format.h>

namespace gristmill {

namespace {

result<admission> admit_next(
  const executor_state& executor, const executor_state::open_lease& open, uint32_t part) {
  if (open.is_ending)
    return tl::unexpected(lease_over(open.token, "it is being ended"));
  if (part <= open.part)
    return tl::unexpected(
      lease_over(open.token, fmt::format("{} has seen part {} of it", executor.name, open.part)));
  if (!open.awaits_part)
    return fail(errc::refused,
      fmt::format(
        "{} has not answered part {} of token {} yet", executor.name, open.part, open.token));
  if (open.term_is_over)
    return tl::unexpected(lease_over(open.token, "its term is over"));
  return admission::next_part;
}

} // namespace

result<admission> admit(const executor_state& executor, const measure_request& what) {
  if (what.under.gpu != executor.gpu)
    return fail(errc::invalid_input,
      fmt::format(
        "{} is GPU {}, the lease is for GPU {}", executor.name, executor.gpu, what.under.gpu));
  const auto token = what.under.token;
  const auto& open = executor.lease;
  if (open && open->token == token)
    return admit_next(executor, *open, what.part);
  if (token <= executor.fence)
    return tl::unexpected(
      lease_over(token, fmt::format("{} has seen token {}", executor.name, executor.fence)));
  if (open)
    return fail(errc::refused,
      fmt::format("{} still ends what ran under token {}", executor.name, open->token));
  if (executor.is_probed)
    return fail(errc::refused, executor.name + " is being looked at");
  return admission::first_part;
}

failure lease_over(uint64_t token, const std::string& reason) {
  return {errc::lease_expired, fmt::format("token {} no longer holds: {}", token, reason)};
}

} // namespace gristmill
