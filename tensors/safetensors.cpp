#include "tensors/safetensors.hpp"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <set>

namespace gristmill {

namespace {

constexpr uint64_t size_bytes = 8;

struct stored_row {
  std::string_view name;
  uint64_t bits;
  std::optional<dtype> type;
};

/// Every name of the format; those without a type of ours are read and never match.
constexpr std::array<stored_row, 20> stored_rows{{
  {"F64", 64, dtype::float64},
  {"F32", 32, dtype::float32},
  {"F16", 16, dtype::float16},
  {"BF16", 16, dtype::bfloat16},
  {"F8_E4M3", 8, dtype::float8_e4m3fn},
  {"F8_E5M2", 8, dtype::float8_e5m2},
  {"F4", 4, dtype::float4_e2m1fn_x2},
  {"I64", 64, dtype::int64},
  {"I32", 32, dtype::int32},
  {"I16", 16, dtype::int16},
  {"I8", 8, dtype::int8},
  {"BOOL", 8, dtype::boolean},
  {"U8", 8, {}},
  {"U16", 16, {}},
  {"U32", 32, {}},
  {"U64", 64, {}},
  {"C64", 64, {}},
  {"F8_E8M0", 8, {}},
  {"F6_E2M3", 6, {}},
  {"F6_E3M2", 6, {}},
}};

const stored_row* find_row(std::string_view stored) {
  const auto found = std::find_if(
    stored_rows.begin(), stored_rows.end(), [&](const auto& row) { return row.name == stored; });
  return found == stored_rows.end() ? nullptr : &*found;
}

/// As much of a stranger's text as fits a message.
std::string shown(std::string_view text) {
  constexpr size_t max = 120;
  std::string out;
  for (char c : text.substr(0, max))
    out += c >= ' ' && c <= '~' ? c : '?';
  return text.size() > max ? out + "..." : out;
}

tl::unexpected<failure> refuse(std::string what) {
  return fail(errc::invalid_input, "safetensors: " + std::move(what));
}

/// Reads the header's JSON straight into tensors. After the first failure every call does nothing.
class header_reader {
public:
  explicit header_reader(std::string_view text) : text_(text) {}

  result<std::vector<safetensor>> read() {
    read_object([&](const std::string& key) {
      if (key == "__metadata__")
        return skip_value(0);
      if (tensors_.size() == safetensors_limits::tensors)
        return complain(fmt::format("more than {} tensors", safetensors_limits::tensors));
      read_tensor(key);
    });
    skip_blanks();
    if (why_.empty() && at_ != text_.size()) // Upstream pads with blanks only.
      complain("text after the header's end");
    if (!why_.empty())
      return refuse(fmt::format("header, byte {}: {}", at_, why_));
    return std::move(tensors_);
  }

private:
  void complain(std::string why) {
    if (why_.empty())
      why_ = std::move(why);
  }
  bool failed() const { return !why_.empty(); }

