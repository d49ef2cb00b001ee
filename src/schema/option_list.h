/* clang-format off */
/* Every option of every command, once: parser, help, config file, what may differ when a run is
 * resumed or its results are reused, how reports group runs, what a study may set.
 *
 *   OPTION(group, kind, field, name, aliases, default, lowest, highest, choices, roles, needs, help)
 * Options of a run, in the order of its help; `field` is theirs in ct_config. Every command that
 * trains takes them.
 *   OWN(command, kind, name, default, lowest, highest, choices, roles, help)
 * Options of one command alone ("study": of all commands that make a table of runs).
 *
 * kind     TEXT, WHOLE (integer), REAL, FLAG (on|off), SWITCH (on when named)
 * default  "auto": chosen from the data set, model and algorithm (run/resolve.c)
 * choices  the only values of a TEXT; "": any, or names of a registry (crosstalk list)
 * needs    "option=value": without it the option does nothing, and naming it is refused; options
 *          of an algorithm are named by the algorithm itself (algo.h)
 * roles    what does not change the numbers: LOCAL; what does, but may differ when a run is
 *          resumed: LENGTH (how far it goes), CONTENT (the file's content is compared instead).
 *          RANK: every process of a job may have its own value; all others must be alike.
 *          PATH: a file or folder. LIST: its own value is a list. WORLDS: a list that makes several
 *          runs of one. SINGLE: of one run, so that whoever makes several sets it. UNSAVED: not
 *          part of a saved config. BARE: may stand without a value. For reports: SETTING says what
 *          is learnt and where, METHOD is what a method's name stands for, SEED tells repetitions
 *          of one experiment apart. */

OPTION("data", TEXT, dataset, "dataset", "", "fashion-mnist", 0, 0, "", SETTING, "",
       "data set (see: crosstalk list datasets); auto = what lies in @data-dir")
OPTION("data", TEXT, data_dir, "data-dir", "data_dir", "", 0, 0, "", LOCAL | PATH | RANK, "",
       "where its files are, if not where the system keeps them; %r = this rank, %a = the agent (@partition own)")
OPTION("data", WHOLE, train_samples, "train-samples", "", "0", 0, 1e9, "", 0, "",
       "use only the first N training samples; 0 = all")
OPTION("data", WHOLE, test_samples, "test-samples", "", "0", 0, 1e9, "", 0, "",
       "use only the first N test samples; 0 = all")
OPTION("data", TEXT, labels, "labels", "", "fine", 0, 0, "fine, coarse", 0, "",
       "cifar100: fine (100 classes) or coarse (20)")
OPTION("data", TEXT, label, "label", "", "", 0, 0, "", 0, "dataset=csv",
       "csv: the column to learn; default: label, class, target or y, else the last one")
OPTION("data", TEXT, ignore_columns, "ignore-columns", "ignore_columns", "", 0, 0, "", LIST, "dataset=csv",
       "csv: columns to leave out, as in id,name")
OPTION("data", REAL, test_fraction, "test-fraction", "", "0", 0, 0.9, "", 0, "",
       "share of every class to test on, where the data has no test part")
OPTION("data", WHOLE, image_size, "image-size", "", "0", 0, 4096, "", 0, "",
       "pixels a side of pictures from folders; 0 = the set's own")
OPTION("data", SWITCH, strict, "strict", "", "off", 0, 0, "", LOCAL | RANK, "",
       "a picture that cannot be read is an error, not left out")
OPTION("data", TEXT, cache, "cache", "", "", 0, 0, "", LOCAL | PATH | RANK, "",
       "directory that keeps decoded pictures for the next run")
OPTION("data", WHOLE, memory, "memory", "", "1024", 1, 1e9, "", LOCAL | RANK, "",
       "MiB for pictures; folders that need more are streamed from disk")
OPTION("data", WHOLE, workers, "workers", "", "0", 0, 1024, "", LOCAL | RANK, "",
       "threads that decode pictures; 0 = one for each core")
OPTION("data", TEXT, partition, "partition", "", "dirichlet", 0, 0, "", SETTING, "",
       "how samples are split over agents: dirichlet, iid, shards; own = each has its own data set, @data-dir 'site-%a'")
OPTION("data", REAL, alpha, "alpha", "skew", "0.1", 1e-6, 1e6, "", SETTING, "partition=dirichlet",
       "dirichlet: the smaller, the more the agents' classes differ")
