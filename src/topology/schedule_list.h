/* Every schedule: SCHEDULE(id, "name", "one line of help"). No include guard on purpose. */
SCHEDULE(one_peer, "one-peer-exponential",
         "time-varying, directed: in step t agent i sends to i + 2^t; 1 message an agent")
SCHEDULE(matchings, "matchings", "time-varying: random pairs, drawn anew for every iteration")
SCHEDULE(base, "base",
         "base[:k+1]: time-varying Base-(k+1) graph, exact average in few steps; default base:2")
SCHEDULE(epidemic, "epidemic",
         "epidemic[:s]: time-varying, directed: everyone sends to s others and receives from s; "
         "default log2 n")
SCHEDULE(epidemic_local, "epidemic-local",
         "epidemic-local[:s]: time-varying, directed: everyone sends to s others that it draws")
SCHEDULE(file, "schedule",
         "schedule:PATH: time-varying, steps of edges \"a b\", \"a > b\", \"a > b weight\"")
