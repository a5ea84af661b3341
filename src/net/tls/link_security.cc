#include "net/tls/link_security.h"

#include <cstdlib>
#include <filesystem>

#include "paceline/error.h"

namespace paceline {
namespace {

std::string default_key_file() {
  const char* configuration = std::getenv("XDG_CONFIG_HOME");
  if (configuration != nullptr && *configuration != 0)
    return std::string(configuration) + "/paceline/key";
  const char* home = std::getenv("HOME");
  return home == nullptr ? "" : std::string(home) + "/.config/paceline/key";
}

/// None where no file is named and the default one is not there.
std::optional<SecretKey> key_of(const std::string& named) {
  if (!named.empty()) return SecretKey::read(named);
  if (const char* file = std::getenv("PACELINE_KEY_FILE"); file != nullptr && *file != 0)
    return SecretKey::read(file);
  const std::string file = default_key_file();
  std::error_code ignored;
  if (file.empty() || !std::filesystem::exists(file, ignored)) return std::nullopt;
  return SecretKey::read(file);
}

}  // namespace

std::shared_ptr<const LinkSecurity> load_security(const Security& security) {
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

}  // namespace paceline
