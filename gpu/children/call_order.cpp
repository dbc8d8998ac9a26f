#include "gpu/children/call_order.hpp"

#include <algorithm>

namespace gristmill {

namespace {

/// Draws before those of the buffers.
constexpr uint64_t draws_of_a_call = 6;

tensor_key for_workload(tensor_key secret, uint32_t workload) {
  for (size_t i = 0; i < 4; ++i)
    secret.bytes[8 + i] ^= static_cast<uint8_t>(workload >> (8 * i));
  return secret;
}

} // namespace

call_order::call_order(
  const tensor_key& secret, uint32_t workload, uint32_t cases, uint32_t buffers, uint32_t share)
  : stream_(for_workload(secret, workload)), cases_(std::max(cases, 1U)), buffers_(buffers),
    share_(share) {}

uint64_t call_order::number_at(uint64_t index) const {
  const auto block = stream_.block(index / 2);
  const size_t half = index % 2 * 2;
  return uint64_t{block[half]} << 32 | block[half + 1];
}

uint64_t call_order::digest_seed() const {
  return number_at(0);
}

drawn_call call_order::draw(uint32_t number) const {
  // Two numbers come before the first call.
  uint64_t at = 2 + number * (draws_of_a_call + buffers_);
  drawn_call out;
  out.which = static_cast<uint32_t>(number_at(at++) % cases_);
  const uint64_t other = number_at(at++);
  out.poison =
    cases_ == 1 ? 0 : static_cast<uint32_t>((out.which + 1 + other % (cases_ - 1)) % cases_);
  out.fill = number_at(at++);
  out.is_shared = number_at(at++) % 1024 < share_;
  out.keep = number_at(at);
  at += 2;
  for (uint32_t i = 0; i < buffers_; ++i)
    out.places.push_back(number_at(at++));
  return out;
}

device_pointer place_in_room(device_pointer base, uint64_t room, uint64_t align, uint64_t draw) {
  align = std::max<uint64_t>(align, 256);
  const device_pointer first = (base + align - 1) / align * align;
  if (first > base + room)
    return base;
  const uint64_t places = (base + room - first) / align + 1;
  return first + draw % places * align;
}

} // namespace gristmill
