#pragma once

#include "launcher/cli/options.h"

namespace everstep::launcher {

// A command with one option of each kind.
inline CommandSpec toy_spec() {
  return {.name = "brew",
          .summary = "make tea",
          .text =
              "Makes tea for all workers, as fast as the kettle allows, and prints a table with one line for each cup "
              "and its temperature.\nStops when the leaves are gone.",
          .examples = {"everstep brew --cups=2 --kind=green", "everstep brew --cups=2 --json"},
          .options = {{"cups", "N", "", "how many cups to make", true},
                      {"memory-gib", "GIB", "40",
                       "how much the pot holds; the text of this option is long enough to need a second line"},
                      {"kind", "NAME", "green", "green or black"},
                      {"svg", "FILE", "", "draw the pot"},
                      {"json", "", "", "print JSON instead of a table"}}};
}

}  // namespace everstep::launcher