OPTION("data", WHOLE, classes_per_agent, "classes-per-agent", "", "2", 1, 65536, "", 0, "partition=shards",
       "shards: classes an agent gets")
OPTION("data", TEXT, partition_file, "partition-file", "", "", 0, 0, "", CONTENT | PATH, "",
       "CSV with header index,agent instead of a computed split")
OPTION("data", FLAG, shuffle, "shuffle", "", "on", 0, 0, "", 0, "",
       "visit samples in a new order every epoch; off = the partition's order")
OPTION("data", FLAG, augment, "augment", "", "on", 0, 0, "", 0, "",
       "the data set's own random crops and flips")

OPTION("model", TEXT, model, "model", "arch", "auto", 0, 0, "", SETTING, "",
       "network (see: crosstalk list models)")
OPTION("model", TEXT, norm, "norm", "normtype", "evonorm", 0, 0, "evonorm, evonorm-s0, groupnorm, batchnorm, none", 0, "",
       "evonorm, evonorm-s0, groupnorm, batchnorm, none")
OPTION("model", TEXT, init, "init", "", "", 0, 0, "", CONTENT | PATH, "",
       "start from this .safetensors file (one model, or agent.<i>.<name>)")

OPTION("agents", WHOLE, agents, "agents", "world_size,world-size", "16", 1, 65536, "", SETTING, "",
       "how many agents")
OPTION("agents", TEXT, agent_names, "agent-names", "", "", 0, 0, "", LIST, "partition=own",
       "names of the agents, with commas: what %a in @data-dir stands for")
OPTION("agents", TEXT, topology, "topology", "graph", "ring", 0, 0, "", SETTING, "",
       "who talks to whom (see: crosstalk list topologies)")
OPTION("agents", TEXT, weights, "weights", "", "auto", 0, 0, "auto, uniform, metropolis", 0, "",
       "mixing weights: uniform, metropolis; auto = uniform on regular graphs")
OPTION("agents", REAL, gamma, "gamma", "averaging_rate,averaging-rate", "auto", 1e-6, 1, "", 0, "",
       "averaging rate; auto = 0.9 on dyck and torus with qg-dsgdm, else 1; less with @compress")
OPTION("agents", TEXT, local_steps, "local-steps", "", "1", 0, 0, "", 0, "",
       "gossip in every so many iterations only: 4; 1:8 = 1 at first, then 2, 4 and 8, each for an equal part of the run")

OPTION("agents", TEXT, compress, "compress", "", "none", 0, 0, "", 0, "",
       "send less each time: top-k:F, random-k:F, quantize:8|4|2, sign (see: crosstalk list compressors; dsgd, dsgdm, dfedavgm, qg-dsgdm on graphs that stay)")

OPTION("agents", TEXT, consensus, "consensus", "", "plain", 0, 0, "plain, adagossip", 0, "",
       "plain (one averaging rate), adagossip (one for every parameter, least where neighbours' words swing; @gamma: about how far it moves)")

OPTION("algorithm", TEXT, algorithm, "algorithm", "", "dsgdm", 0, 0, "", METHOD, "",
       "see: crosstalk list algorithms; ccl = qg-dsgdm with the CCL loss")
OPTION("algorithm", TEXT, variant, "variant", "", "paper", 0, 0, "paper, atc, wacv24, weighted, neurips23", 0, "",
       "form of the method, where it has several (see: crosstalk list algorithms); paper = its default")
OPTION("algorithm", TEXT, relay_fill, "relay-fill", "", "init", 0, 0, "init, self", 0, "",
       "relaysgd, for models still on their way: init (start values) or self")
OPTION("algorithm", REAL, gut_mu, "gut-mu", "scaling", "0.3", 0, 1, "", 0, "",
       "gut: how much of what was tracked counts; its authors: 0.9 without momentum, 0.005 to 0.08 with it")
OPTION("algorithm", REAL, ngc_alpha, "ngc-alpha", "", "1", 0, 1, "", 0, "",
       "ngc: weight of data-variant gradients; 0 = model-variant ones only, nothing more is sent")
OPTION("algorithm", REAL, cga_margin, "cga-margin", "", "0", 0, 1e3, "", 0, "",
       "cga: least multiplier of every gradient in the projection")
OPTION("algorithm", TEXT, loss, "loss", "", "auto", 0, 0, "auto, ce, ccl", METHOD, "",
       "ce or ccl, with any algorithm; auto = ccl if a lambda is given")
