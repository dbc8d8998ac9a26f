#include "protocol/model_file.hpp"

#include "protocol/duration_text.hpp"
#include "protocol/endpoint.hpp"
#include "protocol/json_document.hpp"
#include "protocol/nearest.hpp"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <functional>
#include <limits>
#include <nlohmann/json.hpp>
#include <toml++/toml.h>

namespace gristmill {

namespace {

constexpr size_t bytes_max = size_t{1} << 20;
constexpr size_t deployments_max = 256;
constexpr size_t prices_max = 4096;

/// Reads one table: each field is taken once, and what nobody has taken is unknown. The first error
/// stays.
class table_reader {
public:
  table_reader(const toml::table& table, std::string where, const std::string& file_name)
    : table_(table), where_(std::move(where)), file_(file_name) {}

  bool failed() const { return error_.has_value(); }
  tl::unexpected<failure> error() const { return tl::unexpected<failure>(*error_); }

  void wrong(const toml::node* at, std::string_view field, std::string_view why) {
    if (error_)
      return;
    auto line = (at == nullptr ? table_.source() : at->source()).begin.line;
    error_ = failure{errc::invalid_input,
      fmt::format("{}:{}: {}{}{}: {}", file_, line, where_, field.empty() ? "" : ".", field, why)};
  }

  const toml::node* take(const char* field, bool required = false) {
    known_.emplace_back(field);
    const auto* node = table_.get(field);
    if (node == nullptr && required)
      wrong(nullptr, field, "is missing");
    return node;
  }

  std::string text(const char* field, bool required, std::string otherwise = {}) {
    const auto* node = take(field, required);
    if (node == nullptr)
      return otherwise;
    auto value = node->value_exact<std::string>();
    if (!value)
      wrong(node, field, "must be a string");
    else if (value->empty())
      wrong(node, field, "must not be empty");
    return value.value_or("");
  }

  bool boolean(const char* field) {
    const auto* node = take(field);
    if (node == nullptr)
      return false;
    auto value = node->value_exact<bool>();
    if (!value)
      wrong(node, field, "must be true or false");
    return value.value_or(false);
  }

  std::optional<uint64_t> count(const char* field, uint64_t most) {
    const auto* node = take(field);
    if (node == nullptr)
      return std::nullopt;
    auto value = node->value_exact<int64_t>();
    if (!value || *value < 1 || static_cast<uint64_t>(*value) > most) {
      wrong(node, field, fmt::format("must be a whole number from 1 to {}", most));
      return std::nullopt;
    }
    return static_cast<uint64_t>(*value);
  }

  std::chrono::nanoseconds duration(const char* field, std::chrono::nanoseconds otherwise) {
    const auto* node = take(field);
    if (node == nullptr)
      return otherwise;
    auto value = node->value_exact<std::string>();
    auto ns = value ? parse_duration_ns(*value) : std::nullopt;
    if (!ns)
      wrong(node, field, "must be a time such as \"90s\" or \"10m\", or \"0s\" for never");
    return std::chrono::nanoseconds{static_cast<int64_t>(ns.value_or(0))};
  }

  /// USD per million tokens, in 10^-12 USD a token.
  uint64_t price(const char* field) {
    const auto* node = take(field, true);
    if (node == nullptr)
      return 0;
    constexpr double dollar = 1e6;
    auto whole = node->value_exact<int64_t>();
    auto value = whole ? std::optional{static_cast<double>(*whole)} : node->value_exact<double>();
    if (!value || !std::isfinite(*value) || *value < 0 || *value > 1e6) {
      wrong(node, field, "must be USD per million tokens, from 0 to 1000000");
      return 0;
    }
    auto scaled = *value * dollar;
    auto rounded = std::nearbyint(scaled);
    // A decimal of six digits is off by the rounding of its binary form at most.
    if (std::abs(scaled - rounded) > 1e-3) {
      wrong(node, field, "has more than six digits after the point");
      return 0;
    }
    return static_cast<uint64_t>(rounded);
  }

