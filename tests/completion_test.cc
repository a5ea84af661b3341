// Tests the words that a shell offers after a part of a `paceline` command line, and the man pages.
// Both come from the tables of --help.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <regex>
#include <sstream>

#include "tests/process.h"

namespace paceline::testing {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::UnorderedElementsAre;

constexpr std::chrono::seconds kShellTime(60);

std::string output_of_shell(const std::vector<std::string>& words) {
  Process process(words);
  EXPECT_EQ(process.wait_exit(kShellTime), 0) << process.output();
  return process.output();
}

bool has_program(const std::string& name) {
  Process process({"sh", "-c", "command -v " + name});
  return process.wait_exit(kShellTime) == 0;
}

// Returns the words that bash offers in place of the last word, in a folder with the file run.json.
std::vector<std::string> bash_offers(const std::vector<std::string>& words) {
  const TemporaryFolder folder;
  std::filesystem::create_directory(folder.path("here"));
  std::ofstream(folder.path("here/run.json")) << "{}";
  std::string typed;
  for (const std::string& word : words) typed += " '" + word + "'";
  const std::string script = std::string("cd ") + folder.path("here") + "; source <('" +
                             PACELINE_COMMAND + "' completion bash); COMP_WORDS=(paceline" + typed +
                             "); COMP_CWORD=" + std::to_string(words.size()) +
                             "; _paceline; printf '%s\\n' \"${COMPREPLY[@]}\"";
  std::istringstream lines(output_of_shell({"bash", "--norc", "-c", script}));
  std::vector<std::string> offers;
  for (std::string line; std::getline(lines, line);) {
    if (!line.empty()) offers.push_back(line);
  }
  return offers;
}

TEST(BashCompletion, OffersWhatMayFollow) {
  EXPECT_THAT(bash_offers({"tra"}), ElementsAre("train"));
  EXPECT_THAT(bash_offers({"train", ""}),
              UnorderedElementsAre("mlp", "ptb", "fetch", "cifar10", "resnet"));
  EXPECT_THAT(bash_offers({"train", "mlp", "--hid"}), ElementsAre("--hidden"));
  EXPECT_THAT(bash_offers({"train", "mlp", "--steps", "5", "--repo"}), ElementsAre("--report"));
  EXPECT_THAT(bash_offers({"bench", "ro"}), ElementsAre("roof"));
  EXPECT_THAT(bash_offers({"ke"}), ElementsAre("key"));
  EXPECT_THAT(bash_offers({"key", "--"}), UnorderedElementsAre("--help", "--show", "--replace"));
  EXPECT_THAT(bash_offers({"bench", "step", "ptb", "--dat"}), ElementsAre("--data"));
}

TEST(BashCompletion, OffersOnlyAModelsOwnFlags) {
  EXPECT_THAT(bash_offers({"train", "ptb", "--"}), Contains("--data"));
  EXPECT_THAT(bash_offers({"train", "mlp", "--"}), Not(Contains("--data")));
  EXPECT_THAT(bash_offers({"train", "mlp", "--"}), Not(Contains("--launched")));
}

TEST(BashCompletion, OffersTheValuesOfAFlag) {
  EXPECT_THAT(bash_offers({"train", "mlp", "--device", ""}),
              UnorderedElementsAre("cpu", "cuda", "sim"));
  EXPECT_THAT(bash_offers({"train", "mlp", "--device", "=", "s"}), ElementsAre("sim"));
  EXPECT_THAT(bash_offers({"train", "mlp", "--tls", ""}), UnorderedElementsAre("off-host", "on"));
  EXPECT_THAT(bash_offers({"train", "mlp", "--key-file", "r"}), ElementsAre("run.json"));
  EXPECT_THAT(bash_offers({"key", "r"}), ElementsAre("run.json"));
  EXPECT_THAT(bash_offers({"train", "mlp", "--report", "r"}), ElementsAre("run.json"));
  EXPECT_THAT(bash_offers({"compare", "r"}), ElementsAre("run.json"));
  EXPECT_THAT(bash_offers({"train", "ptb", "--data", "r"}), ElementsAre());
  EXPECT_THAT(bash_offers({"train", "mlp", "--steps", ""}), ElementsAre());
}

// Types into a new zsh and presses tab; then ^G prints the line as it is.
TEST(ZshCompletion, CompletesWhatIsTyped) {
  if (!has_program("zsh")) GTEST_SKIP() << "no zsh here";
  const std::string script = R"(
zmodload zsh/zpty
zpty shell zsh -f -i
zpty -w shell "show() { print -r -- \"<\$BUFFER>\"; BUFFER= }; zle -N show; bindkey '^G' show"
zpty -w shell "PS1=; autoload -U compinit; compinit -u -D; source <($0 completion zsh); print rea''dy"
zpty -r shell seen '*ready*'
for typed in 'paceline tra' 'paceline train mlp --hid' 'paceline train ptb --precision=bfl' \
    'paceline bench ro'; do
  zpty -w -n shell "$typed"$'\t\a'
  zpty -r shell seen '*<paceline *>*'
  print -r -- "${(M)${seen}%<*>*}"
done
zpty -d shell
)";
  const std::string output = output_of_shell({"zsh", "-f", "-c", script, PACELINE_COMMAND});
  for (const char* line :
       {"<paceline train >", "<paceline train mlp --hidden=>",
        "<paceline train ptb --precision=bfloat16 >", "<paceline bench roof >"}) {
    EXPECT_THAT(output, HasSubstr(line));
  }
}