OPTION("algorithm", REAL, lambda_m, "lambda-m", "lambda_m", "auto", 0, 1e6, "", 0, "",
       "ccl: weight of the model-variant term; auto = the paper's")
OPTION("algorithm", REAL, lambda_d, "lambda-d", "lambda_d", "auto", 0, 1e6, "", 0, "",
       "ccl: weight of the data-variant term; auto = the paper's")
OPTION("algorithm", TEXT, lambdas, "lambdas", "", "", 0, 0, "", WORLDS, "",
       "ccl: train these lambda-m:lambda-d at once, e.g. 0.1:0.1,0.01:0: @out gets a directory for each")
OPTION("algorithm", TEXT, ccl_distance, "ccl-distance", "", "mse", 0, 0, "mse, l1, cosine", 0, "loss=ccl",
       "ccl: mse, l1, cosine")
OPTION("algorithm", TEXT, ccl_reduction, "ccl-reduction", "", "mean", 0, 0, "mean, sum", 0, "loss=ccl",
       "ccl: mean (published lambdas) or sum (equation 3) over the features")
OPTION("algorithm", WHOLE, ccl_every, "ccl-every", "", "1", 1, 1e9, "", 0, "loss=ccl",
       "ccl: contrast in every so many iterations")
OPTION("algorithm", WHOLE, ccl_neighbours, "ccl-neighbours", "", "0", 0, 65536, "", 0, "loss=ccl",
       "ccl: contrast with so many neighbours at a time, in turn; 0 = all")
OPTION("algorithm", REAL, ccl_batch_fraction, "ccl-batch-fraction", "", "1", 1e-6, 1, "", 0, "loss=ccl",
       "ccl: part of a batch that cross-features are taken of")
OPTION("algorithm", REAL, ccl_adaptive, "ccl-adaptive", "", "0", 0, 10, "", 0, "",
       "ccl: lambdas that make each term this part of the cross-entropy; 0 = @lambda-m, @lambda-d")

OPTION("training", REAL, lr, "lr", "", "auto", 1e-12, 1e6, "", 0, "",
       "learning rate")
OPTION("training", TEXT, lr_schedule, "lr-schedule", "", "step", 0, 0, "step, cosine, poly, constant", 0, "",
       "step (at the milestones), cosine, poly, constant")
OPTION("training", REAL, lr_decay, "lr-decay", "", "0.1", 1e-6, 1, "", 0, "lr-schedule=step",
       "step: factor at every milestone")
OPTION("training", TEXT, lr_milestones, "lr-milestones", "", "0.5,0.75", 0, 0, "", LIST, "lr-schedule=step",
       "step: when the rate decays, as parts of all epochs; none = never")
OPTION("training", REAL, lr_end, "lr-end", "", "0", 0, 1e6, "", 0, "",
       "cosine, poly: rate that the end of the run comes close to")
OPTION("training", REAL, lr_power, "lr-power", "", "1", 1e-3, 1e3, "", 0, "lr-schedule=poly",
       "poly: power of the part of the run that is left")
OPTION("training", REAL, warmup_epochs, "warmup-epochs", "", "0", 0, 1e6, "", 0, "",
       "epochs over which the rate grows from 0 to @lr")
OPTION("training", REAL, momentum, "momentum", "", "0.9", 0, 0.999999, "", 0, "",
       "beta")
OPTION("training", FLAG, nesterov, "nesterov", "", "on", 0, 0, "", 0, "",
       "Nesterov momentum; off = heavy ball")
OPTION("training", REAL, weight_decay, "weight-decay", "weight_decay,wd", "0.0001", 0, 1e3, "", 0, "",
       "L2, added to the gradient of every parameter")
OPTION("training", REAL, clip_norm, "clip-norm", "", "0", 0, 1e12, "", 0, "",
       "longest gradient of an agent; 0 = any")
OPTION("training", REAL, label_smoothing, "label-smoothing", "", "0", 0, 0.999, "", 0, "",
       "part of a label that is spread over all classes")
OPTION("training", WHOLE, batch_size, "batch-size", "batch_size", "32", 1, 65536, "", 0, "",
       "samples per agent and iteration")
OPTION("training", WHOLE, epochs, "epochs", "", "auto", 1, 1e6, "", SETTING, "",
       "passes over the data; with @resume DIR, more than before extend the run")
OPTION("training", WHOLE, iterations, "iterations", "", "0", 0, 1e12, "", LENGTH, "",
       "stop after so many iterations; 0 = after the last epoch")
