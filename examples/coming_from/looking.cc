// The outputs of a run: its report, its event files, its timeline and its live page.
#include "pieces.h"
using namespace paceline;

void write_summaries(const Cluster& cluster, RunOptions run) {
  Graph graph;
  const Model model = build(graph, 32);
  Session session(minimize(model.loss, Adam{}), cluster, run);
  session.add(Summaries("coming-from/summaries", 20));  // --out DIR adds one by itself
  session.run(noise(model));
  session.summarise("loss/valid", session.evaluate(model.loss, noise(model)).item<float>());
}

void record_a_timeline(const Cluster& cluster, RunOptions run) {
  Graph graph;
  const Model model = build(graph, 32);
  run.timeline = "coming-from-timeline.json";  // --timeline FILE, for ui.perfetto.dev
  run.report = "coming-from-report.json";      // --report FILE: speed, and where the time went
  Session session(minimize(model.loss, Adam{}), cluster, run);
  session.run(noise(model));
}

void print_what_is_there(const Cluster& cluster, RunOptions run) {
  Graph graph;
  const Model model = build(graph, 32);
  Session session(minimize(model.loss, Adam{}), cluster, run);
  session.print(graph.text());  // ops, shapes, FLOPs; graph.dot() is for Graphviz
  for (const std::string& name : session.variables().names()) {
    session.print(name + " " + session.variables().get(name).shape().str());
  }
}
