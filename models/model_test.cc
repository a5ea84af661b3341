#include "models/model.h"
#include "paceline/zoo_data.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <functional>

#include "models/airbench_graph.h"
#include "models/cifar10.h"
#include "models/cifar10_graph.h"
#include "models/fetch.h"
#include "models/mlp.h"
#include "models/ptb.h"
#include "models/ptb_config.h"
#include "models/ptb_data.h"
#include "models/ptb_graph.h"
#include "models/resnet.h"
#include "models/resnet_graph.h"
#include "models/testing/variables.h"
#include "paceline/error.h"

namespace paceline::models {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

void expect_usage(const std::function<void()>& call, const std::string& part) {
  try {
    call();
    FAIL() << "nothing was refused";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kUsage);
    EXPECT_THAT(error.what(), HasSubstr(part));
  }
}

// Predictions and bounds compute these graphs, and nobody gives them a batch.
TEST(Models, TheGraphsOfAStepHaveTheSizesOfTheSettings) {
  for (const Model* const model :
       {&mlp_model(), &ptb_model(), &cifar10_model(), &resnet_model(), &fetch_model()}) {
    for (const StepGraph& step : model->step_graphs(model->settings())) {
      EXPECT_TRUE(step.graph->usual_sizes().empty()) << model->name();
    }
  }
  const Settings fast = cifar10_model().settings({{"recipe", "fast"}, {"batch", "8"}});
  const std::vector<StepGraph> steps = cifar10_model().step_graphs(fast);
  EXPECT_TRUE(steps[0].graph->usual_sizes().empty());
  EXPECT_EQ(steps[0].graph->find("images").shape()[0], 8);
}

TEST(Mlp, HasTheReportedSizes) {
  Graph graph;
  const MlpGraph mlp = build_mlp(graph, mlp_config(mlp_model().settings()));
  EXPECT_EQ(variables_of(graph).parameters, 18'882'816);
  EXPECT_EQ(variables_of(graph).tensors, 6);
  EXPECT_EQ(mlp.predictions.shape(), (Shape{128, 256}));
  EXPECT_EQ(mlp.loss.shape(), Shape{});
  EXPECT_EQ(graph.find("predictions"), mlp.predictions);
}

TEST(Mlp, HasTheLaterReportsLayers) {
  Graph graph;
  build_mlp(graph, mlp_config(mlp_model().settings({{"hidden", "2048"}, {"layers", "4"}})));
  EXPECT_EQ(variables_of(graph).tensors, 10);
  EXPECT_NEAR(double(variables_of(graph).parameters) * 4e-6, 54.6, 0.05);
}

TEST(Mlp, TakesItsRuleFromSet) {
  EXPECT_FLOAT_EQ(mlp_config(mlp_model().settings()).rule.learning_rate, 1e-4f);
  EXPECT_FLOAT_EQ(mlp_config(mlp_model().settings({{"learning_rate", "0.5"}})).rule.learning_rate,
                  0.5f);
}

TEST(Set, RefusesUnknownNamesWithTheNearest) {
  expect_usage(
      [] {
        mlp_config(mlp_model().settings({{"lerning_rate", "1"}}));
      },
      "did you mean 'learning_rate'");
  expect_usage(
      [] {
        ptb_config(ptb_model().settings({{"keep_probe", "1"}}));
      },
      "did you mean 'keep_prob'");
}

TEST(Set, RefusesValuesThatCannotBe) {
  expect_usage([] { mlp_config(mlp_model().settings({{"hidden", "many"}})); }, "--set hidden=many");
  expect_usage([] { mlp_config(mlp_model().settings({{"hidden", "0"}})); }, "from 1 on");
  expect_usage([] { ptb_config(ptb_model().settings({{"keep_prob", "1.5"}})); }, "to 1");
  expect_usage(
      [] {
        ptb_config(ptb_model().settings({{"learning_rate", "nan"}}));
      },
      "learning_rate");
  expect_usage(
      [] {
        mlp_config(mlp_model().settings({{"beta1", "1"}}));
      },
      "--set beta1=1: must be a number");
  expect_usage(
      [] {
        ptb_config(ptb_model().settings({{"size", "tiny"}}));
      },
      "small, medium, large");
  expect_usage([] { fetch_shapes(fetch_model().settings({{"batch", "0"}})); }, "--set batch=0");
}

