#include "protocol/run_terms.hpp"

#include "protocol/proposer_text.hpp"
#include "protocol/strict_json.hpp"

#include <algorithm>
#include <optional>

namespace gristmill {

namespace {

constexpr std::string_view schema = "gristmill.run-terms/1";
constexpr size_t text_bytes = 4096;
constexpr json_limits limits{
  .bytes = size_t{4} << 20, .depth = 8, .keys = 128, .unique_keys = true};

const std::vector<std::string> oracles{"auto", "native", "torch"};
const std::vector<std::string> flushes{"official", "clean"};

ordered_json to_json(const device_facts& facts) {
  return {{"sm_count", facts.sm_count}, {"smem_per_block", facts.smem_per_block},
    {"smem_per_sm", facts.smem_per_sm}, {"l2_bytes", facts.l2_bytes}, {"arch", facts.arch}};
}

ordered_json to_json(const blob_ref& ref) {
  return {{"sha256", ref.sha256}, {"bytes", ref.bytes}};
}

void read_device(strict_object& from, run_terms& out) {
  out.device_model = from.text("model", text_bytes);
  out.device_label = from.text("label", text_bytes);
  out.device_title = from.text("title", text_bytes);
  out.measured = from.boolean("measured");
  from.object("facts", [&](strict_object& facts) {
    out.facts.sm_count = facts.natural32("sm_count");
    out.facts.smem_per_block = facts.natural32("smem_per_block");
    out.facts.smem_per_sm = facts.natural32("smem_per_sm");
    out.facts.l2_bytes = facts.natural("l2_bytes");
    out.facts.arch = facts.natural32("arch");
  });
  out.floor_bytes_per_second = from.natural("floor_bytes_per_second");
  out.floor_flops_per_second = from.natural("floor_flops_per_second");
  size_t next = 0;
  from.each(
    "floor_macs_per_second", mac_classes, [&](const ordered_json& value, const std::string&) {
      if (value.is_number_unsigned())
        out.floor_macs_per_second[next++] = value.get<uint64_t>();
    });
  if (next != mac_classes)
    from.complain("floor_macs_per_second", "expected six natural numbers");
  out.shortest_kernel_ns = from.natural("shortest_kernel_ns");
  out.write_bytes_per_second = from.natural("write_bytes_per_second");
  out.arch = from.text("arch", text_bytes);
}

void read_measuring(strict_object& from, run_terms& out) {
  out.oracle = oracles.at(from.choice("oracle", oracles));
  out.check_elements_max = from.natural("check_elements_max");
  out.rounds = from.natural32("rounds");
  if (out.rounds == 0)
    from.complain("rounds", "expected 1 or more");
  out.sets_bytes_max = from.natural("sets_bytes_max");
  out.sets_macs_max = from.natural("sets_macs_max");
  out.promote = from.boolean("promote");
  out.samples = from.natural32("samples");
  if (out.samples == 0)
    from.complain("samples", "expected 1 or more");
  out.flush = flushes.at(from.choice("flush", flushes));
  out.instruction_limit = from.natural("instruction_limit");
}

void read_workers(strict_object& from, run_terms& out) {
  out.proposer = from.text("proposer", text_bytes);
  if (!from.failed())
    if (auto mix = parse_proposer(out.proposer); !mix)
      from.complain("proposer", mix.error().what);
  out.estimated_hold = std::chrono::nanoseconds{from.integer("estimated_hold_ns", 0)};
  out.run_end = std::chrono::nanoseconds{from.integer("run_end_ns", 0)};
}

void read_problems(strict_object& from, run_terms& out) {
  from.each("problems", run_terms_problems_max, [&](const ordered_json& value, std::string path) {
    auto one = parse_listing(value, path);
    if (!one) {
      if (!from.sink())
        from.sink() = one.error();
      return;
    }
    const bool twice = std::any_of(out.problems.begin(), out.problems.end(),
      [&](const problem_listing& other) { return other.name == one->name; });
    if (twice)
      from.complain("problems", "'" + one->name + "' is listed twice");
    out.problems.push_back(std::move(*one));
  });
}

} // namespace

std::string to_json(const run_terms& terms) {
  ordered_json out{{"schema", schema}, {"run", terms.run},
    {"secret", hex_text({terms.secret.begin(), terms.secret.end()})}, {"seed", terms.seed},
    {"program", terms.program}, {"rehearsal", terms.rehearsal}};
  out["device"] = {{"model", terms.device_model}, {"label", terms.device_label},
    {"title", terms.device_title}, {"measured", terms.measured}, {"facts", to_json(terms.facts)},
    {"floor_bytes_per_second", terms.floor_bytes_per_second},
    {"floor_flops_per_second", terms.floor_flops_per_second},
    {"floor_macs_per_second", terms.floor_macs_per_second},
    {"shortest_kernel_ns", terms.shortest_kernel_ns},
    {"write_bytes_per_second", terms.write_bytes_per_second}, {"arch", terms.arch}};
  out["toolchain"] = terms.toolchain;
  out["bounds"] = to_json(terms.bounds);
  out["measuring"] = {{"oracle", terms.oracle}, {"check_elements_max", terms.check_elements_max},
    {"rounds", terms.rounds}, {"sets_bytes_max", terms.sets_bytes_max},
    {"sets_macs_max", terms.sets_macs_max}, {"promote", terms.promote}, {"samples", terms.samples},
    {"flush", terms.flush}, {"instruction_limit", terms.instruction_limit}};
  out["workers"] = {{"proposer", terms.proposer},
    {"estimated_hold_ns", terms.estimated_hold.count()}, {"run_end_ns", terms.run_end.count()}};
  auto& problems = out["problems"] = ordered_json::array();
  for (const auto& listing : terms.problems)
    problems.push_back(to_json(listing));
  // Names come from files of strangers: what is not UTF-8 must not end an actor.
  return out.dump(-1, ' ', false, ordered_json::error_handler_t::replace);
}

result<run_terms> run_terms_from_json(std::string_view text) {
  auto document = parse_json_object(text, "terms", limits);
  if (!document)
    return pass(document);
  std::optional<failure> sink;
  run_terms out;
  {
    strict_object object{*document, "terms", sink};
    if (object.text("schema", text_bytes) != schema)
      object.complain("schema", "expected `" + std::string(schema) + "`");
    out.run = object.text("run", text_bytes);
    const auto secret = object.hex("secret", out.secret.size());
    if (secret.size() == out.secret.size())
      std::copy(secret.begin(), secret.end(), out.secret.begin());
    else
      object.complain("secret", "expected 32 bytes in hexadecimal");
    out.seed = object.natural("seed");
    out.program = object.text("program", text_bytes);
    out.rehearsal = object.boolean("rehearsal");
    object.object("device", [&](strict_object& from) { read_device(from, out); });
    out.toolchain = object.text("toolchain", text_bytes);
    object.object("bounds", [&](strict_object& from) {
      out.bounds.sha256 = from.text("sha256", 64);
      out.bounds.bytes = from.natural("bytes");
    });
    object.object("measuring", [&](strict_object& from) { read_measuring(from, out); });
    object.object("workers", [&](strict_object& from) { read_workers(from, out); });
    read_problems(object, out);
  }
  if (sink)
    return tl::unexpected<failure>(*sink);
  return out;
}

} // namespace gristmill
