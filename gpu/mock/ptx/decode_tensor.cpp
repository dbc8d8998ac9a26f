#include "gpu/mock/ptx/bulk_ops.hpp"
#include "gpu/mock/ptx/bulk_reduce.hpp"
#include "gpu/mock/ptx/decode.hpp"
#include "gpu/mock/ptx/tensor_copy.hpp"
#include "gpu/mock/ptx/tensor_map.hpp"

#include <utility>

namespace gristmill::ptx {
namespace {

/// Registers of an address: the base, its bytes, and a constant with the offset.
struct address_registers {
  uint32_t base = 0;
  uint8_t bytes = 8;
  uint32_t offset = 0;
};

address_registers read_address(assembler& as, const operand& o, space where) {
  operation helper;
  as.address(helper, o, where);
  return {helper.a, helper.address_bytes, as.constant(static_cast<uint64_t>(helper.imm), 8)};
}

bulk_reduction take_reduction(assembler& as, modifiers& m) {
  const std::string_view how = m.take_one({"add", "min", "max", "inc", "dec", "and", "or", "xor"});
  const auto found = bulk_reduction_of(how);
  if (!found)
    as.cannot("this reduction of a bulk copy");
  return *found;
}

/// `[map, {coordinates}]` into the list of an operation.
void read_map_operand(assembler& as, const operand& o, operation& op, std::vector<uint32_t>& list) {
  if (o.kind != operand_kind::address || o.parts.size() != 2)
    as.wrong("a tensor map with coordinates is needed: [map, {x, y}]");
  const std::vector<operand> coordinates =
    o.parts[1].kind == operand_kind::vector ? o.parts[1].parts : std::vector<operand>{o.parts[1]};
  if (coordinates.size() != op.elements)
    as.wrong("the copy has " + std::to_string(op.elements) + " dimensions but "
      + std::to_string(coordinates.size()) + " coordinates");
  operand map = o;
  map.parts.resize(1);
  const address_registers at = read_address(as, map, space::generic);
  if (at.bytes != 8)
    as.wrong("the address of a tensor map has 64 bits");
  list[tensor_copy_map] = at.base;
  list[tensor_copy_map_offset] = at.offset;
  for (const operand& each : coordinates)
    list.push_back(as.read(each, 4));
}

void refuse_other_modes(assembler& as, modifiers& m) {
  for (const char* mode :
    {"im2col", "im2col_no_offs", "im2col::w", "im2col::w::128", "tile::gather4", "tile::scatter4"})
    if (m.has(mode))
      as.cannot("tensor copies in mode ." + std::string(mode) + " are not supported");
  for (const char* group : {"cta_group::1", "cta_group::2"})
    if (m.has(group))
      as.cannot("." + std::string(group) + " needs a later architecture and is not supported");
  m.take("tile");
}

} // namespace

/// cp.async.bulk.tensor and its reductions and prefetches; "async" and "bulk" have been taken.
void decode_tensor_copy(assembler& as, modifiers& m) {
  m.take("tensor");
  refuse_other_modes(as, m);
  const std::string_view rank = m.take_one({"1d", "2d", "3d", "4d", "5d"});
  if (rank.empty())
    as.wrong("a tensor copy has 1 to 5 dimensions");
  const size_t hint = m.take("L2::cache_hint") ? 1 : 0;
  const bool multicast = m.take("multicast::cluster");
  const bool completes = m.take("mbarrier::complete_tx::bytes");
  const bool group = m.take("bulk_group");
  const bool reduces = m.take("reduce");
  const bool prefetches = m.take("prefetch");
  operation op = async_operation(nullptr);
  op.elements = static_cast<uint8_t>(rank.front() - '0');
  std::vector<uint32_t> list(tensor_copy_coordinates, as.constant(0, 8));
  if (prefetches) {
    if (!m.take("L2") || !m.take("global"))
      as.cannot("this form of tensor prefetch");
    m.finish();
    need_operands(as, 1 + hint);
    op.run = tensor_prefetch;
    op.a = as.constant(0, 8);
    read_map_operand(as, operand_at(as, 0), op, list);
  } else if (completes && !reduces) {
    const std::string form = m.rest();
    if (form != "shared::cluster.global" && form != "shared::cta.global")
      as.cannot("this form of tensor copy");
    need_operands(as, 3 + (multicast ? 1 : 0) + hint);
    op.run = tensor_load;
    as.address(op, operand_at(as, 0), space::shared);
    read_map_operand(as, operand_at(as, 1), op, list);
    const address_registers barrier = read_address(as, operand_at(as, 2), space::shared);
    list[tensor_copy_mbarrier] = barrier.base;
    list[tensor_copy_mbarrier_offset] = barrier.offset;
    op.bytes = barrier.bytes;
    if (multicast) {
      op.mode = 1;
      list[tensor_copy_blocks] = as.read(operand_at(as, 3), 2);
    }
  } else if (group && !multicast) {
    if (reduces)
      op.mode = static_cast<uint8_t>(take_reduction(as, m));
    if (m.rest() != "global.shared::cta")
      as.cannot("this form of tensor copy");
    need_operands(as, 2 + hint);
    op.run = reduces ? tensor_reduce : tensor_store;
    as.address(op, operand_at(as, 1), space::shared);
    read_map_operand(as, operand_at(as, 0), op, list);
  } else {
    as.cannot("this form of tensor copy");
  }
  as.list(op, list);
  as.emit(op);
}

/// cp.reduce.async.bulk without a tensor map.
void decode_bulk_reduce(assembler& as, modifiers& m) {
  const size_t hint = m.take("L2::cache_hint") ? 1 : 0;
  const bool completes = m.take("mbarrier::complete_tx::bytes");
  const bool group = m.take("bulk_group");
  m.take("noftz");
  const auto type = bulk_type_of(m.take_type());
  const bulk_reduction how = take_reduction(as, m);
  const std::string form = m.rest();
  const bool to_shared = completes && form == "shared::cluster.shared::cta";
  if (!type || !reduction_exists(how, *type)
    || (!to_shared && !(group && form == "global.shared::cta")))
    as.cannot("this form of bulk reduction");
  if (to_shared && (bytes_of(*type) != 4 && how != bulk_reduction::add))
    as.cannot("this bulk reduction does not exist for shared memory");
  need_operands(as, (to_shared ? 4 : 3) + hint);
  operation op = async_operation(bulk_reduce);
  as.address(op, operand_at(as, 0), to_shared ? space::shared : space::global);
  op.bytes = 0;
  op.b = read_plain_address(as, operand_at(as, 1), op.bytes);
  op.c = as.read(operand_at(as, 2), 4);
  if (to_shared) {
    op.elements = 2;
    op.e = read_plain_address(as, operand_at(as, 3), op.bytes);
  }
  op.mode = static_cast<uint8_t>(how);
  op.target = static_cast<uint32_t>(*type);
  as.emit(op);
}

/// cp.async.bulk.prefetch.L2.global [a], size.
void decode_bulk_prefetch(assembler& as, modifiers& m) {
  const size_t hint = m.take("L2::cache_hint") ? 1 : 0;
  if (!m.take("prefetch") || !m.take("L2") || !m.take("global"))
    as.cannot("this form of bulk prefetch");
  m.finish();
  need_operands(as, 2 + hint);
  operation op = async_operation(bulk_prefetch);
  as.address(op, operand_at(as, 0), space::global);
  op.c = as.read(operand_at(as, 1), 4);
  as.emit(op);
}

namespace {

void decode_replace(assembler& as, modifiers& m) {
  static constexpr std::pair<std::string_view, tensor_map_field> fields[] = {
    {"global_address", tensor_map_field::global_address}, {"rank", tensor_map_field::rank},
    {"box_dim", tensor_map_field::box_dim}, {"global_dim", tensor_map_field::global_dim},
    {"global_stride", tensor_map_field::global_stride},
    {"element_stride", tensor_map_field::element_stride}, {"elemtype", tensor_map_field::elemtype},
    {"interleave_layout", tensor_map_field::interleave_layout},
    {"swizzle_mode", tensor_map_field::swizzle_mode}, {"fill_mode", tensor_map_field::fill_mode}};
  m.take("tile");
  m.take("b1024");
  operation op = async_operation(replace_in_tensor_map);
  op.counted = category::other;
  bool found = false;
  for (const auto& [text, field] : fields)
    if (!found && m.take(text)) {
      op.mode = static_cast<uint8_t>(field);
      found = true;
    }
  if (!found)
    as.cannot("this field of tensormap.replace");
  const auto field = static_cast<tensor_map_field>(op.mode);
  const bool indexed = is_indexed(field);
  const bool wide =
    field == tensor_map_field::global_address || field == tensor_map_field::global_stride;
  op.bytes = wide ? 8 : 4;
  if (!m.take(wide ? "b64" : "b32"))
    as.wrong("the value of this field has " + std::to_string(8 * op.bytes) + " bits");
  const space where = take_space(m);
  m.finish();
  need_operands(as, indexed ? 3 : 2);
  as.address(op, operand_at(as, 0), where);
  if (indexed) {
    const operand& dimension = operand_at(as, 1);
    if (dimension.kind != operand_kind::integer || dimension.integer < 0 || dimension.integer > 4)
      as.wrong("the dimension of tensormap.replace has to be a number from 0 to 4");
    op.target = static_cast<uint32_t>(dimension.integer);
  }
  op.b = as.read(operand_at(as, indexed ? 2 : 1), op.bytes);
  as.emit(op);
}

void decode_copy_fence(assembler& as, modifiers& m) {
  if (!m.take("sync") || !m.take("aligned") || !m.take("tensormap::generic") || !m.take("release"))
    as.cannot("this form of tensormap.cp_fenceproxy");
  m.take_one({"cta", "cluster", "gpu", "sys"});
  if (m.rest() != "global.shared::cta")
    as.cannot("this form of tensormap.cp_fenceproxy");
  need_operands(as, 3);
  const operand& size = operand_at(as, 2);
  if (size.kind != operand_kind::integer || size.integer != static_cast<int64_t>(tensor_map_bytes))
    as.wrong("tensormap.cp_fenceproxy copies 128 bytes");
  operation op = whole_warp_operation(as, copy_tensor_map, category::other);
  as.address(op, operand_at(as, 0), space::global);
  op.bytes = 0;
  op.b = read_plain_address(as, operand_at(as, 1), op.bytes);
  as.emit(op);
}

} // namespace

void decode_tensor_map(assembler& as) {
  modifiers m(as);
  if (m.take("replace"))
    decode_replace(as, m);
  else if (m.take("cp_fenceproxy"))
    decode_copy_fence(as, m);
  else
    as.cannot("this form of tensormap");
}

} // namespace gristmill::ptx