TEST(Models, AreFoundByName) {
  EXPECT_EQ(all_models().size(), 5u);
  EXPECT_EQ(find_model("ptb")->name(), "ptb");
  EXPECT_EQ(find_model("ptp"), nullptr);
}

TEST(Ptb, SmallHasTheReportedSizes) {
  Graph graph;
  const PtbGraph ptb = build_ptb(graph, ptb_config(ptb_model().settings()), 20, 20, true);
  EXPECT_EQ(variables_of(graph).parameters, 4'651'600);
  EXPECT_EQ(variables_of(graph).tensors, 7);
  EXPECT_EQ(ptb.inputs.shape(), (Shape{20, 20}));
  EXPECT_EQ(graph.assignments().size(), 4u);  // h and c of two layers
  EXPECT_EQ(graph.find("lstm1/w").shape(), (Shape{400, 800}));
  EXPECT_EQ(graph.find("softmax/w").shape(), (Shape{200, 10000}));
}

TEST(Ptb, TheTestGraphIsOneWordAtATime) {
  Graph graph;
  EXPECT_EQ(build_ptb(graph, ptb_config(ptb_model().settings()), 1, 1, false).inputs.shape(),
            (Shape{1, 1}));
  EXPECT_EQ(variables_of(graph).parameters, 4'651'600);
}

bool has_dropout(const std::string& size, bool training) {
  Graph graph;
  build_ptb(graph, ptb_config(ptb_model().settings({{"size", size}})), 2, 2, training);
  for (const auto& node : graph.nodes()) {
    if (node->op().name == "dropout") return true;
  }
  return false;
}

TEST(Ptb, DropsOutWhenTrainingOnly) {
  EXPECT_TRUE(has_dropout("medium", true));
  EXPECT_FALSE(has_dropout("medium", false));
  EXPECT_FALSE(has_dropout("small", true));
}

TEST(Ptb, SizesAndFlagsGiveDefaultsThatSetChanges) {
  EXPECT_EQ(ptb_config(ptb_model().settings({{"size", "large"}})).hidden, 1500);
  EXPECT_EQ(ptb_config(ptb_model().settings({{"size", "medium"}})).unroll, 35);
  EXPECT_EQ(ptb_config(ptb_model().settings({{"size", "test"}})).layers, 1);
  EXPECT_EQ(ptb_config(ptb_model().settings({{"size", "large"}, {"hidden", "7"}})).hidden, 7);
  EXPECT_EQ(ptb_config(ptb_model().settings({{"epochs", "2"}})).epochs, 2);
  EXPECT_EQ(ptb_config(ptb_model().settings({{"batch", "5"}})).batch, 5);
}

TEST(Ptb, TheRateDecaysAfterTheFullEpochs) {
  const PtbConfig small = ptb_config(ptb_model().settings());
  EXPECT_EQ(small.rate_factor(0), 1);
  EXPECT_EQ(small.rate_factor(3), 1);
  EXPECT_EQ(small.rate_factor(4), 0.5);
  EXPECT_EQ(small.rate_factor(12), 1.0 / 512);
  EXPECT_NEAR(ptb_config(ptb_model().settings({{"size", "large"}})).rate_factor(15),
              1 / 1.15 / 1.15, 1e-12);
}

TEST(Ptb, AsksForItsData) {
  expect_usage([] { ptb_model().check({}, {}, ptb_model().settings()); }, "--data");
  expect_usage(
      [] {
        ptb_model().check({}, {}, ptb_model().settings({{"data", "/nowhere"}}));
      },
      "no such folder");
  expect_usage(
      [] {
        ptb_model().check({}, {}, ptb_model().settings({{"data", ::testing::TempDir()}}));
      },
      "ptb.train.txt");
}

