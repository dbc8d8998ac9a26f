#include "tensors/safetensors.hpp"

#include <cstring>
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <set>

using namespace gristmill;

namespace {

/// A file with that header and so many bytes of data.
std::vector<std::byte> file_of(std::string_view header, size_t data_bytes) {
  std::vector<std::byte> out;
  for (size_t i = 0; i < 8; ++i)
    out.push_back(static_cast<std::byte>(header.size() >> (8 * i) & 0xff));
  for (char c : header)
    out.push_back(static_cast<std::byte>(c));
  out.resize(out.size() + data_bytes);
  return out;
}

/// Why a file with that header is refused.
std::string why_not(std::string_view header, size_t data_bytes = 8) {
  const auto file = file_of(header, data_bytes);
  const auto read = parse_safetensors(file);
  REQUIRE_FALSE(read);
  CHECK(read.error().code == errc::invalid_input);
  return read.error().what;
}

bool refused_for(std::string_view header, std::string_view reason, size_t data_bytes = 8) {
  const auto why = why_not(header, data_bytes);
  CAPTURE(why);
  return why.find(reason) != std::string::npos;
}

std::vector<std::byte> numbered(size_t count) {
  std::vector<std::byte> out(count);
  for (size_t i = 0; i < count; ++i)
    out[i] = static_cast<std::byte>(i);
  return out;
}

using path = std::filesystem::path;

} // namespace

TEST_CASE("every dtype that both formats have comes back as it was written") {
  std::vector<std::vector<std::byte>> contents;
  std::vector<safetensor_source> sources;
  for (const auto& type_name : dtype_names()) {
    const auto type = *parse_dtype(type_name);
    contents.push_back(numbered(storage_bytes(type, {3, 4}).value()));
    sources.push_back({type_name + " \"quoted\\\"\n", type, {3, 4}, {}});
  }
  for (size_t i = 0; i < sources.size(); ++i)
    sources[i].content = contents[i];
  const auto file = make_safetensors(sources);
  REQUIRE(file);
  const auto read = parse_safetensors(*file);
  REQUIRE_MESSAGE(read, read.error().what);
  REQUIRE(read->size() == sources.size());
  for (size_t i = 0; i < sources.size(); ++i) {
    const auto& source = sources[i];
    CAPTURE(source.name);
    CHECK(read->at(i).name == source.name);
    CHECK(read->at(i).shape == source.shape);
    const auto found =
      find_safetensor(*read, *file, source.name, source.type, source.shape, "x.safetensors");
    REQUIRE_MESSAGE(found, found.error().what);
    CHECK(std::memcmp(found->data(), source.content.data(), found->size()) == 0);
  }
}

TEST_CASE("a header may be padded, carry metadata and keys of later versions, and any escapes") {
  const auto read = parse_safetensors(file_of(
    R"({"__metadata__":{"format":"pt","deep":[1,-2.5e3,true,null,{"a":"\"}"}]},)"
    R"( "caf\u00e9 \ud83d\ude00" : { "data_offsets":[0,8], "shape":[ 2 , 1 ],"dtype":"F32",)"
    R"("later":{"x":[]}}}   )",
    8));
  REQUIRE_MESSAGE(read, read.error().what);
  REQUIRE(read->size() == 1);
  CHECK(read->at(0).name == "caf\xc3\xa9 \xf0\x9f\x98\x80");
  CHECK(read->at(0).type == dtype::float32);
}

TEST_CASE("no tensor, an empty tensor and a 0-dimensional one are tensors too") {
  CHECK(parse_safetensors(file_of("{}", 0))->empty());
  const auto read =
    parse_safetensors(file_of(R"({"empty":{"dtype":"F32","shape":[0,5],"data_offsets":[0,0]},)"
                              R"("one":{"dtype":"I64","shape":[],"data_offsets":[0,8]}})",
      8));
  REQUIRE_MESSAGE(read, read.error().what);
  CHECK(read->at(0).bytes == 0);
  CHECK(read->at(1).bytes == 8);
}

TEST_CASE("dtypes of the format that problems do not have are read, and match nothing") {
  const auto file = file_of(R"({"u":{"dtype":"U8","shape":[8],"data_offsets":[0,8]}})", 8);
  const auto read = parse_safetensors(file);
  REQUIRE(read);
  CHECK_FALSE(read->at(0).type);
  const auto found = find_safetensor(*read, file, "u", dtype::int8, {8}, "b.safetensors");
  REQUIRE_FALSE(found);
  CHECK(found.error().what.find("is U8, declared is int8") != std::string::npos);
}

