#include "planning/allocation/allocation_text.hpp"

#include "messages/choices.hpp"
#include "planning/allocation/equal_share.hpp"
#include "planning/allocation/policies.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <map>
#include <mutex>
#include <optional>

namespace gristmill {

namespace {

/// Numbers are read, compared and kept in millionths.
constexpr size_t places = 6;
constexpr uint64_t one = 1'000'000;

struct parameter {
  std::string name;
  std::string what;
  uint64_t fallback = 0;
  uint64_t least = 0;
  uint64_t most = 0;
  bool whole = false;
};

/// In the order of the rule's parameters, in millionths.
using values = std::vector<uint64_t>;

struct rule {
  std::string name;
  std::string what;
  std::vector<parameter> parameters;
  bool has_inner = false;
  /// `inner` is set exactly where `has_inner`.
  std::function<allocation_factory(const values&, allocation_factory inner)> make;
};

double decimal(uint64_t millionths) {
  return static_cast<double>(millionths) / static_cast<double>(one);
}

std::string written(uint64_t millionths) {
  auto out = fmt::format("{}.{:06}", millionths / one, millionths % one);
  out.erase(out.find_last_not_of('0') + 1);
  return out.back() == '.' ? out.substr(0, out.size() - 1) : out;
}

const parameter eps{"eps", "log speed-up that a problem must be away from its floor; 0: no gate",
  50'000, 0, 10 * one, false};
const parameter share{"share", "share of the attempts that stay equal", 500'000, 0, one, false};
const parameter prior{
  "prior", "log gain that every problem is credited with", 100'000, 0, 10 * one, false};

std::vector<rule> house_rules() {
  std::vector<rule> out;
  out.push_back({"equal", "fewest in flight, then the least use, then the fewest given", {}, false,
    [](const values&, const allocation_factory&) {
      return [](uint32_t n, bool by) { return std::make_unique<equal_share>(n, by); };
    }});
  out.push_back(
    {"round_robin", "one after the other", {}, false, [](const values&, const allocation_factory&) {
       return [](uint32_t n, bool) { return make_round_robin(n); };
     }});
  out.push_back({"greedy", "the largest recent gain for a unit of use",
    {{"halflife", "attempts after which one counts half", one, one, 1'000'000 * one, false}, prior},
    false, [](const values& v, const allocation_factory&) {
      return [h = decimal(v[0]), p = decimal(v[1])](
               uint32_t n, bool by) { return make_greedy(n, by, h, p); };
    }});
  out.push_back({"ucb", "the largest upper bound of the mean gain for a unit of use",
    {{"a", "log gain of an attempt that the bound is wide by", 30'000, 0, 10 * one, false}}, false,
    [](const values& v, const allocation_factory&) {
      return [a = decimal(v[0])](uint32_t n, bool by) { return make_ucb(n, by, a); };
    }});
  out.push_back({"rising", "the largest gain over the later half of a problem's attempts", {prior},
    false, [](const values& v, const allocation_factory&) {
      return [p = decimal(v[0])](uint32_t n, bool by) { return make_rising(n, by, p); };
    }});
  out.push_back({"asha", "asynchronous successive halving on gain",
    {{"eta", "one of so many goes on", 4 * one, 2 * one, 100 * one, true},
      {"first", "attempts of the first rung", 8 * one, one, 1'000'000 * one, true}},
    false, [](const values& v, const allocation_factory&) {
      const auto eta = static_cast<uint32_t>(v[0] / one);
      const auto first = static_cast<uint32_t>(v[1] / one);
      return [eta, first](uint32_t n, bool by) { return make_asha(n, by, eta, first); };
    }});
  out.push_back({"gate", "leaves out problems that are close to their floor", {eps}, true,
    [](const values& v, allocation_factory inner) {
      return [e = decimal(v[0]), inner = std::move(inner)](
               uint32_t n, bool by) { return make_gate(n, by, e, inner(n, by)); };
    }});
  out.push_back({"floor", "a share of the attempts stays equal", {share}, true,
    [](const values& v, allocation_factory inner) {
      return [s = static_cast<uint32_t>(v[0]), inner = std::move(inner)](
               uint32_t n, bool by) { return make_equal_floor(n, by, s, inner(n, by)); };
    }});
  auto floor = share;
  floor.name = "floor";
  auto gate = eps;
  gate.name = "gate";
  out.push_back({"rebalance", "gate(GATE, floor(FLOOR, rising(PRIOR)))", {floor, gate, prior},
    false, [](const values& v, const allocation_factory&) {
      return [s = static_cast<uint32_t>(v[0]), e = decimal(v[1]), p = decimal(v[2])](
               uint32_t n, bool by) {
        return make_gate(n, by, e, make_equal_floor(n, by, s, make_rising(n, by, p)));
      };
    }});
  return out;
}

/// Filled once; only added to afterwards, and nothing is ever taken out.
struct rule_registry {
  std::mutex mutex;
  std::map<std::string, rule, std::less<>> rules;
  external_allocation_maker external;

  rule_registry() {
    for (auto& each : house_rules())
      rules.emplace(each.name, each);
  }
};

rule_registry& registry() {
  static rule_registry all;
  return all;
}

/// Reads from the front of a text and knows how far it has come.
class allocation_parser {
public:
  allocation_parser(std::string_view text, const rule_registry& all)
    : text_(text), rules_(all.rules), external_(all.external) {}

  result<allocation_factory> parse() {
    auto out = read_rule(1);
    skip_spaces();
    if (out && at_ != text_.size())
      return wrong("the end");
    return out;
  }

private:
  result<allocation_factory> read_rule(size_t level) {
    if (level > allocation_levels_max)
      return fail(errc::invalid_input,
        fmt::format("allocation '{}': more than {} levels", shown(text_), allocation_levels_max));
    const auto name = word();
    if (name.empty())
      return wrong("the name of a rule");
    if (name == "external")
      return read_external();
    const auto found = rules_.find(name);
    if (found == rules_.end())
      return unknown(name);
    const auto& r = found->second;
    std::vector<std::optional<uint64_t>> given(r.parameters.size());
    allocation_factory inner;
    if (take('(') && !take(')')) {
      do {
        if (auto read = read_argument(r, given, inner, level); !read)
          return pass(read);
      } while (take(','));
      if (!take(')'))
        return wrong("',' or ')'");
    }
    if (r.has_inner && !inner)
      return fail(errc::invalid_input,
        fmt::format("allocation '{0}': it needs a rule within it, such as {0}(rising)", r.name));
    values v;
    for (size_t i = 0; i < given.size(); ++i)
      v.push_back(given[i].value_or(r.parameters[i].fallback));
    return r.make(v, std::move(inner));
  }

  /// The only one whose parameters are texts.
  result<allocation_factory> read_external() {
    std::map<std::string, std::string, std::less<>> given;
    if (take('(') && !take(')')) {
      do {
        const auto name = std::string{word()};
        if (name != "cmd" && name != "timeout")
          return fail(errc::invalid_input,
            fmt::format("allocation 'external': there is no parameter '{}'{}", shown(name),
              known_choices(name, {"cmd", "timeout"})));
        if (!take('='))
          return wrong("'='");
        auto text = text_value();
        if (!text)
          return pass(text);
        if (!given.emplace(name, std::move(*text)).second)
          return fail(errc::invalid_input,
            fmt::format("allocation 'external': parameter '{}' is given twice", name));
      } while (take(','));
      if (!take(')'))
        return wrong("',' or ')'");
    }
    if (given["cmd"].empty())
      return fail(errc::invalid_input,
        "allocation 'external': it needs a command, such as external(cmd=\"python3 rule.py\")");
    if (!external_)
      return fail(errc::unsupported, "allocation 'external': this program starts no processes");
    const auto timeout = given.find("timeout");
    return external_(given["cmd"], timeout == given.end() ? "50ms" : timeout->second);
  }

  /// Between double quotes `\"` and `\\` are a quote and a backslash.
  result<std::string> text_value() {
    skip_spaces();
    if (at_ == text_.size() || text_[at_] != '"')
      return std::string{value()};
    std::string out;
    for (++at_; at_ < text_.size() && text_[at_] != '"'; ++at_) {
      if (text_[at_] == '\\' && at_ + 1 < text_.size())
        ++at_;
      out += text_[at_];
    }
    if (at_ == text_.size())
      return wrong("'\"'");
    ++at_;
    return out;
  }

  result<void> read_argument(const rule& r, std::vector<std::optional<uint64_t>>& given,
    allocation_factory& inner, size_t level) {
    skip_spaces();
    const auto from = at_;
    const auto name = word();
    if (name.empty() && (at_ == text_.size() || text_[at_] != '.'))
      return wrong("a parameter or a rule");
    if (take('=')) {
      const auto p = std::find_if(r.parameters.begin(), r.parameters.end(),
        [&](const parameter& each) { return each.name == name; });
      if (p == r.parameters.end())
        return no_parameter(r, name);
      return put(r, static_cast<size_t>(p - r.parameters.begin()), value(), given);
    }
    at_ = from;
    // A number without a name is the first parameter.
    if (name.empty() || (name[0] >= '0' && name[0] <= '9')) {
      const auto number = value();
      if (r.parameters.empty())
        return no_parameter(r, number);
      return put(r, 0, number, given);
    }
    if (!r.has_inner)
      return fail(errc::invalid_input,
        fmt::format("allocation '{}': there can be no rule within it, here '{}'{}", r.name,
          shown(name), r.parameters.empty() ? "" : known_choices(name, names_of(r))));
    if (inner)
      return fail(errc::invalid_input,
        fmt::format("allocation '{}': two rules within it, the second '{}'", r.name, shown(name)));
    auto read = read_rule(level + 1);
    if (!read)
      return pass(read);
    inner = std::move(*read);
    return {};
  }

  result<void> put(const rule& r, size_t index, std::string_view text,
    std::vector<std::optional<uint64_t>>& given) const {
    const auto& p = r.parameters[index];
    if (given[index])
      return fail(errc::invalid_input,
        fmt::format("allocation '{}': parameter '{}' is given twice", r.name, p.name));
    const auto number = parse_fixed_point(text, p.whole ? 0 : places);
    const auto scale = p.whole ? one : 1;
    if (!number || *number > p.most / scale || *number * scale < p.least)
      return fail(errc::invalid_input,
        fmt::format("allocation '{}': {}={}: must be a {} from {} to {}", r.name, p.name,
          shown(text),
          p.whole ? "whole number" : fmt::format("decimal with at most {} places", places),
          written(p.least), written(p.most)));
    given[index] = *number * scale;
    return {};
  }

  static std::vector<std::string> names_of(const rule& r) {
    std::vector<std::string> out;
    for (const auto& p : r.parameters)
      out.push_back(p.name);
    return out;
  }

  static tl::unexpected<failure> no_parameter(const rule& r, std::string_view name) {
    return fail(errc::invalid_input,
      fmt::format("allocation '{}': there is no parameter '{}'{}", r.name, shown(name),
        r.parameters.empty() ? "; it has none" : known_choices(name, names_of(r))));
  }

  tl::unexpected<failure> unknown(std::string_view name) const {
    if (name == "oracle")
      return fail(errc::invalid_input,
        "there is no allocation 'oracle' here: it knows what each problem would gain, so it stands "
        "by itself in simulations only");
    std::vector<std::string> known;
    for (const auto& [each, ignored] : rules_)
      known.push_back(each);
    if (external_)
      known.insert(std::upper_bound(known.begin(), known.end(), "external"), "external");
    return fail(errc::invalid_input,
      fmt::format("there is no allocation '{}'{}", shown(name), known_choices(name, known)));
  }

  std::string_view word() {
    skip_spaces();
    const auto from = at_;
    // A hyphen counts, so that a name with one is unknown rather than a riddle.
    while (at_ < text_.size()
      && (text_[at_] == '_' || text_[at_] == '-' || (text_[at_] >= 'a' && text_[at_] <= 'z')
        || (text_[at_] >= 'A' && text_[at_] <= 'Z') || (text_[at_] >= '0' && text_[at_] <= '9')))
      ++at_;
    const auto out = text_.substr(from, at_ - from);
    skip_spaces();
    return out;
  }

  std::string_view value() {
    skip_spaces();
    const auto from = at_;
    while (at_ < text_.size() && std::string_view{",()="}.find(text_[at_]) == std::string::npos)
      ++at_;
    auto out = text_.substr(from, at_ - from);
    while (!out.empty() && out.back() == ' ')
      out.remove_suffix(1);
    return out;
  }

  bool take(char c) {
    skip_spaces();
    if (at_ == text_.size() || text_[at_] != c)
      return false;
    ++at_;
    return true;
  }

  void skip_spaces() {
    while (at_ < text_.size() && text_[at_] == ' ')
      ++at_;
  }

  tl::unexpected<failure> wrong(std::string_view expected) const {
    const auto found =
      at_ == text_.size() ? "the end" : fmt::format("'{}'", shown(text_.substr(at_, 1)));
    return fail(errc::invalid_input,
      fmt::format("allocation '{}': expected {} at character {}, found {}", shown(text_), expected,
        at_ + 1, found));
  }

  std::string_view text_;
  const std::map<std::string, rule, std::less<>>& rules_;
  const external_allocation_maker& external_;
  size_t at_ = 0;
};

bool plain_name(std::string_view name) {
  auto good = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_'; };
  return !name.empty() && name.size() <= 32 && name[0] >= 'a' && name[0] <= 'z'
    && std::all_of(name.begin(), name.end(), good);
}

} // namespace

result<allocation_factory> allocation_from_text(std::string_view text) {
  if (text.size() > allocation_text_bytes_max)
    return fail(errc::invalid_input,
      fmt::format("allocation '{}': longer than {} bytes", shown(text), allocation_text_bytes_max));
  auto& all = registry();
  std::lock_guard lock(all.mutex);
  return allocation_parser{text, all}.parse();
}

std::vector<allocation_info> allocation_catalogue() {
  auto& all = registry();
  std::lock_guard lock(all.mutex);
  std::vector<allocation_info> out;
  for (const auto& [name, r] : all.rules) {
    allocation_info info{name, r.what, {}, r.has_inner};
    for (const auto& p : r.parameters)
      info.parameters.push_back(
        {p.name, p.what, written(p.fallback), written(p.least), written(p.most), p.whole});
    out.push_back(std::move(info));
  }
  if (all.external) {
    allocation_info external{"external", "a process of your own decides, over JSON lines",
      {{"cmd", "what /bin/sh -c runs, between double quotes", "\"…\"", "", "", false},
        {"timeout", "for one answer", "50ms", "1ms", "1s", false}},
      false};
    out.insert(std::upper_bound(out.begin(), out.end(), external,
                 [](const auto& a, const auto& b) { return a.name < b.name; }),
      std::move(external));
  }
  return out;
}

result<void> register_allocation(
  std::string name, allocation_factory make, std::string description) {
  if (!plain_name(name))
    return fail(errc::invalid_input,
      fmt::format(
        "an allocation cannot be called '{}': a name is [a-z][a-z0-9_]{{0,31}}", shown(name)));
  if (!make)
    return fail(
      errc::invalid_input, fmt::format("allocation '{}': there is nothing that makes it", name));
  auto& all = registry();
  std::lock_guard lock(all.mutex);
  if (name == "oracle" || name == "external" || all.rules.contains(name))
    return fail(errc::refused, fmt::format("there is an allocation '{}' already", name));
  auto& r = all.rules[name];
  r.name = std::move(name);
  r.what = std::move(description);
  // The name in the map lives as long as the program.
  r.make = [make = std::move(make), label = std::string_view{r.name}](
             const values&, const allocation_factory&) -> allocation_factory {
    return [make, label](uint32_t n, bool by) { return make_guarded(n, by, label, make(n, by)); };
  };
  return {};
}

void install_external_allocation(external_allocation_maker make) {
  auto& all = registry();
  std::lock_guard lock(all.mutex);
  all.external = std::move(make);
}

} // namespace gristmill
