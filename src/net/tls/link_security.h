// The security of links: which links are encrypted, and the key or certificates that prove who
// belongs to the job.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "net/tls/secret_key.h"
#include "paceline/cluster.h"

namespace paceline {

/// Security in the form that links use: the key has been read, the certificates chosen.
struct LinkSecurity {
  Tls tls = Tls::kOffHost;
  std::optional<SecretKey> key;
  /// PEM files, which replace the key.
  struct Certificates {
    std::string certificate, key, authority;
  };
  std::optional<Certificates> certificates;
  /// A side renews its keys after sending this many bytes. AES-GCM allows 2^24.5 records of 16 KiB
  /// with one key (RFC 8446, 5.5), which is 360 GiB.
  std::int64_t renew_after_bytes = std::int64_t(64) << 30;

  /// True if this side can prove that it belongs to the job.
  bool has_proof() const { return key.has_value() || certificates.has_value(); }
};

/// Returns the key file to use if the user names none: $PACELINE_KEY_FILE; or else paceline/key in
/// $XDG_CONFIG_HOME, or in ~/.config if that is not set. Empty for a user without a home folder.
std::string usual_key_file();

/// Reads the key or takes the certificates, unless Security::loaded is set. Reads no key with
/// --insecure. If there is neither, it succeeds, but links that need a proof will fail. Throws as
/// SecretKey::read does; no file in the default place is no error. Throws kInvalidArgument if only
/// some of --tls-cert, --tls-key and --tls-ca are given, or a key file besides.
std::shared_ptr<const LinkSecurity> load_security(const Security& security);

/// What the user gives up with --insecure, in words.
extern const char* const kGivenUp;
/// Returns, for the report, which links are encrypted, and by what proof.
std::string tls_in_words(const Security& security);

}  // namespace paceline
