#pragma once

#include "protocol/program/program.hpp"

#include <string>
#include <string_view>

namespace gristmill::test {

/// A short protocol file that names every rule, one a line.
std::string small_program_text();

/// The text with another value behind `key = ` of a table: edited("candidate.inline_ptx", "false").
/// The test fails when the line is not there.
std::string edited(std::string text, std::string_view rule, std::string_view value);

/// The text with the first `from` replaced; the test fails when it is not there.
std::string replaced(std::string text, std::string_view from, std::string_view to);

/// Parses; the test fails with the parser's words when it does not.
protocol_program parsed(std::string_view text);

/// The parser's words on a text that it must refuse.
std::string refusal(std::string_view text);

bool contains(std::string_view text, std::string_view part);

/// A kernel and its plan that every rule of the small program accepts.
inline constexpr const char* good_source =
  "__global__ void relu(const float* x, float* y, int n) {\n"
  "  const int i = blockIdx.x * 256 + threadIdx.x;\n"
  "  if (i < n)\n"
  "    y[i] = fmaxf(x[i], 0.0f);\n"
  "}\n";
inline constexpr const char* good_plan =
  R"plan({"schema": "gristmill.plan/1", "variants": [{"steps": [{"op": "launch", "entry": "relu",
"grid": ["ceil_div(N, 256)", 1, 1], "block": [256, 1, 1], "args": ["x", "y", "N"]}]}]})plan";
inline constexpr const char* good_hypothesis = "One thread an element keeps every SM busy.";

/// A whole reply that hands it in.
std::string good_reply();

} // namespace gristmill::test
