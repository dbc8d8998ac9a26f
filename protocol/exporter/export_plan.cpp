#include "protocol/exporter/export_plan.hpp"

#include "protocol/exporter/binding_text.hpp"
#include "protocol/exporter/runtime_files.hpp"
#include "protocol/exporter/unit_text.hpp"

#include <fmt/format.h>

namespace gristmill {

namespace {

/// "90a": what is compiled for one architecture, with everything that only it has.
std::string architecture_of(uint32_t arch) {
  return fmt::format("{}{}", arch, arch >= 90 ? "a" : "");
}

compile_options options_of(const export_request& request) {
  const auto& wanted = request.parsed.options;
  const auto arch = architecture_of(request.device.arch);
  compile_options out;
  out.cflags = {"-O3", "-std=" + wanted.standard};
  out.cuda_cflags = {
    "-O3", "-std=" + wanted.standard, fmt::format("-gencode=arch=compute_{0},code=sm_{0}", arch)};
  if (wanted.fast_math)
    out.cuda_cflags.emplace_back("--use_fast_math");
  if (wanted.max_registers > 0)
    out.cuda_cflags.push_back(fmt::format("-maxrregcount={}", wanted.max_registers));
  // The driver's functions are looked up when they are needed.
  out.ld_flags.clear();
  return out;
}

} // namespace

result<exported_plan> export_plan(const export_request& request) {
  if (request.device.arch == 0)
    return fail(errc::invalid_input, "export: the architecture of the device is not known");
  auto units = choose_units(request.parsed, request.def, request.workloads, request.device);
  if (!units)
    return pass(units);
  auto binding = binding_text(request.parsed, request.def, *units);
  if (!binding)
    return pass(binding);
  exported_plan out;
  out.entry_point = "binding.cpp::run";
  out.options = options_of(request);
  out.sources.push_back({"binding.cpp", std::move(*binding)});
  for (size_t i = 0; i < units->size(); ++i) {
    const auto& unit = (*units)[i];
    auto text =
      unit_text(request.source, unit, i, entries_of(request.parsed.variants[unit.variant]));
    if (!text)
      return pass(text);
    out.sources.push_back({fmt::format("unit_{}.cu", i), std::move(*text)});
  }
  for (const auto& file : export_runtime_files())
    out.sources.push_back({std::string{file.path}, std::string{file.content}});
  return out;
}

std::string identifier_of(std::string_view text) {
  std::string out;
  for (char c : text) {
    if (c >= 'A' && c <= 'Z')
      c = static_cast<char>(c + 32);
    const bool fits = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
    if (fits)
      out += c;
    else if (!out.empty() && out.back() != '_')
      out += '_';
  }
  while (!out.empty() && out.back() == '_')
    out.pop_back();
  if (out.empty() || (out[0] >= '0' && out[0] <= '9'))
    out = "op_" + out;
  return out;
}

} // namespace gristmill