OPTION("training", WHOLE, seed, "seed", "", "1", 0, 9e15, "", SEED, "",
       "of everything random")
OPTION("training", TEXT, seeds, "seeds", "", "", 0, 0, "", WORLDS | SEED, "",
       "train these seeds at once, e.g. 1,2,3: @out gets a directory for each")

OPTION("machine", TEXT, device, "device", "", "auto", 0, 0, "", LOCAL | RANK, "",
       "auto (a GPU if one works, else cpu), cuda, cpu, ref (slow, for checking)")
OPTION("machine", TEXT, precision, "precision", "", "auto", 0, 0, "auto, fp32, tf32, bf16", 0, "",
       "rounding of factors: fp32, on cuda also tf32, and bf16, which stores tensors between layers in it too; auto = tf32 on cuda")
OPTION("machine", WHOLE, threads, "threads", "", "0", 0, 1024, "", LOCAL | RANK, "",
       "0 = one for each core; results do not depend on it")
OPTION("machine", FLAG, exact_conv, "exact-conv", "", "off", 0, 0, "", 0, "",
       "direct convolutions instead of Winograd's")
OPTION("machine", TEXT, transport, "transport", "", "auto", 0, 0, "auto, local, mpi", LOCAL | RANK, "",
       "local, mpi; auto = mpi where mpirun or srun started several ranks")
OPTION("machine", REAL, timeout, "timeout", "", "300", 1e-3, 1e9, "", LOCAL | RANK, "",
       "seconds to wait for another rank before the run ends")

OPTION("network", REAL, link_latency, "link-latency", "", "0", 0, 1e9, "", 0, "",
       "simulated link: milliseconds a message")
OPTION("network", REAL, link_bandwidth, "link-bandwidth", "", "0", 0, 1e9, "", 0, "",
       "simulated link: megabit per second; 0 = no limit")
OPTION("network", WHOLE, min_class_count, "min-class-count", "", "1", 1, 1e6, "", 0, "loss=ccl",
       "ccl: class sums of fewer samples are not sent (one sample's sum is its features); 1 = all are")
OPTION("network", TEXT, fault, "fault", "", "", 0, 0, "", LIST, "",
       "what fails: drop=P,straggle=P:MS[:LIMIT],kill=AGENT@ITERATION[-BACK],... (docs/FAULTS.md)")
OPTION("network", SWITCH, ledger, "ledger", "", "off", 0, 0, "", LOCAL, "",
       "write ledger.csv: bytes sent along every edge, both ways")

OPTION("checkpoints", TEXT, checkpoint_every, "checkpoint-every", "", "10m", 0, 0, "", LOCAL, "",
       "epochs (5) or time (90s, 10m, 2h) between checkpoints, and one at the end; end = that one only, 0 = never")
OPTION("checkpoints", SWITCH, checkpoint_strict, "checkpoint-strict", "", "off", 0, 0, "", LOCAL, "",
       "a checkpoint that cannot be written ends the run")
OPTION("checkpoints", TEXT, resume, "resume", "", "", 0, 0, "", PATH | SINGLE | UNSAVED | BARE, "",
       "resume the run in this directory; without a name: in @out; auto: in @out, or begin it there")

OPTION("output", TEXT, out, "out", "", "", 0, 0, "", LOCAL | PATH | SINGLE, "",
       "run directory; default runs/<what is run>, or with -2, -3, ... if that is taken; %r = this rank's number")
OPTION("output", WHOLE, eval_every, "eval-every", "", "1", 1, 1e6, "", LOCAL, "",
       "epochs between evaluations; the last one is always evaluated")
OPTION("output", WHOLE, gossip_rounds, "gossip-rounds", "", "0", 0, 1e6, "", 0, "",
       "after training, average so often without gradients and test the agents again")
OPTION("output", SWITCH, final_merge, "final-merge", "", "off", 0, 0, "", 0, "",
       "after training, every agent takes the mean model (what @save-agents then writes)")
OPTION("output", TEXT, average, "average", "", "none", 0, 0, "", 0, "",
       "also test and save the mean of models over time: ema:B (of all, B times less an iteration) or tail:F (of the last part F of @epochs)")
OPTION("output", SWITCH, tensorboard, "tensorboard", "", "off", 0, 0, "", LOCAL, "",
       "also write the metrics as an event file for TensorBoard (step = epoch)")
OPTION("output", SWITCH, save_agents, "save-agents", "", "off", 0, 0, "", LOCAL, "",
       "also write every agent's model")
