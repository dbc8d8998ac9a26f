// Each kernel of tests/corpus/defects has one defect, which has to be found and named with its
// line.

#include "gpu/mock/emulate.hpp"
#include "tests/gpu/mock/emulate/compile.hpp"

#include <algorithm>
#include <cstring>
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <fstream>
#include <iterator>
#include <map>
#include <set>
#include <sstream>

namespace {

using namespace gristmill;
namespace fs = std::filesystem;

constexpr int elements = 256;

fs::path defects_folder() {
  const char* root = std::getenv("GRISTMILL_SOURCE");
  return fs::path(root == nullptr ? "." : root) / "tests/corpus/defects";
}

struct defect {
  std::string name;
  std::string source;
  std::string kind;
  uint32_t grid = 1;
  uint32_t block = 1;
  std::string scratch;
  uint32_t orders = 0;
  uint64_t limit = 1'000'000;
  /// Lines that the finding may name.
  std::set<int> faults;
  std::set<int> others;
};

defect read_defect(const fs::path& path) {
  std::ifstream in(path);
  defect out;
  out.name = path.stem().string();
  out.source = std::string(std::istreambuf_iterator<char>(in), {});
  std::istringstream lines(out.source);
  std::string line;
  for (int number = 1; std::getline(lines, line); ++number) {
    if (number == 1)
      out.kind = line.substr(std::string("// kind: ").size());
    if (number == 2) {
      std::istringstream words(line.substr(3));
      std::map<std::string, std::string> given;
      for (std::string key, value; words >> key >> value;)
        given[key] = value;
      out.grid = static_cast<uint32_t>(std::stoul(given.at("grid")));
      out.block = static_cast<uint32_t>(std::stoul(given.at("block")));
      out.scratch = given.at("scratch");
      out.orders = static_cast<uint32_t>(std::stoul(given.at("orders")));
      if (given.count("limit") != 0)
        out.limit = std::stoul(given.at("limit"));
    }
    if (line.ends_with("// FAULT"))
      out.faults.insert(number);
    if (line.ends_with("// OTHER"))
      out.others.insert(number);
  }
  return out;
}

const std::vector<defect>& defects() {
  static const std::vector<defect> all = [] {
    std::vector<defect> read;
    for (const auto& file : fs::directory_iterator(defects_folder()))
      if (file.path().extension() == ".cu")
        read.push_back(read_defect(file.path()));
    std::sort(
      read.begin(), read.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
    return read;
  }();
  return all;
}

/// Input, output and scratch of 256 floats, and their number.
resolved_workload workload_of(const defect& what) {
  resolved_workload work;
  work.unit.key = what.name;
  entry_use use;
  use.expression = "defect";
  use.parameter_abi = {"const float*", "float*", "float*", "int32_t"};
  use.argument_names = {"x", "y", "scratch", "N"};
  use.parameter_const = {true, false, false, false};
  work.unit.entries.push_back(use);
  const auto buffer = [](resolved_buffer::role kind, const char* name, const std::string& init) {
    return resolved_buffer{kind, name, dtype::float32, {elements}, elements * 4, init, 256};
  };
  work.buffers = {buffer(resolved_buffer::role::input, "x", ""),
    buffer(resolved_buffer::role::output, "y", ""),
    buffer(resolved_buffer::role::scratch, "scratch", what.scratch)};
  if (what.scratch == "zero") {
    resolved_step clear;
    clear.what = resolved_step::op::memset;
    clear.buffer = 2;
    clear.bytes = elements * 4;
    work.steps.push_back(clear);
  }
  resolved_step launch;
  launch.entry = "defect";
  launch.grid = {what.grid, 1, 1};
  launch.block = {what.block, 1, 1};
  for (uint32_t i = 0; i < 3; ++i) {
    resolved_argument argument;
    argument.buffer = i;
    argument.abi = "ptr";
    launch.args.push_back(argument);
  }
  resolved_argument count;
  count.what = resolved_argument::kind::bytes;
  count.abi = "i32";
  count.bytes.resize(4);
  const int32_t n = elements;
  std::memcpy(count.bytes.data(), &n, 4);
  launch.args.push_back(count);
  work.steps.push_back(launch);
  return work;
}

std::vector<std::byte> some_input() {
  std::vector<std::byte> bytes(elements * 4);
  for (int i = 0; i < elements; ++i) {
    const float value = 0.25F * static_cast<float>(i % 37) + 0.125F;
    std::memcpy(bytes.data() + 4 * i, &value, 4);
  }
  return bytes;
}

result<emulation> look_at(const defect& what, const clang_command& with, ptx::check_set checks) {
  const resolved_workload work = workload_of(what);
  const auto code = testing::compile(what.source, work.unit, {}, with);
  if (!code)
    return pass(code);
  if (code->status != verdict_status::passed)
    return fail(errc::invalid_input, code->log);
  emulate_settings how;
  how.profile = *profile("h200");
  how.checks = checks;
  how.orders = what.orders;
  how.instruction_limit = what.limit;
  how.time = false;
  return emulate(code->ptx, code->entries, work, {some_input()}, how);
}

std::string described(const emulation& seen) {
  std::string all;
  for (const emulated_finding& found : seen.findings)
    all += fmt::format("\n  {}: {} [{} / {}]", ptx::to_string(found.what.kind), found.what.what,
      found.what.source.line, found.what.other ? found.what.other->source.line : 0);
  return all;
}

} // namespace

TEST_CASE("each seeded defect is found and named with its lines") {
  const auto with = testing::clang();
  if (!with) {
    MESSAGE("SKIPPED: the defects are not compiled: " << with.error().what);
    return;
  }
  for (const defect& what : defects()) {
    CAPTURE(what.name);
    const auto seen = look_at(what, *with, ptx::all_checks);
    REQUIRE_MESSAGE(seen, (seen ? std::string{} : seen.error().what));
    const auto found =
      std::find_if(seen->findings.begin(), seen->findings.end(), [&](const auto& one) {
        return one.is_fault && ptx::to_string(one.what.kind) == what.kind
          && (what.faults.empty() || what.faults.count(one.what.source.line) != 0)
          && (what.others.empty()
            || (one.what.other && what.others.count(one.what.other->source.line) != 0));
      });
    CHECK_MESSAGE(
      found != seen->findings.end(), what.kind, " was not found; what was:", described(*seen));
    if (found != seen->findings.end() && !what.faults.empty()) {
      CHECK(found->what.source.file == "kernel.cu");
      CHECK(found->what.entry == "defect");
      CHECK(found->what.ptx_line > 0);
    }
    // One defect gives one kind of finding, and at most the deadlock that it leads to.
    std::set<std::string> kinds;
    for (const emulated_finding& one : seen->findings)
      kinds.insert(ptx::to_string(one.what.kind));
    kinds.erase(what.kind);
    kinds.erase("deadlock");
    CHECK_MESSAGE(kinds.empty(), "more was found:", described(*seen));
  }
}

TEST_CASE("every kind of fault has at least two seeded defects") {
  std::map<std::string, int> count;
  for (const defect& what : defects())
    ++count[what.kind];
  for (auto kind = static_cast<int>(ptx::fault_kind::out_of_bounds);
       kind <= static_cast<int>(ptx::fault_kind::order_dependent); ++kind) {
    const std::string name = ptx::to_string(static_cast<ptx::fault_kind>(kind));
    // A launch is refused before a kernel runs, and PTX when it is read.
    if (name == "bad launch" || name == "unsupported")
      continue;
    // Of tcgen05, which the corpus's compiler does not know:
    // tests/gpu/mock/ptx/tcgen05_faults_test.
    if (name.find("tensor") != std::string::npos)
      continue;
    CHECK_MESSAGE(count[name] >= 2, name);
  }
}

TEST_CASE("a check that was not asked for finds nothing") {
  const auto with = testing::clang();
  if (!with) {
    MESSAGE("SKIPPED: the defects are not compiled: " << with.error().what);
    return;
  }
  const std::map<std::string, ptx::check> checks{{"shared memory race", ptx::check::shared_races},
    {"global memory race", ptx::check::global_races},
    {"uninitialised value", ptx::check::uninitialised}, {"missing proxy fence", ptx::check::fences},
    {"missing wgmma fence", ptx::check::wgmma}, {"missing wgmma wait", ptx::check::wgmma},
    {"output read before written", ptx::check::outputs}};
  for (const defect& what : defects()) {
    const auto check = checks.find(what.kind);
    if (check == checks.end())
      continue;
    CAPTURE(what.name);
    const auto without =
      look_at(what, *with, ptx::all_checks & ~static_cast<ptx::check_set>(check->second));
    REQUIRE(without);
    const auto same_kind = [&](const emulated_finding& one) {
      return ptx::to_string(one.what.kind) == what.kind;
    };
    CHECK_MESSAGE(std::none_of(without->findings.begin(), without->findings.end(), same_kind),
      described(*without));
    const auto alone = look_at(what, *with, static_cast<ptx::check_set>(check->second));
    REQUIRE(alone);
    CHECK(std::any_of(alone->findings.begin(), alone->findings.end(), same_kind));
  }
}