TEST(Ptb, APsNeedsNoData) {
  Cluster cluster;
  cluster.process = Cluster::Process::kTask;
  cluster.task = {TaskId::Role::kPs, 0};
  ptb_model().check(cluster, {}, ptb_model().settings());
  cluster.task = {TaskId::Role::kWorker, 1};
  expect_usage([&] { ptb_model().check(cluster, {}, ptb_model().settings()); }, "--data");
}

TEST(Ptb, WorkersReadPartsOfTrainAndValidAndAllOfTest) {
  const std::string folder = ::testing::TempDir() + "/ptb_parts";
  generate_corpus(folder, 40000, 1);
  const PtbConfig config = ptb_config(ptb_model().settings({{"batch", "4"}, {"unroll", "5"}}));
  const PtbData alone = read_ptb(folder, config, 0, 1), second = read_ptb(folder, config, 1, 2);
  EXPECT_NEAR(double(second.train[0].size()), double(alone.train[0].size()) / 2, 1);
  EXPECT_NEAR(double(second.valid.size()), double(alone.valid.size()) / 2, 1);
  EXPECT_EQ(second.test.size(), alone.test.size());
  std::filesystem::remove_all(folder);
}

// Returns the shapes of the variables that a checkpoint of the graph would hold.
SavedShapes saved_shapes(const Graph& graph) {
  SavedShapes shapes;
  for (const auto& node : graph.nodes()) {
    if (node->op().name == "variable") shapes[node->name()] = node->outputs()[0].shape;
  }
  return shapes;
}

std::vector<std::string> texts_of(const std::vector<NamedValue>& values) {
  std::vector<std::string> texts;
  texts.reserve(values.size());
  for (const NamedValue& named : values) {
    texts.push_back(named.name + " " + named.value.type().str());
  }
  return texts;
}

// Returns the graph for inference that the model builds from a checkpoint with the variables of
// `trained`.
InferenceGraph inference_of(const Model& model, const Graph& trained,
                            const std::vector<std::int64_t>& sizes) {
  const SavedShapes saved = saved_shapes(trained);
  InferenceGraph built = model.onnx_model(saved).value().build(sizes);
  EXPECT_EQ(saved_shapes(*built.graph), saved);
  return built;
}

TEST(Inference, OfMlpFollowsTheCheckpointsSizes) {
  Graph trained;
  build_mlp(trained, {.features = 5, .hidden = 7, .layers = 3});
  const InferenceGraph built = inference_of(mlp_model(), trained, {4});
  EXPECT_THAT(texts_of(built.inputs), ElementsAre("x float32 (4,5)"));
  EXPECT_THAT(texts_of(built.outputs), ElementsAre("predictions float32 (4,5)"));
}

TEST(Inference, OfPtbHandsItsStatesOn) {
  Graph trained;
  PtbConfig config;
  config.hidden = 6;
  config.layers = 1;
  config.vocabulary = 9;
  build_ptb(trained, config, 2, 3, true);
  EXPECT_THAT(ptb_model().onnx_model(saved_shapes(trained)).value().open,
              ElementsAre("time", "batch"));
  const InferenceGraph built = inference_of(ptb_model(), trained, {5, 4});
  EXPECT_THAT(texts_of(built.inputs),
              ElementsAre("words int32 (5,4)", "lstm1/h float32 (4,6)", "lstm1/c float32 (4,6)"));
  EXPECT_THAT(texts_of(built.outputs),
              ElementsAre("probabilities float32 (5,4,9)", "lstm1/h_next float32 (4,6)",
                          "lstm1/c_next float32 (4,6)"));
}

