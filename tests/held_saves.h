// Saves that a test holds open, in tasks that do not know it.
#pragma once

#include <string>
#include <vector>

namespace paceline::testing {

class HeldSaves {
 public:
  /// The line that a task prints when its save is held begins with this.
  static constexpr const char* kSaid = "the save is held at ";

  /// Holds the sync of files that have `file` in their path. `pipe`: a name that nothing has yet.
  HeldSaves(std::string pipe, std::string file);
  ~HeldSaves();
  HeldSaves(const HeldSaves&) = delete;
  HeldSaves& operator=(const HeldSaves&) = delete;

  /// Returns the words that run `words` so that its saves, and those of its children, can be held.
  std::vector<std::string> of(const std::vector<std::string>& words) const;
  /// Holds saves from now on.
  void hold() const;
  /// Lets the saves that are held go on, and holds no other.
  void let_go();

 private:
  const std::string pipe_, file_;
  int writer_ = -1;
};

}  // namespace paceline::testing
