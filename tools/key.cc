#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <string>
#include <system_error>

#include "cli/flags/command_line.h"
#include "cli/flags/flag_checks.h"
#include "net/tls/link_security.h"
#include "paceline/error.h"
#include "run/report/circumstances.h"
#include "tools/subcommand.h"

namespace paceline {
namespace {

CommandLine key_line() {
  Flag file{"FILE", "FILE",
            "The file of the key (default: $PACELINE_KEY_FILE, or ~/.config/paceline/key)", "Key"};
  file.optional = true;
  return {
      "paceline key",
      "Makes the key of a job: 32 random bytes that all its tasks have, and by which they know "
      "each other on links between hosts. Whoever has the key may join the job, so the file is "
      "readable by you alone. A key is good for as many jobs as you like. The fingerprint tells "
      "keys apart and may be told to anybody.",
      R"(A task finds the key in --key-file FILE, in the file that $PACELINE_KEY_FILE names, or in
~/.config/paceline/key. Tasks that one command starts (--ps M --workers N) need no key of yours.

Examples:
  paceline key
      makes one in ~/.config/paceline/key, and says how to copy it to the other hosts
  paceline key --show
      prints the fingerprint of the one that is there: the same on all hosts
  paceline key job.key
      makes one for tasks with --key-file job.key
  paceline key --replace
      makes another one; jobs that train go on with the old one)",
      {file,
       {"--show", "",
        "Print the fingerprint of the key that is there; the key itself is never printed", "Key"},
       {"--replace", "", "Write over the key that is there", "Key"}}};
}

[[noreturn]] void fail(const std::string& path, int error) {
  throw Error(ErrorCode::kUnavailable, fmt::format("the key file {} cannot be written: {}", path,
                                                   std::generic_category().message(error)));
}

/// Makes the missing folders, which only the user may open.
void make_folders(const std::filesystem::path& folder) {
  if (folder.empty() || ::mkdir(folder.c_str(), 0700) == 0 || errno == EEXIST) return;
  if (errno != ENOENT) fail(folder, errno);
  make_folders(folder.parent_path());
  if (::mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST) fail(folder, errno);
}

void replace(const std::string& path, const SecretKey& key) {
  const std::string beside = fmt::format("{}.{}", path, ::getpid());
  key.write_new(beside);
  if (::rename(beside.c_str(), path.c_str()) == 0) return;
  const int error = errno;
  ::unlink(beside.c_str());
  fail(path, error);
}

std::string how_to_copy(const std::string& path) {
  const std::string file = shell_words({std::filesystem::absolute(path)});
  return fmt::format(
      R"(
All hosts of a job need the same key. To copy it to another host, where tasks find it:
  ssh HOST 'umask 077 && mkdir -p ~/.config/paceline && cat > ~/.config/paceline/key' < {0}
For Kubernetes, as a Secret, which a pod mounts with defaultMode 0400 and names by $PACELINE_KEY_FILE:
  kubectl create secret generic paceline-key --from-file=key={0}
)",
      file);
}

}  // namespace

std::vector<CommandLine> key_lines() { return {key_line()}; }

int key_command(const Arguments& arguments) {
  const std::optional<FlagValues> values = parse(key_line(), arguments);
  if (!values) return 0;
  check_apart(*values, "--show", "--replace", "one only looks, the other writes");
  const std::string path = values->given("FILE") ? values->text("FILE") : usual_key_file();
  if (path.empty()) refuse_flags("FILE is missing: $HOME is not set, so there is no usual place");
  if (values->given("--show")) {
    fmt::print("{}  {}\n", SecretKey::read(path).fingerprint(), path);
    return 0;
  }
  const SecretKey key = SecretKey::make();
  make_folders(std::filesystem::path(path).parent_path());
  values->given("--replace") ? replace(path, key) : key.write_new(path);
  fmt::print("A new key is in {} (fingerprint {}).\n{}", path, key.fingerprint(),
             how_to_copy(path));
  return 0;
}

}  // namespace paceline