TEST_CASE("a tensor of another shape or dtype is refused with both named") {
  const auto content = numbered(24);
  const std::vector<safetensor_source> sources{{"q", dtype::bfloat16, {3, 4}, content}};
  const auto file = make_safetensors(sources);
  const auto read = parse_safetensors(*file);
  REQUIRE(read);
  const auto type = find_safetensor(*read, *file, "q", dtype::float16, {3, 4}, "b.safetensors");
  CHECK(type.error().code == errc::invalid_input);
  CHECK(type.error().what.find("BF16 (bfloat16), declared is float16") != std::string::npos);
  const auto shape = find_safetensor(*read, *file, "q", dtype::bfloat16, {4, 3}, "b.safetensors");
  CHECK(shape.error().what.find("[3, 4], declared is [4, 3]") != std::string::npos);
  const auto key = find_safetensor(*read, *file, "k", dtype::bfloat16, {3, 4}, "b.safetensors");
  CHECK(key.error().what.find("no tensor 'k'; it holds q") != std::string::npos);
  CHECK(key.error().what.find("b.safetensors") != std::string::npos);
}

TEST_CASE("both fp4 names are the one packed type of the files") {
  const auto content = numbered(4);
  const std::vector<safetensor_source> sources{{"w", dtype::float4_e2m1, {2, 4}, content}};
  const auto file = make_safetensors(sources);
  const auto read = parse_safetensors(*file);
  REQUIRE_MESSAGE(read, read.error().what);
  for (auto type : {dtype::float4_e2m1, dtype::float4_e2m1fn_x2})
    CHECK(find_safetensor(*read, *file, "w", type, {2, 4}, "b"));
}

TEST_CASE("a file that is too short or claims too long a header is refused") {
  CHECK_FALSE(parse_safetensors({}));
  CHECK_FALSE(parse_safetensors(numbered(7)));
  auto file = file_of("{}", 0);
  file[0] = std::byte{3};
  CHECK(parse_safetensors(file).error().what.find("the file ends after 2") != std::string::npos);
  file[7] = std::byte{0xff};
  CHECK(parse_safetensors(file).error().what.find("are allowed") != std::string::npos);
}

TEST_CASE("a header that is no JSON of that form is refused with the place") {
  for (const char* header : {"", "[]", "{", "{\"a\"", "{\"a\":1}", "nonsense", "{}x", "{\"a\":{}}",
         R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},})", "{\"a\\x\":{}}",
         R"({"\ud800":{}})", R"({"\u12":{}})", "{\"\x01\":{}}", "{\"a"}) {
    CAPTURE(header);
    CHECK(why_not(header).find("header, byte") != std::string::npos);
  }
  const std::string deep =
    "{\"__metadata__\":" + std::string(5000, '[') + std::string(5000, ']') + "}";
  CHECK(refused_for(deep, "nested deeper"));
  CHECK(refused_for("{\"" + std::string(5000, 'n') + "\":{}}", "4096 bytes"));
}

TEST_CASE("numbers of a header are bounded whole numbers") {
  const auto with = [](std::string_view shape, std::string_view offsets) {
    return fmt::format(R"({{"a":{{"dtype":"F32","shape":{},"data_offsets":{}}}}})", shape, offsets);
  };
  CHECK(refused_for(with("[-2]", "[0,8]"), "whole number"));
  CHECK(refused_for(with("[2.5]", "[0,8]"), "expected ']'"));
  CHECK(refused_for(with("[02]", "[0,8]"), "leading zero"));
  CHECK(refused_for(with("[99999999999999999999]", "[0,8]"), "63 bits"));
  CHECK(refused_for(with("[2]", "[0]"), "two data_offsets"));
  CHECK(refused_for(with("[2]", "[0,8,9]"), "two numbers"));
  CHECK(refused_for(with("[2]", "[8,0]"), "backwards"));
  CHECK(refused_for(with("[3]", "[0,8]"), "does not take 8 bytes"));
  CHECK(refused_for(with("[9223372036854775807,9223372036854775807]", "[0,8]"), "2^62"));
  CHECK(refused_for(with("[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,2]", "[0,8]"), "16 dimensions"));
  CHECK(refused_for(
    R"({"a":{"dtype":"F33","shape":[2],"data_offsets":[0,8]}})", "unknown dtype 'F33'"));
}

