#pragma once

#include <memory>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <string>

namespace gristmill {

using x509_ptr = std::unique_ptr<X509, decltype(&X509_free)>;
using key_ptr = std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)>;
using bio_ptr = std::unique_ptr<BIO, decltype(&BIO_free_all)>;

/// Reads the text, which outlives it.
bio_ptr memory_of(const std::string& text);

/// The next certificate in PEM form; null when there is none. OpenSSL's queue of errors says why.
x509_ptr read_certificate(BIO* in);

/// The private key in PEM form; null when there is none, or it has a passphrase: nobody is asked.
key_ptr read_private_key(BIO* in);

/// Common name of the subject.
std::string name_of(const X509* certificate);

} // namespace gristmill
