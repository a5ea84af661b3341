// Certificates that tests make.
#pragma once

#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>

namespace paceline {

using Key = std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)>;
using Certificate = std::unique_ptr<X509, decltype(&X509_free)>;

/// A certificate and its private key.
struct Signed {
  Key key{nullptr, &EVP_PKEY_free};
  Certificate certificate{nullptr, &X509_free};
};

/// `names` is empty for an authority; otherwise it is, for example, "IP:127.0.0.1". If `by` is
/// null, the certificate signs itself. The certificate expires in `valid_s` seconds.
inline Signed make_certificate(const std::string& common_name, const std::string& names,
                               const Signed* by, long valid_s = 3600) {
  Signed made;
  made.key.reset(EVP_EC_gen("P-256"));
  made.certificate.reset(X509_new());
  X509* const x = made.certificate.get();
  X509_set_version(x, 2);
  ASN1_INTEGER_set(X509_get_serialNumber(x), long(common_name.size()) + (by == nullptr ? 1 : 2));
  X509_gmtime_adj(X509_getm_notBefore(x), -7200);
  X509_gmtime_adj(X509_getm_notAfter(x), valid_s);
  X509_set_pubkey(x, made.key.get());
  X509_NAME_add_entry_by_txt(X509_get_subject_name(x), "CN", MBSTRING_ASC,
                             reinterpret_cast<const unsigned char*>(common_name.c_str()), -1, -1,
                             0);
  const Signed& signer = by == nullptr ? made : *by;
  X509_set_issuer_name(x, X509_get_subject_name(signer.certificate.get()));
  X509V3_CTX context;
  X509V3_set_ctx(&context, signer.certificate.get(), x, nullptr, nullptr, 0);
  const int kind = by == nullptr ? NID_basic_constraints : NID_subject_alt_name;
  X509_EXTENSION* const extension = X509V3_EXT_conf_nid(
      nullptr, &context, kind, by == nullptr ? "critical,CA:TRUE" : names.c_str());
  X509_add_ext(x, extension, -1);
  X509_EXTENSION_free(extension);
  X509_sign(x, signer.key.get(), EVP_sha256());
  return made;
}

constexpr std::filesystem::perms kOwnerOnly =
    std::filesystem::perms::owner_read | std::filesystem::perms::owner_write;

struct PemFiles {
  std::string certificate, key;
};

/// Writes PATH.crt, and PATH.key, which only its owner can read.
inline PemFiles write_pem(const Signed& made, const std::string& path) {
  PemFiles files{path + ".crt", path + ".key"};
  FILE* file = fopen(files.certificate.c_str(), "w");
  PEM_write_X509(file, made.certificate.get());
  fclose(file);
  file = fopen(files.key.c_str(), "w");
  PEM_write_PrivateKey(file, made.key.get(), nullptr, nullptr, 0, nullptr, nullptr);
  fclose(file);
  std::filesystem::permissions(files.key, kOwnerOnly);
  return files;
}

}  // namespace paceline
