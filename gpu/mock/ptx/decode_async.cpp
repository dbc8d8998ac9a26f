#include "gpu/mock/ptx/bulk_ops.hpp"
#include "gpu/mock/ptx/decode.hpp"
#include "gpu/mock/ptx/warp.hpp"

namespace gristmill::ptx {

operation async_operation(handler run) {
  operation op;
  op.run = run;
  op.counted = category::async;
  return op;
}

uint32_t read_plain_address(assembler& as, const operand& o, uint8_t& bytes) {
  operation helper;
  as.address(helper, o, space::shared);
  if (helper.imm != 0 || (bytes != 0 && bytes != helper.address_bytes))
    as.cannot("an offset in a bulk copy, or addresses of two widths");
  bytes = helper.address_bytes;
  return helper.a;
}

namespace {

/// `mode` bit 0: of bulk copies; bit 1: only until their sources have been read.
void decode_groups(assembler& as, modifiers& m, bool bulk) {
  if (m.take("commit_group")) {
    m.finish();
    operation op = async_operation(copy_commit);
    op.mode = bulk ? 1 : 0;
    as.emit(op);
    return;
  }
  if (m.take("wait_all")) {
    m.finish();
    as.emit_hidden(async_operation(copy_commit));
    as.emit(async_operation(copy_wait));
    return;
  }
  m.take("wait_group");
  const bool sources = m.take("read");
  m.finish();
  need_operands(as, 1);
  operation op = async_operation(copy_wait);
  op.mode = static_cast<uint8_t>((bulk ? 1 : 0) | (sources ? 2 : 0));
  const operand& count = operand_at(as, 0);
  if (count.kind != operand_kind::integer || count.integer < 0 || count.integer > INT32_MAX)
    as.wrong("cp.async.wait_group needs a number");
  op.imm = operand_at(as, 0).integer;
  as.emit(op);
}

/// cp.async.mbarrier.arrive{.noinc}: the copies are done, so it is an arrival; without `.noinc` it
/// was added to what the mbarrier awaits, which cancels out.
void decode_copy_arrive(assembler& as, modifiers& m) {
  m.take("mbarrier");
  m.take("arrive");
  const bool counts = m.take("noinc");
  take_space(m);
  m.take("b64");
  m.finish();
  need_operands(as, 1);
  operation op = async_operation(mbarrier_arrive);
  op.mode = counts ? 0 : 4;
  op.traits = trait_acquire; // What the warp copied so far arrives with it.
  as.address(op, operand_at(as, 0), space::shared);
  as.emit(op);
}

void decode_bulk(assembler& as, modifiers& m) {
  const bool policy = m.take("L2::cache_hint");
  const bool completes = m.take("mbarrier::complete_tx::bytes");
  const bool group = m.take("bulk_group");
  const std::string form = m.rest();
  operation op;
  if (completes && (form == "shared::cluster.global" || form == "shared::cta.global")) {
    need_operands(as, 4 + (policy ? 1 : 0));
    op = async_operation(bulk_to_shared);
    as.address(op, operand_at(as, 0), space::shared);
    operation source;
    as.address(source, operand_at(as, 1), space::global);
    if (source.imm != 0 || source.address_bytes != 8)
      as.cannot("an offset at the source of a bulk copy");
    op.b = source.a;
    op.c = as.read(operand_at(as, 2), 4);
    operation barrier;
    as.address(barrier, operand_at(as, 3), space::shared);
    if (barrier.imm != 0)
      as.cannot("an offset at the mbarrier of a bulk copy");
    op.e = barrier.a;
    op.bytes = barrier.address_bytes;
  } else if (completes && form == "shared::cluster.shared::cta" && !policy) {
    need_operands(as, 4);
    op = async_operation(bulk_in_cluster);
    as.address(op, operand_at(as, 0), space::shared);
    op.bytes = 0;
    op.b = read_plain_address(as, operand_at(as, 1), op.bytes);
    op.e = read_plain_address(as, operand_at(as, 3), op.bytes);
    op.c = as.read(operand_at(as, 2), 4);
  } else if (group && form == "global.shared::cta") {
    need_operands(as, 3 + (policy ? 1 : 0));
    op = async_operation(bulk_to_global);
    as.address(op, operand_at(as, 0), space::global);
    operation source;
    as.address(source, operand_at(as, 1), space::shared);
    if (source.imm != 0)
      as.cannot("an offset at the source of a bulk copy");
    op.b = source.a;
    op.bytes = source.address_bytes;
    op.c = as.read(operand_at(as, 2), 4);
  } else {
    as.cannot("this form of bulk copy; 1-D copies between global and shared memory are supported");
  }
  as.emit(op);
}

} // namespace

void decode_copy(assembler& as) {
  modifiers m(as);
  if (!m.take("async"))
    as.cannot("this form of cp");
  const bool bulk = m.take("bulk");
  if (m.has("commit_group") || m.has("wait_group") || m.has("wait_all")) {
    decode_groups(as, m, bulk);
    return;
  }
  if (m.has("tensor")) {
    decode_tensor_copy(as, m);
    return;
  }
  for (const operand& o : as.current().operands)
    if (o.kind == operand_kind::address && o.parts.size() > 1)
      as.wrong("coordinates are only for tensor copies");
  if (bulk && m.take("reduce")) {
    decode_bulk_reduce(as, m);
    return;
  }
  if (bulk && m.has("prefetch")) {
    decode_bulk_prefetch(as, m);
    return;
  }
  if (bulk) {
    decode_bulk(as, m);
    return;
  }
  if (m.has("mbarrier")) {
    decode_copy_arrive(as, m);
    return;
  }
  operation op = async_operation(copy_async);
  const bool past_l1 = m.take("cg");
  if (!past_l1 && !m.take("ca"))
    as.cannot("this form of cp.async");
  op.mode = past_l1 ? 1 : 0;
  m.take_prefix("L2::128B");
  m.take("L2::64B");
  m.take("L2::256B");
  const bool policy = m.take("L2::cache_hint");
  const std::string spaces = m.rest();
  if (spaces != "shared.global" && spaces != "shared::cta.global")
    as.cannot("this form of cp.async");
  need_operands(as, 3, 5);
  as.address(op, operand_at(as, 0), space::shared);
  operation source;
  as.address(source, operand_at(as, 1), space::global);
  if (source.address_bytes != 8 || source.imm < INT32_MIN || source.imm > INT32_MAX)
    as.cannot("this address of a source");
  op.b = source.a;
  op.target = static_cast<uint32_t>(static_cast<int32_t>(source.imm));
  const operand& size = operand_at(as, 2);
  if (size.kind != operand_kind::integer
    || (size.integer != 4 && size.integer != 8 && size.integer != 16))
    as.wrong("cp.async copies 4, 8 or 16 bytes");
  op.bytes = static_cast<uint8_t>(size.integer);
  size_t at = 3;
  const size_t end = as.current().operands.size() - (policy ? 1 : 0);
  if (at < end) {
    const operand& extra = operand_at(as, at++);
    if (extra.kind == operand_kind::predicate) {
      op.mode |= 4;
      op.r = as.read_predicate(extra);
      if (extra.negated)
        as.cannot("a negated predicate in cp.async");
    } else {
      op.mode |= 2;
      op.c = as.read(extra, 4);
    }
  }
  if (at != end)
    as.wrong("cp.async has too many operands");
  as.emit(op);
}

void decode_mbarrier(assembler& as) {
  modifiers m(as);
  take_space(m);
  m.take("b64");
  take_memory_order(m);
  const std::vector<operand>& o = as.current().operands;
  if (m.take("init")) {
    m.finish();
    need_operands(as, 2);
    operation op = async_operation(mbarrier_init);
    as.address(op, o[0], space::shared);
    op.b = as.read(o[1], 4);
    as.emit(op);
  } else if (m.take("inval")) {
    m.finish();
    need_operands(as, 1);
    operation op = async_operation(mbarrier_inval);
    as.address(op, o[0], space::shared);
    as.emit(op);
  } else if (const std::string_view test = m.take_one({"try_wait", "test_wait"}); !test.empty()) {
    const bool parity = m.take("parity");
    m.finish();
    need_operands(as, 3, test == "try_wait" ? 4 : 3);
    operation op = async_operation(mbarrier_test);
    op.kind = flow::waiting;
    op.mode = parity ? 0 : 1;
    as.address(op, o[1], space::shared);
    op.b = as.read(o[2], parity ? 4 : 8);
    op.p = as.write_predicate(o[0]);
    as.emit(op);
  } else if (m.take("arrive")) {
    const bool expects = m.take("expect_tx");
    m.take("noComplete");
    m.finish();
    need_operands(as, 1, 3);
    operation op = async_operation(mbarrier_arrive);
    const size_t at = o[0].kind == operand_kind::address ? 0 : 1;
    as.address(op, operand_at(as, at), space::shared);
    if (at + 1 < o.size()) {
      op.mode = expects ? 2 : 1;
      (expects ? op.c : op.b) = as.read(o[at + 1], 4);
    } else if (expects) {
      as.wrong("mbarrier.arrive.expect_tx needs a number of bytes");
    }
    op.d = at == 1 ? as.write(o[0], 8) : 0;
    as.emit(op);
  } else if (m.take("expect_tx")) {
    m.finish();
    need_operands(as, 2);
    operation op = async_operation(mbarrier_expect);
    as.address(op, o[0], space::shared);
    op.b = as.read(o[1], 4);
    as.emit(op);
  } else {
    as.cannot("this form of mbarrier");
  }
}

} // namespace gristmill::ptx
