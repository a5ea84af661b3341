// Two network namespaces with a cable between them: two hosts, as far as links can tell.
#pragma once

#include <string>
#include <vector>

namespace paceline::testing {

/// The constructor makes them where the user is root and has `ip`; the destructor removes them. The
/// addresses are 10.231.78.1 (a) and 10.231.78.2 (b).
class Namespaces {
 public:
  Namespaces();
  ~Namespaces();
  Namespaces(const Namespaces&) = delete;
  Namespaces& operator=(const Namespaces&) = delete;

  bool made() const { return made_; }
  /// Return the words that run `words` there.
  std::vector<std::string> in_a(const std::vector<std::string>& words) const;
  std::vector<std::string> in_b(const std::vector<std::string>& words) const;
  /// Cuts the connection: nothing passes from now on, and neither end is told.
  void cut() const;

 private:
  std::string a_, b_;
  bool made_ = false;
};

}  // namespace paceline::testing
