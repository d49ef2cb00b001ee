/* RECORD_FILE(ID, name, roles): every file of a run directory, in the order in which a run writes
 * them (record/file.h has the roles). A run's seeds and pairs of lambdas have directories of the
 * same kind below it (record/folder.h). */
RECORD_FILE(CONFIG, "config.txt", CT_FILE_IS_KEPT | CT_FILE_IS_MARK | CT_FILE_IS_TEXT)
RECORD_FILE(PARTITION, "partition.csv", CT_FILE_IS_HEAVY)
RECORD_FILE(SETTING, "setting.json", CT_FILE_IS_KEPT | CT_FILE_IS_SIDE)
RECORD_FILE(AGREEMENT, "agreement.json", CT_FILE_IS_SIDE)
RECORD_FILE(SITE, "site.json", CT_FILE_IS_KEPT | CT_FILE_IS_SIDE)
RECORD_FILE(SENT, "sent.jsonl", CT_FILE_IS_KEPT | CT_FILE_IS_SIDE)
RECORD_FILE(METRICS, "metrics.jsonl", CT_FILE_IS_KEPT)
RECORD_FILE(EVALUATION, "evaluation.json", CT_FILE_IS_KEPT | CT_FILE_IS_SIDE | CT_FILE_IS_RESULT)
RECORD_FILE(DIVERGED, "diverged.json", CT_FILE_IS_KEPT | CT_FILE_IS_TEXT | CT_FILE_IS_RESULT)
RECORD_FILE(FAILED, "failed.json", CT_FILE_IS_KEPT | CT_FILE_IS_TEXT | CT_FILE_IS_RESULT)
RECORD_FILE(SUMMARY, "summary.json", CT_FILE_IS_KEPT | CT_FILE_IS_TEXT | CT_FILE_IS_RESULT)
RECORD_FILE(CONSENSUS, "consensus.safetensors", CT_FILE_IS_HEAVY | CT_FILE_IS_RESULT)
RECORD_FILE(AGENTS, "agents.safetensors", CT_FILE_IS_HEAVY | CT_FILE_IS_RESULT)
RECORD_FILE(LEDGER, "ledger.csv", CT_FILE_IS_RESULT)
RECORD_FILE(EVENTS, "events.out.tfevents.0.crosstalk", 0)
RECORD_FILE(CHECKPOINT, "checkpoint", CT_FILE_IS_FOLDER)
