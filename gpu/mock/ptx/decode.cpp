#include "gpu/mock/ptx/decode.hpp"

#include <algorithm>
#include <unordered_map>

namespace gristmill::ptx {
namespace {

using decoder = void (*)(assembler&);

const std::unordered_map<std::string_view, decoder>& decoders() {
  static const std::unordered_map<std::string_view, decoder> table{{"mov", decode_move},
    {"cvta", decode_address_conversion}, {"isspacep", decode_is_space}, {"cvt", decode_convert},
    {"setp", decode_compare}, {"set", decode_set}, {"selp", decode_select}, {"testp", decode_testp},
    {"ld", decode_load}, {"ldu", decode_load}, {"st", decode_store}, {"atom", decode_atomic},
    {"red", decode_atomic}, {"prefetch", decode_prefetch}, {"prefetchu", decode_prefetch},
    {"applypriority", decode_prefetch}, {"discard", decode_prefetch},
    {"createpolicy", decode_create_policy}, {"bra", decode_branch}, {"brx", decode_indexed_branch},
    {"ret", decode_return}, {"exit", decode_return}, {"call", decode_call}, {"trap", decode_trap},
    {"brkpt", decode_trap}, {"bar", decode_barrier}, {"barrier", decode_barrier},
    {"shfl", decode_shuffle}, {"vote", decode_vote}, {"match", decode_match},
    {"redux", decode_reduce_lanes}, {"activemask", decode_active_mask}, {"elect", decode_elect},
    {"membar", decode_fence}, {"fence", decode_fence}, {"griddepcontrol", decode_grid_dependency},
    {"setmaxnreg", decode_register_count}, {"mapa", decode_map_address},
    {"getctarank", decode_rank_of_address}, {"nanosleep", decode_sleep}, {"mma", decode_mma},
    {"wmma", decode_wmma}, {"movmatrix", decode_movmatrix}, {"ldmatrix", decode_matrix_access},
    {"stmatrix", decode_matrix_access}, {"cp", decode_copy}, {"tensormap", decode_tensor_map},
    {"wgmma", decode_wgmma}, {"mbarrier", decode_mbarrier}, {"tcgen05", decode_tcgen05}};
  return table;
}

} // namespace

void decode(assembler& as) {
  const std::string_view opcode = as.current().opcode.front();
  for (const operand& o : as.current().operands)
    if (o.kind == operand_kind::address && o.parts.size() > 1 && opcode != "cp")
      as.cannot("addresses with coordinates (textures)");
  const auto found = decoders().find(opcode);
  if (found != decoders().end())
    found->second(as);
  else
    decode_arithmetic(as);
}

modifiers::modifiers(const assembler& as)
  : as_(as), parts_(as.current().opcode.begin() + 1, as.current().opcode.end()) {}

bool modifiers::take(std::string_view part) {
  const auto found = std::find(parts_.begin(), parts_.end(), part);
  if (found == parts_.end())
    return false;
  parts_.erase(found);
  return true;
}

std::string_view modifiers::take_one(std::initializer_list<std::string_view> parts) {
  for (const std::string_view part : parts)
    if (take(part))
      return part;
  return {};
}

bool modifiers::take_prefix(std::string_view prefix) {
  return std::erase_if(parts_, [&](std::string_view part) { return part.starts_with(prefix); }) > 0;
}

std::string_view modifiers::take_type() {
  if (parts_.empty())
    as_.wrong("the instruction has no type");
  const std::string_view type = parts_.back();
  parts_.pop_back();
  return type;
}

bool modifiers::has(std::string_view part) const {
  return std::find(parts_.begin(), parts_.end(), part) != parts_.end();
}

void modifiers::finish() const {
  if (!parts_.empty())
    as_.cannot("'." + std::string(parts_.front()) + "' is not supported in this instruction");
}

std::string modifiers::rest() const {
  std::string result;
  for (const std::string_view part : parts_)
    result += (result.empty() ? "" : ".") + std::string(part);
  return result;
}

const operand& operand_at(const assembler& as, size_t i) {
  if (i >= as.current().operands.size())
    as.wrong("the instruction has too few operands");
  return as.current().operands[i];
}

void need_operands(const assembler& as, size_t least, size_t most) {
  const size_t given = as.current().operands.size();
  if (given < least || given > most)
    as.wrong("the instruction has " + std::to_string(given) + " operands instead of "
      + std::to_string(given < least ? least : most));
}

void need_operands(const assembler& as, size_t count) {
  need_operands(as, count, count);
}

uint32_t bytes_of(const assembler& as, std::string_view type) {
  const int bytes = type_bytes(type);
  if (bytes <= 0)
    as.cannot("type '" + std::string(type) + "' is not supported here");
  return static_cast<uint32_t>(bytes);
}

space take_space(modifiers& m) {
  if (m.take("global"))
    return space::global;
  if (m.take("shared") || m.take("shared::cta") || m.take("shared::cluster"))
    return space::shared;
  if (m.take("local"))
    return space::local;
  if (m.take("param") || m.take("param::entry") || m.take("param::func"))
    return space::parameter;
  if (m.take("const"))
    return space::constant;
  return space::generic;
}

uint8_t take_memory_order(modifiers& m) {
  const bool mmio = m.take("mmio");
  const std::string_view order =
    m.take_one({"weak", "volatile", "relaxed", "acquire", "release", "acq_rel"});
  const std::string_view scope = m.take_one({"cta", "cluster", "gpu", "sys"});
  uint32_t traits = 0;
  if (mmio || (!order.empty() && order != "weak"))
    traits |= trait_strong;
  if (order == "acquire" || order == "acq_rel")
    traits |= trait_acquire;
  if (order == "release" || order == "acq_rel")
    traits |= trait_release;
  if (scope == "cta")
    traits |= trait_block_scope;
  return static_cast<uint8_t>(traits);
}

} // namespace gristmill::ptx