TEST(Inference, OfImageModelsGivesProbabilities) {
  Graph cifar10, fast, resnet;
  build_cifar10(cifar10, 2, 7);
  build_airbench(fast, {.batch = 2, .classes = 6, .widths = {8, 9, 10}});
  build_resnet(resnet, 2, 2, true, 5);
  const InferenceGraph of_cifar10 = inference_of(cifar10_model(), cifar10, {4});
  EXPECT_THAT(texts_of(of_cifar10.inputs), ElementsAre("images float32 (4,3,24,24)"));
  EXPECT_THAT(texts_of(of_cifar10.outputs), ElementsAre("probabilities float32 (4,7)"));
  const InferenceGraph of_fast = inference_of(cifar10_model(), fast, {4});
  EXPECT_THAT(texts_of(of_fast.inputs), ElementsAre("images float32 (4,3,32,32)"));
  EXPECT_THAT(texts_of(of_fast.outputs), ElementsAre("probabilities float32 (4,6)"));
  const InferenceGraph of_resnet = inference_of(resnet_model(), resnet, {4});
  EXPECT_THAT(texts_of(of_resnet.inputs), ElementsAre("images float32 (4,3,32,32)"));
  EXPECT_THAT(texts_of(of_resnet.outputs), ElementsAre("probabilities float32 (4,5)"));
}

TEST(Inference, SaysWhichVariableTheCheckpointLacks) {
  EXPECT_FALSE(fetch_model().onnx_model({}));
  for (const auto& [model, variable] : {std::pair{&mlp_model(), "layer1/w"},
                                        {&ptb_model(), "embedding"},
                                        {&cifar10_model(), "dense3/b"},
                                        {&resnet_model(), "dense/b"}}) {
    try {
      model->onnx_model({});
      ADD_FAILURE() << "nothing was refused";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kFailedPrecondition);
      EXPECT_THAT(error.what(), HasSubstr(std::string("has no variable ") + variable));
    }
  }
}

TEST(Fetch, APsChangesEachValueThereAndBack) {
  const Model& fetch = fetch_model();
  EXPECT_TRUE(fetch.after_reads(fetch.settings({{"constant", "1"}})).empty());
  const AfterReads changes = fetch.after_reads(fetch.settings());
  ASSERT_EQ(changes.size(), fetch_shapes(fetch_model().settings()).size());
  Graph graph;
  const auto change =
      changes.find(build_fetch(graph, fetch_shapes(fetch_model().settings())[2]).remote_w.name());
  ASSERT_NE(change, changes.end());
  std::vector<float> before(37, -2);
  before[0] = 0.5f;
  std::vector<float> values = before;
  change->second(0, values);
  EXPECT_THAT(values, testing::Pointwise(testing::Ne(), before));
  change->second(1, values);
  EXPECT_EQ(values, before);
}

TEST(Fetch, ServersThatOutliveTheJobChangeNothing) {
  const Model& fetch = fetch_model();
  Cluster cluster;
  cluster.existing_servers = true;
  expect_usage([&] { fetch.check(cluster, {}, fetch.settings()); }, "--constant");
  EXPECT_NO_THROW(fetch.check(cluster, {}, fetch.settings({{"constant", "1"}})));
}

TEST(Fetch, HasTheReportedShapes) {
  const auto shapes = fetch_shapes(fetch_model().settings());
  ASSERT_EQ(shapes.size(), 3u);
  EXPECT_EQ(shapes[0].str(), "128,32,256");
  EXPECT_EQ(fetch_shapes(fetch_model().settings({{"hidden", "64"}})),
            (std::vector<FetchShape>{{128, 32, 64}}));
  Graph graph;
  const FetchGraph fetch = build_fetch(graph, shapes[1]);
  EXPECT_EQ(fetch.remote.shape(), (Shape{128, 128}));
  EXPECT_EQ(fetch.remote_w.shape(), (Shape{256, 128}));
  EXPECT_EQ(variables_of(graph).tensors, 1);
}

}  // namespace
}  // namespace paceline::models
