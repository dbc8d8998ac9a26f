#include "gpu/mock/ptx/assembler.hpp"
#include "gpu/mock/ptx/expansion.hpp"
#include "gpu/mock/ptx/memory.hpp"
#include "gpu/mock/ptx/warp.hpp"
#include "gpu/mock/ptx/width_ops.hpp"

#include <algorithm>

namespace gristmill::ptx {
namespace {

void forbid(const operand& o, std::vector<bool>& fits) {
  if (o.kind == operand_kind::variable)
    fits[o.index] = false;
  for (const operand& part : o.parts)
    forbid(part, fits);
}

/// `st.param.b32 [v], r` and its reverse: all of v at once, from or to a register as wide.
bool whole_access(const function_syntax& f, const statement& s) {
  const bool load = s.opcode.front() == "ld";
  if ((!load && s.opcode.front() != "st") || s.opcode.size() != 3 || s.operands.size() != 2
    || !s.opcode[1].starts_with("param"))
    return false;
  const operand& where = s.operands[load ? 1 : 0];
  const operand& value = s.operands[load ? 0 : 1];
  if (where.kind != operand_kind::address || where.integer != 0
    || where.parts.front().kind != operand_kind::variable)
    return false;
  const variable& v = f.variables[where.parts.front().index];
  const auto bytes = static_cast<uint64_t>(type_bytes(s.opcode[2]));
  return bytes == v.bytes
    && (value.kind == operand_kind::integer || value.kind == operand_kind::floating
      || (value.kind == operand_kind::reg && f.registers[value.index].width == bytes));
}

} // namespace

const std::vector<bool>& register_variables(module_scope& scope, const function_syntax& f) {
  const auto [at, is_new] = scope.register_variables.try_emplace(&f);
  std::vector<bool>& fits = at->second;
  if (!is_new)
    return fits;
  for (const variable& v : f.variables)
    fits.push_back(v.where == space::parameter && v.bytes == v.width
      && (v.bytes == 2 || v.bytes == 4 || v.bytes == 8));
  for (const statement& s : f.statements)
    if (s.opcode.front() != "call" && !whole_access(f, s))
      for (const operand& o : s.operands)
        forbid(o, fits);
  return fits;
}

void assembler::call(const operand* results, const operand& callee, const operand* arguments) {
  if (callee.kind == operand_kind::reg) {
    indirect_call(results, callee, arguments);
    return;
  }
  if (callee.kind != operand_kind::symbol)
    cannot("a call of this kind of operand");
  const auto found = scope_.functions.find(callee.text);
  if (found == scope_.functions.end())
    wrong("function '" + std::string(callee.text) + "' is not declared");
  if (found->second->is_entry)
    wrong("'" + std::string(callee.text) + "' is an entry and cannot be called");
  if (found->second->has_body)
    inline_call(*found->second, results, arguments);
  else if (!library_call(callee.text, results, arguments))
    runtime_call(callee.text, results, arguments);
}

/// Each function of the module that has these parameters is compared with the address, and called
/// when it is the one: which one it is cannot be known before the run.
void assembler::indirect_call(
  const operand* results, const operand& callee, const operand* arguments) {
  if (statement_->guard >= 0)
    cannot("an indirect call with a guard");
  const auto fits = [&](const std::vector<uint32_t>& formal, const operand* actual,
                      const function_syntax& f) {
    if (formal.size() != (actual ? actual->parts.size() : 0))
      return false;
    for (size_t i = 0; i < formal.size(); ++i) {
      const operand& o = actual->parts[i];
      if (o.kind != operand_kind::variable
        || frames_.back().function->variables[o.index].bytes != f.variables[formal[i]].bytes)
        return false;
    }
    return true;
  };
  const compare_entry* equal = nullptr;
  for (size_t i = 0; i < lanes().compare_size && !equal; ++i)
    if (std::string_view(lanes().compare[i].name) == "eq.u64")
      equal = &lanes().compare[i];
  std::vector<size_t> to_the_end;
  for (const function_syntax& f : scope_.syntax->functions) {
    const auto address = scope_.addresses.find(f.name);
    if (f.is_entry || !f.has_body || address == scope_.addresses.end()
      || !fits(f.results, results, f) || !fits(f.parameters, arguments, f))
      continue;
    operation compare;
    compare.run = equal->run;
    compare.a = read(callee, 8);
    compare.b = constant(address->second, 8);
    compare.p = writes_predicate(new_predicate());
    emit_hidden(compare);
    operation next;
    next.kind = flow::branch;
    next.counted = category::branch;
    next.guard = static_cast<int32_t>(compare.p);
    next.guard_negated = true;
    const size_t around = out_.operations.size();
    emit_hidden(next);
    inline_call(f, results, arguments);
    operation end;
    end.kind = flow::branch;
    end.counted = category::branch;
    to_the_end.push_back(out_.operations.size());
    emit_hidden(end);
    out_.operations[around].target = static_cast<uint32_t>(out_.operations.size());
  }
  if (to_the_end.empty())
    cannot("indirect calls need a function of the module that has these parameters");
  operation nothing;
  nothing.run = call_of_nothing;
  nothing.counted = category::branch;
  nothing.a = read(callee, 8);
  emit(nothing);
  for (const size_t op : to_the_end)
    out_.operations[op].target = static_cast<uint32_t>(out_.operations.size());
}

assembler::place assembler::argument(const operand* list, size_t index, uint64_t bytes) {
  if (!list || list->kind != operand_kind::list || index >= list->parts.size())
    wrong("the call has too few arguments or results");
  const operand& o = list->parts[index];
  if (o.kind != operand_kind::variable)
    cannot("an argument or result that is not a .param variable");
  const place p = frames_.back().variables[o.index];
  if (p.bytes < bytes)
    wrong("'" + std::string(o.text) + "' has fewer bytes than the parameter");
  if (p.kind != place::in_register && !(p.kind == place::memory && p.where == space::local))
    cannot("an argument or result that is not a .param variable of the function");
  return p;
}

uint32_t assembler::load_place(const place& p, uint32_t bytes) {
  if (p.kind == place::in_register) {
    if (out_.registers[p.reg].bytes != bytes)
      wrong("an argument differs in width from the parameter");
    return reads(p.reg);
  }
  operation op;
  op.run = load_handler(bytes == 8 ? "u64" : bytes == 4 ? "u32" : "u16", bytes);
  op.where = space::local;
  op.counted = category::other;
  op.traits = trait_load;
  op.bytes = static_cast<uint8_t>(bytes);
  op.a = constant(p.address, 8);
  const uint32_t reg = temporary(bytes);
  const auto before = std::exchange(pending_reads_, {});
  list(op, {writes(reg)});
  emit_hidden(op);
  pending_reads_ = before;
  return reads(reg);
}

void assembler::store_place(const place& p, uint32_t reg, uint32_t bytes) {
  operation op;
  if (p.kind == place::in_register) {
    if (out_.registers[p.reg].bytes != bytes)
      wrong("a result differs in width from its variable");
    op.run = lanes().move[bytes == 2 ? 0 : bytes == 4 ? 1 : 2];
    op.a = reads(reg);
    op.d = writes(p.reg);
    emit_hidden(op);
    return;
  }
  op.run = store_handler(bytes == 8 ? "u64" : bytes == 4 ? "u32" : "u16", bytes);
  op.where = space::local;
  op.counted = category::other;
  op.traits = trait_store;
  op.bytes = static_cast<uint8_t>(bytes);
  op.a = constant(p.address, 8);
  list(op, {reads(reg)});
  emit_hidden(op);
}

void assembler::inline_call(
  const function_syntax& f, const operand* results, const operand* arguments) {
  const size_t given =
    (results ? results->parts.size() : 0) + (arguments ? arguments->parts.size() : 0);
  if (given != f.results.size() + f.parameters.size())
    wrong("the call and function '" + std::string(f.name) + "' differ in their parameters");
  std::vector<place> actual;
  for (size_t i = 0; i < f.results.size(); ++i)
    actual.push_back(argument(results, i, f.variables[f.results[i]].bytes));
  for (size_t i = 0; i < f.parameters.size(); ++i)
    actual.push_back(argument(arguments, i, f.variables[f.parameters[i]].bytes));

  // A guarded call becomes a branch around it.
  const statement* const here = statement_;
  const uint32_t source = source_;
  int64_t around = -1;
  if (here->guard >= 0) {
    operation skip;
    skip.kind = flow::branch;
    skip.counted = category::branch;
    skip.guard = static_cast<int32_t>(frames_.back().registers[static_cast<size_t>(here->guard)]);
    skip.guard_negated = !here->guard_negated;
    around = static_cast<int64_t>(out_.operations.size());
    emit(skip);
    statement_ = nullptr; // What follows runs without the guard.
  }

  open_frame(f);
  frame& inner = frames_.back();
  std::vector<std::pair<place, place>> copies_back;
  std::vector<std::pair<place, place>> copies_in;
  for (size_t i = 0; i < actual.size(); ++i) {
    const bool is_result = i < f.results.size();
    place& formal = inner.variables[is_result ? f.results[i] : f.parameters[i - f.results.size()]];
    if (formal.kind == actual[i].kind
      && (formal.kind == place::memory
        || out_.registers[formal.reg].bytes == out_.registers[actual[i].reg].bytes))
      formal = actual[i];
    else if (is_result)
      copies_back.emplace_back(formal, actual[i]);
    else
      copies_in.emplace_back(formal, actual[i]);
  }
  for (const auto& [formal, from] : copies_in)
    store_place(formal, load_place(from, formal.bytes), formal.bytes);
  run_frame();
  close_frame(false);
  statement_ = here->guard >= 0 ? nullptr : here;
  source_ = source;
  for (const auto& [formal, to] : copies_back)
    store_place(to, load_place(formal, formal.bytes), formal.bytes);
  statement_ = here;
  if (around >= 0)
    out_.operations[static_cast<size_t>(around)].target =
      static_cast<uint32_t>(out_.operations.size());
}

const lane_entry* assembler::find_lane(const std::string& key) const {
  static const std::unordered_map<std::string_view, const lane_entry*> table = [] {
    std::unordered_map<std::string_view, const lane_entry*> result;
    const lane_library& library = lanes();
    for (const lane_entries& part :
      {library.integer, library.floating, library.half, library.math, library.packed})
      for (size_t i = 0; i < part.size; ++i)
        result.emplace(part.first[i].name, &part.first[i]);
    return result;
  }();
  const auto found = table.find(key);
  return found == table.end() ? nullptr : found->second;
}

bool assembler::library_call(
  std::string_view name, const operand* results, const operand* arguments) {
  // Front ends that know a device library call its functions by a name of their own.
  constexpr std::string_view device_library = "__nv_";
  const bool own_name = name.starts_with(device_library);
  const lane_entry* entry =
    find_lane("call." + std::string(own_name ? name.substr(device_library.size()) : name));
  if (!entry)
    return false;
  operation op;
  op.run = entry->run;
  op.counted = entry->counted;
  op.flops = entry->flops;
  op.expands = find_expansion_of_call(own_name ? name.substr(device_library.size()) : name);
  uint32_t* const sources[4] = {&op.a, &op.b, &op.c, &op.e};
  size_t count = 0;
  for (; count < 4 && entry->sources[count] != 0; ++count)
    *sources[count] =
      load_place(argument(arguments, count, entry->sources[count]), entry->sources[count]);
  if (!arguments || arguments->parts.size() != count || !results || results->parts.size() != 1)
    wrong("function '" + std::string(name) + "' has " + std::to_string(count)
      + " parameters and one result");
  const place result = argument(results, 0, entry->destination);
  const bool direct = result.kind == place::in_register;
  op.d = writes(direct ? result.reg : temporary(entry->destination));
  if (direct && out_.registers[result.reg].bytes != entry->destination)
    wrong("the result of '" + std::string(name) + "' has another width");
  emit(op);
  if (!direct)
    store_place(result, op.d, entry->destination);
  return true;
}

void assembler::runtime_call(
  std::string_view name, const operand* results, const operand* arguments) {
  operation op;
  op.counted = category::other;
  if (name == "vprintf") {
    op.run = print_call;
    op.a = load_place(argument(arguments, 0, 8), 8);
    op.b = load_place(argument(arguments, 1, 8), 8);
    emit(op);
    if (results && !results->parts.empty())
      store_place(argument(results, 0, 4), constant(0, 4), 4);
  } else if (name == "__assertfail") {
    op.run = assert_failed;
    op.a = load_place(argument(arguments, 0, 8), 8);
    op.b = load_place(argument(arguments, 1, 8), 8);
    op.c = load_place(argument(arguments, 2, 4), 4);
    emit(op);
  } else {
    cannot("function '" + std::string(name)
      + "' is not defined; besides its own functions, device "
        "code can call those of the mathematical library, vprintf and __assertfail");
  }
}

} // namespace gristmill::ptx
