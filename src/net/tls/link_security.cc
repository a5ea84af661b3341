#include "net/tls/link_security.h"

#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>

#include "paceline/error.h"

namespace paceline {

const char* const kGivenUp =
    "whoever reaches a port may join the job, read and change what is sent";

namespace {

const char* key_file_of_environment() {
  const char* const file = std::getenv("PACELINE_KEY_FILE");
  return file == nullptr || *file == 0 ? nullptr : file;
}

/// Returns the key in the file. Returns nullopt if neither the user nor $PACELINE_KEY_FILE names a
/// file, and the default one does not exist.
std::optional<SecretKey> key_of(const std::string& named) {
  if (!named.empty()) return SecretKey::read(named);
  const std::string file = usual_key_file();
  std::error_code ignored;
  const bool may_lack = key_file_of_environment() == nullptr;
  if (may_lack && (file.empty() || !std::filesystem::exists(file, ignored))) return std::nullopt;
  return SecretKey::read(file);
}

}  // namespace

std::string usual_key_file() {
  if (const char* const file = key_file_of_environment()) return file;
  const char* configuration = std::getenv("XDG_CONFIG_HOME");
  if (configuration != nullptr && *configuration != 0)
    return std::string(configuration) + "/paceline/key";
  const char* home = std::getenv("HOME");
  return home == nullptr ? "" : std::string(home) + "/.config/paceline/key";
}

std::shared_ptr<const LinkSecurity> load_security(const Security& security) {
  if (security.loaded) return security.loaded;
  auto loaded = std::make_shared<LinkSecurity>();
  loaded->tls = security.tls;
  const int given = int(!security.certificate.empty()) + int(!security.certificate_key.empty()) +
                    int(!security.authority.empty());
  if (given != 0 && given != 3)
    throw Error(ErrorCode::kInvalidArgument,
                "--tls-cert, --tls-key and --tls-ca are given together: a task's certificate, its "
                "private key, and the certificate of the authority that signed all tasks'");
  if (given == 3 && !security.key_file.empty())
    throw Error(
        ErrorCode::kInvalidArgument,
        "--key-file and --tls-cert exclude each other: tasks have one key, or certificates");
  if (given == 3) {
    loaded->certificates = LinkSecurity::Certificates{security.certificate,
                                                      security.certificate_key, security.authority};
  } else if (security.tls != Tls::kNever) {
    loaded->key = key_of(security.key_file);
  }
  return loaded;
}

std::string tls_in_words(const Security& security) {
  if (security.tls == Tls::kNever) return fmt::format("none (--insecure): {}", kGivenUp);
  std::string links = security.tls == Tls::kAlways ? "all links" : "links that leave the host";
  if (security.loaded == nullptr || !security.loaded->has_proof()) return links;
  return security.loaded->key
             ? fmt::format("{} (key {})", links, security.loaded->key->fingerprint())
             : links + " (certificates)";
}

}  // namespace paceline
