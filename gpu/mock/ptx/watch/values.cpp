#include "gpu/mock/ptx/bulk_ops.hpp"
#include "gpu/mock/ptx/lanes/lanes.hpp"
#include "gpu/mock/ptx/matrix_shapes.hpp"
#include "gpu/mock/ptx/report.hpp"
#include "gpu/mock/ptx/tcgen05.hpp"
#include "gpu/mock/ptx/watch/watcher.hpp"
#include "gpu/mock/ptx/wgmma.hpp"

#include <fmt/format.h>

#include <algorithm>

/// Values that nobody has given. They may be read, moved and computed with: what comes of them is
/// one again, lane by lane, and a register is such a value as a whole. Only where one decides a
/// branch, is an address, or is stored as a result is it reported.
namespace gristmill::ptx {
namespace {

constexpr uint32_t nowhere = UINT32_MAX;

bool any_undefined(const uint8_t* undefined, uint32_t bytes) {
  return undefined != nullptr && std::find(undefined, undefined + bytes, 1) != undefined + bytes;
}

} // namespace

void watcher::report_undefined(
  warp& w, size_t at, uint32_t lane, uint32_t origin, const char* what) {
  if (!is_new(fault_kind::uninitialised, at, origin))
    return;
  if (origin >= code_.operations.size()) {
    add(w, at, fault_kind::uninitialised, lane,
      fmt::format("a value that nobody has given {}", what), nullptr);
    return;
  }
  const executed_place other =
    place_of(code_, what_, w.block->number, origin, w.id * warp_lanes + lane);
  add(w, at, fault_kind::uninitialised, lane,
    fmt::format("a value that nobody has given {}: it comes from memory that was read at {} and "
                "never written",
      what, place_text(other.ptx_line, other.source)),
    &other);
}

void watcher::decides(warp& w, const operation& o) {
  if (!on(check::uninitialised))
    return;
  const warp_shadow& s = shadow_of(w);
  const size_t at = index_of(o);
  if (o.guard >= 0) {
    const auto guard = static_cast<uint32_t>(o.guard);
    const uint32_t lanes = s.undefined_predicates[guard] & w.running;
    if (lanes != 0)
      report_undefined(w, at, first_lane(lanes), s.predicate_origin[guard],
        o.kind == flow::branch || o.kind == flow::exit ? "decides a branch"
                                                       : "decides whether this is executed");
  }
  if (o.kind == flow::indexed_branch && address_registers_[at] != nowhere) {
    const uint32_t reg = address_registers_[at];
    const uint32_t lanes = s.undefined[reg] & w.running;
    if (lanes != 0)
      report_undefined(w, at, first_lane(lanes), s.origin[reg], "decides a branch");
  }
}

void watcher::set_register(
  warp_shadow& s, uint32_t reg, uint32_t active, uint32_t lanes, uint32_t origin) {
  if (code_.registers[reg].fixed)
    return;
  if ((lanes & active) != 0)
    s.origin[reg] = origin;
  set_lanes(s.undefined[reg], active, lanes);
}

void watcher::set_predicate(
  warp_shadow& s, uint32_t predicate, uint32_t active, uint32_t lanes, uint32_t origin) {
  if (predicate == 0)
    return;
  if ((lanes & active) != 0)
    s.predicate_origin[predicate] = origin;
  set_lanes(s.undefined_predicates[predicate], active, lanes);
}

void watcher::before_values(warp& w, const operation& o) {
  if (o.run == predicate_logic || comparisons_.count(o.run) != 0) {
    const warp_shadow& s = shadow_of(w);
    q_before_ = w.predicates[o.q];
    r_before_ = w.predicates[o.r];
    q_undefined_ = s.undefined_predicates[o.q];
    r_undefined_ = s.undefined_predicates[o.r];
    logic_origin_ =
      (q_undefined_ & w.active) != 0 ? s.predicate_origin[o.q] : s.predicate_origin[o.r];
  } else if (o.run == shuffle) {
    note_shuffle(w, o);
  }
  const uint32_t reg = address_registers_[at_];
  if (reg == nowhere || !on(check::uninitialised))
    return;
  const warp_shadow& s = shadow_of(w);
  const uint32_t lanes = s.undefined[reg] & w.active;
  if (lanes != 0)
    report_undefined(w, at_, first_lane(lanes), s.origin[reg], "is an address");
}

/// As `shuffle` finds the source of each lane.
void watcher::note_shuffle(warp& w, const operation& o) {
  const uint32_t value = number_of(o.a, at_, false);
  shuffled_from_ = 0;
  if (value == nowhere)
    return;
  const uint32_t undefined = shadow_of(w).undefined[value];
  const uint32_t* b = lane_values<uint32_t>(w, o.b);
  const uint32_t* c = lane_values<uint32_t>(w, o.c);
  for (uint32_t l = 0; undefined != 0 && l < warp_lanes; ++l) {
    const uint32_t segment = c[l] >> 8 & 31;
    const auto last = static_cast<int32_t>((l & segment) | (c[l] & 31 & ~segment));
    const auto by = static_cast<int32_t>(b[l] & 31);
    const auto lane = static_cast<int32_t>(l);
    const int32_t from = o.mode == 0 ? lane - by
      : o.mode == 1                  ? lane + by
      : o.mode == 2                  ? lane ^ by
                                     : static_cast<int32_t>((l & segment) | (b[l] & ~segment & 31));
    const bool inside = o.mode == 0 ? from >= last : from <= last;
    const uint32_t source = inside ? static_cast<uint32_t>(from) & 31 : l;
    shuffled_from_ |= (undefined >> source & 1) << l;
  }
}

/// Of a plain load: the bytes of element k of each lane decide about register k.
void watcher::loaded(warp& w, const operation& o) {
  warp_shadow& s = shadow_of(w);
  uint32_t seen = 0;
  for (const lane_places& p : places_)
    for (uint32_t k = 0; k < o.elements; ++k) {
      uint32_t lanes = 0;
      for (uint32_t l = 0; l < warp_lanes; ++l)
        if ((p.active >> l & 1) != 0 && p.undefined[l] != nullptr
          && any_undefined(p.undefined[l] + k * o.bytes, o.bytes))
          lanes |= 1U << l;
      seen |= lanes & p.outputs;
      // One finding is enough: this one says more than what follows from it.
      if (on(check::outputs))
        lanes &= ~p.outputs;
      if (const uint32_t reg = number_of(o.list[k], at_, true); reg != nowhere)
        set_register(s, reg, p.active, lanes, static_cast<uint32_t>(at_));
    }
  if (seen != 0 && on(check::outputs)
    && is_new(fault_kind::read_before_write, at_, code_.operations.size()))
    add(w, at_, fault_kind::read_before_write, first_lane(seen),
      "reads a place of an output that nobody has written in this call", nullptr);
}

void watcher::store_value(warp& w, const lane_places& places, uint32_t lane, uint32_t offset,
  uint32_t bytes, bool is_undefined, uint32_t origin) {
  if (places.undefined[lane] == nullptr)
    return;
  const bool output = (places.outputs >> lane & 1) != 0;
  if (is_undefined && output && on(check::uninitialised))
    report_undefined(w, at_, lane, origin, "is stored as a result");
  // What has been reported is not reported again for everything that follows from it.
  std::fill_n(
    places.undefined[lane] + offset, bytes, static_cast<uint8_t>(is_undefined && !output ? 1 : 0));
}

void watcher::stored(warp& w, const operation& o) {
  const warp_shadow& s = shadow_of(w);
  for (const lane_places& p : places_)
    for (uint32_t k = 0; k < o.elements; ++k) {
      const uint32_t reg = number_of(o.list[k], at_, false);
      const uint32_t lanes = reg == nowhere ? 0 : s.undefined[reg];
      for (uint32_t l = 0; l < warp_lanes; ++l)
        if ((p.active >> l & 1) != 0)
          store_value(w, p, l, k * o.bytes, o.bytes, (lanes >> l & 1) != 0,
            reg == nowhere ? nowhere : s.origin[reg]);
    }
}

/// Of atomics: the old value is read, and the new one is as good as both.
void watcher::updated(warp& w) {
  warp_shadow& s = shadow_of(w);
  const kernel::operands& range = code_.operand_ranges[at_];
  uint32_t given = 0;
  uint32_t origin = static_cast<uint32_t>(at_);
  for (uint32_t i = 0; i < range.reads; ++i) {
    const uint32_t reg = code_.touched[range.first + i];
    if ((reg & predicate_mark) != 0 || reg == address_registers_[at_] || s.undefined[reg] == 0)
      continue;
    given |= s.undefined[reg];
    origin = s.origin[reg];
  }
  uint32_t old = 0;
  uint32_t outputs = 0;
  for (const lane_places& p : places_)
    for (uint32_t l = 0; l < warp_lanes; ++l) {
      if ((p.active >> l & 1) == 0)
        continue;
      const bool unwritten = any_undefined(p.undefined[l], p.bytes);
      old |= static_cast<uint32_t>(unwritten) << l;
      outputs |= static_cast<uint32_t>(unwritten) << l & p.outputs;
      store_value(w, p, l, 0, p.bytes,
        (given >> l & 1) != 0 || (unwritten && (p.outputs >> l & 1) == 0), origin);
    }
  if (outputs != 0 && on(check::outputs)
    && is_new(fault_kind::read_before_write, at_, code_.operations.size()))
    add(w, at_, fault_kind::read_before_write, first_lane(outputs),
      "adds to a place of an output that nobody has written in this call", nullptr);
  for (uint32_t i = range.reads; i < static_cast<uint32_t>(range.reads) + range.writes; ++i)
    if ((code_.touched[range.first + i] & predicate_mark) == 0)
      set_register(s, code_.touched[range.first + i], w.active, old, static_cast<uint32_t>(at_));
}

/// wmma.load and wmma.store: one set of places for each piece of each register.
void watcher::moved_fragment(warp& w, const operation& o, bool store) {
  warp_shadow& s = shadow_of(w);
  const size_t pieces = std::max<size_t>(1, places_.size() / std::max(1U, o.list_size));
  for (uint32_t i = 0; i < o.list_size; ++i) {
    const uint32_t reg = number_of(o.list[i], at_, !store);
    if (reg == nowhere)
      continue;
    uint32_t lanes = 0;
    for (size_t j = i * pieces; j < (i + 1) * pieces && j < places_.size(); ++j)
      for (uint32_t l = 0; l < warp_lanes; ++l) {
        if (store)
          store_value(
            w, places_[j], l, 0, places_[j].bytes, (s.undefined[reg] >> l & 1) != 0, s.origin[reg]);
        else
          lanes |= static_cast<uint32_t>(any_undefined(places_[j].undefined[l], places_[j].bytes))
            << l;
      }
    if (!store)
      set_register(s, reg, all_lanes, lanes, static_cast<uint32_t>(at_));
  }
}

/// ldmatrix and stmatrix: eight rows of 16 bytes for each register.
void watcher::moved_matrices(warp& w, const operation& o, bool store) {
  warp_shadow& s = shadow_of(w);
  for (uint32_t m = 0; m < o.elements && ranges_.size() >= size_t{m + 1} * 8; ++m) {
    const uint32_t reg = number_of(o.list[m], at_, !store);
    uint32_t lanes = 0;
    for (uint32_t l = 0; l < warp_lanes; ++l)
      for (uint32_t h = 0; h < 2; ++h) {
        const uint32_t r = l >> 2;
        const uint32_t c = (l & 3) * 2 + h;
        uint8_t* const place =
          ranges_[m * 8 + (o.mode == 1 ? c : r)].undefined + 2 * (o.mode == 1 ? r : c);
        if (!store)
          lanes |= static_cast<uint32_t>(any_undefined(place, 2)) << l;
        else if (reg != nowhere && (s.undefined[reg] >> l & 1) != 0)
          std::fill_n(place, 2, uint8_t{1});
      }
    if (!store && reg != nowhere)
      set_register(s, reg, all_lanes, lanes, static_cast<uint32_t>(at_));
  }
}

namespace {

/// How the registers of a product lie in its list.
struct product_lists {
  matrix_product p;
  uint32_t a = 0;
  uint32_t b = 0;
  uint32_t c = 0;
  uint32_t end = 0;
};

bool product_of(const operation& o, product_lists& out) {
  const bool halves = o.run == mma_f16_to_f16;
  if (o.run == mma_f16 || o.run == mma_bf16 || halves) {
    out.p.m = 16;
    out.p.n = 8;
    out.p.quarter_k = static_cast<uint8_t>(o.mode / 4);
    out.p.a = out.p.b = element_type::f16;
    out.p.c = out.p.d = halves ? element_type::f16 : element_type::f32;
    out.a = halves ? 2 : 4;
    out.b = out.a + o.mode / 4U;
    out.c = out.b + o.mode / 8U;
    out.end = o.list_size;
    return true;
  }
  if (o.run != multiply_matrices)
    return false;
  out.p = __builtin_bit_cast(matrix_product, o.imm);
  out.a = o.list_size - o.mode - o.bytes - o.elements;
  out.b = out.a + o.mode;
  out.c = out.b + o.bytes;
  out.end = out.c + o.elements;
  return true;
}

} // namespace

/// mma.sync and wmma.mma: an element is undefined when one of its row, of its column, or the one
/// that was there before is.
void watcher::multiplied(warp& w, const operation& o) {
  product_lists x;
  if (!product_of(o, x))
    return;
  warp_shadow& s = shadow_of(w);
  uint32_t rows = 0;
  uint32_t columns = 0;
  uint32_t origin = nowhere;
  const auto gather = [&](uint32_t from, uint32_t to, matrix_role role, element_type type,
                        auto&& found) {
    for (uint32_t i = from; i < to && i < o.list_size; ++i) {
      const uint32_t reg = number_of(o.list[i], at_, false);
      if (reg == nowhere || s.undefined[reg] == 0)
        continue;
      origin = s.origin[reg];
      const uint32_t elements = std::max(1U, 32 / bits_of(type));
      const uint32_t held = matrix_registers(x.p.m, x.p.n, x.p.k(), role, type);
      for (uint32_t l = 0; l < warp_lanes; ++l)
        for (uint32_t j = 0; (s.undefined[reg] >> l & 1) != 0 && j < elements; ++j)
          found(place_in_matrix(
            x.p.m, x.p.n, x.p.k(), role, type, l, (i - from) % std::max(1U, held), j));
    }
  };
  gather(x.a, x.b, matrix_role::left, x.p.a,
    [&](const matrix_place& at) { rows |= 1U << (at.row & 31); });
  gather(x.b, x.c, matrix_role::right, x.p.b,
    [&](const matrix_place& at) { columns |= 1U << (at.column & 31); });
  bool sums[32][32] = {};
  gather(x.c, x.end, matrix_role::sum, x.p.c,
    [&](const matrix_place& at) { sums[at.row & 31][at.column & 31] = true; });
  const uint32_t per_register = x.p.d == element_type::f16 ? 2 : 1;
  for (uint32_t i = 0; i < x.a; ++i) {
    const uint32_t reg = number_of(o.list[i], at_, true);
    uint32_t lanes = 0;
    for (uint32_t l = 0; l < warp_lanes; ++l)
      for (uint32_t j = 0; j < per_register; ++j) {
        const matrix_place at =
          place_in_matrix(x.p.m, x.p.n, x.p.k(), matrix_role::sum, x.p.d, l, i, j);
        if ((rows >> (at.row & 31) & 1) != 0 || (columns >> (at.column & 31) & 1) != 0
          || sums[at.row & 31][at.column & 31])
          lanes |= 1U << l;
      }
    if (reg != nowhere)
      set_register(s, reg, all_lanes, lanes, origin);
  }
}

/// wgmma: the rows of the warp as a whole.
void watcher::multiplied_group(warp& w, const operation& o) {
  warp_shadow& s = shadow_of(w);
  const kernel::operands& range = code_.operand_ranges[at_];
  bool undefined = false;
  uint32_t origin = static_cast<uint32_t>(at_);
  for (const shared_part& r : ranges_)
    undefined = undefined || any_undefined(r.undefined, static_cast<uint32_t>(r.bytes));
  const auto form = __builtin_bit_cast(wgmma_form, o.imm);
  const bool keeps = (w.predicates[o.r] ^ (form.flags & wgmma_not_scale ? all_lanes : 0)) != 0;
  for (uint32_t i = 0; i < range.reads; ++i) {
    const uint32_t reg = code_.touched[range.first + i];
    if ((reg & predicate_mark) != 0 || s.undefined[reg] == 0)
      continue;
    // Accumulators count only where they are added to.
    bool is_result = false;
    for (uint32_t k = range.reads; k < static_cast<uint32_t>(range.reads) + range.writes; ++k)
      is_result = is_result || code_.touched[range.first + k] == reg;
    if (is_result && !keeps)
      continue;
    undefined = true;
    origin = s.origin[reg];
  }
  for (uint32_t i = range.reads; i < static_cast<uint32_t>(range.reads) + range.writes; ++i)
    if ((code_.touched[range.first + i] & predicate_mark) == 0)
      set_register(s, code_.touched[range.first + i], all_lanes, undefined ? all_lanes : 0, origin);
}

void watcher::shuffled(warp& w, const operation& o) {
  warp_shadow& s = shadow_of(w);
  const uint32_t value = number_of(o.a, at_, false);
  const uint32_t by = number_of(o.b, at_, false);
  const uint32_t limits = number_of(o.c, at_, false);
  const uint32_t d = number_of(o.d, at_, true);
  if (d == nowhere)
    return;
  const uint32_t from = value == nowhere ? 0 : shuffled_from_;
  const uint32_t wrong =
    (by == nowhere ? 0 : s.undefined[by]) | (limits == nowhere ? 0 : s.undefined[limits]);
  set_register(s, d, w.active, from | wrong, value == nowhere ? nowhere : s.origin[value]);
}

void watcher::selected(warp& w, const operation& o) {
  warp_shadow& s = shadow_of(w);
  const uint32_t a = number_of(o.a, at_, false);
  const uint32_t b = number_of(o.b, at_, false);
  const uint32_t d = number_of(o.d, at_, true);
  if (d == nowhere)
    return;
  const uint32_t chosen = w.predicates[o.r] ^ (o.mode & 4 ? all_lanes : 0);
  const uint32_t of_a = a == nowhere ? 0 : s.undefined[a] & chosen;
  const uint32_t of_b = b == nowhere ? 0 : s.undefined[b] & ~chosen;
  const uint32_t of_r = s.undefined_predicates[o.r];
  const uint32_t origin = (of_r & w.active) != 0 ? s.predicate_origin[o.r]
    : (of_a & w.active) != 0                     ? s.origin[a]
    : b != nowhere                               ? s.origin[b]
                                                 : nowhere;
  set_register(s, d, w.active, of_a | of_b | of_r, origin);
}

/// `and` and `or` of predicates: one side that decides is enough, whatever the other one is.
void watcher::combined(warp& w, const operation& o) {
  warp_shadow& s = shadow_of(w);
  const uint32_t a = q_before_ ^ (o.imm & 1 ? all_lanes : 0);
  const uint32_t b = r_before_ ^ (o.imm & 2 ? all_lanes : 0);
  const uint32_t of_a = q_undefined_;
  const uint32_t of_b = o.mode <= 2 ? r_undefined_ : 0;
  uint32_t lanes = of_a | of_b;
  if (o.mode == 0)
    lanes &= ~((~a & ~of_a) | (~b & ~of_b));
  else if (o.mode == 1)
    lanes &= ~((a & ~of_a) | (b & ~of_b));
  set_predicate(s, o.p, w.active, lanes, logic_origin_);
}

void watcher::loaded_tensor(warp& w, const operation& o) {
  warp_shadow& s = shadow_of(w);
  for (uint32_t i = 0; i < o.list_size; ++i)
    if (const uint32_t reg = number_of(o.list[i], at_, true); reg != nowhere)
      set_register(s, reg, all_lanes, i < tensor_unwritten_.size() ? tensor_unwritten_[i] : 0,
        static_cast<uint32_t>(at_));
}

void watcher::after_values(warp& w, const operation& o) {
  warp_shadow& s = shadow_of(w);
  switch (o.traits & trait_access) {
  case trait_load:
    return loaded(w, o);
  case trait_store:
    return stored(w, o);
  case trait_update:
    return updated(w);
  default:
    break;
  }
  const lane_library& library = lanes();
  if (o.run == load_matrix || o.run == store_matrix)
    return moved_matrices(w, o, o.run == store_matrix);
  if (o.run == load_fragment || o.run == store_fragment)
    return moved_fragment(w, o, o.run == store_fragment);
  if (o.run == mma_f16 || o.run == mma_bf16 || o.run == mma_f16_to_f16
    || o.run == multiply_matrices)
    return multiplied(w, o);
  if (o.run == wgmma_multiply)
    return multiplied_group(w, o);
  if (o.run == tensor_load_registers)
    return loaded_tensor(w, o);
  if (o.run == shuffle)
    return shuffled(w, o);
  if (o.run == library.select[0] || o.run == library.select[1] || o.run == library.select[2])
    return selected(w, o);
  if (o.run == predicate_logic)
    return combined(w, o);
  // What comes of an undefined value is one. Where lanes exchange values, every lane has it.
  const kernel::operands& range = code_.operand_ranges[at_];
  const uint32_t* const touched = code_.touched.data() + range.first;
  uint32_t lanes_undefined = 0;
  uint32_t origin = nowhere;
  for (uint32_t i = 0; i < range.reads; ++i) {
    const bool is_predicate = (touched[i] & predicate_mark) != 0;
    const uint32_t number = touched[i] & ~predicate_mark;
    if (is_predicate && static_cast<int64_t>(number) == o.guard)
      continue;
    const uint32_t found =
      (is_predicate ? s.undefined_predicates[number] : s.undefined[number]) & w.active;
    if (found != 0)
      origin = is_predicate ? s.predicate_origin[number] : s.origin[number];
    lanes_undefined |= found;
  }
  if ((o.mode & 3) != 0 && lanes_undefined != 0 && comparisons_.count(o.run) != 0) {
    // Combined with another predicate, which may decide by itself.
    const uint32_t other = r_before_ ^ (o.mode & 4 ? all_lanes : 0);
    if ((o.mode & 3) == 1)
      lanes_undefined &= ~(~other & ~r_undefined_);
    else if ((o.mode & 3) == 2)
      lanes_undefined &= ~(other & ~r_undefined_);
  }
  if (o.kind == flow::warp_sync && lanes_undefined != 0)
    lanes_undefined = all_lanes;
  for (uint32_t i = range.reads; i < static_cast<uint32_t>(range.reads) + range.writes; ++i) {
    if ((touched[i] & predicate_mark) != 0)
      set_predicate(s, touched[i] & ~predicate_mark, w.active, lanes_undefined, origin);
    else
      set_register(s, touched[i], w.active, lanes_undefined, origin);
  }
}

} // namespace gristmill::ptx
