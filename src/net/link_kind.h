// The kinds of links, and the traits by which all other code asks about one.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace paceline {

class Link;
struct LinkOptions;

/// A line of the table in link.cc.
struct LinkKind {
  std::string_view name;          // as --link takes it
  bool chooses = false;           // among others, by where the tasks are
  bool shares_memory = false;     // between tasks of one host
  bool on_network = false;        // always: what it sends may be limited by one
  bool within_a_process = false;  // it joins threads alone
  std::unique_ptr<Link> (*make)(const LinkOptions& options) = nullptr;

  /// All tasks must be on one host.
  bool needs_one_host() const { return shares_memory && !chooses; }
};

/// All kinds; the first is the default.
std::span<const LinkKind> link_kinds();
std::vector<std::string> link_names();
/// Throws kInvalidArgument naming --link.
const LinkKind& link_kind(std::string_view name);
/// The same; without any trait where there is no such kind, as in a report of another version.
LinkKind link_traits(std::string_view name);

}  // namespace paceline
