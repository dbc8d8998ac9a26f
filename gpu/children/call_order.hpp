#pragma once

#include "gpu/device.hpp"
#include "tensors/philox.hpp"

#include <cstdint>
#include <vector>

namespace gristmill {

/// What is drawn for one timed call.
struct drawn_call {
  /// Which of the cases gives the inputs.
  uint32_t which = 0;
  /// Whose outputs poison the outputs: another case, where there is one.
  uint32_t poison = 0;
  /// What scratch and the room around buffers hold.
  uint64_t fill = 0;
  /// One a buffer: where it lies.
  std::vector<uint64_t> places;
  /// Whether it belongs to the secret share that the judge gets although nothing is wrong with it.
  bool is_shared = false;
  /// Decides what is kept when more has to be written out than may be.
  uint64_t keep = 0;
};

/// Draws the timed calls of a workload from the job's secret, each by itself: no call says anything
/// about the next, and a kernel cannot foresee which inputs it gets at which address.
class call_order {
public:
  /// `workload` tells the workloads of a job apart. At least one case. `share` in 1/1024.
  call_order(
    const tensor_key& secret, uint32_t workload, uint32_t cases, uint32_t buffers, uint32_t share);

  drawn_call draw(uint32_t number) const;
  /// For digests: what a kernel does not know it cannot aim at.
  uint64_t digest_seed() const;

private:
  uint64_t number_at(uint64_t index) const;

  philox_stream stream_;
  uint32_t cases_;
  uint32_t buffers_;
  uint32_t share_;
};

/// Where a buffer begins that has `room` bytes more than it needs from `base` on: one of the
/// multiples of `align` (at least 256) that fit, as the draw says. Where none fits, `base`.
device_pointer place_in_room(device_pointer base, uint64_t room, uint64_t align, uint64_t draw);

} // namespace gristmill
