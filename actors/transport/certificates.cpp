#include "actors/transport/certificates.hpp"

#include "actors/transport/pem.hpp"
#include "actors/transport/tls_folder.hpp"
#include "protocol/json_document.hpp"
#include "protocol/nearest.hpp"

#include <algorithm>
#include <arpa/inet.h>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <fcntl.h>
#include <memory>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/rand.h>
#include <openssl/x509v3.h>
#include <sys/stat.h>
#include <unistd.h>

namespace gristmill {

namespace {

namespace fs = std::filesystem;

constexpr int64_t day_seconds = 24 * 3600;
/// A certificate or key that was made here takes about 1 KiB.
constexpr size_t file_max = 64 * 1024;

tl::unexpected<failure> openssl_failure() {
  const auto code = ERR_peek_last_error();
  return fail(errc::io_failed,
    std::string("OpenSSL: ") + (code ? ERR_reason_error_string(code) : "no memory"));
}

tl::unexpected<failure> file_failure(const fs::path& file) {
  return fail(errc::io_failed, file.string() + ": " + std::strerror(errno));
}

struct signer {
  x509_ptr certificate{nullptr, &X509_free};
  key_ptr key{nullptr, &EVP_PKEY_free};
};

/// What one certificate says.
struct subject {
  std::string name;
  std::string alternative_names;
  const char* usage = nullptr;
  bool ca = false;
  int days = certificate_days;
};

bool add_extension(X509* certificate, X509* issuer, int what, const char* value) {
  X509V3_CTX context;
  X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
  auto* made = X509V3_EXT_conf_nid(nullptr, &context, what, value);
  const bool added = made && X509_add_ext(certificate, made, -1) == 1;
  X509_EXTENSION_free(made);
  return added;
}

/// Signed by `by`, or by its own key when there is none.
result<signer> make_certificate(const subject& what, const signer* by, int64_t now) {
  signer made;
  made.key.reset(EVP_EC_gen("P-256"));
  made.certificate.reset(X509_new());
  auto* certificate = made.certificate.get();
  if (!made.key || !certificate)
    return openssl_failure();
  auto* issuer = by ? by->certificate.get() : certificate;
  unsigned char serial[16];
  if (RAND_bytes(serial, sizeof(serial)) != 1)
    return openssl_failure();
  serial[0] = static_cast<unsigned char>((serial[0] & 0x7f) | 0x40);
  auto* number = BN_bin2bn(serial, sizeof(serial), nullptr);
  auto* name = X509_get_subject_name(certificate);
  bool good = number && BN_to_ASN1_INTEGER(number, X509_get_serialNumber(certificate));
  BN_free(number);
  const auto from = static_cast<time_t>(now - certificate_days_before * day_seconds);
  const auto until = static_cast<time_t>(now + what.days * day_seconds);
  good = good && X509_set_version(certificate, X509_VERSION_3) == 1
    && ASN1_TIME_set(X509_getm_notBefore(certificate), from)
    && ASN1_TIME_set(X509_getm_notAfter(certificate), until)
    && X509_NAME_add_entry_by_txt(name, "O", MBSTRING_UTF8,
         reinterpret_cast<const unsigned char*>("gristmill cluster"), -1, -1, 0)
      == 1
    && X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_UTF8,
         reinterpret_cast<const unsigned char*>(what.name.c_str()), -1, -1, 0)
      == 1
    && X509_set_issuer_name(certificate, X509_get_subject_name(issuer)) == 1
    && X509_set_pubkey(certificate, made.key.get()) == 1
    && add_extension(certificate, issuer, NID_basic_constraints,
      what.ca ? "critical,CA:TRUE,pathlen:0" : "critical,CA:FALSE")
    && add_extension(certificate, issuer, NID_key_usage,
      what.ca ? "critical,keyCertSign,cRLSign" : "critical,digitalSignature")
    && add_extension(certificate, issuer, NID_subject_key_identifier, "hash")
    && add_extension(certificate, issuer, NID_authority_key_identifier, "keyid:always");
  if (!what.ca)
    good = good && add_extension(certificate, issuer, NID_ext_key_usage, what.usage)
      && add_extension(certificate, issuer, NID_subject_alt_name, what.alternative_names.c_str());
  if (!good || X509_sign(certificate, by ? by->key.get() : made.key.get(), EVP_sha256()) == 0)
    return openssl_failure();
  return made;
}

result<void> write_file(const fs::path& file, const std::string& text, mode_t mode) {
  const int out = open(file.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
  if (out < 0)
    return file_failure(file);
  size_t written = 0;
  while (written < text.size()) {
    const auto count = write(out, text.data() + written, text.size() - written);
    if (count < 0 && errno == EINTR)
      continue;
    if (count < 0) {
      auto failed = file_failure(file);
      close(out);
      return failed;
    }
    written += static_cast<size_t>(count);
  }
  const bool good = fchmod(out, mode) == 0 && fsync(out) == 0;
  if (close(out) != 0 || !good)
    return file_failure(file);
  return {};
}

std::string text_of(BIO* bio) {
  char* data = nullptr;
  const auto size = BIO_get_mem_data(bio, &data);
  return {data, static_cast<size_t>(std::max(0L, size))};
}

result<std::string> pem_of(X509* certificate) {
  bio_ptr out{BIO_new(BIO_s_mem()), &BIO_free_all};
  if (!out || PEM_write_bio_X509(out.get(), certificate) != 1)
    return openssl_failure();
  return text_of(out.get());
}

result<std::string> pem_of(EVP_PKEY* key) {
  bio_ptr out{BIO_new(BIO_s_mem()), &BIO_free_all};
  if (!out || PEM_write_bio_PrivateKey(out.get(), key, nullptr, nullptr, 0, nullptr, nullptr) != 1)
    return openssl_failure();
  return text_of(out.get());
}

/// Certificate and key as two new files of `folder`.
result<void> write_pair(
  const fs::path& folder, const char* certificate_name, const char* key_name, const signer& made) {
  auto certificate = pem_of(made.certificate.get());
  if (!certificate)
    return pass(certificate);
  auto key = pem_of(made.key.get());
  if (!key)
    return pass(key);
  auto written = write_file(folder / certificate_name, *certificate, 0644);
  return written ? write_file(folder / key_name, *key, 0600) : written;
}

result<void> make_folder(const fs::path& folder) {
  if (mkdir(folder.c_str(), 0700) != 0)
    return file_failure(folder);
  return {};
}

subject subject_of(const std::string& name, const std::vector<std::string>& hosts) {
  subject out;
  out.name = name;
  out.alternative_names = "DNS:" + name;
  for (const auto& host : hosts) {
    unsigned char bytes[16];
    const bool address =
      inet_pton(AF_INET, host.c_str(), bytes) == 1 || inet_pton(AF_INET6, host.c_str(), bytes) == 1;
    out.alternative_names += (address ? ",IP:" : ",DNS:") + host;
  }
  out.usage = name == coordinator_name ? "serverAuth,clientAuth" : "clientAuth";
  return out;
}

/// A folder for --tls, new.
result<void> write_process_folder(const fs::path& folder, const subject& what, const signer& ca,
  const std::string& ca_text, int64_t now) {
  auto made = make_certificate(what, &ca, now);
  if (!made)
    return pass(made);
  auto done = make_folder(folder);
  if (done)
    done = write_file(folder / "ca.pem", ca_text, 0644);
  if (done)
    done = write_pair(folder, "cert.pem", "key.pem", *made);
  return done;
}

/// Beside its place, and moved there when it is whole.
template <class Make>
result<void> make_whole(const fs::path& named, Make make) {
  // "trust/" is the folder trust, and beside it is not in it.
  const auto place = named.has_filename() ? named : named.parent_path();
  auto beside = place;
  beside += ".new";
  std::error_code error;
  fs::remove_all(beside, error);
  auto done = make(beside);
  if (done) {
    fs::rename(beside, place, error);
    if (error)
      done = fail(errc::io_failed, place.string() + ": " + error.message());
  }
  if (!done)
    fs::remove_all(beside, error);
  return done;
}

result<signer> read_ca(const fs::path& folder, int64_t now) {
  auto certificate = read_text_file(folder / "ca/ca.pem", file_max);
  auto key = read_text_file(folder / "ca/ca-key.pem", file_max);
  if (!certificate || !key)
    return fail(errc::not_found,
      folder.string()
        + ": holds no CA (ca/ca.pem and ca/ca-key.pem); `gristmill cluster init` makes one, and "
          "this command runs where that was done");
  signer out;
  out.certificate = read_certificate(memory_of(*certificate).get());
  out.key = read_private_key(memory_of(*key).get());
  if (!out.certificate || !out.key
    || X509_check_private_key(out.certificate.get(), out.key.get()) != 1)
    return fail(errc::invalid_input,
      (folder / "ca").string() + ": ca.pem and ca-key.pem are no certificate with its key");
  auto time = static_cast<time_t>(now + certificate_days * day_seconds);
  if (X509_cmp_time(X509_get0_notAfter(out.certificate.get()), &time) <= 0)
    return fail(errc::invalid_input,
      (folder / "ca/ca.pem").string()
        + ": the CA ends before a certificate of it would; make a new one "
          "(docs/cluster-trust.md, \"A new CA\")");
  return out;
}

} // namespace

result<void> check_node_name(std::string_view name) {
  const auto letter_or_digit = [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
  };
  const bool good = !name.empty() && name.size() <= 64 && letter_or_digit(name.front())
    && std::all_of(name.begin(), name.end(),
      [&](char c) { return letter_or_digit(c) || c == '_' || c == '.' || c == '-'; });
  if (!good)
    return fail(errc::invalid_input,
      "node name \"" + std::string(name)
        + "\": 1 to 64 letters, digits, '_', '.' or '-', the first a letter or a digit");
  if (name == coordinator_name)
    return fail(errc::invalid_input, "node name \"coordinator\": that is the coordinator's");
  return {};
}

fs::path process_folder(const fs::path& folder, const std::string& name) {
  return name == coordinator_name ? folder / name : folder / "nodes" / name;
}

result<void> make_cluster_folder(const fs::path& folder, const cluster_init& what) {
  for (size_t i = 0; i < what.nodes.size(); ++i) {
    if (auto good = check_node_name(what.nodes[i]); !good)
      return good;
    if (std::count(what.nodes.begin(), what.nodes.end(), what.nodes[i]) > 1)
      return fail(errc::invalid_input, "--node " + what.nodes[i] + ": named twice");
  }
  for (const auto& host : what.hosts)
    if (host.empty() || host.size() > 253 || !std::all_of(host.begin(), host.end(), [](char c) {
          return std::isalnum(static_cast<unsigned char>(c)) || strchr(".-_:", c);
        }))
      return fail(errc::invalid_input, "--host " + host + ": neither a host name nor an address");
  std::error_code error;
  if (fs::exists(fs::symlink_status(folder, error))) {
    if (!fs::is_directory(folder, error) || !fs::is_empty(folder, error))
      return fail(errc::invalid_input,
        folder.string()
          + ": is there already; `gristmill cluster add-node` adds a node to a cluster, and a new "
            "cluster takes a new folder");
    fs::remove(folder, error);
  }
  return make_whole(folder, [&](const fs::path& place) -> result<void> {
    subject authority;
    authority.name = "gristmill cluster CA";
    authority.ca = true;
    authority.days = ca_days;
    auto ca = make_certificate(authority, nullptr, what.now);
    if (!ca)
      return pass(ca);
    auto ca_text = pem_of(ca->certificate.get());
    if (!ca_text)
      return pass(ca_text);
    auto done = make_folder(place);
    for (const auto* name : {"ca", "nodes"})
      if (done)
        done = make_folder(place / name);
    if (done)
      done = write_pair(place / "ca", "ca.pem", "ca-key.pem", *ca);
    if (done)
      done = write_process_folder(process_folder(place, coordinator_name),
        subject_of(coordinator_name, what.hosts), *ca, *ca_text, what.now);
    for (const auto& node : what.nodes)
      if (done)
        done = write_process_folder(
          process_folder(place, node), subject_of(node, {}), *ca, *ca_text, what.now);
    return done;
  });
}

result<void> add_cluster_node(const fs::path& folder, const std::string& name, int64_t now) {
  if (auto good = check_node_name(name); !good)
    return good;
  auto ca = read_ca(folder, now);
  if (!ca)
    return pass(ca);
  const auto place = process_folder(folder, name);
  std::error_code error;
  if (fs::exists(fs::symlink_status(place, error)))
    return fail(errc::invalid_input,
      place.string() + ": is there already; `gristmill cluster renew` gives it a new certificate");
  auto ca_text = read_text_file(folder / "ca/ca.pem", file_max);
  if (!ca_text)
    return pass(ca_text);
  return make_whole(place, [&](const fs::path& beside) {
    return write_process_folder(beside, subject_of(name, {}), *ca, *ca_text, now);
  });
}

namespace {

/// The names that a certificate lists besides its own.
std::vector<std::string> other_names(const fs::path& file, const std::string& own) {
  std::vector<std::string> out;
  auto text = read_text_file(file, file_max);
  if (!text)
    return out;
  auto certificate = read_certificate(memory_of(*text).get());
  if (!certificate)
    return out;
  auto* names = static_cast<GENERAL_NAMES*>(
    X509_get_ext_d2i(certificate.get(), NID_subject_alt_name, nullptr, nullptr));
  for (int i = 0; i < sk_GENERAL_NAME_num(names); ++i) {
    int kind = 0;
    const auto* value = static_cast<const ASN1_STRING*>(
      GENERAL_NAME_get0_value(sk_GENERAL_NAME_value(names, i), &kind));
    const auto* data = ASN1_STRING_get0_data(value);
    const auto size = static_cast<size_t>(ASN1_STRING_length(value));
    char text_form[64] = {};
    if (kind == GEN_DNS)
      out.emplace_back(reinterpret_cast<const char*>(data), size);
    else if (kind == GEN_IPADD
      && inet_ntop(size == 4 ? AF_INET : AF_INET6, data, text_form, sizeof(text_form)))
      out.emplace_back(text_form);
  }
  GENERAL_NAMES_free(names);
  std::erase(out, own);
  return out;
}

} // namespace

result<std::vector<std::string>> renew_certificates(
  const fs::path& folder, const std::vector<std::string>& names, int64_t now) {
  auto ca = read_ca(folder, now);
  if (!ca)
    return pass(ca);
  std::vector<std::string> known{coordinator_name};
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder / "nodes", error))
    if (entry.is_directory() && check_node_name(entry.path().filename().string()))
      known.push_back(entry.path().filename().string());
  std::sort(known.begin() + 1, known.end());
  for (const auto& name : names)
    if (std::find(known.begin(), known.end(), name) == known.end())
      return fail(errc::not_found,
        folder.string() + ": no certificate of \"" + name + "\"" + suggestion(name, known));
  const auto wanted = names.empty() ? known : names;
  for (const auto& name : wanted) {
    const auto place = process_folder(folder, name);
    auto made =
      make_certificate(subject_of(name, other_names(place / "cert.pem", name)), &*ca, now);
    if (!made)
      return pass(made);
    // Both beside their places first: a process that looks between the two renames finds a key that
    // does not fit, keeps what it has, and looks again.
    for (const auto* file : {"cert.pem.new", "key.pem.new"})
      fs::remove(place / file, error);
    auto done = write_pair(place, "cert.pem.new", "key.pem.new", *made);
    if (!done)
      return pass(done);
    for (const auto* file : {"key.pem", "cert.pem"}) {
      fs::rename(place / (std::string(file) + ".new"), place / file, error);
      if (error)
        return fail(errc::io_failed, (place / file).string() + ": " + error.message());
    }
  }
  return wanted;
}

} // namespace gristmill
