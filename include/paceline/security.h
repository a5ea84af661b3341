// The protection of the links between the tasks of a job.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

namespace paceline {

struct LinkSecurity;

/// The links that are encrypted and authenticated, by TLS 1.3.
enum class Tls : std::uint8_t {
  kOffHost,  // those that leave the host
  kAlways,   // all of them, also those within a host; no memory is shared then
  kNever,    // none: whoever reaches a port may join, read and change what is sent
};

/// How a task proves to the others that it belongs to the job: all tasks have one key, or each has
/// a certificate of one authority.
struct Security {
  Tls tls = Tls::kOffHost;  // the links that are encrypted
  /// The file of the key. Empty: that of $PACELINE_KEY_FILE, or else ~/.config/paceline/key, where
  /// there is one.
  std::string key_file = {};
  /// The PEM file of this task's certificate, with those between it and the authority's. It takes
  /// the place of the key; the next two files go with it.
  std::string certificate = {};
  std::string certificate_key = {};  // the PEM file of the certificate's private key
  std::string authority = {};        // the PEM file of the authority's certificate
  /// The key and certificates as they were read: run_program reads it before it listens anywhere,
  /// since a key that comes through a pipe can be read once. Null: whoever makes a link reads it.
  std::shared_ptr<const LinkSecurity> loaded = {};
};

}  // namespace paceline
