#include "tests/protocol/program/small_program.hpp"

#include <doctest/doctest.h>

namespace gristmill::test {

std::string small_program_text() {
  return R"program(+++
[program]
schema = "gristmill.program/1"
name = "small"
[candidate]
languages = ["cuda"]
source_bytes_max = 4000
plan_bytes_max = 2000
other_blocks = false
hypothesis_required = true
hypothesis_bytes_min = 10
hypothesis_bytes_max = 200
forbidden = ["printf"]
allowed_headers = ["cstdint", "cuda_bf16.h"]
inline_ptx = true
extra_entries = false
similarity_max = 1.0
[turn]
format_repairs = 1
output_tokens_max = 1000
temperature_min = 0.2
temperature_max = 1.0
[tools]
compile = 3
emulate = 2
docs = 4
[prompt]
history_rows = 5
insight_lines = 6
feedback_bytes = 400
inspirations = 2
notes = 2
section_bytes = 4000
[search]
same_strategy_max = 3
plateau_attempts = 4
plateau_gain = 0.01
reflect_every = 6
[stop]
handoff_attempts = 20
handoff_plateaus = 3
floor_share = 0.9
+++

# A small protocol

## Goal

Write fast kernels. Be right first.

## Hardware

A GPU.

## Contract

A hypothesis, then

```cuda
__global__ void k() {}
```

and a plan. A source has at most {candidate.source_bytes_max} bytes.

## Allowed

Templates.

## Forbidden

Cheating.

## Feedback

The first failing class.

## Strategy cards

Ideas to try.

### Plain loop

When: nothing else is known.

One thread an element.

Problem: `relu`

```cuda
__global__ void relu(const float* x, float* y, int n) {
  const int i = blockIdx.x * 256 + threadIdx.x;
  if (i < n)
    y[i] = fmaxf(x[i], 0.0f);
}
```

```json
{"schema": "gristmill.plan/1", "variants": [{"steps": [{"op": "launch", "entry": "relu",
"grid": ["ceil_div(N, 256)", 1, 1], "block": [256, 1, 1], "args": ["x", "y", "N"]}]}]}
```

### By assembly

When: the compiler does not see it.

Say it in PTX.

Problem: `relu`

```cuda
__global__ void relu(const float* x, float* y, int n) {
  const int i = blockIdx.x * 256 + threadIdx.x;
  if (i < n)
    asm("max.f32 %0, %1, 0f00000000;" : "=f"(y[i]) : "f"(x[i]));
}
```

```json
{"schema": "gristmill.plan/1", "variants": [{"steps": [{"op": "launch", "entry": "relu",
"grid": ["ceil_div(N, 256)", 1, 1], "block": [256, 1, 1], "args": ["x", "y", "N"]}]}]}
```

## Tests

Every workload.

## Stop

After {stop.handoff_attempts} attempts.
)program";
}

std::string replaced(std::string text, std::string_view from, std::string_view to) {
  const auto at = text.find(from);
  REQUIRE_MESSAGE(at != std::string::npos, std::string(from));
  return text.replace(at, from.size(), to);
}

std::string edited(std::string text, std::string_view rule, std::string_view value) {
  const size_t dot = rule.find('.');
  const size_t table = text.find("[" + std::string(rule.substr(0, dot)) + "]\n");
  REQUIRE_MESSAGE(table != std::string::npos, std::string(rule));
  const std::string key = "\n" + std::string(rule.substr(dot + 1)) + " = ";
  const size_t at = text.find(key, table);
  REQUIRE_MESSAGE(at != std::string::npos, std::string(rule));
  const size_t first = at + key.size();
  return text.replace(first, text.find('\n', first) - first, value);
}

protocol_program parsed(std::string_view text) {
  auto out = parse_program(text, "p.md");
  REQUIRE_MESSAGE(out, (out ? std::string{} : out.error().what));
  return std::move(*out);
}

std::string refusal(std::string_view text) {
  const auto out = parse_program(text, "p.md");
  REQUIRE_FALSE(out);
  CHECK(out.error().code == errc::invalid_input);
  return out.error().what;
}

bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

std::string good_reply() {
  return std::string("HYPOTHESIS: ") + good_hypothesis + "\nSTRATEGY: plain-loop\n\n```cuda\n"
    + good_source + "```\n\n```json\n" + good_plan + "\n```\n";
}

} // namespace gristmill::test
