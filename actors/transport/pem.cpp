#include "actors/transport/pem.hpp"

namespace gristmill {

namespace {

/// Without it OpenSSL asks a person at the terminal.
int no_passphrase(char*, int, int, void*) {
  return 0;
}

} // namespace

bio_ptr memory_of(const std::string& text) {
  return {BIO_new_mem_buf(text.data(), static_cast<int>(text.size())), &BIO_free_all};
}

x509_ptr read_certificate(BIO* in) {
  return {PEM_read_bio_X509(in, nullptr, no_passphrase, nullptr), &X509_free};
}

key_ptr read_private_key(BIO* in) {
  return {PEM_read_bio_PrivateKey(in, nullptr, no_passphrase, nullptr), &EVP_PKEY_free};
}

std::string name_of(const X509* certificate) {
  char name[256] = {};
  X509_NAME_get_text_by_NID(X509_get_subject_name(certificate), NID_commonName, name, sizeof(name));
  return name;
}

} // namespace gristmill
