#include "tests/kernels/search/synthetic_space.hpp"

#include "kernels/search/search_key.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <fmt/format.h>

namespace gristmill::test {

namespace {

uint64_t stirred(uint64_t seed, std::string_view text) {
  uint64_t hash = 0xcbf29ce484222325U ^ (seed * 0x9e3779b97f4a7c15U);
  for (char c : text)
    hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3U;
  hash ^= hash >> 31;
  hash *= 0xbf58476d1ce4e5b9U;
  return hash ^ (hash >> 29);
}

/// In [0, 1).
double draw(uint64_t seed, std::string_view text) {
  return static_cast<double>(stirred(seed, text) >> 11) * 0x1p-53;
}

} // namespace

synthetic_space::synthetic_space(synthetic_shape shape) : shape_(std::move(shape)) {
  for (size_t i = 0; i < shape_.sizes.size(); ++i) {
    search_workload one;
    one.uuid = fmt::format("w{}", i);
    one.axes = {{"M", shape_.sizes[i]}};
    one.twin_axes = one.axes;
    one.elements = static_cast<uint64_t>(shape_.sizes[i]) * 64;
    workloads_.push_back(std::move(one));
  }
}

size_t synthetic_space::points(size_t partition, size_t stage) const {
  size_t sum = 0;
  for (const synthetic_family& family : shape_.partitions[partition][stage].families) {
    size_t product = 1;
    for (const auto& [name, values] : family.parameters)
      product *= values.size();
    sum += product;
  }
  return sum;
}

uint64_t synthetic_space::size() const {
  uint64_t sum = 0;
  for (size_t p = 0; p < partitions(); ++p) {
    uint64_t product = 1;
    for (size_t s = 0; s < stages(p); ++s)
      product *= points(p, s);
    sum += product;
  }
  return sum;
}

program_point synthetic_space::at(uint64_t index) const {
  program_point out;
  for (size_t p = 0; p < partitions(); ++p) {
    uint64_t product = 1;
    for (size_t s = 0; s < stages(p); ++s)
      product *= points(p, s);
    if (index < product) {
      out.partition = p;
      for (size_t s = 0; s < stages(p); ++s) {
        out.stages.push_back(static_cast<size_t>(index % points(p, s)));
        index /= points(p, s);
      }
      return out;
    }
    index -= product;
  }
  return out;
}

synthetic_space::place synthetic_space::place_of(
  size_t partition, size_t stage, size_t point) const {
  const auto& families = shape_.partitions[partition][stage].families;
  place out;
  for (size_t f = 0; f < families.size(); ++f) {
    size_t product = 1;
    for (const auto& [name, values] : families[f].parameters)
      product *= values.size();
    if (point < product) {
      out.family = &families[f];
      out.family_number = f;
      for (const auto& [name, values] : families[f].parameters) {
        out.values.push_back(point % values.size());
        point /= values.size();
      }
      return out;
    }
    point -= product;
  }
  return out;
}

size_t synthetic_space::number_of(size_t partition, size_t stage, const place& where) const {
  const auto& families = shape_.partitions[partition][stage].families;
  size_t out = 0;
  for (size_t f = 0; f < where.family_number; ++f) {
    size_t product = 1;
    for (const auto& [name, values] : families[f].parameters)
      product *= values.size();
    out += product;
  }
  size_t scale = 1;
  for (size_t i = 0; i < where.values.size(); ++i) {
    out += where.values[i] * scale;
    scale *= families[where.family_number].parameters[i].second.size();
  }
  return out;
}

program_point synthetic_space::first(size_t partition) const {
  program_point out;
  out.partition = partition;
  for (size_t s = 0; s < stages(partition); ++s) {
    place where = place_of(partition, s, 0);
    for (size_t i = 0; i < where.values.size(); ++i)
      where.values[i] = where.family->parameters[i].second.size() / 2;
    out.stages.push_back(number_of(partition, s, where));
  }
  return out;
}

std::string synthetic_space::stage_key(const place& where) const {
  std::string out = where.family->name;
  for (size_t i = 0; i < where.values.size(); ++i) {
    const auto& [name, values] = where.family->parameters[i];
    out += fmt::format("/{}{}", name, values[where.values[i]]);
  }
  return out;
}

std::string synthetic_space::key(const program_point& point) const {
  std::string out = point.partition == 0 ? "" : fmt::format("p{}:", point.partition);
  for (size_t s = 0; s < point.stages.size(); ++s)
    out += (s == 0 ? "" : "+") + stage_key(place_of(point.partition, s, point.stages[s]));
  return out;
}

std::optional<program_point> synthetic_space::find(std::string_view key) const {
  program_point out;
  if (key.starts_with("p") && key.find(':') < key.find('/'))
    std::from_chars(key.data() + 1, key.data() + key.size(), out.partition);
  const auto keys = stage_keys(key);
  if (out.partition >= partitions() || keys.size() != stages(out.partition))
    return std::nullopt;
  for (size_t s = 0; s < keys.size(); ++s) {
    const auto& families = shape_.partitions[out.partition][s].families;
    place where;
    for (size_t f = 0; f < families.size(); ++f) {
      if (families[f].name == family_of(keys[s])) {
        where.family = &families[f];
        where.family_number = f;
      }
    }
    if (where.family == nullptr)
      return std::nullopt;
    size_t at = where.family->name.size();
    for (const auto& [name, values] : where.family->parameters) {
      if (at >= keys[s].size())
        return std::nullopt;
      const size_t end = std::min(keys[s].find('/', at + 1), keys[s].size());
      int64_t value = 0;
      std::from_chars(keys[s].data() + at + 1 + name.size(), keys[s].data() + end, value);
      const auto found = std::find(values.begin(), values.end(), value);
      if (found == values.end())
        return std::nullopt;
      where.values.push_back(static_cast<size_t>(found - values.begin()));
      at = end;
    }
    out.stages.push_back(number_of(out.partition, s, where));
  }
  return this->key(out) == key ? std::optional(out) : std::nullopt;
}

std::vector<program_point> synthetic_space::neighbours(const program_point& point) const {
  std::vector<program_point> out;
  std::vector<size_t> order;
  for (size_t s = 0; s < point.stages.size(); ++s)
    order.push_back(s);
  const auto& stages_here = shape_.partitions[point.partition];
  std::stable_sort(order.begin(), order.end(),
    [&](size_t a, size_t b) { return stages_here[a].work > stages_here[b].work; });
  const auto add = [&](size_t stage, const place& where) {
    program_point next = point;
    next.stages[stage] = number_of(point.partition, stage, where);
    out.push_back(std::move(next));
  };
  for (size_t s : order) {
    const place here = place_of(point.partition, s, point.stages[s]);
    for (size_t i = 0; i < here.values.size(); ++i) {
      place next = here;
      if (here.values[i] + 1 < here.family->parameters[i].second.size()) {
        ++next.values[i];
        add(s, next);
      }
      if (here.values[i] > 0) {
        next.values[i] = here.values[i] - 1;
        add(s, next);
      }
    }
  }
  for (size_t s : order) {
    const place here = place_of(point.partition, s, point.stages[s]);
    for (size_t f = 0; f < stages_here[s].families.size(); ++f) {
      if (f == here.family_number)
        continue;
      place next;
      next.family = &stages_here[s].families[f];
      next.family_number = f;
      for (const auto& [name, values] : next.family->parameters)
        next.values.push_back(values.size() / 2);
      add(s, next);
    }
  }
  for (size_t p = 0; p < partitions(); ++p) {
    if (p != point.partition)
      out.push_back(first(p));
  }
  return out;
}

std::string synthetic_space::describe(const program_point& point) const {
  return "made-up " + key(point);
}

std::string synthetic_space::difference(const program_point& from, const program_point& to) const {
  return fmt::format("{} instead of {}", key(to), key(from));
}

result<generated_kernel> synthetic_space::generate(const program_point& point) const {
  return generated_kernel{"// " + key(point), "{}"};
}

result<generated_kernel> synthetic_space::generate(
  const std::vector<std::pair<std::string, program_point>>& groups) const {
  std::string source;
  for (const auto& [condition, point] : groups)
    source += fmt::format("// {}: {}\n", condition, key(point));
  return generated_kernel{source, "{}"};
}

std::vector<double> synthetic_space::work_shares(size_t partition) const {
  double sum = 0;
  for (const synthetic_stage& stage : shape_.partitions[partition])
    sum += stage.work;
  std::vector<double> out;
  for (const synthetic_stage& stage : shape_.partitions[partition])
    out.push_back(stage.work / sum);
  return out;
}

double synthetic_space::log_factor(
  size_t partition, size_t stage, const place& where, double size) const {
  // Sizes from 2^5 to 2^15 or so move the best values by `drift` steps to either side.
  const double shift = shape_.drift * (std::log2(size) - 10) / 5;
  std::vector<double> off;
  double out = std::log(where.family->factor);
  for (size_t i = 0; i < where.values.size(); ++i) {
    const auto& [name, values] = where.family->parameters[i];
    const std::string what = fmt::format("{}/{}/{}/{}", partition, stage, where.family->name, name);
    const double range = static_cast<double>(values.size() - 1);
    const double direction = draw(shape_.seed, what + "/direction") < 0.5 ? -1 : 1;
    const double best =
      std::clamp(draw(shape_.seed, what + "/best") * range + direction * shift, 0.0, range);
    const double distance = static_cast<double>(where.values[i]) - best;
    const double steep = 0.01 + 0.09 * draw(shape_.seed, what + "/steep");
    out += steep * distance * distance;
    // Neighbouring parameters lean on each other: where one is too large the other may help.
    if (!off.empty())
      out += 0.8 * steep * (draw(shape_.seed, what + "/lean") - 0.5) * distance * off.back();
    off.push_back(distance);
  }
  return out;
}

std::vector<uint64_t> synthetic_space::times(const program_point& point) const {
  std::vector<uint64_t> out;
  const std::string name = key(point);
  for (const search_workload& each : workloads_) {
    const double size = static_cast<double>(each.axes.front().second);
    double ns = 0;
    for (size_t s = 0; s < point.stages.size(); ++s) {
      const place where = place_of(point.partition, s, point.stages[s]);
      ns += shape_.partitions[point.partition][s].work * (5000 + 40 * size)
        * std::exp(log_factor(point.partition, s, where, size));
    }
    ns *= 1 + shape_.rough * draw(shape_.seed, name + "@" + each.uuid);
    out.push_back(static_cast<uint64_t>(std::llround(ns)));
  }
  return out;
}

trial synthetic_space::judge(
  const std::string& full_key, const std::vector<std::string>& probed) const {
  trial out;
  out.key = full_key;
  out.status = verdict_status::passed;
  out.floor_share = 0.1;
  const search_key key = read_key(full_key);
  out.effort = key.kind == search_key_kind::probe ? attempt_effort::probe : attempt_effort::full;
  std::vector<std::pair<int64_t, program_point>> parts;
  if (key.subject.starts_with(groups_prefix)) {
    for (const auto& [condition, point_key] : parts_of_groups_key(key.subject)) {
      int64_t bound = INT64_MAX;
      const size_t digits = condition.rfind(' ');
      if (condition != "true")
        std::from_chars(condition.data() + digits + 1, condition.data() + condition.size(), bound);
      parts.emplace_back(bound, *find(point_key));
    }
  } else if (const auto point = find(key.subject)) {
    parts.emplace_back(INT64_MAX, *point);
  }
  double sum = 0;
  for (size_t w = 0; w < workloads_.size(); ++w) {
    if (!probed.empty()
      && std::find(probed.begin(), probed.end(), workloads_[w].uuid) == probed.end())
      continue;
    for (const auto& [bound, point] : parts) {
      if (shape_.sizes[w] > bound)
        continue;
      const uint64_t ns = times(point)[w];
      out.times.push_back({workloads_[w].uuid, ns});
      sum += std::log(static_cast<double>(ns));
      break;
    }
  }
  out.objective_ns = static_cast<uint64_t>(
    std::llround(std::exp(sum / static_cast<double>(std::max<size_t>(out.times.size(), 1)))));
  return out;
}

synthetic_shape one_family(size_t parameters, uint64_t seed) {
  synthetic_family family{"f", {}, 1};
  for (size_t i = 0; i < parameters; ++i)
    family.parameters.emplace_back(
      std::string(1, static_cast<char>('a' + i)), std::vector<int64_t>{1, 2, 4, 8, 16});
  synthetic_shape out;
  out.partitions = {{{{family}, 1}}};
  out.seed = seed;
  return out;
}

synthetic_shape several_stages(uint64_t seed) {
  const synthetic_family tiles{"tiles",
    {{"m", {16, 32, 64, 128, 256}}, {"n", {16, 32, 64, 128, 256}}, {"k", {8, 16, 32, 64}},
      {"u", {1, 2, 4}}},
    1};
  const synthetic_family rows{"rows", {{"t", {64, 128, 256, 512}}, {"v", {1, 2, 4, 8}}}, 1};
  const synthetic_family plain{"plain", {{"t", {128, 256}}}, 3};
  synthetic_shape out;
  out.partitions = {
    {{{tiles, plain}, 1.0}},
    {{{tiles, plain}, 0.9}, {{rows, plain}, 0.2}},
    {{{tiles, plain}, 0.9}, {{rows, plain}, 0.2}, {{rows, plain}, 0.1}},
  };
  out.seed = seed;
  return out;
}

} // namespace gristmill::test