TEST_CASE("data that overlap, leave a hole or lie outside the file are refused") {
  const auto two = [](int begin, int end) {
    return fmt::format(R"({{"a":{{"dtype":"I8","shape":[4],"data_offsets":[0,4]}},)"
                       R"("b":{{"dtype":"I8","shape":[{}],"data_offsets":[{},{}]}}}})",
      end - begin, begin, end);
  };
  CHECK(parse_safetensors(file_of(two(4, 8), 8)));
  CHECK(refused_for(two(3, 8), "overlap"));
  CHECK(refused_for(two(5, 8), "hole"));
  CHECK(refused_for(two(4, 9), "outside"));
  CHECK(refused_for(two(4, 7), "belong to no tensor"));
  CHECK(refused_for(two(0, 4), "overlap", 4));
  CHECK(refused_for(R"({"a":{"dtype":"I8","shape":[4],"data_offsets":[0,4]},)"
                    R"("a":{"dtype":"I8","shape":[4],"data_offsets":[4,8]}})",
    "twice"));
}

TEST_CASE("a good file with any one byte changed or cut off never does harm") {
  const auto content = numbered(24);
  const std::vector<safetensor_source> sources{
    {"q", dtype::bfloat16, {3, 2}, std::span(content).first(12)},
    {"k\"", dtype::int32, {3}, std::span(content).last(12)}};
  const auto good = make_safetensors(sources);
  REQUIRE(good);
  for (size_t i = 0; i < good->size(); ++i) {
    for (int value : {0, int{'"'}, int{'{'}, int{']'}, int{'9'}, 0xff}) {
      auto bad = *good;
      bad[i] = static_cast<std::byte>(value);
      const auto read = parse_safetensors(bad);
      if (read)
        for (const auto& tensor : *read)
          CHECK(tensor.offset + tensor.bytes <= bad.size());
    }
    CHECK_FALSE(parse_safetensors(std::span(*good).first(i)));
  }
}

TEST_CASE("the writer refuses content of the wrong size and a name that comes twice") {
  const auto content = numbered(8);
  const std::vector<safetensor_source> wrong{{"a", dtype::float32, {3}, content}};
  CHECK(make_safetensors(wrong).error().what.find("float32 [3] takes 12") != std::string::npos);
  const std::vector<safetensor_source> twice{
    {"a", dtype::float32, {2}, content}, {"a", dtype::float32, {2}, content}};
  CHECK(make_safetensors(twice).error().what.find("twice") != std::string::npos);
}

TEST_CASE("a blob is searched in every root with ever more leading components removed") {
  const std::vector<path> roots{"/problem", "/trace"};
  const auto places = blob_places("data/blobs/x.safetensors", roots);
  CHECK(places
    == std::vector<path>{"/problem/data/blobs/x.safetensors", "/problem/blobs/x.safetensors",
      "/problem/x.safetensors", "/trace/data/blobs/x.safetensors", "/trace/blobs/x.safetensors",
      "/trace/x.safetensors"});
}

TEST_CASE("the first place that exists wins, the problem's folder before the others") {
  const std::vector<path> roots{"/problem", "/trace"};
  std::set<path> there{"/trace/a/x.st", "/problem/x.st"};
  const auto exists = [&](const path& place) { return there.contains(place); };
  CHECK(find_blob("a/x.st", roots, exists) == path("/problem/x.st"));
  there.erase("/problem/x.st");
  CHECK(find_blob("a/x.st", roots, exists) == path("/trace/a/x.st"));
}

TEST_CASE("an absolute path is used as it is") {
  const std::vector<path> roots{"/problem"};
  CHECK(blob_places("/blobs/x.st", roots) == std::vector<path>{"/blobs/x.st"});
  const auto found =
    find_blob("/blobs/x.st", roots, [](const path& p) { return p == "/problem/x.st"; });
  REQUIRE_FALSE(found);
  CHECK(found.error().what.find("blob missing: /blobs/x.st") == 0);
}

TEST_CASE("a blob that is nowhere is missing, with the folders that were searched") {
  const std::vector<path> roots{"", "/problem", "/trace"};
  const auto found = find_blob("a/x.st", roots, [](const path&) { return false; });
  REQUIRE_FALSE(found);
  CHECK(found.error().code == errc::not_found);
  CHECK(found.error().what.find("blob missing: a/x.st (looked in /problem, /trace") == 0);
  CHECK(
    find_blob("a", {}, [](const path&) { return true; }).error().what.find("FLASHINFER_TRACE_DIR")
    != std::string::npos);
  std::string endless;
  for (int i = 0; i < 100'000; ++i)
    endless += "a/";
  CHECK(
    find_blob(endless, roots, [](const path&) { return true; }).error().code == errc::not_found);
}
