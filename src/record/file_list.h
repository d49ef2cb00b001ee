/* RECORD_FILE(ID, name, roles, text): every file of a run directory, in the order in which a run writes
 * them (record/file.h has the roles). A run's seeds and pairs of lambdas have directories of the
 * same kind below it (record/folder.h). */
RECORD_FILE(CONFIG, "config.txt", CT_FILE_IS_KEPT | CT_FILE_IS_MARK | CT_FILE_IS_TEXT,
            "every option, resolved; @config reads it back")
RECORD_FILE(PARTITION, "partition.csv", CT_FILE_IS_HEAVY, "which agent has which sample")
RECORD_FILE(SETTING, "setting.json", CT_FILE_IS_KEPT | CT_FILE_IS_SIDE,
            "the graph, and the classes of every agent")
RECORD_FILE(AGREEMENT, "agreement.json", CT_FILE_IS_SIDE,
            "of a site: what the sites have agreed on")
RECORD_FILE(SITE, "site.json", CT_FILE_IS_KEPT | CT_FILE_IS_SIDE,
            "of a site: how it and its neighbours stand")
RECORD_FILE(SENT, "sent.jsonl", CT_FILE_IS_KEPT | CT_FILE_IS_SIDE, "of a site: what left it")
RECORD_FILE(METRICS, "metrics.jsonl", CT_FILE_IS_KEPT, "one line per epoch")
RECORD_FILE(EVALUATION, "evaluation.json", CT_FILE_IS_KEPT | CT_FILE_IS_SIDE | CT_FILE_IS_RESULT,
            "every agent's accuracy, and the confusion matrix")
RECORD_FILE(DIVERGED, "diverged.json", CT_FILE_IS_KEPT | CT_FILE_IS_TEXT | CT_FILE_IS_RESULT,
            "of a run that diverged: when, and which numbers")
RECORD_FILE(FAILED, "failed.json", CT_FILE_IS_KEPT | CT_FILE_IS_TEXT | CT_FILE_IS_RESULT,
            "of a run that failed: when and why")
RECORD_FILE(SUMMARY, "summary.json", CT_FILE_IS_KEPT | CT_FILE_IS_TEXT | CT_FILE_IS_RESULT,
            "the final numbers; of several seeds also mean and deviation")
RECORD_FILE(TUNED, "tuned.json", CT_FILE_IS_KEPT,
            "of a tuned run of a study: what was tried, the scores on held-out samples, the choice")
RECORD_FILE(CONSENSUS, "consensus.safetensors", CT_FILE_IS_HEAVY | CT_FILE_IS_RESULT,
            "the consensus model, under PyTorch's parameter names")
RECORD_FILE(AVERAGED, "averaged.safetensors", CT_FILE_IS_HEAVY | CT_FILE_IS_RESULT,
            "with @average: the model averaged over time")
RECORD_FILE(AGENTS, "agents.safetensors", CT_FILE_IS_HEAVY | CT_FILE_IS_RESULT,
            "with @save-agents: every agent's model")
RECORD_FILE(LEDGER, "ledger.csv", CT_FILE_IS_RESULT, "with @ledger: bytes sent along every edge")
RECORD_FILE(EVENTS, "events.out.tfevents.0.crosstalk", 0,
            "with @tensorboard: the metrics as events")
RECORD_FILE(CHECKPOINT, "checkpoint", CT_FILE_IS_FOLDER,
            "what @resume needs: the last two checkpoints")