  void skip_blanks() {
    while (at_ < text_.size()
      && (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\r' || text_[at_] == '\t'))
      ++at_;
  }

  /// Takes the character if it comes next.
  bool take(char c) {
    skip_blanks();
    if (failed() || at_ == text_.size() || text_[at_] != c)
      return false;
    ++at_;
    return true;
  }

  void expect(char c) {
    if (!take(c))
      complain(fmt::format("expected '{}'", c));
  }

  template <class Member>
  void read_object(Member member) {
    expect('{');
    if (failed() || take('}'))
      return;
    do {
      const auto key = read_string();
      expect(':');
      if (failed())
        return;
      member(key);
    } while (take(','));
    expect('}');
  }

  template <class Element>
  void read_array(Element element) {
    expect('[');
    if (failed() || take(']'))
      return;
    do
      element();
    while (!failed() && take(','));
    expect(']');
  }

  uint32_t read_hex4() {
    uint32_t value = 0;
    for (int i = 0; i < 4; ++i) {
      const char c = at_ < text_.size() ? text_[at_++] : '\0';
      const int digit = c >= '0' && c <= '9' ? c - '0'
        : c >= 'a' && c <= 'f'               ? c - 'a' + 10
        : c >= 'A' && c <= 'F'               ? c - 'A' + 10
                                             : -1;
      if (digit < 0) {
        complain("a \\u without four hexadecimal digits");
        return 0;
      }
      value = value * 16 + static_cast<uint32_t>(digit);
    }
    return value;
  }

  static void append_utf8(std::string& out, uint32_t code) {
    const auto put = [&](uint32_t byte) { out += static_cast<char>(byte); };
    if (code < 0x80)
      return put(code);
    if (code < 0x800) {
      put(0xc0 | code >> 6);
    } else if (code < 0x10000) {
      put(0xe0 | code >> 12);
      put(0x80 | (code >> 6 & 0x3f));
    } else {
      put(0xf0 | code >> 18);
      put(0x80 | (code >> 12 & 0x3f));
      put(0x80 | (code >> 6 & 0x3f));
    }
    put(0x80 | (code & 0x3f));
  }

  void read_escape(std::string& out) {
    constexpr std::string_view letters = "\"\\/bfnrt";
    constexpr std::string_view meant = "\"\\/\b\f\n\r\t";
    const char c = at_ < text_.size() ? text_[at_++] : '\0';
    if (const auto found = letters.find(c); c != '\0' && found != std::string_view::npos) {
      out += meant[found];
      return;
    }
    if (c != 'u')
      return complain("an escape that JSON does not have");
    uint32_t code = read_hex4();
    if (code >= 0xd800 && code < 0xdc00 && text_.substr(at_, 2) == "\\u") {
      at_ += 2;
      const uint32_t low = read_hex4();
      if (low < 0xdc00 || low > 0xdfff)
        return complain("half of a surrogate pair");
      code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
    } else if (code >= 0xd800 && code <= 0xdfff) {
      return complain("half of a surrogate pair");
    }
    append_utf8(out, code);
  }

  std::string read_string() {
    std::string out;
    expect('"');
    while (!failed()) {
      if (at_ == text_.size()) {
        complain("a string without an end");
        break;
      }
      const char c = text_[at_++];
      if (c == '"')
        break;
      if (static_cast<unsigned char>(c) < 0x20)
        complain("a control character in a string");
      else if (out.size() >= safetensors_limits::name_bytes)
        complain(fmt::format("a string of more than {} bytes", safetensors_limits::name_bytes));
      else if (c == '\\')
        read_escape(out);
      else
        out += c;
    }
    return out;
  }

  /// A whole number of 0 or more, in 63 bits.
  uint64_t read_natural() {
    skip_blanks();
    const size_t begin = at_;
    uint64_t value = 0;
    bool too_big = false;
    for (; at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9'; ++at_) {
      const auto digit = static_cast<uint64_t>(text_[at_] - '0');
      too_big = too_big || __builtin_mul_overflow(value, uint64_t{10}, &value)
        || __builtin_add_overflow(value, digit, &value) || value > uint64_t{INT64_MAX};
    }
    if (at_ == begin)
      complain("expected a whole number of 0 or more");
    else if (too_big)
      complain("a number beyond 63 bits");
    else if (text_[begin] == '0' && at_ - begin > 1)
      complain("a number with a leading zero");
    return failed() ? 0 : value;
  }

  void skip_value(int depth) {
    if (depth == safetensors_limits::depth)
      return complain(fmt::format("nested deeper than {}", safetensors_limits::depth));
    skip_blanks();
    const char c = at_ < text_.size() ? text_[at_] : '\0';
    if (c == '{')
      return read_object([&](const std::string&) { skip_value(depth + 1); });
    if (c == '[')
      return read_array([&] { skip_value(depth + 1); });
    if (c == '"') {
      // Longer than a name may be: a description, say.
      for (++at_; at_ < text_.size() && text_[at_] != '"'; ++at_)
        if (text_[at_] == '\\')
          ++at_;
      if (at_ >= text_.size())
        return complain("a string without an end");
      ++at_;
      return;
    }
    constexpr std::string_view of_a_word = "+-.0123456789Eaeflnrstu";
    const size_t begin = at_;
    while (at_ < text_.size() && of_a_word.find(text_[at_]) != std::string_view::npos)
      ++at_;
    if (at_ == begin)
      complain("expected a value");
  }

  void read_tensor(const std::string& name) {
    safetensor tensor;
    tensor.name = name;
    std::vector<uint64_t> offsets;
    bool has_dtype = false;
    bool has_shape = false;
    read_object([&](const std::string& key) {
      if (key == "dtype") {
        has_dtype = true;
        tensor.stored_dtype = read_string();
      } else if (key == "shape") {
        has_shape = true;
        tensor.shape.clear();
        read_array([&] {
          if (tensor.shape.size() == safetensors_limits::dimensions)
            return complain(fmt::format("more than {} dimensions", safetensors_limits::dimensions));
          tensor.shape.push_back(static_cast<int64_t>(read_natural()));
        });
      } else if (key == "data_offsets") {
        offsets.clear();
        read_array([&] {
          if (offsets.size() == 2)
            return complain("data_offsets are two numbers");
          offsets.push_back(read_natural());
        });
      } else {
        skip_value(0);
      }
    });
    if (!failed() && (!has_dtype || !has_shape || offsets.size() != 2))
      complain("needs dtype, shape and two data_offsets");
    if (!failed())
      check(tensor, offsets);
    if (failed()) {
      why_ = fmt::format("tensor '{}': {}", shown(name), why_);
      return;
    }
    tensors_.push_back(std::move(tensor));
  }

  void check(safetensor& tensor, const std::vector<uint64_t>& offsets) {
    const auto* row = find_row(tensor.stored_dtype);
    if (!row) {
      std::string known;
      for (const auto& each : stored_rows)
        known += (known.empty() ? "" : ", ") + std::string(each.name);
      return complain(
        fmt::format("unknown dtype '{}'; known: {}", shown(tensor.stored_dtype), known));
    }
    tensor.type = row->type;
    if (offsets[1] < offsets[0])
      return complain(fmt::format("data_offsets [{}, {}] run backwards", offsets[0], offsets[1]));
    tensor.offset = offsets[0];
    tensor.bytes = offsets[1] - offsets[0];
    auto count = element_count(tensor.shape);
    if (!count)
      return complain(count.error().what);
    const auto bits = static_cast<unsigned __int128>(*count) * row->bits;
    if (bits != static_cast<unsigned __int128>(tensor.bytes) * 8)
      complain(fmt::format("{} {} does not take {} bytes", tensor.stored_dtype,
        shape_text(tensor.shape), tensor.bytes));
  }

  std::string_view text_;
  size_t at_ = 0;
  std::string why_;
  std::vector<safetensor> tensors_;
};

/// Every byte of the data belongs to exactly one tensor. Offsets become those of the file.
result<void> settle_offsets(
  std::vector<safetensor>& tensors, uint64_t data_begin, uint64_t data_bytes) {
  std::set<std::string_view> names;
  std::vector<safetensor*> by_place;
  for (auto& tensor : tensors) {
    if (!names.insert(tensor.name).second)
      return refuse(fmt::format("tensor '{}' comes twice", shown(tensor.name)));
    by_place.push_back(&tensor);
  }
  std::sort(by_place.begin(), by_place.end(), [](const auto* a, const auto* b) {
    return std::pair(a->offset, a->bytes) < std::pair(b->offset, b->bytes);
  });
  uint64_t end = 0;
  for (auto* tensor : by_place) {
    if (tensor->offset + tensor->bytes > data_bytes)
      return refuse(fmt::format("tensor '{}': bytes {} to {} lie outside the data of {} bytes",
        shown(tensor->name), tensor->offset, tensor->offset + tensor->bytes, data_bytes));
    if (tensor->offset != end)
      return refuse(fmt::format("tensor '{}': its data begin at byte {}, {} before it at byte {}",
        shown(tensor->name), tensor->offset,
        tensor->offset < end ? "so they overlap with those that end" : "with a hole after those",
        end));
    end = tensor->offset + tensor->bytes;
    tensor->offset += data_begin;
  }
  if (end != data_bytes)
    return refuse(fmt::format("{} bytes of data belong to no tensor", data_bytes - end));
  return {};
}

void append_json_text(std::string& out, std::string_view text) {
  out += '"';
  for (char c : text) {
    if (c == '"' || c == '\\')
      (out += '\\') += c;
    else if (static_cast<unsigned char>(c) < 0x20)
      out += fmt::format("\\u{:04x}", static_cast<unsigned>(c));
    else
      out += c;
  }
  out += '"';
}

} // namespace

result<std::vector<safetensor>> parse_safetensors(std::span<const std::byte> file) {
  if (file.size() < size_bytes)
    return refuse(fmt::format("{} bytes are too few for a header", file.size()));
  uint64_t header = 0;
  for (size_t i = 0; i < size_bytes; ++i)
    header |= std::to_integer<uint64_t>(file[i]) << (8 * i);
  if (header > safetensors_limits::header_bytes)
    return refuse(fmt::format(
      "a header of {} bytes, and {} are allowed", header, safetensors_limits::header_bytes));
  if (header > file.size() - size_bytes)
    return refuse(fmt::format(
      "a header of {} bytes, and the file ends after {}", header, file.size() - size_bytes));
  const auto* text = reinterpret_cast<const char*>(file.data()) + size_bytes;
  auto tensors = header_reader({text, static_cast<size_t>(header)}).read();
  if (!tensors)
    return tensors;
  const uint64_t begin = size_bytes + header;
  if (auto settled = settle_offsets(*tensors, begin, file.size() - begin); !settled)
    return pass(settled);
  return tensors;
}

result<std::span<const std::byte>> find_safetensor(const std::vector<safetensor>& tensors,
  std::span<const std::byte> content, std::string_view key, dtype type,
  const std::vector<int64_t>& shape, const std::string& file) {
  const auto found = std::find_if(
    tensors.begin(), tensors.end(), [&](const auto& tensor) { return tensor.name == key; });
  if (found == tensors.end()) {
    std::string known;
    for (size_t i = 0; i < tensors.size() && i < 8; ++i)
      known += (i == 0 ? "" : ", ") + shown(tensors[i].name);
    return fail(errc::invalid_input,
      fmt::format("{}: no tensor '{}'; it holds {}{}", file, shown(key),
        known.empty() ? "none" : known, tensors.size() > 8 ? ", ..." : ""));
  }
  const bool same_type =
    found->type && (*found->type == type || (is_packed(*found->type) && is_packed(type)));
  if (!same_type)
    return fail(errc::invalid_input,
      fmt::format("{}: tensor '{}' is {}{}, declared is {}", file, shown(key), found->stored_dtype,
        found->type ? fmt::format(" ({})", name(*found->type)) : std::string{}, name(type)));
  if (found->shape != shape)
    return fail(errc::invalid_input,
      fmt::format("{}: tensor '{}' has the shape {}, declared is {}", file, shown(key),
        shape_text(found->shape), shape_text(shape)));
  return content.subspan(static_cast<size_t>(found->offset), static_cast<size_t>(found->bytes));
}

std::string_view safetensors_dtype(dtype type) {
  if (is_packed(type))
    return "F4";
  for (const auto& row : stored_rows)
    if (row.type == type)
      return row.name;
  return {};
}

result<std::vector<std::byte>> make_safetensors(std::span<const safetensor_source> tensors) {
  std::string header = "{";
  std::set<std::string_view> names;
  uint64_t end = 0;
  for (const auto& tensor : tensors) {
    auto bytes = storage_bytes(tensor.type, tensor.shape);
    if (!bytes)
      return pass(bytes);
    if (tensor.content.size() != *bytes)
      return refuse(fmt::format("tensor '{}': {} bytes of content, but {} {} takes {}", tensor.name,
        tensor.content.size(), name(tensor.type), shape_text(tensor.shape), *bytes));
    if (!names.insert(tensor.name).second)
      return refuse(fmt::format("tensor '{}' comes twice", tensor.name));
    header += header.size() > 1 ? "," : "";
    append_json_text(header, tensor.name);
    header += fmt::format(R"(:{{"dtype":"{}","shape":{},"data_offsets":[{},{}]}})",
      safetensors_dtype(tensor.type), shape_text(tensor.shape), end, end + *bytes);
    end += *bytes;
  }
  header += "}";
  header.resize((header.size() + 7) / 8 * 8, ' '); // The data begin aligned, as others write it.
  std::vector<std::byte> out;
  out.reserve(size_bytes + header.size() + static_cast<size_t>(end));
  for (size_t i = 0; i < size_bytes; ++i)
    out.push_back(static_cast<std::byte>(header.size() >> (8 * i) & 0xff));
  const auto text = std::as_bytes(std::span(header));
  out.insert(out.end(), text.begin(), text.end());
  for (const auto& tensor : tensors)
    out.insert(out.end(), tensor.content.begin(), tensor.content.end());
  return out;
}

std::vector<std::filesystem::path> blob_places(
  const std::filesystem::path& path, std::span<const std::filesystem::path> roots) {
  // Longer than any file name of the system; its removed components would be as many as its
  // letters.
  constexpr size_t path_bytes_max = 4096;
  if (path.native().size() > path_bytes_max)
    return {};
  if (path.is_absolute())
    return {path};
  std::vector<std::filesystem::path> places;
  for (const auto& root : roots) {
    if (root.empty())
      continue;
    for (auto begin = path.begin(); begin != path.end(); ++begin) {
      auto place = root;
      for (auto part = begin; part != path.end(); ++part)
        place /= *part;
      places.push_back(std::move(place));
    }
  }
  return places;
}

result<std::filesystem::path> find_blob(const std::filesystem::path& path,
  std::span<const std::filesystem::path> roots,
  const std::function<bool(const std::filesystem::path&)>& exists) {
  for (auto& place : blob_places(path, roots))
    if (exists(place))
      return std::move(place);
  std::string searched;
  for (const auto& root : roots)
    if (!root.empty())
      searched += (searched.empty() ? "" : ", ") + root.string();
  return fail(errc::not_found,
    fmt::format("blob missing: {} ({})", path.string(),
      path.is_absolute() ? "no such file"
        : searched.empty()
        ? "there is no folder to look in; FLASHINFER_TRACE_DIR names one"
        : "looked in " + searched + "; FLASHINFER_TRACE_DIR names another folder"));
}

} // namespace gristmill
