#include "cli/flags/security_reader.h"

#include <fmt/format.h>

#include "cli/flags/flag_checks.h"
#include "launch/job_security.h"

namespace paceline {

std::vector<Flag> security_flags(const std::string& group) {
  return {
      {"--tls", "off-host|on",
       "The links that are encrypted and authenticated, by TLS 1.3: those that leave the host, or "
       "all (default off-host)",
       group},
      {"--key-file", "FILE",
       "The key that all tasks of the job have, as `paceline key` makes it (default: "
       "$PACELINE_KEY_FILE, or ~/.config/paceline/key; tasks that are started here get one)",
       group},
      {"--tls-cert", "FILE",
       "Instead of a key: this task's certificate, PEM, with those between it and the authority's",
       group},
      {"--tls-key", "FILE", "The private key of --tls-cert, PEM", group},
      {"--tls-ca", "FILE", "The certificate of the authority that signed those of all tasks, PEM",
       group},
      {"--insecure", "", fmt::format("Encrypt nothing and ask nobody who they are: {}", kGivenUp),
       group},
  };
}

Security read_security(const FlagValues& values) {
  Security security;
  if (values.text("--tls") == "off") {
    refuse_flags(fmt::format("--tls off is called --insecure: {}", kGivenUp));
  }
  if (values.choice("--tls", {"off-host", "on"}) == "on") security.tls = Tls::kAlways;
  for (const char* const flag : {"--tls", "--key-file", "--tls-cert", "--tls-key", "--tls-ca"}) {
    check_apart(values, "--insecure", flag, "without encryption nothing is proved");
  }
  if (values.given("--insecure")) security.tls = Tls::kNever;
  security.key_file = values.text("--key-file");
  security.certificate = values.text("--tls-cert");
  security.certificate_key = values.text("--tls-key");
  security.authority = values.text("--tls-ca");
  return security;
}

}  // namespace paceline
