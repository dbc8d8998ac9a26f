#include "gpu/mock/ptx/assembler.hpp"
#include "gpu/mock/ptx/expansion.hpp"

#include "gpu/mock/ptx/error.hpp"
#include "gpu/mock/ptx/limits.hpp"
#include "gpu/mock/ptx/tcgen05.hpp"

#include <algorithm>

namespace gristmill::ptx {
namespace {

uint64_t aligned(uint64_t value, uint64_t align) {
  return (value + align - 1) / align * align;
}

bool loads_or_stores(const operation& o) {
  const uint8_t access = o.traits & trait_access;
  return access == trait_load || access == trait_store;
}

} // namespace

void assembler::assemble(const function_syntax& entry) {
  out_.info.name = entry.name;
  out_.info.line = entry.line;
  out_.info.max_threads = entry.max_threads;
  std::copy_n(entry.required_block, 3, out_.info.required_block.begin());
  out_.info.registers_max = entry.registers_max;
  out_.info.blocks_per_sm_min = entry.blocks_per_sm_min;
  std::copy_n(entry.cluster, 3, out_.info.cluster.begin());
  new_register(8, true); // The sink.
  out_.predicates = 2;   // The sink, and the carry of `add.cc`.
  open_frame(entry);
  run_frame();
  close_frame(true);
  for (operation& op : out_.operations) {
    op.list = out_.lists.data() + op.list_first;
    out_.uses_tensor_memory = out_.uses_tensor_memory || op.run == tensor_allocate;
    op.access = loads_or_stores(op) ? ++out_.accesses : 0;
  }
  find_straight_runs();
}

void assembler::find_straight_runs() {
  const size_t size = out_.operations.size();
  out_.straight_ends.resize(size);
  out_.visible_before.assign(size + 1, 0);
  for (size_t i = 0; i < size; ++i)
    out_.visible_before[i + 1] = out_.visible_before[i] + (out_.operations[i].hidden ? 0 : 1);
  // Who reads the clock has to find the steps up to itself counted.
  const auto is_straight = [&](size_t i) {
    return out_.operations[i].kind == flow::straight && out_.operations[i].run != read_clock;
  };
  for (size_t i = size; i-- > 0;)
    out_.straight_ends[i] = static_cast<uint32_t>(!is_straight(i) ? i
        : i + 1 < size && is_straight(i + 1)                      ? out_.straight_ends[i + 1]
                                                                  : i + 1);
}

void assembler::run_frame() {
  const size_t depth = frames_.size() - 1;
  const function_syntax& f = *frames_[depth].function;
  for (const statement& s : f.statements) {
    frames_[depth].starts.push_back(static_cast<uint32_t>(out_.operations.size()));
    statement_ = &s;
    source_ = static_cast<uint32_t>(out_.sources.size());
    out_.sources.push_back({s.line, s.text, s.file, s.source});
    const size_t before = out_.operations.size();
    decode(*this);
    // Helpers come first; calls have said it themselves.
    if (out_.operations.size() > before && out_.operations.back().expands == 0)
      out_.operations.back().expands = find_expansion(s);
    pending_reads_.clear();
    pending_writes_.clear();
  }
  frames_[depth].starts.push_back(static_cast<uint32_t>(out_.operations.size()));
}

void assembler::open_frame(const function_syntax& f) {
  if (frames_.size() >= call_depth_max)
    not_supported(line(), "calls are nested more than " + std::to_string(call_depth_max) + " deep");
  for (const frame& outer : frames_)
    if (outer.function == &f)
      not_supported(line(),
        "function '" + std::string(f.name)
          + "' calls itself; recursion is not "
            "supported");
  frame inner;
  inner.function = &f;
  inner.registers.reserve(f.registers.size());
  for (const register_declaration& r : f.registers) {
    if (r.width == 0)
      inner.registers.push_back(out_.predicates++);
    else
      inner.registers.push_back(new_register(r.width, false));
  }
  frames_.push_back(std::move(inner));
  declare_variables(frames_.back());
}

void assembler::declare_variables(frame& f) {
  const function_syntax& function = *f.function;
  const bool entry = frames_.size() == 1;
  const std::vector<bool>& in_register = register_variables(scope_, function);
  f.variables.resize(function.variables.size());
  for (uint32_t i = 0; i < function.variables.size(); ++i) {
    const variable& v = function.variables[i];
    place& p = f.variables[i];
    p.bytes = static_cast<uint32_t>(v.bytes);
    const auto& formal = function.parameters;
    if (v.where == space::shared) {
      place_shared(v, p);
    } else if (v.where == space::local) {
      place_local(v, p);
      out_.info.local_bytes += p.bytes;
    } else if (entry && std::find(formal.begin(), formal.end(), i) != formal.end()) {
      p.kind = place::parameter_bank;
      p.address = aligned(out_.parameter_bytes, v.align);
      out_.parameter_bytes = static_cast<uint32_t>(p.address + v.bytes);
      if (out_.parameter_bytes > parameter_bytes_max)
        refuse(v.line,
          "entry '" + std::string(function.name) + "' has more than "
            + std::to_string(parameter_bytes_max) + " bytes of parameters");
      out_.info.parameters.push_back({std::string(v.name), static_cast<uint32_t>(p.address),
        p.bytes, v.align, std::string(v.type)});
    } else if (in_register[i]) {
      p.kind = place::in_register;
      p.reg = temporary(p.bytes);
    } else {
      place_local(v, p);
    }
  }
}

void assembler::place_shared(const variable& v, place& p) {
  const auto found = shared_.find(&v);
  if (found != shared_.end()) {
    p = found->second;
    return;
  }
  p.where = space::shared;
  p.bytes = static_cast<uint32_t>(v.bytes);
  if (v.dynamic) {
    p.kind = place::dynamic_shared;
    out_.uses_dynamic_shared = true;
    out_.dynamic_shared_align = std::max(out_.dynamic_shared_align, v.align);
  } else {
    p.address = aligned(out_.info.static_shared, v.align);
    if (p.address + v.bytes > shared_bytes_max)
      refuse(v.line, "more than " + std::to_string(shared_bytes_max) + " bytes of shared memory");
    out_.info.static_shared = static_cast<uint32_t>(p.address + v.bytes);
  }
  shared_[&v] = p;
}

void assembler::place_local(const variable& v, place& p) {
  p.where = space::local;
  p.address = aligned(out_.local_bytes, std::max<uint32_t>(v.align, 8));
  if (p.address + v.bytes > local_bytes_max)
    refuse(v.line, "more than " + std::to_string(local_bytes_max) + " bytes of local memory");
  out_.local_bytes = static_cast<uint32_t>(p.address + v.bytes);
}

void assembler::close_frame(bool is_entry) {
  const auto end = static_cast<uint32_t>(out_.operations.size());
  frame& f = frames_.back();
  for (const frame::fix& fix : f.fixes) {
    const uint32_t target = f.starts[f.function->labels[fix.label]];
    if (fix.entry < 0)
      out_.operations[fix.operation].target = target;
    else
      out_.lists[static_cast<size_t>(fix.entry)] = target;
  }
  for (const uint32_t op : f.returns)
    out_.operations[op].target = end;
  frames_.pop_back();
  if (!is_entry)
    return;
  statement_ = nullptr;
  source_ = static_cast<uint32_t>(out_.sources.size());
  out_.sources.push_back({out_.info.line, "(end of the entry)", 0, 0});
  operation last;
  last.kind = flow::exit;
  last.counted = category::branch;
  emit_hidden(last);
}

void assembler::emit(operation op) {
  op.source = source_;
  if (statement_ && statement_->guard >= 0 && op.guard < 0) {
    op.guard =
      static_cast<int32_t>(frames_.back().registers[static_cast<size_t>(statement_->guard)]);
    op.guard_negated = statement_->guard_negated;
  }
  if (op.guard >= 0)
    pending_reads_.push_back(static_cast<uint32_t>(op.guard) | predicate_mark);
  if (out_.operations.size() >= operations_max || ++scope_.operations > operations_total_max)
    refuse(line(), "too many instructions after the expansion of calls");
  out_.operand_ranges.push_back({static_cast<uint32_t>(out_.touched.size()),
    static_cast<uint16_t>(pending_reads_.size()), static_cast<uint16_t>(pending_writes_.size())});
  out_.touched.insert(out_.touched.end(), pending_reads_.begin(), pending_reads_.end());
  out_.touched.insert(out_.touched.end(), pending_writes_.begin(), pending_writes_.end());
  pending_reads_.clear();
  pending_writes_.clear();
  out_.operations.push_back(op);
}

void assembler::emit_hidden(operation op) {
  op.hidden = true;
  emit(op);
}

void assembler::list(operation& op, const std::vector<uint32_t>& registers) {
  op.list_first = static_cast<uint32_t>(out_.lists.size());
  op.list_size = static_cast<uint32_t>(registers.size());
  out_.lists.insert(out_.lists.end(), registers.begin(), registers.end());
}

uint32_t assembler::find_label(std::string_view name) const {
  const function_syntax& f = *frames_.back().function;
  for (uint32_t scope = statement_->scope;; scope = f.scopes[scope].parent) {
    const auto found = f.scopes[scope].labels.find(name);
    if (found != f.scopes[scope].labels.end())
      return found->second;
    if (scope == 0)
      break;
  }
  wrong("label '" + std::string(name) + "' is not defined");
}

void assembler::branch(std::string_view label) {
  frames_.back().fixes.push_back(
    {static_cast<uint32_t>(out_.operations.size()), find_label(label), -1});
  operation op;
  op.kind = flow::branch;
  op.counted = category::branch;
  emit(op);
}

void assembler::indexed_branch(uint32_t index, std::string_view list_name) {
  const function_syntax& f = *frames_.back().function;
  const std::vector<std::string_view>* targets = nullptr;
  for (uint32_t scope = statement_->scope;; scope = f.scopes[scope].parent) {
    const auto found = f.scopes[scope].branch_targets.find(list_name);
    if (found != f.scopes[scope].branch_targets.end())
      targets = &found->second;
    if (targets || scope == 0)
      break;
  }
  if (!targets || targets->empty())
    wrong("list of labels '" + std::string(list_name) + "' is not defined");
  operation op;
  op.kind = flow::indexed_branch;
  op.counted = category::branch;
  op.a = index;
  list(op, std::vector<uint32_t>(targets->size(), 0));
  for (size_t i = 0; i < targets->size(); ++i)
    frames_.back().fixes.push_back({static_cast<uint32_t>(out_.operations.size()),
      find_label((*targets)[i]), static_cast<int64_t>(op.list_first + i)});
  emit(op);
}

void assembler::leave() {
  operation op;
  op.counted = category::branch;
  if (is_entry()) {
    op.kind = flow::exit;
  } else {
    op.kind = flow::branch;
    frames_.back().returns.push_back(static_cast<uint32_t>(out_.operations.size()));
  }
  emit(op);
}

void assembler::cannot(const std::string& why) const {
  not_supported(line(), why + ": `" + one_line(statement_ ? statement_->text : "") + "`");
}

void assembler::wrong(const std::string& why) const {
  refuse(line(), why + ": `" + one_line(statement_ ? statement_->text : "") + "`");
}

} // namespace gristmill::ptx
