#include "actors/input_numbers.hpp"

#include "actors/data_files.hpp"
#include "journal/hash.hpp"
#include "protocol/json_document.hpp"
#include "tensors/generate.hpp"
#include "tensors/tensor_file.hpp"

#include <algorithm>
#include <fmt/format.h>

namespace gristmill {

namespace {

constexpr size_t numbers_bytes_max = size_t{1} << 20;
constexpr const char* set_names[] = {"check", "clock"};

input_kind kind_of(const workload& work, const std::string& input) {
  const auto* given = work.find_input(input);
  return given == nullptr ? input_kind::random : given->kind;
}

scalar_value draw_number(const run_context& context, const problem& target, const workload& work,
  const tensor_spec& spec) {
  const auto kind =
    choose_distribution(spec.name, spec.description, spec.type, {}, target.def.op_type);
  const auto drawn =
    generate_number(kind, spec.type, input_key(context, target, work.uuid, "0", spec.name));
  return {spec.type, drawn.number, drawn.integer, drawn.is_integer};
}

std::string where(const workload& work, const tensor_spec& spec) {
  return fmt::format("workload {}: inputs.{}", work.uuid, spec.name);
}

result<scalar_values> converted(
  const problem& target, const workload& work, const named_numbers& numbers) {
  scalar_values out;
  for (const auto& wanted : custom_numbers(target, work)) {
    const auto found = std::find_if(
      numbers.begin(), numbers.end(), [&](const auto& each) { return each.first == wanted.name; });
    const auto field = fmt::format("workload {}: inputs.{}", work.uuid, wanted.name);
    if (found == numbers.end())
      return fail(errc::invalid_input, field + ": the entry point returned no such number");
    auto value = make_scalar(wanted.type, found->second);
    if (!value)
      return fail(value.error().code, field + ": " + value.error().what);
    out.emplace_back(wanted.name, *value);
  }
  return out;
}

/// What `store_custom_numbers` wrote.
result<named_numbers> stored_numbers(
  const run_context& context, const problem& target, const workload& work, input_set set) {
  const auto file = custom_numbers_file(context, target.name, work.uuid).string();
  auto text = read_text_file(file, numbers_bytes_max);
  if (!text)
    return fail(text.error().code == errc::not_found ? errc::not_found : errc::io_failed,
      fmt::format("workload {}: the numbers of its entry point: {}", work.uuid, text.error().what));
  auto parsed = parse_json(*text, file);
  if (!parsed)
    return pass(parsed);
  const auto found = parsed->find(set_names[static_cast<size_t>(set)]);
  if (found == parsed->end())
    return fail(errc::invalid_input, file + ": no numbers for that set");
  std::optional<failure> sink;
  auto numbers = read_numbers(*found, file, sink);
  if (sink)
    return tl::unexpected<failure>(*sink);
  return numbers;
}

} // namespace

tensor_key input_key(const run_context& context, const problem& target, const std::string& uuid,
  std::string_view set, const std::string& tensor) {
  std::string_view secret(
    reinterpret_cast<const char*>(context.secret.data()), context.secret.size());
  // The length of each part goes in, so that no two lists of parts make one text.
  std::string text;
  for (std::string_view part : {std::string_view(target.definition_text), std::string_view(uuid),
         set, std::string_view(tensor)})
    text += std::to_string(part.size()) + ":" + std::string(part);
  auto digest = hmac_sha256(secret, text);
  tensor_key key;
  std::copy_n(digest.begin(), key.bytes.size(), key.bytes.begin());
  return key;
}

result<scalar_values> known_numbers(
  const run_context& context, const problem& target, const workload& work) {
  scalar_values out;
  for (const auto& spec : target.def.inputs) {
    if (!spec.is_scalar)
      continue;
    switch (kind_of(work, spec.name)) { // no default: the compiler reports a missing case
    case input_kind::scalar: {
      auto value = make_scalar(spec.type, work.find_input(spec.name)->value);
      if (!value)
        return fail(value.error().code, where(work, spec) + ": " + value.error().what);
      out.emplace_back(spec.name, *value);
      break;
    }
    case input_kind::random:
      out.emplace_back(spec.name, draw_number(context, target, work, spec));
      break;
    case input_kind::custom:
      break;
    case input_kind::safetensors:
      return fail(errc::invalid_input,
        where(work, spec)
          + ": the definition says that it is a number, so it cannot be a tensor "
            "of a safetensors file");
    }
  }
  return out;
}

std::vector<custom_number> custom_numbers(const problem& target, const workload& work) {
  std::vector<custom_number> out;
  for (const auto& spec : target.def.inputs)
    if (spec.is_scalar && kind_of(work, spec.name) == input_kind::custom)
      out.push_back({spec.name, spec.type});
  return out;
}

result<void> store_custom_numbers(const run_context& context, const problem& target,
  const workload& work, const std::vector<named_numbers>& calls) {
  if (custom_numbers(target, work).empty())
    return {};
  if (calls.empty())
    return fail(
      errc::invalid_input, fmt::format("workload {}: the entry point was not called", work.uuid));
  ordered_json all = ordered_json::object();
  for (size_t i = 0; i < 2; ++i) {
    const auto& numbers = calls[std::min(i, calls.size() - 1)];
    if (auto fine = converted(target, work, numbers); !fine)
      return pass(fine);
    all[set_names[i]] = to_json(numbers);
  }
  const auto text = all.dump();
  return write_tensor_file(
    custom_numbers_file(context, target.name, work.uuid), std::as_bytes(std::span(text)));
}

result<scalar_values> all_numbers(
  const run_context& context, const problem& target, const workload& work, input_set set) {
  auto known = known_numbers(context, target, work);
  if (!known || custom_numbers(target, work).empty())
    return known;
  auto stored = stored_numbers(context, target, work, set);
  if (!stored)
    return pass(stored);
  auto custom = converted(target, work, *stored);
  if (!custom)
    return pass(custom);
  scalar_values out;
  for (const auto& spec : target.def.inputs)
    for (const auto* from : {&*known, &*custom})
      for (const auto& each : *from)
        if (each.first == spec.name)
          out.push_back(each);
  return out;
}

} // namespace gristmill
