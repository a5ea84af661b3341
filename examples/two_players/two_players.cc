// Two players, each with its own loss, rule and variables: a generator learns to draw points from a
// ring of Gaussians, and a discriminator learns to tell these points from real ones (least-squares
// GAN: Mao et al., ICCV 2017). Run ./two_players, or ./two_players --ps 1 --workers 2; --help lists
// the flags.
#include <paceline/paceline.h>

#include <array>
#include <cmath>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

using namespace paceline;

constexpr int kGaussians = 8;
constexpr float kSpread = 0.05f;  // standard deviation of a Gaussian; the ring has radius 1
constexpr std::int64_t kBatch = 128, kNoise = 4;
constexpr int kDiscriminator = 0, kGenerator = 1;  // the order of the trainings

// Lion (Chen et al., arXiv 2302.06675) as a CustomRule. A ps can apply it, too.
Rule lion(float learning_rate) {
  return CustomRule{
      .name = "lion",
      .learning_rate = learning_rate,
      .slots = {{"m"}},
      .update = [](const RuleTerms& r) {
        const Value m = r.slots[0], direction = sign(0.9 * m + 0.1 * r.gradient);
        return RuleUpdate{r.value - r.learning_rate * direction, {0.99 * m + 0.01 * r.gradient}};
      }};
}

Value points_of(Graph& graph, std::int64_t count) {
  const Value noise = random_normal(graph, {count, kNoise});
  return dense(tanh(dense(tanh(dense(noise, 64, "generator/1")), 64, "generator/2")), 2,
               "generator/3");
}

Value judge(Value points) {
  const Value hidden = leaky_relu(dense(points, 64, "discriminator/1"), 0.2);
  return dense(leaky_relu(dense(hidden, 64, "discriminator/2"), 0.2), 1, "discriminator/3");
}

// Returns options that freeze the variables of the other player.
MinimizeOptions without(const std::string& other) {
  return {.groups = {{.prefix = other, .frozen = true}}};
}

void draw(std::mt19937_64& random, std::span<float> points) {
  std::uniform_int_distribution<int> which(0, kGaussians - 1);
  std::normal_distribution<float> off(0, kSpread);
  for (std::size_t i = 0; i + 1 < points.size(); i += 2) {
    const float angle = 2 * std::acos(-1.0f) * float(which(random)) / kGaussians;
    points[i] = std::cos(angle) + off(random);
    points[i + 1] = std::sin(angle) + off(random);
  }
}

// Returns a line with the mean distance of the points from the ring, and the number of Gaussians
// that have at least one point near them.
std::string seen(std::span<const float> points) {
  double distance = 0;
  std::array<bool, kGaussians> reached{};
  for (std::size_t i = 0; i + 1 < points.size(); i += 2) {
    const float x = points[i], y = points[i + 1];
    distance += std::abs(std::hypot(x, y) - 1);
    const float turn = std::atan2(y, x) / (2 * std::acos(-1.0f));
    const int nearest = int(std::lround((turn + 1) * kGaussians)) % kGaussians;
    const float angle = 2 * std::acos(-1.0f) * float(nearest) / kGaussians;
    if (std::hypot(x - std::cos(angle), y - std::sin(angle)) < 3 * kSpread) {
      reached[std::size_t(nearest)] = true;
    }
  }
  int count = 0;
  for (const bool one : reached) count += one ? 1 : 0;
  return "distance from the ring " + std::to_string(distance / (double(points.size()) / 2)) +
         ", Gaussians reached " + std::to_string(count) + " of " + std::to_string(kGaussians);
}

int main(int argc, char** argv) {
  return run_program(argc, argv, [](const Cluster& cluster, RunOptions run) {
    if (!run.steps && !run.seconds) run.steps = 6000;
    Graph graph;
    const auto count = graph.open("points", kBatch);
    const Value real = graph.input("real", {count, 2});
    const Value points = points_of(graph, count), fake = judge(points);
    const Value tells = reduce_mean(square(judge(real) - 1)) + reduce_mean(square(fake));
    const Value fools = reduce_mean(square(fake - 1));

    std::vector<Training> players(2);
    players[kDiscriminator] = minimize(tells, Adam{.learning_rate = 1e-3f}, without("generator/"));
    players[kGenerator] = minimize(fools, lion(2e-4f), without("discriminator/"));
    Session session(players, cluster, run);

    std::mt19937_64 random(run.seed + std::uint64_t(session.cluster().task.index));
    const auto feed_real = [&](Feed& feed) { draw(random, feed.data<float>(real)); };
    const auto feed_many = [&](Feed& feed) { draw(random, feed.data<float>(real, {1000, 2})); };
    for (int turn = 0;; turn = 1 - turn) {
      const auto made = session.step(turn, feed_real);
      if (!made) break;  // --steps or --seconds are reached
      if (made->step % 1000 != 0) continue;
      const Tensor drawn = session.evaluate(points, feed_many);
      session.print("step " + std::to_string(made->step) + ": " + seen(drawn.data<float>()));
    }
  });
}
