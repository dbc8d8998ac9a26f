#include "kernels/lowering/plan_linker.hpp"

#include "protocol/plan.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <set>

namespace gristmill {

namespace {

bool is_number(std::string_view text) {
  return !text.empty() && text.size() < 19
    && text.find_first_not_of("0123456789") == std::string_view::npos;
}

} // namespace

result<std::string> plan_linker::text_of(const json& value, const stage_names& names) {
  if (value.is_string())
    return rewritten(value.get<std::string>(), names);
  return value.dump();
}

result<plan_linker::json> plan_linker::expression_of(const json& value, const stage_names& names) {
  if (!value.is_string())
    return value;
  auto text = text_of(value, names);
  if (!text)
    return pass(text);
  return is_number(*text) ? json(std::stoll(*text)) : json(*text);
}

result<std::string> plan_linker::buffer_of(const json& name, const stage_names& names) {
  const auto parsed = parse_expression(
    name.is_string() ? name.get<std::string>() : name.dump(), expression_mode::plan);
  if (!parsed)
    return pass(parsed);
  const auto plain = parsed->as_name();
  const auto found = plain ? names.buffer(*plain) : std::nullopt;
  if (!found)
    return fail(errc::unsupported,
      fmt::format(
        "the plan of a stage names the tensor {}, which its problem does not have", name.dump()));
  return *found;
}

result<plan_linker::json> plan_linker::argument_of(const json& argument, const stage_names& names) {
  if (argument.is_object() && argument.contains("map") && argument["map"].is_string()) {
    const auto map = names.map(argument["map"].get<std::string>());
    if (!map)
      return fail(errc::unsupported,
        fmt::format("the plan of a stage has no tensor map {}", argument["map"].dump()));
    return json{{"map", *map}};
  }
  if (argument.is_object()) {
    if (!argument.contains("ptr"))
      return fail(errc::unsupported,
        fmt::format("a stage's launch plan has the argument {}", argument.dump()));
    auto buffer = buffer_of(argument["ptr"], names);
    if (!buffer)
      return pass(buffer);
    auto offset = expression_of(argument.value("offset", json(0)), names);
    if (!offset)
      return pass(offset);
    return json{{"ptr", *buffer}, {"offset", *offset}};
  }
  if (!argument.is_string() || argument == "null")
    return argument;
  std::string text = argument.get<std::string>();
  std::string type;
  // As the reader of plans does: the last colon outside of quotes starts the type.
  const size_t quote = text.rfind('"');
  if (const size_t colon = text.rfind(':');
      colon != std::string::npos && (quote == std::string::npos || colon > quote)) {
    type = text.substr(colon);
    text.resize(colon);
  }
  const auto parsed = parse_expression(text, expression_mode::plan);
  if (!parsed)
    return pass(parsed);
  if (const auto plain = parsed->as_name()) {
    if (const auto buffer = names.buffer(*plain))
      return json(*buffer + type);
  }
  auto out = rewritten(*parsed, names);
  if (!out)
    return pass(out);
  return json(*out + type);
}

result<plan_linker::json> plan_linker::step_of(
  const json& step, const std::string& prefix, const linked_part& part, stage_names& names) {
  if (!step.is_object())
    return fail(errc::unsupported, "a stage's launch plan has a step that is no object");
  static const std::set<std::string> copied = {
    "op", "cooperative", "pdl", "carveout", "width", "value"};
  static const std::set<std::string> buffers = {"dst", "src", "from"};
  static const std::set<std::string> triples = {"grid", "block", "cluster", "at"};
  json out = json::object();
  std::string variable;
  if (step.contains("var")) {
    // Before the steps below it are read.
    variable = fresh(prefix + step["var"].get<std::string>());
    names.set_value(step["var"].get<std::string>(), variable);
  }
  for (const auto& [key, value] : step.items()) {
    if (copied.contains(key)) {
      out[key] = value;
    } else if (key == "id") {
      out[key] = prefix + value.get<std::string>();
      names.set_step(value.get<std::string>(), prefix + value.get<std::string>());
    } else if (key == "after") {
      out[key] = json::array();
      for (const json& id : value)
        out[key].push_back(prefix + id.get<std::string>());
    } else if (key == "var") {
      out[key] = variable;
    } else if (key == "entry") {
      std::vector<std::pair<std::string, std::string>> macros;
      for (const auto& [macro, text] : part.source.macros)
        macros.emplace_back(macro, part.source.prefix + macro);
      out[key] = fmt::format(
        "{}::{}", part.source.space, with_renamed_identifiers(value.get<std::string>(), macros));
    } else if (buffers.contains(key)) {
      auto buffer = buffer_of(value, names);
      if (!buffer)
        return pass(buffer);
      out[key] = *buffer;
    } else if (triples.contains(key) && value.is_array()) {
      out[key] = json::array();
      for (const json& one : value) {
        auto text = expression_of(one, names);
        if (!text)
          return text;
        out[key].push_back(std::move(*text));
      }
    } else if (key == "args") {
      out[key] = json::array();
      for (const json& one : value) {
        auto argument = argument_of(one, names);
        if (!argument)
          return argument;
        out[key].push_back(std::move(*argument));
      }
    } else if (key == "steps") {
      out[key] = json::array();
      for (const json& one : value) {
        auto inner = step_of(one, prefix, part, names);
        if (!inner)
          return inner;
        out[key].push_back(std::move(*inner));
      }
    } else if (key == "when" || key == "shared" || key == "bytes" || key == "offset"
      || key == "dst_offset" || key == "src_offset" || key == "count") {
      auto text = expression_of(value, names);
      if (!text)
        return text;
      // A truth value stays a text, so that it can be joined with others.
      out[key] = key == "when" && !text->is_string() ? json(text->dump()) : std::move(*text);
    } else if (!value.is_null()) {
      return fail(errc::unsupported,
        fmt::format("a stage's launch plan has the field `{}`, which no linked plan has", key));
    }
  }
  return out;
}

result<std::vector<plan_linker::stage_define>> plan_linker::defines_of(
  const json& variants, const stage_names& names) {
  std::vector<stage_define> out;
  for (size_t i = 0; i < variants.size(); ++i) {
    const auto defines = variants[i].find("defines");
    if (defines == variants[i].end())
      continue;
    for (const auto& [define_name, value] : defines->items()) {
      auto found = std::find_if(
        out.begin(), out.end(), [&](const stage_define& one) { return one.name == define_name; });
      if (found == out.end()) {
        out.push_back({define_name, std::vector<std::string>(variants.size()), false});
        found = out.end() - 1;
      }
      auto text = text_of(value, names);
      if (!text)
        return pass(text);
      found->values[i] = std::move(*text);
    }
  }
  // Two defines of equal content, in one order whatever the plan's was.
  std::sort(out.begin(), out.end(),
    [](const stage_define& a, const stage_define& b) { return a.name < b.name; });
  return out;
}

result<size_t> plan_linker::add_part(size_t program, const std::string& source,
  const std::vector<stage_define>& defines, const std::string& choice) {
  // Each define as one expression for whatever variant runs.
  std::vector<std::pair<std::string, std::string>> texts;
  for (const stage_define& define : defines) {
    std::vector<std::string> values = define.values;
    const auto some = std::find_if(
      values.begin(), values.end(), [](const std::string& text) { return !text.empty(); });
    // A variant without the define never runs the kernels that need it; any value of the same kind
    // lets its text compile.
    for (std::string& text : values) {
      if (text.empty())
        text = *some;
    }
    std::string text = values.back();
    if (std::any_of(values.begin(), values.end(), [&](const auto& one) { return one != text; })) {
      for (size_t i = values.size() - 1; i-- > 0;)
        text = fmt::format("select({} == {}, {}, {})", choice, i, values[i], text);
    }
    texts.emplace_back(define.name, std::move(text));
  }
  std::string key = source;
  for (const auto& [name, text] : texts)
    key += fmt::format("\n|{}={}", name, text);
  const auto [known, is_new] = part_by_text_.emplace(key, parts_.size());
  if (is_new) {
    linked_part part;
    part.source.text = source;
    part.source.space = fmt::format("stage_{}", parts_.size());
    part.source.prefix = fmt::format("p{}_", parts_.size());
    for (const auto& [name, text] : texts) {
      if (is_number(text) || text == "true" || text == "false") {
        part.source.macros.emplace_back(name, text == "true" ? "1" : text == "false" ? "0" : text);
        continue;
      }
      const auto [define, is_first] = define_by_text_.emplace(text, "");
      if (is_first) {
        define->second = fresh(part.source.prefix + name);
        part.source.macros.emplace_back(
          name, define->second == part.source.prefix + name ? "" : define->second);
      } else {
        part.source.macros.emplace_back(name, define->second);
      }
      part.defines.emplace_back(define->second, text);
    }
    parts_.push_back(std::move(part));
  }
  linked_part& part = parts_[known->second];
  part.programs.insert(program);
  for (const auto& [name, text] : part.defines)
    defines_[program][name] = text;
  return known->second;
}

} // namespace gristmill
