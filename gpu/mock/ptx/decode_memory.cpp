#include "gpu/mock/ptx/decode.hpp"
#include "gpu/mock/ptx/memory.hpp"

namespace gristmill::ptx {
namespace {

uint8_t take_vector(modifiers& m) {
  return m.take("v2") ? 2 : m.take("v4") ? 4 : m.take("v8") ? 8 : 1;
}

/// Hints for caches change neither numbers nor, here, counts, apart from loads that pass L1 by.
bool take_cache_hints(modifiers& m) {
  const bool past_l1 = m.take_one({"cg", "cv"}) != "" || m.has("volatile") || m.has("relaxed")
    || m.has("acquire") || m.has("L1::no_allocate");
  m.take_one({"ca", "cs", "lu", "wb", "wt"});
  m.take_prefix("L1::");
  m.take("L2::64B");
  m.take("L2::128B");
  m.take("L2::256B");
  m.take_one({"L2::evict_first", "L2::evict_last", "L2::evict_normal"});
  return past_l1;
}

category load_category(space where) {
  return where == space::shared                         ? category::load_shared
    : where == space::local                             ? category::load_local
    : where == space::generic || where == space::global ? category::load_global
                                                        : category::other;
}

category store_category(space where) {
  return where == space::shared                         ? category::store_shared
    : where == space::local                             ? category::store_local
    : where == space::generic || where == space::global ? category::store_global
                                                        : category::other;
}

std::vector<operand> elements_of(const assembler& as, const operand& o, uint8_t count) {
  if (count == 1)
    return {o};
  if (o.kind != operand_kind::vector || o.parts.size() != count)
    as.wrong("a vector of " + std::to_string(count) + " registers is needed");
  return o.parts;
}

uint32_t register_width(const assembler& as, const std::vector<operand>& elements, uint32_t bytes) {
  uint32_t width = 0;
  for (const operand& e : elements) {
    const uint32_t w = as.width(e);
    if (w != 0 && width != 0 && w != width)
      as.wrong("the registers of a vector differ in width");
    width = w != 0 ? w : width;
  }
  return width != 0 ? width : std::max(2U, bytes);
}

/// A parameter of the entry, or a variable of a call that lives in a register.
bool load_without_memory(assembler& as, std::string_view type, const std::vector<operand>& to,
  uint32_t width, uint32_t bytes) {
  const operand& address = operand_at(as, 1);
  if (address.kind != operand_kind::address || address.parts.front().kind != operand_kind::variable)
    return false;
  const assembler::place p = as.locate(address.parts.front());
  if (p.kind != assembler::place::in_register && p.kind != assembler::place::parameter_bank)
    return false;
  for (size_t i = 0; i < to.size(); ++i) {
    operation op;
    op.run = lanes().move[width == 2 ? 0 : width == 4 ? 1 : 2];
    op.counted = category::other;
    if (p.kind == assembler::place::in_register) {
      op.a = as.reads(p.reg);
    } else {
      const int64_t offset = address.integer + static_cast<int64_t>(i * bytes);
      if (offset < 0 || offset + bytes > p.bytes)
        as.wrong("a read past the end of the parameter");
      op.a = as.parameter(static_cast<uint32_t>(p.address) + static_cast<uint32_t>(offset), bytes,
        width, type.front() == 's');
    }
    op.d = as.write(to[i], width);
    if (i == 0)
      as.emit(op);
    else
      as.emit_hidden(op);
  }
  return true;
}

} // namespace

void decode_load(assembler& as) {
  modifiers m(as);
  const std::string_view type = m.take_type();
  operation op;
  op.elements = take_vector(m);
  op.mode = take_cache_hints(m) ? 1 : 0;
  const bool policy = m.take("L2::cache_hint");
  m.take("nc");
  m.take("unified");
  op.in_cluster = m.has("shared::cluster");
  op.polls = m.has("volatile") || m.has("relaxed") || m.has("acquire");
  op.kind = op.polls ? flow::waiting : flow::straight;
  const space where = take_space(m);
  op.traits = static_cast<uint8_t>(trait_load | take_memory_order(m));
  m.finish();
  need_operands(as, policy ? 3 : 2);
  const uint32_t bytes = bytes_of(as, type);
  if (bytes * op.elements > 32)
    as.wrong("an access of more than 32 bytes");
  const std::vector<operand> to = elements_of(as, operand_at(as, 0), op.elements);
  const uint32_t width = register_width(as, to, bytes);
  op.bytes = static_cast<uint8_t>(bytes);
  op.run = load_handler(type, width);
  if (!op.run)
    as.cannot("a load of type '" + std::string(type) + "' into registers of "
      + std::to_string(8 * width) + " bits");
  if (where == space::parameter && load_without_memory(as, type, to, width, bytes))
    return;
  // By a register, or of a variable in memory: parameters have generic addresses.
  as.address(op, operand_at(as, 1), where == space::parameter ? space::generic : where);
  op.counted = where == space::parameter ? category::other : load_category(where);
  if (where == space::constant)
    op.where = space::constant;
  if (policy)
    as.read(operand_at(as, 2), 8);
  std::vector<uint32_t> registers;
  for (const operand& element : to)
    registers.push_back(as.write(element, width));
  as.list(op, registers);
  as.emit(op);
}

void decode_store(assembler& as) {
  modifiers m(as);
  if (m.has("async")) {
    decode_store_async(as);
    return;
  }
  const std::string_view type = m.take_type();
  operation op;
  op.elements = take_vector(m);
  take_cache_hints(m);
  op.in_cluster = m.has("shared::cluster");
  const bool policy = m.take("L2::cache_hint");
  const space where = take_space(m);
  op.traits = static_cast<uint8_t>(trait_store | take_memory_order(m));
  m.finish();
  need_operands(as, policy ? 3 : 2);
  if (where == space::constant)
    as.wrong("constant memory cannot be written");
  const uint32_t bytes = bytes_of(as, type);
  if (bytes * op.elements > 32)
    as.wrong("an access of more than 32 bytes");
  const std::vector<operand> from = elements_of(as, operand_at(as, 1), op.elements);
  const uint32_t width = register_width(as, from, bytes);
  const char immediates = type == "f32" ? 'f' : type == "f64" ? 'd' : 'i';
  op.bytes = static_cast<uint8_t>(bytes);
  op.run = store_handler(type, width);
  if (!op.run)
    as.cannot("a store of type '" + std::string(type) + "' from registers of "
      + std::to_string(8 * width) + " bits");
  const operand& address = operand_at(as, 0);
  if (where == space::parameter && address.kind == operand_kind::address
    && address.parts.front().kind == operand_kind::variable) {
    const assembler::place p = as.locate(address.parts.front());
    if (p.kind == assembler::place::parameter_bank)
      as.wrong("a parameter of an entry cannot be written");
    if (p.kind == assembler::place::in_register) {
      op.run = lanes().move[width == 2 ? 0 : width == 4 ? 1 : 2];
      op.counted = category::other;
      op.traits = 0;
      op.a = as.read(from.front(), width, immediates);
      op.d = as.writes(p.reg);
      as.emit(op);
      return;
    }
  }
  as.address(op, address, where == space::parameter ? space::generic : where);
  op.counted = where == space::parameter ? category::other : store_category(where);
  if (policy)
    as.read(operand_at(as, 2), 8);
  std::vector<uint32_t> registers;
  for (const operand& element : from)
    registers.push_back(as.read(element, width, immediates));
  as.list(op, registers);
  as.emit(op);
}

void decode_atomic(assembler& as) {
  const bool reduction = as.current().opcode.front() == "red";
  modifiers m(as);
  if (m.has("async")) {
    decode_reduction_async(as);
    return;
  }
  const std::string_view type = m.take_type();
  const bool in_cluster = m.has("shared::cluster");
  const space where = take_space(m);
  const uint8_t order = take_memory_order(m);
  m.take("noftz");
  const uint8_t elements = take_vector(m);
  const bool policy = m.take("L2::cache_hint");
  const std::string name = m.rest();
  if (where != space::generic && where != space::global && where != space::shared)
    as.cannot("atomics in this space");
  const bool compare = name == "cas";
  const size_t first = reduction ? 0 : 1;
  need_operands(as, first + (compare ? 3 : 2) + (policy ? 1 : 0));
  operation op;
  op.traits = static_cast<uint8_t>(trait_update | trait_strong | order);
  op.in_cluster = in_cluster;
  op.polls = !reduction;
  op.kind = op.polls ? flow::waiting : flow::straight;
  const uint32_t bytes = bytes_of(as, type);
  const char immediates = type == "f32" ? 'f' : type == "f64" ? 'd' : 'i';
  op.counted = where == space::shared ? category::atomic_shared : category::atomic_global;
  op.run = elements > 1 ? vector_reduction_handler(name, type) : atomic_handler(name, type);
  if (!op.run)
    as.cannot(
      "atomic operation '" + name + "' of type '" + std::string(type) + "' is not supported");
  as.address(op, operand_at(as, first), where);
  const operand& value = operand_at(as, first + 1);
  if (elements > 1) {
    std::vector<uint32_t> registers;
    for (const operand& element : elements_of(as, value, elements))
      registers.push_back(as.read(element, bytes, immediates));
    if (!reduction)
      for (const operand& element : elements_of(as, operand_at(as, 0), elements))
        registers.push_back(as.write(element, bytes));
    op.elements = elements;
    as.list(op, registers);
  } else {
    op.b = as.read(value, bytes, immediates);
  }
  if (compare)
    op.c = as.read(operand_at(as, first + 2), bytes, immediates);
  if (policy)
    as.read(operand_at(as, first + (compare ? 3 : 2)), 8);
  if (!reduction && elements == 1)
    op.d = as.write(operand_at(as, 0), bytes);
  as.emit(op);
}

/// Touches no cache of the model: what is prefetched counts when it is used.
void decode_prefetch(assembler& as) {
  modifiers m(as);
  take_space(m);
  m.take_prefix("L");
  m.take("tensormap");
  m.finish();
  need_operands(as, 1, 2);
  operation op;
  op.run = no_operation;
  as.address(op, operand_at(as, 0), space::generic);
  as.emit(op);
}

/// A cache policy is a number without meaning here.
void decode_create_policy(assembler& as) {
  modifiers m(as);
  const std::string_view type = m.take_type();
  m.take("fractional");
  m.take("range");
  m.take("cvt");
  m.take_prefix("L2");
  take_space(m);
  m.finish();
  if (type != "b64")
    as.wrong("a cache policy has 64 bits");
  operation op;
  op.run = lanes().move[2];
  op.counted = category::other;
  op.a = as.constant(0, 8);
  op.d = as.write(operand_at(as, 0), 8);
  as.emit(op);
}

} // namespace gristmill::ptx
