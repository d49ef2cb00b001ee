/* METRIC(ID, "name in metrics.jsonl") */
METRIC(EPOCH, "epoch")
METRIC(ITERATION, "iteration")
METRIC(LR, "lr")
#define TERM(id, name, axis, digits) METRIC(id, name)
#include "loss/term_list.h"
#undef TERM
METRIC(TRAIN_ACCURACY, "train_accuracy")
METRIC(CONSENSUS_ACCURACY, "consensus_accuracy")
METRIC(CONSENSUS_LOSS, "consensus_loss")
METRIC(LOCAL_MEAN, "local_accuracy_mean")
METRIC(LOCAL_MIN, "local_accuracy_min")
METRIC(LOCAL_MAX, "local_accuracy_max")
METRIC(DISTANCE, "consensus_distance")
METRIC(BYTES, "bytes_sent_per_agent")
METRIC(LINK_SECONDS, "link_seconds")
METRIC(SECONDS, "seconds")
