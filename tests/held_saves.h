// Holds saves open for a test, in tasks that do not know about it.
#pragma once

#include <string>
#include <vector>

namespace paceline::testing {

class HeldSaves {
 public:
  /// The line that a task prints when its save is held begins with this.
  static constexpr const char* kSaid = "the save is held at ";

  /// Holds the sync of each file that has `file` in its path. `pipe` is a path that does not exist
  /// yet.
  HeldSaves(std::string pipe, std::string file);
  ~HeldSaves();
  HeldSaves(const HeldSaves&) = delete;
  HeldSaves& operator=(const HeldSaves&) = delete;

  /// Returns the command line that runs `words` so that saves of the process, and of its children,
  /// can be held.
  std::vector<std::string> of(const std::vector<std::string>& words) const;
  /// Holds saves from now on.
  void hold() const;
  /// Lets the held saves go on, and holds no more saves.
  void let_go();

 private:
  const std::string pipe_, file_;
  int writer_ = -1;
};

}  // namespace paceline::testing
