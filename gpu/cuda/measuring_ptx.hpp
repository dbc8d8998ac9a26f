#pragma once

#include <cstdint>
#include <string>

namespace gristmill::cuda {

/// The kernels that prepare and check timed calls, as PTX for sm_80 and newer. Parameters in order,
/// all of 64 bits; addresses are multiples of 8; blocks of 256 threads, any grid.
///
/// | entry | parameters | does |
/// |---|---|---|
/// | gm_read | from, bytes, sink | reads, 16 bytes a thread; writes nothing that matters |
/// | gm_digest | from, bytes, seed, out | adds the hash of each word of eight bytes to `out` |
/// | gm_fill | to, bytes, seed | fills with what `fill_word` gives |
/// | gm_differ | a, b, bytes, out | out[0] += differing words; out[1] = lowest of their numbers |
/// | gm_touch | from, bytes, step | every block reads a byte every `step` bytes |
/// | gm_canary | out, ns | out[0], out[1] = cycles, nanoseconds of about `ns`; one thread |
const char* measuring_ptx();

/// A module with one entry `gm_scrub(seed, sink)`, blocks of 1,024 threads: writes all dynamic
/// shared memory of its launch, about sixty registers a thread and `local_bytes` of local memory,
/// so that nothing of an earlier kernel is left there.
std::string scrub_ptx(uint32_t local_bytes, uint32_t shared_bytes);

/// What the kernels compute, on the host. `word` is number `index` of its buffer; a last word that
/// is shorter is filled up with zeros.
uint64_t digest_word(uint64_t word, uint64_t index, uint64_t seed);
uint64_t fill_word(uint64_t index, uint64_t seed);

} // namespace gristmill::cuda
