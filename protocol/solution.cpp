#include "protocol/solution.hpp"

#include "protocol/emit.hpp"
#include "protocol/field_reader.hpp"
#include "protocol/nearest.hpp"
#include "protocol/problem.hpp"
#include "protocol/solution_reader.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <unordered_set>

namespace gristmill {

namespace {

using need = field_reader::need;

constexpr size_t document_bytes_max = size_t{64} << 20;
constexpr size_t neighbour_bytes_max = size_t{16} << 20;

const std::vector<std::string> hardware_names{"B200", "LOCAL"};
const std::vector<std::string> cpp_suffixes{
  ".cu", ".cpp", ".cc", ".cxx", ".c", ".h", ".hpp", ".cuh"};

bool is_among(const std::vector<std::string>& list, std::string_view text) {
  return std::find(list.begin(), list.end(), text) != list.end();
}

std::string_view suffix_of(std::string_view path) {
  const size_t slash = path.rfind('/');
  const auto file = slash == std::string_view::npos ? path : path.substr(slash + 1);
  const size_t dot = file.rfind('.');
  return dot == std::string_view::npos ? std::string_view{} : file.substr(dot);
}

/// Why the format refuses a path; empty when it does not.
std::string path_error(std::string_view path) {
  if (path.starts_with('/'))
    return "must be relative";
  while (!path.empty()) {
    const size_t end = std::min(path.find('/'), path.size());
    if (path.substr(0, end) == "..")
      return "must not have the component `..`";
    path.remove_prefix(std::min(end + 1, path.size()));
  }
  return {};
}

void read_languages(const ordered_json& spec, field_reader& fields, solution& out) {
  if (!spec.contains("languages") && spec.contains("language")) {
    fields.error("spec.languages",
      "a list is required; `spec.language` is the form of FlashInfer-Bench, which `gristmill "
      "convert` turns into this one");
    return;
  }
  out.languages = fields.texts(spec, "spec", "languages", true);
  std::vector<std::string> known = python_languages();
  known.insert(known.end(), cpp_languages().begin(), cpp_languages().end());
  for (size_t i = 0; i < out.languages.size(); ++i)
    if (!out.languages[i].empty() && !is_among(known, out.languages[i]))
      fields.error(fmt::format("spec.languages.{}", i),
        fmt::format(
          "unknown language {}{}", excerpt(out.languages[i]), suggestion(out.languages[i], known)));
}

void read_hardware(const ordered_json& spec, field_reader& fields, solution& out) {
  out.target_hardware = fields.texts(spec, "spec", "target_hardware", true);
  if (const auto found = spec.find("target_hardware");
      found != spec.end() && found->is_array() && found->empty())
    fields.error("spec.target_hardware", "must name at least one of B200 and LOCAL");
  for (size_t i = 0; i < out.target_hardware.size(); ++i)
    if (!out.target_hardware[i].empty() && !is_among(hardware_names, out.target_hardware[i]))
      fields.error(fmt::format("spec.target_hardware.{}", i),
        fmt::format("unknown hardware {}{}", excerpt(out.target_hardware[i]),
          suggestion(out.target_hardware[i], hardware_names)));
}

void read_options(const ordered_json& spec, field_reader& fields, solution& out) {
  const auto found = spec.find("compile_options");
  if (found == spec.end() || found->is_null())
    return;
  const auto* from = fields.object(spec, "spec", "compile_options");
  if (from == nullptr)
    return;
  const std::string path = "spec.compile_options";
  auto& options = out.options.emplace();
  const std::pair<const char*, std::vector<std::string>*> lists[] = {
    {"cflags", &options.cflags},
    {"cuda_cflags", &options.cuda_cflags},
    {"ld_flags", &options.ld_flags},
  };
  for (const auto& [key, list] : lists)
    if (from->contains(key))
      *list = fields.texts(*from, path, key, true, need::present);
  fields.ignore_others(*from, path, {"cflags", "cuda_cflags", "ld_flags"});
}

/// The rules of the specification's `spec` object among its fields; run only when each is right.
void check_spec(const solution& given, field_reader& fields) {
  const auto of_cpp = [](const std::string& each) { return is_among(cpp_languages(), each); };
  const bool cpp = given.is_cpp();
  if (cpp && !std::all_of(given.languages.begin(), given.languages.end(), of_cpp))
    return fields.error(
      "spec.languages", "Python languages and C++ languages do not go together in one solution");
  const size_t mark = given.entry_point.find("::");
  if (mark == std::string::npos || given.entry_point.find("::", mark + 2) != std::string::npos)
    return fields.error("spec.entry_point",
      fmt::format(
        "{} is not of the form file::function with one `::`", excerpt(given.entry_point)));
  const auto suffix = suffix_of(given.entry_file());
  if (cpp ? !is_among(cpp_suffixes, suffix) : suffix != ".py")
    fields.error("spec.entry_point",
      fmt::format("the file of a {} solution must end in {}, but {} does not",
        cpp ? "C++" : "Python", cpp ? ".cu .cpp .cc .cxx .c .h .hpp or .cuh" : ".py",
        excerpt(given.entry_file())));
}

void read_spec(const ordered_json& document, field_reader& fields, solution& out) {
  const auto* spec = fields.object(document, "", "spec");
  if (spec == nullptr)
    return;
  read_languages(*spec, fields, out);
  read_hardware(*spec, fields, out);
  out.entry_point = fields.text(*spec, "spec", "entry_point", need::present);
  if (spec->contains("dependencies"))
    out.dependencies = fields.texts(*spec, "spec", "dependencies", true);
  out.destination_passing_style = fields.boolean(*spec, "spec", "destination_passing_style", true);
  if (const auto binding = spec->find("binding"); binding != spec->end() && !binding->is_null()) {
    out.binding = fields.text(*spec, "spec", "binding", need::present);
    if (binding->is_string() && out.binding != "torch")
      fields.error("spec.binding",
        fmt::format("{} is not a binding; the format knows `torch` (or null, which means the same)",
          excerpt(out.binding)));
  }
  read_options(*spec, fields, out);
  fields.ignore_others(*spec, "spec",
    {"languages", "target_hardware", "entry_point", "dependencies", "destination_passing_style",
      "binding", "compile_options"});
}

void read_source(const ordered_json& from, const std::string& path, field_reader& fields,
  const neighbour& fill, solution& out) {
  if (!from.is_object())
    return fields.error(path, fmt::format("must be an object, not {}", kind_text(from)));
  source_file file;
  file.path = fields.text(from, path, "path", need::required);
  const auto refused = path_error(file.path);
  if (!refused.empty())
    fields.error(path + ".path", fmt::format("{} {}", excerpt(file.path), refused));
  const auto content = from.find("content");
  const bool absent = content == from.end() || content->is_null() || *content == "";
  if (absent && fill && !file.path.empty() && refused.empty()) {
    if (auto text = fill(file.path))
      file.content = std::move(*text);
    else
      fields.error(path + ".content", text.error().what);
  } else {
    file.content = fields.text(from, path, "content", need::required);
  }
  fields.ignore_others(from, path, {"path", "content"});
  out.sources.push_back(std::move(file));
}

void read_sources(
  const ordered_json& document, field_reader& fields, const neighbour& fill, solution& out) {
  const auto found = document.find("sources");
  if (found == document.end())
    return fields.error("sources", "a list is required");
  if (!found->is_array())
    return fields.error("sources", fmt::format("must be a list, not {}", kind_text(*found)));
  if (found->empty())
    return fields.error("sources", "must have at least one file");
  for (size_t i = 0; i < found->size(); ++i)
    read_source((*found)[i], fmt::format("sources.{}", i), fields, fill, out);
}

/// The rules between the parts; stops at the first error.
void check_whole(const solution& given, field_reader& fields) {
  std::unordered_set<std::string_view> paths;
  for (size_t i = 0; i < given.sources.size(); ++i)
    if (!paths.insert(given.sources[i].path).second)
      return fields.error(fmt::format("sources.{}.path", i),
        fmt::format("{} stands on an earlier source too", excerpt(given.sources[i].path)));
  if (paths.contains(given.entry_file()))
    return;
  std::vector<std::string> known;
  for (const auto& each : given.sources)
    known.push_back(each.path);
  const std::string file{given.entry_file()};
  fields.error("spec.entry_point",
    fmt::format("no source has the path {}{}", excerpt(file), suggestion(file, known)));
}

bool is_utf8(const std::string& text) {
  try {
    (void)ordered_json(text).dump();
    return true;
  } catch (const ordered_json::type_error&) {
    return false;
  }
}

result<std::string> read_neighbour(
  const std::filesystem::path& folder, const std::string& source_path) {
  const auto missing = [&](std::string_view why) {
    return fail(errc::not_found,
      fmt::format(
        "absent or empty, and {} {}", excerpt((folder / source_path).string(), 200), why));
  };
  std::error_code code;
  const auto root = std::filesystem::canonical(folder.empty() ? "." : folder, code);
  if (code)
    return missing("is not there");
  const auto file = std::filesystem::weakly_canonical(root / source_path, code);
  const auto relative = file.lexically_relative(root);
  if (code || relative.empty() || *relative.begin() == "..")
    return missing("lies outside the folder of the solution");
  auto text = read_text_file(file, neighbour_bytes_max);
  if (!text)
    return missing(text.error().code == errc::not_found ? "is not there" : "cannot be read");
  if (text->empty())
    return missing("is empty too");
  if (!is_utf8(*text))
    return missing("is not UTF-8");
  return text;
}

} // namespace

result<ordered_json> parse_solution_document(std::string_view text, const std::string& file_name) {
  json_limits limits;
  limits.bytes = document_bytes_max;
  limits.python_numbers = true;
  return parse_json_object(text, file_name, limits);
}

result<solution> read_solution(const ordered_json& document, std::string_view text,
  const std::string& file_name, std::vector<std::string>* warnings, solution_rules rules,
  const neighbour& fill) {
  field_reader fields;
  solution out;
  // First, since its own cross rules run only when nothing in it failed, whatever is wrong
  // elsewhere.
  read_spec(document, fields, out);
  if (!fields.failed())
    check_spec(out, fields);
  out.name = fields.text(document, "", "name", need::required);
  out.definition_name = fields.text(document, "", "definition", need::required);
  out.author = fields.text(document, "", "author", need::required);
  out.description = fields.text(document, "", "description", need::free);
  read_sources(document, fields, fill, out);
  fields.ignore_others(
    document, "", {"name", "definition", "author", "description", "spec", "sources"});
  if (!fields.failed())
    check_whole(out, fields);
  if (!fields.failed() && rules == solution_rules::safe) {
    for (const auto& each : dangerous_paths(out)) {
      const size_t colon = each.find(": ");
      fields.error(each.substr(0, colon), each.substr(colon + 2));
    }
  }
  fields.give_warnings(file_name, text, warnings);
  if (fields.failed())
    return tl::unexpected(fields.collected(file_name, text));
  return out;
}

const std::vector<std::string>& python_languages() {
  static const std::vector<std::string> names{
    "pytorch", "triton", "cute_dsl", "cutile", "cudnn_frontend"};
  return names;
}

const std::vector<std::string>& cpp_languages() {
  static const std::vector<std::string> names{"cutlass", "cudnn", "cublas", "cuda_cpp"};
  return names;
}

bool solution::is_cpp() const {
  return std::any_of(languages.begin(), languages.end(),
    [](const std::string& each) { return is_among(cpp_languages(), each); });
}

std::string_view solution::entry_file() const {
  return std::string_view{entry_point}.substr(0, entry_point.find("::"));
}

std::string_view solution::entry_function() const {
  const size_t mark = entry_point.find("::");
  return mark == std::string::npos ? std::string_view{}
                                   : std::string_view{entry_point}.substr(mark + 2);
}

result<solution> parse_solution(std::string_view text, const std::string& file_name,
  std::vector<std::string>* warnings, solution_rules rules) {
  auto document = parse_solution_document(text, file_name);
  if (!document)
    return pass(document);
  return read_solution(*document, text, file_name, warnings, rules, {});
}

result<solution> load_solution(
  const std::filesystem::path& path, std::vector<std::string>* warnings, solution_rules rules) {
  auto text = read_text_file(path, document_bytes_max);
  if (!text)
    return pass(text);
  const auto folder = path.parent_path();
  auto document = parse_solution_document(*text, path.string());
  if (!document)
    return pass(document);
  return read_solution(*document, *text, path.string(), warnings, rules,
    [&](const std::string& source_path) { return read_neighbour(folder, source_path); });
}

result<void> check_solution_fits(const solution& given, const problem& target) {
  if (given.definition_name == target.def.name)
    return {};
  return fail(errc::invalid_input,
    fmt::format("definition: the solution {} is for {}, but the problem's definition is {}",
      excerpt(given.name), excerpt(given.definition_name), excerpt(target.def.name)));
}

std::string to_json(const solution& given) {
  ordered_json out = ordered_json::object();
  out["name"] = given.name;
  out["definition"] = given.definition_name;
  out["author"] = given.author;
  if (!given.description.empty())
    out["description"] = given.description;
  auto& spec = out["spec"];
  spec["languages"] = given.languages;
  spec["target_hardware"] = given.target_hardware;
  spec["entry_point"] = given.entry_point;
  spec["dependencies"] = given.dependencies;
  spec["destination_passing_style"] = given.destination_passing_style;
  spec["binding"] = given.binding.empty() ? ordered_json{} : ordered_json(given.binding);
  auto& options = spec["compile_options"];
  if (given.options) {
    options["cflags"] = given.options->cflags;
    options["cuda_cflags"] = given.options->cuda_cflags;
    options["ld_flags"] = given.options->ld_flags;
  }
  auto& sources = out["sources"] = ordered_json::array();
  for (const auto& each : given.sources)
    sources.push_back({{"path", each.path}, {"content", each.content}});
  return dump_json(out, true);
}

} // namespace gristmill
