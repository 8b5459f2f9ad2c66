#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "elastic/keys.h"
#include "elastic/kv_store.h"
#include "elastic/records.h"
#include "elastic/view.h"

namespace everstep::launcher {

// What people ask of a running job, from the side of the commands. The requests are keys that the job looks at by
// itself: a call that was answered is a request that was made. `store` seals what is written, if the job has a secret.

// The member that a person means: by its name, or by the first digits of its id, at least four. kNotFound and
// kInvalidArgument say who there is, and who it could be.
Result<elastic::MemberRecord> choose_member(const elastic::View& view, const elastic::Keys& keys,
                                            const std::string& wanted);

// `found` is a read of the job's gen; 0 if there is none.
Generation newest_generation(const std::vector<elastic::KeyValue>& found);

// One that is made now, under the generation of the moment: older ones are told from it.
elastic::RequestRecord new_request(const std::vector<elastic::KeyValue>& generation, const std::string& reason);

// kNotFound: it is gone already.
Status ask_to_leave(elastic::KvStore& store, const elastic::Keys& keys, const WorkerId& id, const std::string& reason);
Status ask_to_stop(elastic::KvStore& store, const elastic::Keys& keys, const std::string& reason);
Status ask_for_workers(elastic::KvStore& store, const elastic::Keys& keys, int workers);

struct JobWait {
  std::chrono::milliseconds limit;
  std::string otherwise;  // what has not happened then
  std::function<bool(const elastic::View&)> is_done;
  // The job ended, and its etcd with it: there is nobody to look at any more, and nothing to wait for.
  std::function<bool()> is_over = [] { return false; };
};

// Looks at the job's live keys again and again until that is so: kDeadlineExceeded if it takes longer than the limit. A
// store that does not answer for a while is asked again.
Status await_job(elastic::KvStore& store, const elastic::Keys& keys, const JobWait& wait);

}  // namespace everstep::launcher
