// The kinds of links, and the traits by which other code distinguishes them.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace paceline {

class Link;
struct LinkOptions;

/// A row of the table in link.cc.
struct LinkKind {
  std::string_view name;          // the name in --link
  bool chooses = false;           // chooses another kind, which depends on where the tasks are
  bool shares_memory = false;     // shares memory between tasks of one host
  bool on_network = false;        // always uses the network, whose rate may limit it
  bool within_a_process = false;  // joins only threads of one process
  std::unique_ptr<Link> (*make)(const LinkOptions& options) = nullptr;

  /// True if all tasks must be on one host.
  bool needs_one_host() const { return shares_memory && !chooses; }
};

/// All kinds; the first is the default.
std::span<const LinkKind> link_kinds();
std::vector<std::string> link_names();
/// Throws kInvalidArgument naming --link.
const LinkKind& link_kind(std::string_view name);
/// Returns the kind's traits. They are all false if the kind is unknown, as in a report of another
/// version.
LinkKind link_traits(std::string_view name);

}  // namespace paceline