OPTION("output", SWITCH, force, "force", "", "off", 0, 0, "", SINGLE | UNSAVED | RANK, "",
       "replace an earlier run in the same directory")
OPTION("output", SWITCH, quiet, "quiet", "", "off", 0, 0, "", SINGLE | UNSAVED | RANK, "",
       "no progress and no notes")

/* ---- commands' own ---- */
OWN("run", TEXT, "config", NULL, 0, 0, "", PATH, "options from an earlier run's config.txt, but not its @out; the command line wins")
OWN("run", FLAG, "qgm", NULL, 0, 0, "", BARE, "the CCL authors' way to ask for @algorithm qg-dsgdm (0: dsgdm)")
OWN("study", TEXT, "only", NULL, 0, 0, "", 0, "runs whose names contain or match (*, ?) one of these, with commas")
OWN("study", SWITCH, "dry-run", NULL, 0, 0, "", 0, "list the runs, their commands and which are done")
OWN("study", SWITCH, "table-only", NULL, 0, 0, "", 0, "run nothing: tables of what is there")
OWN("study", TEXT, "time-limit", NULL, 0, 0, "", 0, "90s, 9m, 2h: then the run in progress is saved and the rest left")
OWN("study", SWITCH, "reuse", NULL, 0, 0, "", 0, "copy finished runs with the same options from studies beside @out")
OWN("study", SWITCH, "keep", NULL, 0, 0, "", 0, "keep all of finished runs: models, splits, checkpoints, every epoch")
OWN("study", WHOLE, "quick", NULL, 1, 1e6, "", BARE, "so many epochs only, or a twentieth: @quick, @quick=3; tables say so")
OWN("study", SWITCH, "json", NULL, 0, 0, "", 0, "the table as a JSON array on stdout; numbers as in summary.json")
OWN("eval", SWITCH, "json", NULL, 0, 0, "", 0, "one JSON object on stdout")
OWN("show", SWITCH, "json", NULL, 0, 0, "", 0, "a JSON array on stdout; numbers as in summary.json")
OWN("compare", TEXT, "algorithms", NULL, 0, 0, "", LIST, "the methods: NAME[+ccl][:option=value]..., or all")
OWN("sweep", TEXT, "grid", NULL, 0, 0, "", LIST, "axes, as in 'A=1,2;B=x|y'")
OWN("sweep", TEXT, "show", "consensus,mean,worst,seconds", 0, 0, "", LIST, "columns of the table")
OWN("sweep", TEXT, "sort-by", NULL, 0, 0, "", 0, "what the best has most of (losses and costs: least); default: the first column")
OWN("sweep", WHOLE, "at-once", "16", 1, 1024, "", 0, "rows of one launch: so many worlds (lambdas times seeds)")
OWN("model", WHOLE, "agent", NULL, 0, 65535, "", 0, "of a run or file with every agent's model: this one's")
OWN("model", TEXT, "device", "auto", 0, 0, "", 0, "auto (a GPU if one works, else cpu), cuda, cpu, ref (slow, for checking)")
OWN("model", WHOLE, "threads", "0", 0, 1024, "", 0, "0 = one for each core; results do not depend on it")
OWN("model", TEXT, "model", NULL, 0, 0, "", 0, "network of a file that does not describe itself (see: crosstalk list models)")
OWN("model", TEXT, "norm", NULL, 0, 0, "evonorm, evonorm-s0, groupnorm, batchnorm, none", 0, "likewise: its norm")
OWN("model", WHOLE, "channels", NULL, 1, 16, "", 0, "likewise: channels of its images")
OWN("model", WHOLE, "image-size", NULL, 1, 4096, "", 0, "likewise: pixels a side")
OWN("model", TEXT, "mean", NULL, 0, 0, "", LIST, "likewise: mean of every channel, 0 .. 1, with commas")
OWN("model", TEXT, "deviation", NULL, 0, 0, "", LIST, "likewise: standard deviation of every channel")
OWN("predict", TEXT, "out", NULL, 0, 0, "", PATH, "file for the predictions; default: standard output")
OWN("predict", TEXT, "format", "csv", 0, 0, "csv, json", 0, "csv or json")
OWN("predict", WHOLE, "top", "1", 1, 65536, "", 0, "so many classes of each picture, the most probable first")
OWN("predict", SWITCH, "strict", NULL, 0, 0, "", 0, "a picture that cannot be read is an error, not left out")
OWN("predict", SWITCH, "force", NULL, 0, 0, "", 0, "replace a file that exists")
OWN("predict", SWITCH, "quiet", NULL, 0, 0, "", 0, "no progress and no notes")
OWN("export", SWITCH, "logits", NULL, 0, 0, "", 0, "the output is logits instead of probabilities")
OWN("export", SWITCH, "preprocess", NULL, 0, 0, "", 0, "the input is bytes [n][height][width][channels]; the graph normalises them")
OWN("export", SWITCH, "force", NULL, 0, 0, "", 0, "replace a file that exists")
OWN("export", SWITCH, "quiet", NULL, 0, 0, "", 0, "no notes")
OWN("report", TEXT, "out", NULL, 0, 0, "", PATH, "where the page goes; default report.html")
OWN("report", TEXT, "title", NULL, 0, 0, "", 0, "its heading; default: made of what was run")
OWN("report", TEXT, "figures", NULL, 0, 0, "", PATH, "also write every figure as a file, for papers; without @out, no page")
OWN("report", TEXT, "format", NULL, 0, 0, "", LIST, "of the figures: any of svg, png, pdf (png and pdf need librsvg)")
OWN("report", TEXT, "bundle", NULL, 0, 0, "", PATH, "keep the runs of one folder as one file that every command reads like the folder; without @out, no page")
OWN("report", SWITCH, "force", NULL, 0, 0, "", 0, "replace files that exist; a page of crosstalk report is replaced without it")
OWN("partition", TEXT, "svg", NULL, 0, 0, "", PATH, "draw the split: a bubble per agent and class, its area the number of samples")
OWN("partition", TEXT, "png", NULL, 0, 0, "", PATH, "the same as PNG (needs librsvg)")
OWN("list", WHOLE, "classes", "10", 1, 65536, "", 0, "models: for so many classes")
OWN("list", WHOLE, "image-size", "0", 1, 65536, "", 0, "models: pixels a side; 0 = each model's own")
OWN("list", TEXT, "norm", "evonorm", 0, 0, "", 0, "models: with this norm")
OWN("list", SWITCH, "json", NULL, 0, 0, "", 0, "one JSON object on stdout: a list of every kind")
OWN("serve", WHOLE, "port", "8642", 0, 65535, "", 0, "0 = any free one")
OWN("serve", TEXT, "bind", "127.0.0.1", 0, 0, "", 0, "address to listen on: this machine alone; 0.0.0.0 = whoever can reach it")
OWN("site", TEXT, "site", NULL, 0, 0, "", 0, "run, check, status: this site's name; default: the one whose key this is")
OWN("site", TEXT, "key", "site.key", 0, 0, "", PATH, "file of this site's key pair")
OWN("site", TEXT, "listen", NULL, 0, 0, "", 0, "run: host:port to listen on; default: all interfaces, at the port of this site's address")
OWN("site", REAL, "patience", "120", 0, 1e9, "", 0, "run: seconds to wait at the end for sites that are gone")
OWN("bench", WHOLE, "warmup", "5", 0, 1e6, "", 0, "iterations before the clock starts")
OWN("bench", WHOLE, "repeat", "20", 1, 1e6, "", 0, "timed iterations")
OWN("bench", SWITCH, "json", NULL, 0, 0, "", 0, "one JSON object on stdout")
OWN("data", TEXT, "url", NULL, 0, 0, "", 0, "get: another server's folder (https://), or one of this machine (file://)")
OWN("data", TEXT, "checksum", NULL, 0, 0, "", 0, "get: SHA-256 of another file of the same kind")
OWN("data", TEXT, "sheet", NULL, 0, 0, "", PATH, "info: draw ten pictures of every class into this PNG file")
OWN("data", WHOLE, "ranks", NULL, 1, 65536, "", 0, "split: for so many ranks")
OWN("verify", TEXT, "ranks", "1,2,3,4", 0, 0, "", LIST, "numbers of ranks")
OWN("verify", TEXT, "try-threads", "1,2", 0, 0, "", LIST, "numbers of threads")
OWN("verify", TEXT, "algorithms", NULL, 0, 0, "", LIST, "names, with :ccl for the CCL loss; default: all of them, both ways")
OWN("help", TEXT, "man", NULL, 0, 0, "", PATH, "write a manual page of every command into this directory")
OWN("help", TEXT, "completions", NULL, 0, 0, "", PATH, "write completions for bash, zsh and fish into this directory")
