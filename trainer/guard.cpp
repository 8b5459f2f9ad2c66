#include "trainer/guard.h"

#include "trainer/copy_keeper.h"

namespace everstep::trainer {

Status guard(const TrainOptions& options, Transport& transport, StateCopies& copies) {
  scheduler::ScheduleRequest request = options.schedule;
  request.windows = 1;
  const auto shape = scheduler::make_schedule(request);
  if (!shape) return shape.error();
  EVERSTEP_TRY(CopyKeeper::check_guards(options, *shape, transport));
  std::vector<StageLayout> layouts;
  for (std::size_t stage = 0; stage + 1 < options.cuts.size(); ++stage) {
    layouts.push_back(layout_of(options.model, options.cuts[stage], options.cuts[stage + 1]));
  }
  CopyKeeper keeper(transport, options, *shape, layouts, copies);
  for (bool is_base = true;; is_base = false) {
    const auto resume = keeper.next_version(options.peer_timeout);
    if (!resume) return resume.error();
    if (!*resume) return {};
    // Worker 0 tells of a version when it has met all others at the update that made it.
    if (!is_base) keeper.keep_newest();
    keeper.add(**resume, {});
    EVERSTEP_TRY(keeper.finish(options.peer_timeout));
    keeper.confirm();
  }
}

}  // namespace everstep::trainer
