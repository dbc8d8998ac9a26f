#include "kernels/lowering/plan_linker.hpp"

#include "kernels/lowering/scratch_pool.hpp"
#include "kernels/plan_text.hpp"
#include "protocol/plan.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>

namespace gristmill {

namespace {

bool is_number(std::string_view text) {
  return !text.empty() && text.size() < 19
    && text.find_first_not_of("0123456789") == std::string_view::npos;
}

/// What a source itself can define, so that the plan need not.
bool is_literal(std::string_view text) {
  return is_number(text) || text == "true" || text == "false";
}

} // namespace

std::string plan_linker::fresh(const std::string& wanted) {
  std::string name = free_name(program_.target().def, wanted);
  while (!taken_.insert(name).second)
    name = free_name(program_.target().def, name + "_");
  return name;
}

std::string plan_linker::let_for(const std::string& text, const std::string& wanted) {
  if (const auto found = lets_.find(text); found != lets_.end())
    return found->second;
  std::string name = fresh(wanted);
  lets_[text] = name;
  let_[name] = text;
  return name;
}

std::string plan_linker::size_text(const symbolic_size& size) {
  if (size.as_number() || size.as_axis())
    return size.plan_text();
  return let_for(size.plan_text(), fmt::format("n{}", lets_.size()));
}

std::string plan_linker::guarded(size_t program, const std::string& condition) const {
  return choice_.empty() ? condition : fmt::format("{} != {} or ({})", choice_, program, condition);
}

result<generated_kernel> plan_linker::run() {
  for (const auto& condition : program_.conditions())
    domain_.push_back(condition);
  if (programs_.size() > 1) {
    std::string choice = fmt::format("{}", programs_.size() - 1);
    for (size_t i = programs_.size() - 1; i-- > 0;) {
      if (auto parsed = parse_expression(programs_[i].when, expression_mode::plan); !parsed)
        return pass(parsed);
      choice = fmt::format("select({}, {}, {})", programs_[i].when, i, choice);
    }
    choice_ = let_for(choice, "program");
    choice_macro_ = fresh("PROGRAM");
  }
  defines_.resize(programs_.size());
  steps_.resize(programs_.size(), json::array());
  for (size_t i = 0; i < programs_.size(); ++i) {
    if (auto added = add_program(i); !added)
      return pass(added);
  }
  generated_kernel out;
  std::vector<source_part> sources;
  for (linked_part& part : parts_) {
    if (part.programs.size() < programs_.size()) {
      std::vector<std::string> terms;
      for (size_t program : part.programs)
        terms.push_back(fmt::format("{} == {}", choice_macro_, program));
      part.source.condition = fmt::format("{}", fmt::join(terms, " || "));
    }
    sources.push_back(part.source);
  }
  out.source = linked_source(sources);
  json plan = {{"schema", "gristmill.plan/1"}};
  if (!options_.is_null() && !options_.empty())
    plan["options"] = options_;
  std::vector<std::string> conditions;
  for (auto& one : domain_) {
    if (std::find(conditions.begin(), conditions.end(), one) == conditions.end())
      conditions.push_back(std::move(one));
  }
  if (conditions.size() == 1)
    plan["domain"] = conditions.front();
  else if (!conditions.empty())
    plan["domain"] = fmt::format("({})", fmt::join(conditions, ") and ("));
  if (!let_.empty())
    plan["let"] = let_;
  if (!scratch_.empty())
    plan["scratch"] = scratch_;
  if (!maps_.empty())
    plan["tensor_maps"] = maps_;
  plan["variants"] = json::array();
  for (size_t i = 0; i < programs_.size(); ++i) {
    json variant = json::object();
    if (programs_.size() > 1) {
      variant["name"] = fmt::format("program {}", i);
      variant["when"] = fmt::format("{} == {}", choice_, i);
      defines_[i][choice_macro_] = fmt::format("{}", i);
    }
    if (!defines_[i].empty()) {
      variant["defines"] = json::object();
      for (const auto& [name, text] : defines_[i]) {
        if (is_number(text))
          variant["defines"][name] = std::stoll(text);
        else
          variant["defines"][name] = text;
      }
    }
    variant["steps"] = std::move(steps_[i]);
    plan["variants"].push_back(std::move(variant));
  }
  out.plan = plan.dump(2) + "\n";
  if (out.plan.size() > plan_limits::text_bytes)
    out.plan = plan.dump() + "\n";
  return out;
}

result<void> plan_linker::add_program(size_t index) {
  std::map<int64_t, program_buffer> buffers;
  if (auto added = add_scratch(index, buffers); !added)
    return added;
  for (const stage_code& code : programs_[index].stages) {
    if (auto added = add_stage(index, code, buffers, steps_[index]); !added)
      return added;
  }
  return {};
}

result<void> plan_linker::add_scratch(size_t index, std::map<int64_t, program_buffer>& buffers) {
  const definition& def = program_.target().def;
  for (const auto& value : program_.graph().values) {
    if (value.source == graph_source::input)
      buffers[value.id] = {qualified_name("in", value.name)};
  }
  for (size_t i = 0; i < def.outputs.size(); ++i) {
    const int64_t base = program_.base(program_.graph().outputs[i]);
    buffers[base] = {qualified_name("out", def.outputs[i].name)};
  }
  const scratch_layout layout = lay_out_scratch(program_, programs_[index]);
  std::vector<std::string> names;
  for (const scratch_slot& slot : layout.slots) {
    json shape = json::array();
    if (slot.shapes.size() == 1) {
      for (const auto& size : slot.shapes.front()) {
        const std::string text = size_text(size);
        shape.push_back(is_number(text) ? json(std::stoll(text)) : json(text));
      }
    } else {
      std::string largest;
      for (const auto& sizes : slot.shapes) {
        symbolic_size elements = symbolic_size::number(1);
        for (const auto& size : sizes)
          elements = elements * size;
        const std::string text = size_text(elements);
        largest = largest.empty() ? text : fmt::format("max({}, {})", largest, text);
      }
      shape.push_back(let_for(largest, fmt::format("n{}", lets_.size())));
    }
    if (!choice_.empty()) {
      // Only the program that runs has its memory.
      json first = shape.empty() ? json(1) : shape.front();
      const std::string text =
        first.is_string() ? first.get<std::string>() : fmt::format("{}", first.get<int64_t>());
      const std::string chosen = fmt::format("select({} == {}, {}, 0)", choice_, index, text);
      if (shape.empty())
        shape.push_back(chosen);
      else
        shape.front() = chosen;
    }
    names.push_back(fresh(fmt::format("part{}", scratch_.size())));
    scratch_[names.back()] = {{"dtype", name(slot.type)}, {"shape", std::move(shape)}};
  }
  for (const auto& [value, slot] : layout.slot_of)
    buffers[value] = {"scratch." + names[slot]};
  return {};
}

result<void> plan_linker::add_options(const json& plan) {
  const auto found = plan.find("options");
  json wanted = found == plan.end() ? json::object() : *found;
  const json headers = wanted.value("headers", json::array());
  wanted.erase("headers");
  json before = options_.is_null() ? wanted : options_;
  json known_headers = before.is_object() ? before.value("headers", json::array()) : json::array();
  before.erase("headers");
  if (!options_.is_null() && before != wanted)
    return fail(errc::unsupported,
      fmt::format(
        "two stages want different compiler options: {} and {}", before.dump(), wanted.dump()));
  for (const auto& header : headers) {
    if (std::find(known_headers.begin(), known_headers.end(), header) == known_headers.end())
      known_headers.push_back(header);
  }
  if (!known_headers.empty())
    before["headers"] = std::move(known_headers);
  options_ = std::move(before);
  return {};
}

result<void> plan_linker::add_stage(size_t program, const stage_code& code,
  const std::map<int64_t, program_buffer>& buffers, json& steps) {
  const json plan = json::parse(code.kernel.plan, nullptr, false);
  if (plan.is_discarded() || !plan.is_object() || !plan.contains("variants"))
    return fail(errc::unsupported, "a stage's launch plan is no plan");
  if (auto added = add_options(plan); !added)
    return added;
  const std::string prefix = fmt::format("s{}_", stages_++);
  stage_names names(
    *code.stage, buffers, [this](const symbolic_size& size) { return size_text(size); });
  if (const auto let = plan.find("let"); let != plan.end()) {
    for (const auto& [let_name, value] : let->items()) {
      auto text = text_of(value, names);
      if (!text)
        return pass(text);
      names.set_value(let_name, is_number(*text) ? *text : let_for(*text, prefix + let_name));
    }
  }
  if (const auto domain = plan.find("domain"); domain != plan.end()) {
    auto text = text_of(*domain, names);
    if (!text)
      return pass(text);
    if (*text != "true")
      domain_.push_back(guarded(program, *text));
  }
  if (auto added = add_own_scratch(plan, program, prefix, names); !added)
    return added;
  if (auto added = add_tensor_maps(plan, prefix, names); !added)
    return added;

  // Which variant runs: a number, so that steps and defines can ask for it.
  const json& variants = plan["variants"];
  std::vector<std::string> conditions;
  for (const json& variant : variants) {
    auto when = text_of(variant.value("when", json("true")), names);
    if (!when)
      return pass(when);
    conditions.push_back(std::move(*when));
    if (conditions.back() == "true")
      break; // None after it ever runs.
  }
  std::string choice;
  if (conditions.size() > 1 || conditions.front() != "true") {
    std::string chosen = conditions.back() == "true"
      ? fmt::format("{}", conditions.size() - 1)
      : fmt::format("select({}, {}, -1)", conditions.back(), conditions.size() - 1);
    for (size_t i = conditions.size() - 1; i-- > 0;)
      chosen = fmt::format("select({}, {}, {})", conditions[i], i, chosen);
    choice = let_for(chosen, prefix + "variant");
    if (conditions.back() != "true")
      domain_.push_back(guarded(program, choice + " >= 0"));
  }
  json used = json::array();
  for (size_t i = 0; i < conditions.size(); ++i)
    used.push_back(variants[i]);
  auto defines = defines_of(used, names);
  if (!defines)
    return pass(defines);
  auto part_index = add_part(program, code.kernel.source, *defines, choice);
  if (!part_index)
    return pass(part_index);
  for (size_t i = 0; i < used.size(); ++i) {
    const linked_part& part = parts_[*part_index];
    // A define with an integer is a name for the steps of its variant.
    for (const stage_define& define : *defines) {
      if (!define.values[i].empty())
        names.set_value(define.name,
          is_literal(define.values[i]) ? define.values[i] : "(" + define.values[i] + ")");
    }
    json made = json::array();
    bool has_order = false;
    for (const json& step : used[i].value("steps", json::array())) {
      has_order = has_order || step.contains("after");
      auto one = step_of(step, fmt::format("{}{}_", prefix, i), part, names);
      if (!one)
        return pass(one);
      made.push_back(std::move(*one));
    }
    const std::string chosen = choice.empty() ? "" : fmt::format("{} == {}", choice, i);
    if (has_order) {
      // A block of its own: `after` counts from the stage's begin, and the next stage waits for
      // all.
      json block = {{"op", "repeat"}};
      if (!chosen.empty())
        block["when"] = chosen;
      block["var"] = fresh(fmt::format("{}{}_block", prefix, i));
      block["count"] = 1;
      block["steps"] = std::move(made);
      steps.push_back(std::move(block));
      continue;
    }
    for (json& step : made) {
      if (!chosen.empty())
        step["when"] = step.contains("when")
          ? fmt::format("{} and ({})", chosen, step["when"].get<std::string>())
          : chosen;
      steps.push_back(std::move(step));
    }
  }
  return {};
}

result<void> plan_linker::add_tensor_maps(
  const json& plan, const std::string& prefix, stage_names& names) {
  const auto maps = plan.find("tensor_maps");
  if (maps == plan.end())
    return {};
  for (const auto& [map_name, row] : maps->items()) {
    json made = json::object();
    for (const auto& [key, value] : row.items()) {
      if (key == "of") {
        auto buffer = buffer_of(value, names);
        if (!buffer)
          return pass(buffer);
        made[key] = *buffer;
      } else if (value.is_array()) {
        made[key] = json::array();
        for (const json& one : value) {
          auto text = expression_of(one, names);
          if (!text)
            return pass(text);
          made[key].push_back(std::move(*text));
        }
      } else if (key == "offset" || key == "count") {
        auto text = expression_of(value, names);
        if (!text)
          return pass(text);
        made[key] = std::move(*text);
      } else {
        made[key] = value;
      }
    }
    const std::string fresh_name = fresh(prefix + map_name);
    maps_[fresh_name] = std::move(made);
    names.set_map(map_name, fresh_name);
  }
  return {};
}

result<void> plan_linker::add_own_scratch(
  const json& plan, size_t program, const std::string& prefix, stage_names& names) {
  const auto scratch = plan.find("scratch");
  if (scratch == plan.end())
    return {};
  // Names first: a shape may ask for the occupancy of a step, never for another scratch tensor.
  for (const auto& [scratch_name, row] : scratch->items()) {
    json made = row;
    json shape = json::array();
    for (const json& size : row.at("shape")) {
      auto text = expression_of(size, names);
      if (!text)
        return pass(text);
      shape.push_back(std::move(*text));
    }
    if (!choice_.empty() && !shape.empty()) {
      const json& first = shape.front();
      shape.front() = fmt::format("select({} == {}, {}, 0)", choice_, program,
        first.is_string() ? first.get<std::string>() : first.dump());
    }
    made["shape"] = std::move(shape);
    const std::string fresh_name = fresh(prefix + scratch_name);
    scratch_[fresh_name] = std::move(made);
    names.set_scratch(scratch_name, fresh_name);
  }
  return {};
}

} // namespace gristmill
