// Every kernel of tests/corpus/device_kernels against its reference, on the mock, at its small
// size.

#include "bench/calibration/mock_call.hpp"
#include "bench/calibration/references.hpp"
#include "bench/calibration/variants.hpp"

#include <algorithm>
#include <cstdlib>
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <fstream>
#include <iterator>
#include <map>
#include <set>
#include <sstream>

namespace {

using namespace gristmill;
using namespace gristmill::calibration;
namespace fs = std::filesystem;

fs::path source_root() {
  const char* root = std::getenv("GRISTMILL_SOURCE");
  return root == nullptr ? "." : root;
}

std::string read_text(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  REQUIRE_MESSAGE(in, path.string());
  return std::string(std::istreambuf_iterator<char>(in), {});
}

const std::vector<corpus_kernel>& kernels() {
  static const auto loaded = load_corpus(source_root() / "tests/corpus/device_kernels");
  REQUIRE_MESSAGE(loaded, (loaded ? std::string{} : loaded.error().what));
  return *loaded;
}

std::vector<corpus_case> cases() {
  std::istringstream text(corpus_text(kernels()));
  return parse_corpus(text);
}

/// mock_cannot.txt: name, then a piece of the words with which the mock refuses.
std::map<std::string, std::string> known_refusals() {
  std::istringstream in(read_text(source_root() / "tests/corpus/device_kernels/mock_cannot.txt"));
  std::map<std::string, std::string> out;
  for (std::string line; std::getline(in, line);)
    if (!line.empty() && line[0] != '#')
      out[line.substr(0, line.find(' '))] = line.substr(line.find(' ') + 1);
  return out;
}

/// Names between double quotes behind `key = [` in split.toml.
std::set<std::string> split_list(const std::string& key) {
  const std::string text = read_text(source_root() / "bench/calibration/split.toml");
  const size_t first = text.find("\n" + key + " = [");
  REQUIRE_MESSAGE(first != std::string::npos, key);
  const size_t last = text.find(']', first);
  std::set<std::string> out;
  for (size_t at = text.find('"', first); at < last;) {
    const size_t end = text.find('"', at + 1);
    CHECK_MESSAGE(out.insert(text.substr(at + 1, end - at - 1)).second, "twice in ", key);
    at = text.find('"', end + 1);
  }
  return out;
}

} // namespace

TEST_CASE("corpus.txt is what the plans resolve to") {
  CHECK(read_text(source_root() / "bench/calibration/corpus.txt") == corpus_text(kernels()));
}

TEST_CASE("points of the templates come back from their text, tensor maps too") {
  const auto points = template_variants({"gemm_bias_gelu"}, 64);
  REQUIRE_MESSAGE(points, (points ? std::string{} : points.error().what));
  std::istringstream text(corpus_text(*points));
  const auto read = parse_corpus(text);
  REQUIRE(read.size() == points->size());
  size_t with_maps = 0;
  for (const corpus_case& one : read) {
    CAPTURE(one.name);
    REQUIRE(one.large.steps.size() == 1);
    size_t maps = 0;
    for (const case_argument& argument : one.large.steps[0].arguments)
      maps += argument.kind == case_argument::what::map ? 1 : 0;
    CHECK(maps == one.large.maps.size());
    with_maps += maps > 0 ? 1 : 0;
  }
  CHECK(with_maps > 0);
}

TEST_CASE(
  "every kernel that the mock can run gives its reference's numbers, and no other is listed "
  "as one that it cannot") {
  auto mock = make_mock_caller();
  if (!mock) {
    MESSAGE("SKIPPED: the corpus is not run: " << mock.error().what);
    return;
  }
  const auto refusals = known_refusals();
  const auto all = cases();
  for (const auto& [name, words] : refusals)
    CHECK_MESSAGE(std::any_of(all.begin(), all.end(),
                    [&n = name](const corpus_case& one) { return one.name == n; }),
      "mock_cannot.txt names ", name, ", which is no kernel");
  size_t ran = 0;
  for (size_t i = 0; i < all.size(); ++i) {
    const corpus_case& one = all[i];
    CAPTURE(one.name);
    const auto got = (*mock)->output(kernels()[i], one);
    const auto refusal = refusals.find(one.name);
    if (refusal != refusals.end()) {
      CHECK_MESSAGE(!got, "works now: take it out of mock_cannot.txt");
      if (!got)
        CHECK_MESSAGE(got.error().what.find(refusal->second) != std::string::npos,
          "refused in other words: ", got.error().what);
      continue;
    }
    CHECK_MESSAGE(got, (got ? std::string{} : got.error().what));
    if (!got)
      continue;
    std::vector<numbers> inputs;
    size_t input = 0;
    const auto raw = small_inputs(one);
    for (const case_buffer& buffer : one.small.buffers)
      if (buffer.kind == case_buffer::role::input)
        inputs.push_back(as_doubles(buffer.dtype, raw[input++]));
    const largest_error found =
      compare_numbers(*got, expected(one, std::move(inputs)), one.atol, one.rtol);
    CHECK_MESSAGE(
      found.right(), "element ", found.place, ": ", found.got, " instead of ", found.want);
    ++ran;
  }
  MESSAGE(ran << " of " << all.size() << " kernels ran on the mock");
}

TEST_CASE(
  "the split names every family once, holds back at least twenty kernels and seals twelve") {
  const auto open = split_list("open"), held_out = split_list("held_out");
  const auto sealed = split_list("sealed");
  size_t held = 0;
  std::set<std::string> sealed_seen;
  for (const corpus_case& one : cases()) {
    CAPTURE(one.name);
    if (one.family == "sealed") {
      CHECK(sealed.count(one.name) == 1);
      sealed_seen.insert(one.name);
      continue;
    }
    CHECK(open.count(one.family) + held_out.count(one.family) == 1);
    held += held_out.count(one.family);
  }
  CHECK(held >= 20);
  CHECK(sealed_seen == sealed);
  CHECK(sealed.size() == 12);
}
