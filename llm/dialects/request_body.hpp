#pragma once

#include "llm/dialects/dialect.hpp"
#include "messages/llm.hpp"
#include "messages/result.hpp"

#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace gristmill {

/// Keys in the order of the alphabet, so that equal requests have equal bodies.
using sorted_json = nlohmann::json;

/// `{base}{path}`: a base without a path gets "/v1" first, a query of the base stays at the end.
/// `invalid_input` for what is no http(s) URL, holds a user or a password, or ends with `path`
/// already. `root` is what the path begins with when the base does not end with it ("/v1" for
/// Anthropic, empty for others).
result<std::string> request_url(
  const std::string& base, std::string_view path, std::string_view root);

/// The host of a base that `request_url` takes, in lower case and without its port.
std::string host_of(const std::string& base);

/// What every dialect refuses: no cap, no message, an empty message, a temperature that is no
/// number of 0 or more, no model, names that are not UTF-8.
result<void> check_request(const llm_request& request, const dialect_options& how);

/// It is given, and the model is not told to reason: reasoning models refuse a temperature.
bool sends_temperature(const llm_request& request, const dialect_options& how);

/// The word, when it is empty or one of the choices; `invalid_input` with the nearest one
/// otherwise.
result<void> check_choice(
  std::string_view setting, std::string_view word, const std::vector<std::string>& choices);

/// Adds the extra body's members. `invalid_input` when it is no JSON object, or names fields of
/// `ours` (all of them are named) or fields that every dialect refuses: those that offer tools,
/// which the decoders do not read, and those that ask for several answers.
result<void> merge_extra_body(
  sorted_json& body, const std::string& extra, std::span<const std::string_view> ours);

/// A key for the provider's cache: equal for calls of one problem with equal instructions.
std::string cache_key(const llm_request& request);

/// The call, without its id. `headers` come after content-type and accept.
result<http_call> make_call(const dialect_options& how, std::string url, http_headers headers,
  std::string_view key_header, std::string_view key_prefix, const sorted_json& body);

} // namespace gristmill
