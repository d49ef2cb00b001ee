/* METRIC(ID, key, name, title, axis, deviation, factor, digits): every number that a run reports,
 * once.
 * key        in metrics.jsonl and summary.json
 * name       in `show = consensus, mean` of studies and in options; NULL: it is not shown there
 * title      of a table's column
 * axis       of a figure's axis
 * deviation  STD: summary.json of several seeds has <key>_std; ONE: it has none
 * factor     from the file's unit to the tables'
 * digits     in tables */
METRIC(CONSENSUS_ACCURACY, "consensus_accuracy", "consensus", "consensus %",
       "accuracy of the consensus model (%)", STD, 100, 2)
METRIC(LATE_ACCURACY, "consensus_accuracy_late", "late", "late %",
       "accuracy of the consensus model, mean over the end of the run (%)", STD, 100, 2)
METRIC(AVERAGED_ACCURACY, "averaged_accuracy", "averaged", "averaged %",
       "accuracy of the consensus model averaged over time (%)", STD, 100, 2)
METRIC(VALIDATION_ACCURACY, "validation_accuracy", "validation", "validation %",
       "accuracy of the consensus model on held-out training samples (%)", STD, 100, 2)
METRIC(LOCAL_MEAN, "local_accuracy_mean", "mean", "mean %",
       "mean accuracy of the agents' models (%)", STD, 100, 2)
METRIC(LOCAL_MIN, "local_accuracy_min", "worst", "worst %", "accuracy of the worst agent (%)", STD,
       100, 2)
METRIC(LOCAL_MAX, "local_accuracy_max", "best", "best %", "accuracy of the best agent (%)", STD,
       100, 2)
METRIC(TRAIN_ACCURACY, "train_accuracy", "train", "train %", "training accuracy (%)", STD, 100, 2)
METRIC(CONSENSUS_LOSS, "consensus_loss", "loss", "test loss", "test loss of the consensus model",
       STD, 1, 4)
METRIC(AVERAGED_LOSS, "averaged_loss", "averaged-loss", "averaged loss",
       "test loss of the consensus model averaged over time", STD, 1, 4)
METRIC(VALIDATION_LOSS, "validation_loss", "validation-loss", "validation loss",
       "loss of the consensus model on held-out training samples", STD, 1, 4)
METRIC(DISTANCE, "consensus_distance", "distance", "distance", "squared distance to the mean model",
       STD, 1, 4)
#define TERM(id, name, axis, digits) METRIC(id, name, name, name, axis, STD, 1, digits)
#include "loss/term_list.h"
#undef TERM
METRIC(MIB_ITERATION, "mib_per_agent_per_iteration", "mib-iteration", "MiB/iteration",
       "MiB sent by an agent in an iteration", ONE, 1, 3)
METRIC(BYTES, "bytes_sent_per_agent", "mib", "MiB", "MiB sent by an agent", ONE, 1.0 / (1 << 20), 1)
METRIC(GMACS, "gmacs_per_agent_per_iteration", "gmac", "GMAC/iteration",
       "GMAC of an agent in an iteration", ONE, 1, 4)
METRIC(OVERHEAD, "compute_overhead", "overhead", "overhead",
       "part of the arithmetic for cross-features", ONE, 1, 3)
METRIC(SECONDS, "seconds", "seconds", "seconds", "seconds", ONE, 1, 1)
METRIC(LINK_SECONDS, "link_seconds", NULL, "link seconds", "seconds on the simulated clock", ONE, 1,
       1)
METRIC(EPOCH, "epoch", NULL, "epochs", "epoch", ONE, 1, 0)
METRIC(ITERATION, "iteration", NULL, "iterations", "iteration", ONE, 1, 0)
METRIC(LR, "lr", NULL, "lr", "learning rate", ONE, 1, 4)
