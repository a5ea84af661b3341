// Saves that a test holds open, in tasks that know nothing of it.
#pragma once

#include <string>
#include <vector>

namespace paceline::testing {

class HeldSaves {
 public:
  /// What a task says when its save is held.
  static constexpr const char* kSaid = "the save is held at ";

  /// Holds the sync of files that have `file` in their path. `pipe`: a name that nothing has yet.
  HeldSaves(std::string pipe, std::string file);
  ~HeldSaves();
  HeldSaves(const HeldSaves&) = delete;
  HeldSaves& operator=(const HeldSaves&) = delete;

  /// The words that run `words` so that its saves, and those of its children, can be held.
  std::vector<std::string> of(const std::vector<std::string>& words) const;
  /// From now on.
  void hold() const;
  /// Those that are held go on, and no other is.
  void let_go();

 private:
  const std::string pipe_, file_;
  int writer_ = -1;
};

}  // namespace paceline::testing
