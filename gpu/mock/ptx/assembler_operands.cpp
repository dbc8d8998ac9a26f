#include "gpu/mock/ptx/assembler.hpp"
#include "gpu/mock/ptx/limits.hpp"
#include "gpu/mock/ptx/warp.hpp"

#include <bit>
#include <optional>

namespace gristmill::ptx {
namespace {

struct special_name {
  special which;
  /// Says nothing about time or place, so using it is no finding.
  bool harmless;
};

std::optional<special_name> find_special(std::string_view name) {
  static const std::unordered_map<std::string_view, special_name> names{
    {"%tid.x", {special::tid_x, true}}, {"%tid.y", {special::tid_y, true}},
    {"%tid.z", {special::tid_z, true}}, {"%ntid.x", {special::ntid_x, true}},
    {"%ntid.y", {special::ntid_y, true}}, {"%ntid.z", {special::ntid_z, true}},
    {"%ctaid.x", {special::ctaid_x, true}}, {"%ctaid.y", {special::ctaid_y, true}},
    {"%ctaid.z", {special::ctaid_z, true}}, {"%nctaid.x", {special::nctaid_x, true}},
    {"%nctaid.y", {special::nctaid_y, true}}, {"%nctaid.z", {special::nctaid_z, true}},
    {"%laneid", {special::laneid, true}}, {"%warpid", {special::warpid, true}},
    {"%nwarpid", {special::nwarpid, true}}, {"%lanemask_eq", {special::lanemask_eq, true}},
    {"%lanemask_lt", {special::lanemask_lt, true}}, {"%lanemask_le", {special::lanemask_le, true}},
    {"%lanemask_gt", {special::lanemask_gt, true}}, {"%lanemask_ge", {special::lanemask_ge, true}},
    {"%smid", {special::smid, false}}, {"%nsmid", {special::nsmid, false}},
    {"%gridid", {special::zero, false}},
    {"%dynamic_smem_size", {special::dynamic_shared_size, false}},
    {"%total_smem_size", {special::total_shared_size, false}},
    {"%aggr_smem_size", {special::total_shared_size, false}},
    {"%clusterid.x", {special::clusterid_x, false}},
    {"%clusterid.y", {special::clusterid_y, false}},
    {"%clusterid.z", {special::clusterid_z, false}},
    {"%nclusterid.x", {special::nclusterid_x, false}},
    {"%nclusterid.y", {special::nclusterid_y, false}},
    {"%nclusterid.z", {special::nclusterid_z, false}},
    {"%cluster_ctaid.x", {special::cluster_ctaid_x, false}},
    {"%cluster_ctaid.y", {special::cluster_ctaid_y, false}},
    {"%cluster_ctaid.z", {special::cluster_ctaid_z, false}},
    {"%cluster_nctaid.x", {special::cluster_nctaid_x, false}},
    {"%cluster_nctaid.y", {special::cluster_nctaid_y, false}},
    {"%cluster_nctaid.z", {special::cluster_nctaid_z, false}},
    {"%cluster_ctarank", {special::cluster_ctarank, false}},
    {"%cluster_nctarank", {special::cluster_nctarank, false}}};
  const auto found = names.find(name);
  return found == names.end() ? std::nullopt : std::optional(found->second);
}

} // namespace

uint32_t assembler::new_register(uint32_t bytes, bool fixed) {
  register_numbers_bytes_ += uint64_t{bytes} * warp_lanes;
  if (out_.registers.size() >= 4 * registers_max)
    wrong("too many registers after the expansion of calls");
  out_.registers.push_back({0, static_cast<uint8_t>(bytes), fixed});
  return static_cast<uint32_t>(out_.registers.size() - 1);
}

uint32_t assembler::temporary(uint32_t bytes) {
  return new_register(bytes, false);
}

uint32_t assembler::new_predicate() {
  return out_.predicates++;
}

uint32_t assembler::reads(uint32_t reg) {
  if (!out_.registers[reg].fixed)
    pending_reads_.push_back(reg);
  return reg;
}

uint32_t assembler::writes(uint32_t reg) {
  if (!out_.registers[reg].fixed)
    pending_writes_.push_back(reg);
  return reg;
}

uint32_t assembler::reads_predicate(uint32_t predicate) {
  pending_reads_.push_back(predicate | predicate_mark);
  return predicate;
}

uint32_t assembler::writes_predicate(uint32_t predicate) {
  pending_writes_.push_back(predicate | predicate_mark);
  return predicate;
}

uint32_t assembler::constant(uint64_t value, uint32_t bytes) {
  const auto [at, is_new] = constants_.try_emplace({value, bytes}, 0);
  if (is_new) {
    at->second = new_register(bytes, true);
    out_.constants.push_back({at->second, value});
  }
  return at->second;
}

uint32_t assembler::special_register(special which, uint32_t bytes) {
  const auto [at, is_new] = specials_.try_emplace({which, bytes}, 0);
  if (is_new) {
    at->second = new_register(bytes, true);
    out_.specials.push_back({which, at->second});
  }
  return at->second;
}

uint32_t assembler::parameter(
  uint32_t offset, uint32_t bytes, uint32_t register_bytes, bool sign_extend) {
  const auto [at, is_new] =
    parameters_.try_emplace({offset, bytes, register_bytes, sign_extend}, 0);
  if (is_new) {
    at->second = new_register(register_bytes, true);
    out_.parameter_slots.push_back({at->second, offset, static_cast<uint8_t>(bytes), sign_extend});
  }
  return at->second;
}

uint32_t assembler::width(const operand& o) const {
  if (o.kind == operand_kind::reg)
    return out_.registers[frames_.back().registers[o.index]].bytes;
  return o.kind == operand_kind::special ? 4 : 0;
}

uint32_t assembler::read(const operand& o, uint32_t bytes, char immediates) {
  switch (o.kind) {
  case operand_kind::reg: {
    const uint32_t reg = frames_.back().registers[o.index];
    if (out_.registers[reg].bytes != bytes)
      wrong("register '" + std::string(o.text) + "' has "
        + std::to_string(8 * out_.registers[reg].bytes) + " bits where " + std::to_string(8 * bytes)
        + " are needed");
    return reads(reg);
  }
  case operand_kind::integer:
  case operand_kind::floating: {
    if (bytes > 8)
      cannot("an immediate of 128 bits");
    uint64_t bits = static_cast<uint64_t>(o.integer);
    if (immediates == 'f' && o.float_bits != 32)
      bits = std::bit_cast<uint32_t>(static_cast<float>(o.number));
    else if (immediates == 'd' && o.float_bits != 64)
      bits = std::bit_cast<uint64_t>(o.number);
    else if (immediates == 'i' && o.kind == operand_kind::floating && o.float_bits != 8 * bytes)
      wrong("a number with a decimal point where bits are needed");
    if (bytes < 8) {
      const uint64_t above = bits >> (8 * bytes);
      if (above != 0 && above != UINT64_MAX >> (8 * bytes))
        wrong("an immediate does not fit into " + std::to_string(8 * bytes) + " bits");
      bits &= (1ULL << (8 * bytes)) - 1;
    }
    return constant(bits, bytes);
  }
  case operand_kind::special:
    return read_special(o, bytes);
  case operand_kind::variable:
  case operand_kind::symbol:
    return read_address(o, bytes);
  default:
    wrong("an operand of this kind cannot be read here");
  }
}

uint32_t assembler::write(const operand& o, uint32_t bytes) {
  if (o.kind == operand_kind::none)
    return bytes > 8 ? writes(temporary(bytes)) : 0; // The sink is too narrow for 128 bits.
  if (o.kind != operand_kind::reg)
    wrong("the destination is not a register");
  const uint32_t reg = frames_.back().registers[o.index];
  if (out_.registers[reg].bytes != bytes)
    wrong("register '" + std::string(o.text) + "' has "
      + std::to_string(8 * out_.registers[reg].bytes) + " bits where " + std::to_string(8 * bytes)
      + " are written");
  return writes(reg);
}

uint32_t assembler::read_predicate(const operand& o) {
  if (o.kind == operand_kind::integer) {
    // Predicate 0 is the sink; a constant one is made by a comparison that is always so.
    operation op;
    const uint32_t p = new_predicate();
    op.run = set_predicate;
    op.p = p;
    op.imm = o.integer != 0;
    std::vector<uint32_t> reads_before;
    std::swap(reads_before, pending_reads_);
    std::vector<uint32_t> writes_before;
    std::swap(writes_before, pending_writes_);
    writes_predicate(p);
    emit_hidden(op);
    pending_reads_ = std::move(reads_before);
    pending_writes_ = std::move(writes_before);
    return reads_predicate(p);
  }
  if (o.kind == operand_kind::special && o.text == "%is_explicit_cluster") {
    const std::vector<uint32_t> reads_before = std::exchange(pending_reads_, {});
    const std::vector<uint32_t> writes_before = std::exchange(pending_writes_, {});
    operation op;
    op.run = predicate_of_special;
    op.a = reads(special_register(special::explicit_cluster, 4));
    op.p = writes_predicate(new_predicate());
    emit_hidden(op);
    pending_reads_ = reads_before;
    pending_writes_ = writes_before;
    return reads_predicate(op.p);
  }
  if (o.kind != operand_kind::predicate)
    wrong("a predicate is needed");
  return reads_predicate(frames_.back().registers[o.index]);
}

uint32_t assembler::write_predicate(const operand& o) {
  if (o.kind == operand_kind::none)
    return 0;
  if (o.kind != operand_kind::predicate)
    wrong("the destination is not a predicate");
  return writes_predicate(frames_.back().registers[o.index]);
}

uint32_t assembler::read_special(const operand& o, uint32_t bytes) {
  const std::optional<special_name> known = find_special(o.text);
  if (known) {
    if (!known->harmless)
      scope_.specials.insert(std::string(o.text));
    if (bytes != 4 && !(bytes == 8 && o.text == "%gridid"))
      wrong("special register '" + std::string(o.text) + "' has 32 bits");
    return special_register(known->which, bytes);
  }
  const bool wide = o.text == "%clock64" || o.text == "%globaltimer";
  const bool high = o.text == "%clock_hi" || o.text == "%globaltimer_hi";
  const bool low = o.text == "%clock" || o.text == "%globaltimer_lo";
  if (!wide && !high && !low)
    cannot("special register '" + std::string(o.text) + "' is not supported");
  if (bytes != (wide ? 8U : 4U))
    wrong("special register '" + std::string(o.text) + "' has another width");
  scope_.specials.insert(std::string(o.text));
  operation op;
  op.run = read_clock;
  op.bytes = static_cast<uint8_t>(bytes);
  op.mode = high ? 1 : 0;
  op.d = temporary(bytes);
  const std::vector<uint32_t> before = std::exchange(pending_reads_, {});
  const std::vector<uint32_t> writes_before = std::exchange(pending_writes_, {});
  const uint32_t result = writes(op.d);
  emit_hidden(op);
  pending_reads_ = before;
  pending_writes_ = writes_before;
  return reads(result);
}

assembler::place assembler::locate(const operand& o) {
  if (o.kind == operand_kind::variable)
    return frames_.back().variables[o.index];
  if (o.kind != operand_kind::symbol)
    wrong("a variable is needed");
  const auto found = scope_.variables.find(o.text);
  if (found == scope_.variables.end()) {
    const auto function = scope_.addresses.find(o.text);
    if (function != scope_.addresses.end() && scope_.functions.count(o.text)) {
      place entry_point;
      entry_point.where = space::global;
      entry_point.address = function->second;
      return entry_point;
    }
    if (scope_.functions.count(o.text))
      cannot("the address of '" + std::string(o.text) + "', which has no body here");
    wrong("'" + std::string(o.text) + "' is not declared");
  }
  place p;
  if (found->second->where == space::shared) {
    if (found->second->is_extern)
      cannot("shared variable '" + std::string(o.text) + "' is defined in another module");
    place_shared(*found->second, p);
    return p;
  }
  p.where = found->second->where;
  p.address = scope_.addresses.at(o.text);
  p.bytes = static_cast<uint32_t>(std::min<uint64_t>(found->second->bytes, UINT32_MAX));
  return p;
}

uint32_t assembler::read_address(const operand& o, uint32_t bytes) {
  const place p = locate(o);
  if (bytes != 8 && !(bytes == 4 && (p.where == space::shared || p.where == space::local)))
    wrong("the address of '" + std::string(o.text) + "' needs 64 bits");
  const auto offset = static_cast<uint64_t>(o.integer);
  switch (p.kind) {
  case place::dynamic_shared:
    if (offset != 0)
      cannot("an offset to dynamic shared memory outside of an address");
    return special_register(special::dynamic_shared_base, bytes);
  case place::parameter_bank:
    return constant(parameter_memory + p.address + offset, bytes);
  case place::in_register:
    wrong("the address of a parameter that is in a register");
  case place::memory:
    break;
  }
  // The parameters of a call are read by generic addresses, variables by those of their space.
  const bool is_parameter = o.kind == operand_kind::variable
    && frames_.back().function->variables[o.index].where == space::parameter;
  const uint64_t value = p.address + offset + (is_parameter ? local_window : 0);
  return constant(bytes == 4 ? value & UINT32_MAX : value, bytes);
}

void assembler::address(operation& op, const operand& o, space where) {
  if (o.kind != operand_kind::address)
    wrong("an address in brackets is needed");
  const operand& base = o.parts.front();
  op.where = where;
  op.imm = o.integer;
  if (base.kind == operand_kind::reg) {
    op.address_bytes = static_cast<uint8_t>(width(base));
    if (op.address_bytes < 4)
      wrong("a register of 16 bits cannot be an address");
    op.a = read(base, op.address_bytes);
    return;
  }
  if (base.kind == operand_kind::integer) {
    op.address_bytes = 8;
    op.a = constant(static_cast<uint64_t>(base.integer), 8);
    return;
  }
  const place p = locate(base);
  if (where == space::generic && p.kind == place::memory)
    op.where = p.where == space::constant ? space::global : p.where;
  if (where == space::generic && p.kind == place::dynamic_shared)
    op.where = space::shared;
  op.address_bytes = 8;
  op.a = read_address(base, 8);
}

} // namespace gristmill::ptx
