// The pieces of docs/coming-from.md, one after the other, or one of them alone or as a cluster:
// ./coming_from, ./coming_from --piece loop --ps 1 --workers 2; --help lists the flags.
#include <cstdio>

#include "pieces.h"
using namespace paceline;

struct NamedPiece {
  std::string name;
  Piece* run;
};

// In the order of the page.
const std::vector<NamedPiece> kPieces = {{"loop", train_in_a_loop},
                                         {"step", train_step_by_step},
                                         {"evaluation", evaluate_beside_training},
                                         {"arrays", train_on_arrays},
                                         {"prefetch", read_on_another_thread},
                                         {"checkpoint", save_and_resume},
                                         {"init", begin_with_saved_values},
                                         {"schedule", schedule_the_learning_rate},
                                         {"clipping", clip_gradients},
                                         {"groups", treat_layers_differently},
                                         {"average", average_the_weights},
                                         {"rule", use_a_rule_of_ones_own},
                                         {"muon", use_a_rule_of_whole_matrices},
                                         {"gradients", differentiate},
                                         {"op", use_an_op_of_ones_own},
                                         {"precision", compute_in_bfloat16},
                                         {"dropout", drop_out},
                                         {"words", read_words},
                                         {"accumulate", accumulate_gradients},
                                         {"early-stopping", stop_early},
                                         {"summaries", write_summaries},
                                         {"timeline", record_a_timeline},
                                         {"print", print_what_is_there}};

std::vector<std::string> names() {
  std::vector<std::string> names = {"all"};
  for (const NamedPiece& piece : kPieces) names.push_back(piece.name);
  return names;
}

// The flag of the program, beside those that every program has.
const Setting<std::string> kPiece = {
    .name = "piece", .value = "all", .help = "The piece to run", .choices = names(), .flag = true};
const ProgramOptions kOptions = {.about = "Runs the pieces of docs/coming-from.md.",
                                 .settings = {kPiece}};

int main(int argc, char** argv) {
  return run_program(
      argc, argv, kOptions, [](const Cluster& cluster, RunOptions run, const Settings& settings) {
        const std::string& wanted = settings[kPiece];
        if (wanted == "all" && cluster.distributed()) {
          throw Error(ErrorCode::kUsage, "--piece all is for one process; name one of them");
        }
        if (!run.steps && !run.seconds) run.steps = 40;
        for (const NamedPiece& piece : kPieces) {
          if (wanted != "all" && wanted != piece.name) continue;
          std::printf("-- %s\n", piece.name.c_str());
          piece.run(cluster, run);
        }
      });
}
