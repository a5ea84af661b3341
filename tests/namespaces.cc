#include "tests/namespaces.h"

#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <stdexcept>

namespace paceline::testing {
namespace {

bool shell(const std::string& command) {
  const int status = std::system((command + " >/dev/null 2>&1").c_str());
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

std::vector<std::string> in_namespace(const std::string& name,
                                      const std::vector<std::string>& words) {
  std::vector<std::string> all = {"ip", "netns", "exec", name};
  all.insert(all.end(), words.begin(), words.end());
  return all;
}

}  // namespace

Namespaces::Namespaces()
    : a_("paceline-a-" + std::to_string(getpid())), b_("paceline-b-" + std::to_string(getpid())) {
  made_ = geteuid() == 0 && shell("ip netns add " + a_) && shell("ip netns add " + b_) &&
          shell("ip link add cable netns " + a_ + " type veth peer name cable netns " + b_) &&
          shell("ip -n " + a_ + " addr add 10.231.78.1/24 dev cable") &&
          shell("ip -n " + b_ + " addr add 10.231.78.2/24 dev cable") &&
          shell("ip -n " + a_ + " link set cable up") && shell("ip -n " + a_ + " link set lo up") &&
          shell("ip -n " + b_ + " link set cable up") && shell("ip -n " + b_ + " link set lo up");
}

Namespaces::~Namespaces() {
  shell("ip netns del " + a_);
  shell("ip netns del " + b_);
}

std::vector<std::string> Namespaces::in_a(const std::vector<std::string>& words) const {
  return in_namespace(a_, words);
}

std::vector<std::string> Namespaces::in_b(const std::vector<std::string>& words) const {
  return in_namespace(b_, words);
}

// A cable that is down would tell both ends; frames to a wrong hardware address tell nobody.
void Namespaces::cut() const {
  const std::string nobody = " lladdr 02:00:00:00:00:99 dev cable nud permanent";
  if (!shell("ip -n " + a_ + " neigh replace 10.231.78.2" + nobody) ||
      !shell("ip -n " + b_ + " neigh replace 10.231.78.1" + nobody)) {
    throw std::runtime_error("the cable cannot be cut");
  }
}

}  // namespace paceline::testing
