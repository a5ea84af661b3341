// The security of links: which are encrypted, and the key or certificates that prove who belongs.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "net/tls/secret_key.h"
#include "paceline/cluster.h"

namespace paceline {

/// Security as links take it: the key was read, the certificates were chosen.
struct LinkSecurity {
  Tls tls = Tls::kOffHost;
  std::optional<SecretKey> key;
  /// PEM files; they take the place of the key.
  struct Certificates {
    std::string certificate, key, authority;
  };
  std::optional<Certificates> certificates;
  /// A side renews its keys when it has sent so many bytes. AES-GCM bears 2^24.5 records of 16 KiB
  /// with one key (RFC 8446, 5.5), 360 GiB.
  std::int64_t renew_after_bytes = std::int64_t(64) << 30;

  /// True when this side can prove that it belongs to the job.
  bool has_proof() const { return key.has_value() || certificates.has_value(); }
};

/// The key file of whoever names none: that of $PACELINE_KEY_FILE, or else ~/.config/paceline/key;
/// empty for a user without a folder.
std::string usual_key_file();

/// Reads the key or takes the certificates, unless Security::loaded is there. Without either, links
/// that need one fail, not this. Throws what SecretKey::read throws for a key file that was named,
/// and kInvalidArgument naming --tls-cert, --tls-key and --tls-ca when only some of the three are
/// given.
std::shared_ptr<const LinkSecurity> load_security(const Security& security);

/// The price of --insecure, in words.
extern const char* const kGivenUp;
/// The links that are encrypted, and by what proof, for the report.
std::string tls_in_words(const Security& security);

}  // namespace paceline
