// Everything a program that trains needs.
#pragma once

#include "paceline/cluster.h"
#include "paceline/data.h"
#include "paceline/error.h"
#include "paceline/evaluator.h"
#include "paceline/graph.h"
#include "paceline/hooks.h"
#include "paceline/input.h"
#include "paceline/minimize.h"
#include "paceline/op.h"
#include "paceline/ops.h"
#include "paceline/program.h"
#include "paceline/run_options.h"
#include "paceline/session.h"
#include "paceline/strategy.h"
#include "paceline/summaries.h"
#include "paceline/version.h"