  /// To be called last.
  void refuse_unknown() {
    for (const auto& [key, node] : table_)
      if (std::find(known_.begin(), known_.end(), key.str()) == known_.end())
        wrong(&node, key.str(), "unknown key" + suggestion(key.str(), known_));
  }

private:
  const toml::table& table_;
  std::string where_;
  const std::string& file_;
  std::vector<std::string> known_;
  std::optional<failure> error_;
};

/// Names of variables as a shell knows them, so that nobody writes a key here.
bool is_variable_name(std::string_view text) {
  return !text.empty() && text.size() <= 128 && (text[0] < '0' || text[0] > '9')
    && std::all_of(text.begin(), text.end(), [](char c) {
         return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9')
           || c == '_';
       });
}

constexpr const char* not_a_variable =
  "must be the NAME of an environment variable (letters, digits, _), never a key itself";

/// Endpoint and what follows from it; the reason when it is refused.
std::optional<std::string> take_endpoint(model_deployment& to, const std::string& text) {
  auto where = parse_endpoint(text);
  if (!where)
    return where.error().what;
  to.endpoint = where->url;
  to.loopback = where->loopback;
  if (!where->https && !where->loopback && !to.allow_plain_http)
    return "http to another machine sends prompts and key in the clear: use https, or set "
           "allow_plain_http = true";
  return std::nullopt;
}

model_deadlines read_deadlines(
  table_reader& of, const std::string& file_name, std::optional<failure>& error) {
  model_deadlines out;
  const auto* node = of.take("deadlines");
  if (node == nullptr)
    return out;
  const auto* table = node->as_table();
  if (table == nullptr) {
    of.wrong(node, "deadlines", "must be a table with connect, first_event, idle and wall");
    return out;
  }
  table_reader in(*table, "deadlines", file_name);
  out.connect = in.duration("connect", out.connect);
  out.first_event = in.duration("first_event", out.first_event);
  out.idle = in.duration("idle", out.idle);
  out.wall = in.duration("wall", out.wall);
  in.refuse_unknown();
  if (in.failed())
    error = in.error().value();
  return out;
}

result<model_deployment> read_deployment(const toml::table& table, const std::string& file_name,
  const std::vector<std::string>& dialects) {
  table_reader in(table, "deployment", file_name);
  model_deployment out;
  out.name = in.text("name", true);
  out.dialect = in.text("dialect", true);
  if (!in.failed() && std::find(dialects.begin(), dialects.end(), out.dialect) == dialects.end())
    in.wrong(table.get("dialect"), "dialect",
      "'" + out.dialect + "' is unknown" + suggestion(out.dialect, dialects));
  out.allow_plain_http = in.boolean("allow_plain_http");
  auto endpoint = in.text("endpoint", true);
  if (!in.failed())
    if (auto why = take_endpoint(out, endpoint))
      in.wrong(table.get("endpoint"), "endpoint", *why);
  out.model = in.text("model", true);
  out.key_env = in.text("key_env", false);
  if (!in.failed() && !out.key_env.empty() && !is_variable_name(out.key_env))
    in.wrong(table.get("key_env"), "key_env", not_a_variable);
  out.instructions_role = in.text("instructions_role", false, out.instructions_role);
  if (out.instructions_role != "system" && out.instructions_role != "developer")
    in.wrong(
      table.get("instructions_role"), "instructions_role", "must be \"system\" or \"developer\"");
  out.output_cap_field = in.text("output_cap_field", false);
  if (!out.output_cap_field.empty() && out.output_cap_field != "max_tokens"
    && out.output_cap_field != "max_completion_tokens")
    in.wrong(table.get("output_cap_field"), "output_cap_field",
      "must be \"max_tokens\" or \"max_completion_tokens\"");
  out.reasoning_effort = in.text("reasoning_effort", false);
  out.extra_body = in.text("extra_body", false);
  if (!out.extra_body.empty() && !nlohmann::json::parse(out.extra_body, nullptr, false).is_object())
    in.wrong(table.get("extra_body"), "extra_body", "must be a JSON object, as a string");
  out.send_cache_key = in.boolean("send_cache_key");
  std::optional<failure> inner;
  out.deadlines = read_deadlines(in, file_name, inner);
  constexpr uint64_t many = 1'000'000'000'000;
  out.requests_per_minute = in.count("requests_per_minute", many);
  out.input_tokens_per_minute = in.count("input_tokens_per_minute", many);
  out.output_tokens_per_minute = in.count("output_tokens_per_minute", many);
  out.in_flight_max =
    static_cast<uint32_t>(in.count("in_flight_max", 10'000).value_or(out.in_flight_max));
  out.context_tokens = in.count("context_tokens", 1'000'000'000);
  out.output_tokens_max = static_cast<uint32_t>(
    in.count("output_tokens_max", 1'000'000'000).value_or(out.output_tokens_max));
  out.ca_file = in.text("ca_file", false);
  in.refuse_unknown();
  if (in.failed())
    return in.error();
  if (inner)
    return tl::unexpected<failure>(*inner);
  return out;
}

result<model_price> read_price(const toml::table& table, const std::string& file_name) {
  table_reader in(table, "price", file_name);
  model_price out;
  out.model = in.text("model", true);
  const auto* node = in.take("as_of");
  if (node == nullptr) {
    in.wrong(nullptr, "as_of", "is missing: a price without its date is worth nothing");
  } else if (auto date = node->value_exact<toml::date>()) {
    out.as_of = std::chrono::year_month_day{
      std::chrono::year{date->year}, std::chrono::month{date->month}, std::chrono::day{date->day}};
    if (!out.as_of.ok() || date->year < 2020)
      in.wrong(node, "as_of", "must be a day of the calendar from 2020 on");
  } else {
    in.wrong(node, "as_of", "must be a date without quotes, such as 2026-11-30");
  }
  out.input = in.price("input");
  out.cached_read = in.price("cached_read");
  out.cache_write = in.price("cache_write");
  out.output = in.price("output");
  in.refuse_unknown();
  if (in.failed())
    return in.error();
  return out;
}

class file_reader {
public:
  file_reader(const std::string& file_name, const std::vector<std::string>& dialects)
    : file_(file_name), dialects_(dialects) {
    out_.source = file_name;
  }

  result<model_file> read(const toml::table& root) {
    table_reader top(root, "", file_);
    const auto* deployments = top.take("deployment");
    const auto* prices = top.take("price");
    const auto* roles = top.take("role");
    top.refuse_unknown();
    if (top.failed())
      return top.error();
    if (auto fine = each(deployments, "deployment", deployments_max,
          [this](const toml::table& t) { return add_deployment(t); });
        !fine)
      return pass(fine);
    if (out_.deployments.empty())
      return fail(errc::invalid_input, file_ + ": deployment: there is no [[deployment]]");
    if (auto fine =
          each(prices, "price", prices_max, [this](const toml::table& t) { return add_price(t); });
        !fine)
      return pass(fine);
    if (auto fine = add_roles(roles); !fine)
      return pass(fine);
    return std::move(out_);
  }

private:
  result<void> wrong(const toml::node& at, const std::string& field, const std::string& why) const {
    return fail(
      errc::invalid_input, fmt::format("{}:{}: {}: {}", file_, at.source().begin.line, field, why));
  }

  result<void> each(const toml::node* list, const std::string& field, size_t most,
    const std::function<result<void>(const toml::table&)>& take) const {
    if (list == nullptr)
      return {};
    const auto* array = list->as_array();
    if (array == nullptr)
      return wrong(*list, field, "must be written as [[" + field + "]]");
    if (array->size() > most)
      return wrong(*list, field, fmt::format("more than {} of them", most));
    for (const auto& item : *array) {
      const auto* table = item.as_table();
      if (table == nullptr)
        return wrong(item, field, "must be written as [[" + field + "]]");
      if (auto fine = take(*table); !fine)
        return fine;
    }
    return {};
  }

  result<void> add_deployment(const toml::table& table) {
    auto one = read_deployment(table, file_, dialects_);
    if (!one)
      return pass(one);
    for (const auto& other : out_.deployments) {
      if (other.name == one->name)
        return wrong(*table.get("name"), "deployment.name", "'" + one->name + "' is there twice");
      // One transport carries all calls, and it trusts one set of certificates.
      if (!one->ca_file.empty() && !other.ca_file.empty() && one->ca_file != other.ca_file)
        return wrong(*table.get("ca_file"), "deployment.ca_file",
          "a run has one file of certificates, and deployment '" + other.name + "' names '"
            + other.ca_file + "'");
    }
    out_.deployments.push_back(std::move(*one));
    return {};
  }

  result<void> add_price(const toml::table& table) {
    auto one = read_price(table, file_);
    if (!one)
      return pass(one);
    if (out_.price_of(one->model) != nullptr)
      return wrong(*table.get("model"), "price.model", "'" + one->model + "' has two prices");
    out_.prices.push_back(std::move(*one));
    return {};
  }

  result<void> add_roles(const toml::node* node) {
    std::vector<size_t> all(out_.deployments.size());
    for (size_t i = 0; i < all.size(); ++i)
      all[i] = i;
    if (node != nullptr) {
      const auto* table = node->as_table();
      if (table == nullptr)
        return wrong(*node, "role", "must be written as [role.propose]");
      for (const auto& [key, value] : *table)
        if (auto fine = add_role(std::string{key.str()}, value); !fine)
          return fine;
      if (out_.roles.count("propose") == 0)
        return wrong(*node, "role.propose",
          "is missing: it is what roles without deployments of their own use");
    } else {
      out_.roles["propose"] = all;
    }
    return {};
  }

  result<void> add_role(const std::string& name, const toml::node& value) {
    const auto& known = model_roles();
    if (std::find(known.begin(), known.end(), name) == known.end())
      return wrong(value, "role." + name, "unknown role" + suggestion(name, known));
    const auto* table = value.as_table();
    if (table == nullptr)
      return wrong(value, "role." + name, "must be a table with deployments = [\"...\"]");
    table_reader in(*table, "role." + name, file_);
    const auto* list = in.take("deployments", true);
    in.refuse_unknown();
    if (in.failed())
      return in.error();
    const auto field = "role." + name + ".deployments";
    const auto* names = list->as_array();
    if (names == nullptr || names->empty())
      return wrong(*list, field, "must be a list of names of deployments, at least one");
    std::vector<std::string> there;
    for (const auto& d : out_.deployments)
      there.push_back(d.name);
    auto& to = out_.roles[name];
    for (const auto& item : *names) {
      auto text = item.value_exact<std::string>();
      if (!text)
        return wrong(item, field, "must be a list of strings");
      auto found = std::find(there.begin(), there.end(), *text);
      if (found == there.end())
        return wrong(
          item, field, "there is no deployment '" + *text + "'" + suggestion(*text, there));
      auto place = static_cast<size_t>(found - there.begin());
      if (std::find(to.begin(), to.end(), place) != to.end())
        return wrong(item, field, "'" + *text + "' is there twice");
      to.push_back(place);
    }
    return {};
  }

  const std::string& file_;
  const std::vector<std::string>& dialects_;
  model_file out_;
};

} // namespace

const model_price* model_file::price_of(const std::string& model) const {
  auto found = std::find_if(
    prices.begin(), prices.end(), [&](const model_price& p) { return p.model == model; });
  return found == prices.end() ? nullptr : &*found;
}

const std::vector<size_t>& model_file::role(const std::string& purpose) const {
  auto found = roles.find(purpose);
  return found == roles.end() ? roles.at("propose") : found->second;
}

const std::vector<std::string>& model_roles() {
  static const std::vector<std::string> all{"propose", "repair", "reflect"};
  return all;
}

result<model_file> parse_model_file(
  std::string_view text, const std::string& file_name, const std::vector<std::string>& dialects) {
  if (text.size() > bytes_max)
    return fail(errc::invalid_input,
      fmt::format("{}: {} bytes; a model file has at most {}", file_name, text.size(), bytes_max));
  try {
    const auto root = toml::parse(text, file_name);
    return file_reader(file_name, dialects).read(root);
  } catch (const toml::parse_error& error) {
    return fail(errc::invalid_input,
      fmt::format("{}:{}: {}", file_name, error.source().begin.line, error.description()));
  }
}

result<model_file> load_model_file(
  const std::filesystem::path& path, const std::vector<std::string>& dialects) {
  auto text = read_text_file(path, bytes_max);
  if (!text)
    return pass(text);
  return parse_model_file(*text, path.string(), dialects);
}

result<model_file> model_file_from_flags(const std::string& endpoint, const std::string& model,
  const std::string& dialect, const std::string& key_env,
  const std::vector<std::string>& dialects) {
  auto wrong = [](const std::string& flag, const std::string& why) {
    return fail(errc::invalid_input, flag + ": " + why);
  };
  if (endpoint.empty())
    return wrong("--model-endpoint",
      "is missing; write for example --model-endpoint http://127.0.0.1:8080/v1");
  if (model.empty())
    return wrong("--model", "is missing: the name of the model, as its server calls it");
  model_deployment one;
  one.name = "model";
  one.model = model;
  // The text is not repeated: whoever put a password into it does not want to see it in a log. A
  // flag has no allow_plain_http: that takes a file, where it can be seen later.
  if (auto why = take_endpoint(one, endpoint))
    return wrong(
      "--model-endpoint", *why + (why->starts_with("http to") ? " in a file for --models" : ""));
  one.dialect = dialect;
  if (dialect.empty()) {
    auto host = parse_endpoint(endpoint)->host;
    one.dialect = host == "anthropic.com" || host.ends_with(".anthropic.com") ? "anthropic-messages"
                                                                              : "openai-chat";
  }
  if (std::find(dialects.begin(), dialects.end(), one.dialect) == dialects.end())
    return wrong(
      "--model-dialect", "'" + one.dialect + "' is unknown" + suggestion(one.dialect, dialects));
  if (!key_env.empty() && !is_variable_name(key_env))
    return wrong("--model-key-env", not_a_variable);
  one.key_env = key_env;
  model_file out;
  out.deployments.push_back(std::move(one));
  out.roles["propose"] = {0};
  return out;
}

std::vector<std::string> key_variables(const model_file& models) {
  std::vector<std::string> out;
  for (const auto& d : models.deployments)
    if (!d.key_env.empty() && std::find(out.begin(), out.end(), d.key_env) == out.end())
      out.push_back(d.key_env);
  return out;
}

} // namespace gristmill