// Returns the words that fish offers in place of the last word, in a folder with the file run.json.
std::vector<std::string> fish_offers(const std::string& typed) {
  const TemporaryFolder folder;
  std::ofstream(folder.path("run.json")) << "{}";
  const std::string script = std::string("cd '") + folder.path("") + "'; '" + PACELINE_COMMAND +
                             "' completion fish | source; complete -C '" + typed + "'";
  std::istringstream lines(output_of_shell({"fish", "--no-config", "-c", script}));
  std::vector<std::string> offers;
  for (std::string line; std::getline(lines, line);) {
    if (!line.empty()) offers.push_back(line.substr(0, line.find('\t')));
  }
  return offers;
}

TEST(FishCompletion, OffersWhatMayFollow) {
  if (!has_program("fish")) GTEST_SKIP() << "no fish here";
  EXPECT_THAT(fish_offers("paceline tra"), ElementsAre("train"));
  EXPECT_THAT(fish_offers("paceline train "),
              UnorderedElementsAre("mlp", "ptb", "fetch", "cifar10", "resnet"));
  EXPECT_THAT(fish_offers("paceline train mlp --hid"), ElementsAre("--hidden"));
  EXPECT_THAT(fish_offers("paceline train mlp --steps 5 --repo"), ElementsAre("--report"));
  EXPECT_THAT(fish_offers("paceline train ptb --precision b"), ElementsAre("bfloat16"));
  EXPECT_THAT(fish_offers("paceline train mlp --report r"), ElementsAre("run.json"));
  EXPECT_THAT(fish_offers("paceline bench ro"), ElementsAre("roof"));
  EXPECT_THAT(fish_offers("paceline train mlp --data"), ElementsAre());
  EXPECT_THAT(fish_offers("paceline train mlp --set beta"), ElementsAre("beta1=", "beta2="));
}

TEST(BashCompletion, OffersTheNamesOfHyperParameters) {
  EXPECT_THAT(bash_offers({"train", "mlp", "--set", "beta"}), ElementsAre("beta1=", "beta2="));
}

TEST(Manual, HasAPageForEachCommandLine) {
  const TemporaryFolder folder;
  ASSERT_EQ(run_paceline({"manual", "--out", folder.path("man1")}).status, 0);
  for (const char* page :
       {"paceline", "paceline-train-ptb", "paceline-bench", "paceline-inspect"}) {
    EXPECT_TRUE(std::filesystem::exists(folder.path("man1/") + page + ".1")) << page;
  }
  EXPECT_FALSE(std::filesystem::exists(folder.path("man1/paceline-bench-step-mlp.1")));
}

TEST(Manual, SaysWhatHelpSays) {
  const Finished page = run_paceline({"manual", "--page", "paceline-train-ptb"});
  const Finished help = run_paceline({"train", "ptb", "--help"});
  const std::regex flag("\\n  (--[a-z-]+) ");
  int flags = 0;
  for (std::sregex_iterator at(help.output.begin(), help.output.end(), flag), end; at != end;
       ++at) {
    const std::string escaped = std::regex_replace((*at)[1].str(), std::regex("-"), "\\-");
    EXPECT_THAT(page.output, HasSubstr("\\fB" + escaped + "\\fR"));
    ++flags;
  }
  EXPECT_GT(flags, 20);
}

TEST(Manual, IsRoffThatManTakesWithoutAWarning) {
  if (!has_program("man") || !has_program("groff")) GTEST_SKIP() << "no man here";
  const TemporaryFolder folder;
  ASSERT_EQ(run_paceline({"manual", "--out", folder.path("man1")}).status, 0);
  for (const auto& page : std::filesystem::directory_iterator(folder.path("man1"))) {
    Process man({"sh", "-c",
                 "LC_ALL=C.UTF-8 MANWIDTH=100 man --warnings -l '" + page.path().string() +
                     "' >/dev/null"});
    EXPECT_EQ(man.wait_exit(kShellTime), 0);
    EXPECT_EQ(man.output(), "") << page.path();
    // groff reads the page unchanged, without the preprocessing that man does.
    Process groff({"groff", "-ww", "-man", "-Tutf8", "-z", page.path().string()});
    EXPECT_EQ(groff.wait_exit(kShellTime), 0);
    EXPECT_EQ(groff.output(), "") << page.path();
  }
}

TEST(Manual, UnknownPageIsRefusedWithTheNearest) {
  const Finished run = run_paceline({"manual", "--page", "paceline-trian-mlp"});
  EXPECT_EQ(run.status, 2);
  EXPECT_THAT(run.output, HasSubstr("paceline-train-mlp"));
}

TEST(Help, HasNoDoubleBlankLines) {
  EXPECT_THAT(run_paceline({"train", "mlp", "--help"}).output, Not(HasSubstr("\n\n\n")));
}

}  // namespace
}  // namespace paceline::testing
