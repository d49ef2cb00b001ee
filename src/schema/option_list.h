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
       "data set; crosstalk list datasets names them; auto = recognise what lies in @data-dir")
OPTION("data", TEXT, data_dir, "data-dir", "data_dir", "", 0, 0, "", LOCAL | PATH | RANK, "",
       "folder or file of the data; default: where the system keeps it; %r = rank number, %a = agent (@partition own)")
OPTION("data", WHOLE, train_samples, "train-samples", "", "0", 0, 1e9, "", 0, "",
       "use only the first N training samples; 0 = all")
OPTION("data", WHOLE, test_samples, "test-samples", "", "0", 0, 1e9, "", 0, "",
       "use only the first N test samples; 0 = all")
OPTION("data", TEXT, labels, "labels", "", "fine", 0, 0, "fine, coarse", 0, "",
       "cifar100: fine (100 classes) or coarse (20)")
OPTION("data", TEXT, label, "label", "", "", 0, 0, "", 0, "dataset=csv",
       "csv: column to predict; default: label, class, target or y, else the last column")
OPTION("data", TEXT, ignore_columns, "ignore-columns", "ignore_columns", "", 0, 0, "", LIST, "dataset=csv",
       "csv: columns to leave out, e.g. id,name")
OPTION("data", REAL, test_fraction, "test-fraction", "", "0", 0, 0.9, "", 0, "",
       "fraction of every class held out for testing, if the data has no test part")
OPTION("data", REAL, validation_fraction, "validation-fraction", "", "0", 0, 0.9, "", 0, "",
       "fraction of every agent's training samples held out for choosing options (crosstalk sweep --pick)")
OPTION("data", WHOLE, image_size, "image-size", "", "0", 0, 4096, "", 0, "",
       "resize pictures from folders to N x N pixels; 0 = the data set's own size")
OPTION("data", SWITCH, strict, "strict", "", "off", 0, 0, "", LOCAL | RANK, "",
       "fail if a picture cannot be read, instead of leaving it out")
OPTION("data", TEXT, cache, "cache", "", "", 0, 0, "", LOCAL | PATH | RANK, "",
       "directory in which decoded pictures are kept for the next run")
OPTION("data", WHOLE, memory, "memory", "", "1024", 1, 1e9, "", LOCAL | RANK, "",
       "MiB of memory for pictures; larger folders are streamed from disk")
OPTION("data", WHOLE, workers, "workers", "", "0", 0, 1024, "", LOCAL | RANK, "",
       "threads that decode pictures; 0 = one per core")
OPTION("data", TEXT, partition, "partition", "", "dirichlet", 0, 0, "", SETTING, "",
       "how samples are split over agents: dirichlet (skewed classes), iid, shards; own = every agent has its own data set, e.g. @data-dir site-%a")
OPTION("data", REAL, alpha, "alpha", "skew", "0.1", 1e-6, 1e6, "", SETTING, "partition=dirichlet",
       "dirichlet: skew of the classes; the smaller, the more agents differ (0.01: few classes each, 10: nearly alike)")
OPTION("data", WHOLE, classes_per_agent, "classes-per-agent", "", "2", 1, 65536, "", 0, "partition=shards",
       "shards: classes per agent")
OPTION("data", TEXT, partition_file, "partition-file", "", "", 0, 0, "", CONTENT | PATH, "",
       "read the split from this CSV file with header index,agent")
OPTION("data", FLAG, shuffle, "shuffle", "", "on", 0, 0, "", 0, "",
       "visit samples in a new order in every epoch; off = in the order of the split")
OPTION("data", FLAG, augment, "augment", "", "on", 0, 0, "", 0, "",
       "random crops and flips, as usual for the data set")

OPTION("model", TEXT, model, "model", "arch", "auto", 0, 0, "", SETTING, "",
       "network; crosstalk list models names them; auto = usual for the data set")
OPTION("model", TEXT, norm, "norm", "normtype", "evonorm", 0, 0, "evonorm, evonorm-s0, groupnorm, batchnorm, none", 0, "",
       "normalisation: evonorm, evonorm-s0, groupnorm, batchnorm, none")
OPTION("model", TEXT, init, "init", "", "", 0, 0, "", CONTENT | PATH, "",
       "start from the model in this .safetensors file; one for all, or agent.<i>.<name> for each")

OPTION("agents", WHOLE, agents, "agents", "world_size,world-size", "16", 1, 65536, "", SETTING, "",
       "number of agents")
OPTION("agents", TEXT, agent_names, "agent-names", "", "", 0, 0, "", LIST, "partition=own",
       "names of the agents, e.g. north,south; %a in @data-dir stands for them")
OPTION("agents", TEXT, topology, "topology", "graph", "ring", 0, 0, "", SETTING, "",
       "graph of who talks to whom; crosstalk list topologies names them")
OPTION("agents", TEXT, weights, "weights", "", "auto", 0, 0, "auto, uniform, metropolis", 0, "",
       "mixing weights: uniform or metropolis; auto = uniform on regular graphs, else metropolis")
OPTION("agents", REAL, gamma, "gamma", "averaging_rate,averaging-rate", "auto", 1e-6, 1, "", 0, "",
       "averaging rate of gossip; auto = 1, but 0.9 for qg-dsgdm on dyck and torus, and less with @compress: as compressor, momentum and @local-steps bear it (for quantize and sign chosen by training)")
OPTION("agents", TEXT, local_steps, "local-steps", "", "1", 0, 0, "", 0, "",
       "gossip in every N-th iteration only; 1:8 = in every one at first, then every 2nd, 4th and 8th, each for an equal part of the run")

OPTION("agents", TEXT, compress, "compress", "", "none", 0, 0, "", 0, "",
       "send models compressed: top-k:F, top-k8:F, random-k:F, quantize:8|4|3|2, sign, low-rank:R; crosstalk list compressors explains them; for dsgd, dsgdm, dfedavgm, qg-dsgdm and motef on static graphs")

OPTION("agents", TEXT, consensus, "consensus", "", "plain", 0, 0, "plain, adagossip", 0, "",
       "averaging rate: plain (one for all) or adagossip (one per parameter, smaller where neighbours' models fluctuate; @gamma is its step size)")

OPTION("algorithm", TEXT, algorithm, "algorithm", "", "qg-dsgdm", 0, 0, "", METHOD, "",
       "training method; crosstalk list algorithms names them; ccl = qg-dsgdm with the CCL loss")
OPTION("algorithm", TEXT, variant, "variant", "", "paper", 0, 0, "paper, atc, cta, wacv24, weighted, neurips23, tmlr23, icml19, icml21, own", 0, "",
       "form of the method, if it has several: paper (its default), atc, cta, wacv24, weighted, neurips23, tmlr23, icml19, icml21, own; crosstalk list algorithms says which has which")
OPTION("algorithm", TEXT, relay_fill, "relay-fill", "", "init", 0, 0, "init, self", 0, "",
       "relaysgd: what stands in for models that have not arrived yet: init (start values) or self (own model)")
OPTION("algorithm", REAL, gut_mu, "gut-mu", "scaling", "auto", 0, 1, "", 0, "",
       "gut: weight of the tracked update; auto = 0.3, but with @variant neurips23 0.01, or 0.9 without momentum (its authors use 0.9, and 0.005 to 0.08 with momentum)")
OPTION("algorithm", REAL, ngc_alpha, "ngc-alpha", "", "1", 0, 1, "", 0, "",
       "ngc: weight of data-variant gradients; 0 = model-variant ones only, which sends no more than dsgd")
OPTION("algorithm", REAL, cga_margin, "cga-margin", "", "0", 0, 1e3, "", 0, "",
       "cga: smallest multiplier of a gradient in the projection")
OPTION("algorithm", REAL, kt_weight, "kt-weight", "", "1", 0, 1e6, "", 0, "",
       "def-kt: weight of what the other model predicts, beside the labels'")
OPTION("algorithm", REAL, kt_temperature, "kt-temperature", "", "1", 0.01, 1e3, "", 0, "",
       "def-kt: temperature at which the two models' predictions are compared")
OPTION("algorithm", TEXT, public_data, "public-data", "", "", 0, 0, "", CONTENT | PATH, "",
       "IDKD: folder or file of samples that all agents have: they are labelled by the agents and learnt from")
OPTION("algorithm", TEXT, public_dataset, "public-dataset", "", "auto", 0, 0, "", 0, "",
       "kind of data set that lies in @public-data; auto = recognise it. Its labels are not used")
OPTION("algorithm", WHOLE, public_samples, "public-samples", "", "0", 0, 1e9, "", 0, "",
       "use only the first N public samples; 0 = all")
OPTION("algorithm", TEXT, distil_epochs, "distil-epochs", "", "", 0, 0, "", LIST, "",
       "after these epochs public samples are labelled, e.g. 120,160; default: after 4/5 of @epochs")
OPTION("algorithm", REAL, distil_threshold, "distil-threshold", "", "0", 0, 1, "", 0, "",
       "largest probability from which on an agent labels a public sample; 0 = what parts its own from public ones best")
OPTION("algorithm", REAL, distil_temperature, "distil-temperature", "", "1", 0.01, 1e3, "", 0, "",
       "temperature of the labels")
OPTION("algorithm", TEXT, loss, "loss", "", "auto", 0, 0, "auto, ce, ccl", METHOD, "",
       "loss, with any algorithm: ce (cross-entropy) or ccl; auto = ccl if a lambda is given")
OPTION("algorithm", REAL, lambda_m, "lambda-m", "lambda_m", "auto", 0, 1e6, "", 0, "",
       "ccl: weight of the model-variant term; auto = the paper's")
OPTION("algorithm", REAL, lambda_d, "lambda-d", "lambda_d", "auto", 0, 1e6, "", 0, "",
       "ccl: weight of the data-variant term; auto = the paper's")
OPTION("algorithm", TEXT, lambdas, "lambdas", "", "", 0, 0, "", WORLDS, "",
       "ccl: train these pairs @lambda-m:@lambda-d at once, e.g. 0.1:0.1,0.01:0; @out gets a directory for each")
OPTION("algorithm", TEXT, ccl_distance, "ccl-distance", "", "mse", 0, 0, "mse, l1, cosine", 0, "loss=ccl",
       "ccl: distance of features: mse, l1, cosine")
OPTION("algorithm", TEXT, ccl_reduction, "ccl-reduction", "", "mean", 0, 0, "mean, sum", 0, "loss=ccl",
       "ccl: mean over the features (the published lambdas) or sum (equation 3)")
OPTION("algorithm", WHOLE, ccl_every, "ccl-every", "", "1", 1, 1e9, "", 0, "loss=ccl",
       "ccl: use the contrastive terms in every N-th iteration only")
OPTION("algorithm", WHOLE, ccl_neighbours, "ccl-neighbours", "", "0", 0, 65536, "", 0, "loss=ccl",
       "ccl: contrast with N neighbours at a time, in turn; 0 = all")
OPTION("algorithm", REAL, ccl_batch_fraction, "ccl-batch-fraction", "", "1", 1e-6, 1, "", 0, "loss=ccl",
       "ccl: fraction of a batch that cross-features are computed for")
OPTION("algorithm", REAL, ccl_adaptive, "ccl-adaptive", "", "0", 0, 10, "", 0, "",
       "ccl: choose the lambdas so that each term is this fraction of the cross-entropy; 0 = use @lambda-m and @lambda-d")

OPTION("training", REAL, lr, "lr", "", "auto", 1e-12, 1e6, "", 0, "",
       "learning rate; auto = usual for the data set and model")
OPTION("training", TEXT, lr_schedule, "lr-schedule", "", "step", 0, 0, "step, cosine, poly, constant", 0, "",
       "how the rate falls: step (at the milestones), cosine, poly, constant")
OPTION("training", REAL, lr_decay, "lr-decay", "", "0.1", 1e-6, 1, "", 0, "lr-schedule=step",
       "step: factor of the rate at every milestone")
OPTION("training", TEXT, lr_milestones, "lr-milestones", "", "0.5,0.75", 0, 0, "", LIST, "lr-schedule=step",
       "step: when the rate falls, as fractions of @epochs; none = never")
OPTION("training", REAL, lr_end, "lr-end", "", "0", 0, 1e6, "", 0, "",
       "cosine, poly: rate at the end of the run")
OPTION("training", REAL, lr_power, "lr-power", "", "1", 1e-3, 1e3, "", 0, "lr-schedule=poly",
       "poly: power of the fraction of the run that is left")
OPTION("training", REAL, warmup_epochs, "warmup-epochs", "", "0", 0, 1e6, "", 0, "",
       "epochs over which the rate grows from 0 to @lr")
OPTION("training", REAL, momentum, "momentum", "", "0.9", 0, 0.999999, "", 0, "",
       "momentum coefficient (beta)")
OPTION("training", FLAG, nesterov, "nesterov", "", "on", 0, 0, "", 0, "",
       "Nesterov momentum; off = heavy ball")
OPTION("training", REAL, weight_decay, "weight-decay", "weight_decay,wd", "0.0001", 0, 1e3, "", 0, "",
       "L2 coefficient, added to the gradient of every parameter")
OPTION("training", REAL, clip_norm, "clip-norm", "", "0", 0, 1e12, "", 0, "",
       "clip an agent's gradient to this norm; 0 = no clipping")
OPTION("training", REAL, sam, "sam", "", "0", 0, 1e6, "", 0, "",
       "sharpness-aware minimisation (SAM): take gradients at this distance uphill of the model; 0 = at the model")
OPTION("training", REAL, label_smoothing, "label-smoothing", "", "0", 0, 0.999, "", 0, "",
       "fraction of a label that is spread over all classes")
OPTION("training", WHOLE, batch_size, "batch-size", "batch_size", "32", 1, 65536, "", 0, "",
       "samples per agent and iteration")
OPTION("training", WHOLE, epochs, "epochs", "", "auto", 1, 1e6, "", SETTING, "",
       "passes over the data; with @resume DIR, a larger number extends the run; auto = usual for the data set")
OPTION("training", WHOLE, iterations, "iterations", "", "0", 0, 1e12, "", LENGTH, "",
       "stop after N iterations; 0 = after the last epoch")
OPTION("training", WHOLE, seed, "seed", "", "1", 0, 9e15, "", SEED, "",
       "seed of everything random: split, start values, order of samples")
OPTION("training", TEXT, seeds, "seeds", "", "", 0, 0, "", WORLDS | SEED, "",
       "train these seeds at once, e.g. 1,2,3; @out gets a directory for each, and the summary mean and deviation")

OPTION("machine", TEXT, device, "device", "", "auto", 0, 0, "", LOCAL | RANK, "",
       "where to compute: auto (a GPU if one works, else cpu), cuda, cpu, ref (slow, for checking)")
OPTION("machine", TEXT, precision, "precision", "", "auto", 0, 0, "auto, fp32, tf32, bf16", 0, "",
       "arithmetic: fp32; on cuda also tf32 (factors rounded) and bf16 (factors and stored activations rounded); auto = tf32 on cuda, else fp32")
OPTION("machine", WHOLE, threads, "threads", "", "0", 0, 1024, "", LOCAL | RANK, "",
       "CPU threads; 0 = one per core; results do not depend on it")
OPTION("machine", FLAG, exact_conv, "exact-conv", "", "off", 0, 0, "", 0, "",
       "compute convolutions directly instead of by Winograd's method")
OPTION("machine", TEXT, transport, "transport", "", "auto", 0, 0, "auto, local, mpi", LOCAL | RANK, "",
       "how ranks talk: local (one process) or mpi; auto = mpi if mpirun or srun started several ranks")
OPTION("machine", REAL, timeout, "timeout", "", "300", 1e-3, 1e9, "", LOCAL | RANK, "",
       "seconds to wait for another rank before the run fails")

OPTION("network", REAL, link_latency, "link-latency", "", "0", 0, 1e9, "", 0, "",
       "simulated link: milliseconds per message")
OPTION("network", REAL, link_bandwidth, "link-bandwidth", "", "0", 0, 1e9, "", 0, "",
       "simulated link: megabit per second; 0 = no limit")
OPTION("network", TEXT, speed, "speed", "", "", 0, 0, "", LIST, "",
       "simulated clock: steps per second of the agents, default 1; one:0.1 (the first agent), uniform:LO:HI, lognormal:D, file:PATH, jitter:J (docs/ALGORITHMS.md)")
OPTION("network", WHOLE, min_class_count, "min-class-count", "", "1", 1, 1e6, "", 0, "loss=ccl",
       "ccl: do not send class sums of fewer than N samples (the sum of one sample is its features); 1 = send all")
OPTION("network", TEXT, fault, "fault", "", "", 0, 0, "", LIST, "",
       "simulated failures, e.g. drop=0.1 or kill=3@100: lost messages, late and dead agents (docs/FAULTS.md)")
OPTION("network", SWITCH, ledger, "ledger", "", "off", 0, 0, "", LOCAL, "",
       "also write ledger.csv: bytes sent along every edge, both ways")

OPTION("checkpoints", TEXT, checkpoint_every, "checkpoint-every", "", "10m", 0, 0, "", LOCAL, "",
       "write a checkpoint every N epochs (5) or so often (90s, 10m, 2h), and one at the end; end = only that one, 0 = none")
OPTION("checkpoints", SWITCH, checkpoint_strict, "checkpoint-strict", "", "off", 0, 0, "", LOCAL, "",
       "fail if a checkpoint cannot be written, instead of going on")
OPTION("checkpoints", TEXT, resume, "resume", "", "", 0, 0, "", PATH | SINGLE | UNSAVED | BARE, "",
       "resume the run in this directory; without a value: the run in @out; auto: the run in @out, or start it")

OPTION("output", TEXT, out, "out", "", "", 0, 0, "", LOCAL | PATH | SINGLE, "",
       "directory to write; default: runs/<what is run>, with -2, -3, ... if that is taken; %r = rank number")
OPTION("output", WHOLE, eval_every, "eval-every", "", "auto", 1, 1e6, "", LOCAL, "",
       "test the consensus model every N epochs, and after the last; auto = 2, or 1 with fewer than 20 epochs")
OPTION("output", TEXT, eval_agents, "eval-agents", "", "end", 0, 0, "", LOCAL, "",
       "test every agent's own model too: every N epochs and after the last; end = after the last alone, never = not at all")
OPTION("output", WHOLE, gossip_rounds, "gossip-rounds", "", "0", 0, 1e6, "", 0, "",
       "after training, average N times without gradients and test the agents again")
OPTION("output", SWITCH, final_merge, "final-merge", "", "off", 0, 0, "", 0, "",
       "after training, every agent takes the mean model, which @save-agents then writes")
OPTION("output", TEXT, average, "average", "", "none", 0, 0, "", 0, "",
       "also test and save a model averaged over time: ema:B (exponential, decay B per iteration) or tail:F (mean over the last fraction F of @epochs); none = do not")
OPTION("output", SWITCH, tensorboard, "tensorboard", "", "off", 0, 0, "", LOCAL, "",
       "also write the metrics as an event file for TensorBoard (step = epoch)")
OPTION("output", SWITCH, save_agents, "save-agents", "", "off", 0, 0, "", LOCAL, "",
       "also write every agent's model")
OPTION("output", SWITCH, force, "force", "", "off", 0, 0, "", SINGLE | UNSAVED | RANK, "",
       "replace what is in @out")
OPTION("output", SWITCH, quiet, "quiet", "", "off", 0, 0, "", SINGLE | UNSAVED | RANK, "",
       "no progress and no notes")

/* ---- commands' own ---- */
OWN("run", TEXT, "config", NULL, 0, 0, "", PATH, "take options from an earlier run's config.txt, except @out; the command line wins")
OWN("run", FLAG, "qgm", NULL, 0, 0, "", BARE, "the CCL authors' spelling of @algorithm qg-dsgdm; 0 = dsgdm")
OWN("study", TEXT, "only", NULL, 0, 0, "", 0, "only runs whose names contain one of these words, or match one (*, ?); e.g. ccl,dsgd*")
OWN("study", SWITCH, "dry-run", NULL, 0, 0, "", 0, "train nothing: list the runs, their commands and which are done")
OWN("study", SWITCH, "table-only", NULL, 0, 0, "", 0, "train nothing: make the tables from the runs that exist")
OWN("study", TEXT, "time-limit", NULL, 0, 0, "", 0, "stop after this time (90s, 9m, 2h): the run in progress is saved; the same command resumes")
OWN("study", SWITCH, "reuse", NULL, 0, 0, "", 0, "copy finished runs with the same options from other studies beside @out")
OWN("study", SWITCH, "keep", NULL, 0, 0, "", 0, "keep all files of finished runs: models, splits, checkpoints, every epoch")
OWN("study", WHOLE, "quick", NULL, 1, 1e6, "", BARE, "train N epochs only, or a twentieth; tables say so")
OWN("study", SWITCH, "json", NULL, 0, 0, "", 0, "print the table as a JSON array; numbers as in summary.json")
OWN("eval", SWITCH, "json", NULL, 0, 0, "", 0, "print one JSON object")
OWN("show", SWITCH, "json", NULL, 0, 0, "", 0, "print a JSON array; numbers as in summary.json")
OWN("show", SWITCH, "quiet", NULL, 0, 0, "", 0, "no notes, and no line about what to do next")
OWN("compare", TEXT, "algorithms", NULL, 0, 0, "", LIST, "methods to compare, e.g. dsgdm,gt+ccl,gt:lr=0.05; all = every algorithm")
OWN("sweep", TEXT, "grid", NULL, 0, 0, "", LIST, "options and their values, e.g. 'lr=0.1,0.01;lr-milestones=0.5,0.75|none'")
OWN("sweep", TEXT, "show", "consensus,mean,worst,seconds", 0, 0, "", LIST, "columns of the table: consensus, late, averaged, mean, worst, best, train, loss, distance, mib, gmac, overhead, seconds, ...")
OWN("sweep", TEXT, "sort-by", NULL, 0, 0, "", 0, "column to sort by: highest first, of losses and costs lowest first; default: the first column")
OWN("sweep", SWITCH, "pick", NULL, 0, 0, "", 0, "choose by held-out training samples (@validation-fraction, 0.1 unless given) and print the command that trains with the best")
OWN("sweep", TEXT, "halving", NULL, 0, 0, "", BARE | LIST, "with @pick: train all for a part of the epochs, the better half for a larger part, and so on; e.g. @halving=0.25,0.5,1, which it is without parts")
OWN("sweep", WHOLE, "at-once", "16", 1, 1024, "", 0, "train up to N combinations of lambdas and seeds in one launch")
OWN("model", WHOLE, "agent", NULL, 0, 65535, "", 0, "this agent's model, if all were saved (train @save-agents)")
OWN("model", TEXT, "device", "auto", 0, 0, "", 0, "where to compute: auto (a GPU if one works, else cpu), cuda, cpu, ref (slow, for checking)")
OWN("model", WHOLE, "threads", "0", 0, 1024, "", 0, "CPU threads; 0 = one per core; results do not depend on it")
OWN("model", TEXT, "model", NULL, 0, 0, "", 0, "network, for a file that does not describe itself; crosstalk list models names them")
OWN("model", TEXT, "norm", NULL, 0, 0, "evonorm, evonorm-s0, groupnorm, batchnorm, none", 0, "for such a file: evonorm, evonorm-s0, groupnorm, batchnorm, none")
OWN("model", WHOLE, "channels", NULL, 1, 16, "", 0, "for such a file: channels of its images")
OWN("model", WHOLE, "image-size", NULL, 1, 4096, "", 0, "for such a file: pixels per side")
OWN("model", TEXT, "mean", NULL, 0, 0, "", LIST, "for such a file: mean of every channel, e.g. 0.49,0.48,0.45")
OWN("model", TEXT, "deviation", NULL, 0, 0, "", LIST, "for such a file: standard deviation of every channel")
OWN("predict", TEXT, "out", NULL, 0, 0, "", PATH, "write the predictions to this file; default: standard output")
OWN("predict", TEXT, "format", "csv", 0, 0, "csv, json", 0, "format of the predictions: csv or json")
OWN("predict", WHOLE, "top", "1", 1, 65536, "", 0, "print the N most probable classes")
OWN("predict", SWITCH, "strict", NULL, 0, 0, "", 0, "fail if a picture cannot be read, instead of leaving it out")
OWN("predict", SWITCH, "force", NULL, 0, 0, "", 0, "replace a file that exists")
OWN("predict", SWITCH, "quiet", NULL, 0, 0, "", 0, "no progress and no notes")
OWN("export", SWITCH, "logits", NULL, 0, 0, "", 0, "output logits instead of probabilities")
OWN("export", SWITCH, "preprocess", NULL, 0, 0, "", 0, "take bytes [n][height][width][channels] and normalise them in the graph")
OWN("export", SWITCH, "force", NULL, 0, 0, "", 0, "replace a file that exists")
OWN("export", SWITCH, "quiet", NULL, 0, 0, "", 0, "no notes")
OWN("report", TEXT, "out", NULL, 0, 0, "", PATH, "write the page to this file; default: report.html")
OWN("report", TEXT, "title", NULL, 0, 0, "", 0, "heading of the page; default: made of what was run")
OWN("report", TEXT, "figures", NULL, 0, 0, "", PATH, "write every figure as a file of its own; no page unless @out is given")
OWN("report", TEXT, "format", NULL, 0, 0, "", LIST, "formats of the figures: any of svg, png, pdf, e.g. svg,pdf (png and pdf need librsvg)")
OWN("report", TEXT, "bundle", NULL, 0, 0, "", PATH, "write the runs of one folder into one file that every command reads like the folder; no page unless @out is given")
OWN("report", SWITCH, "force", NULL, 0, 0, "", 0, "replace files that exist (a page of crosstalk report is replaced anyway)")
OWN("report", SWITCH, "quiet", NULL, 0, 0, "", 0, "no notes, and no line about what to do next")
OWN("partition", TEXT, "svg", NULL, 0, 0, "", PATH, "draw the split into this file: a bubble per agent and class, its area the number of samples")
OWN("partition", TEXT, "png", NULL, 0, 0, "", PATH, "the same as PNG (needs librsvg)")
OWN("list", WHOLE, "classes", "10", 1, 65536, "", 0, "models: number of classes")
OWN("list", WHOLE, "image-size", "0", 1, 65536, "", 0, "models: pixels per side; 0 = each model's own")
OWN("list", TEXT, "norm", "evonorm", 0, 0, "", 0, "models: normalisation")
OWN("list", SWITCH, "json", NULL, 0, 0, "", 0, "print one JSON object with a list per kind")
OWN("serve", WHOLE, "port", "8642", 0, 65535, "", 0, "port to listen on; 0 = any free one")
OWN("serve", TEXT, "bind", "127.0.0.1", 0, 0, "", 0, "address to listen on; 127.0.0.1 = this machine only, 0.0.0.0 = everyone who can reach it")
OWN("site", TEXT, "site", NULL, 0, 0, "", 0, "name of this site; default: the one whose key this is")
OWN("site", TEXT, "key", "site.key", 0, 0, "", PATH, "file of this site's key pair")
OWN("site", TEXT, "listen", NULL, 0, 0, "", 0, "host:port to listen on; default: the port of this site's address, on all interfaces")
OWN("site", REAL, "patience", "120", 0, 1e9, "", 0, "seconds to wait at the end for sites that are away")
OWN("bench", WHOLE, "warmup", "5", 0, 1e6, "", 0, "iterations before the clock starts")
OWN("bench", WHOLE, "repeat", "20", 1, 1e6, "", 0, "iterations that are timed")
OWN("bench", SWITCH, "json", NULL, 0, 0, "", 0, "print one JSON object")
OWN("data", TEXT, "url", NULL, 0, 0, "", 0, "get: download from this folder instead (https:// or file://)")
OWN("data", TEXT, "checksum", NULL, 0, 0, "", 0, "get: expected SHA-256 sum, for a file other than the official one")
OWN("data", TEXT, "sheet", NULL, 0, 0, "", PATH, "info: draw ten pictures of every class into this PNG file")
OWN("data", WHOLE, "ranks", NULL, 1, 65536, "", 0, "split: number of ranks")
OWN("verify", TEXT, "ranks", "1,2,3,4", 0, 0, "", LIST, "numbers of ranks to try")
OWN("verify", TEXT, "try-threads", "1,2", 0, 0, "", LIST, "numbers of threads to try")
OWN("verify", TEXT, "algorithms", NULL, 0, 0, "", LIST, "methods, e.g. dsgd,gt:ccl (with the CCL loss); default: all, with both losses")
OWN("leaderboard", TEXT, "study", "leaderboard", 0, 0, "", 0, "the study whose rules hold: a name, or a .conf file")
OWN("leaderboard", WHOLE, "retrain", NULL, 1, 1e6, "", BARE, "train the first seed of every run again, or only its first N epochs, and compare")
OWN("help", TEXT, "man", NULL, 0, 0, "", PATH, "write a manual page of every command into this directory")
OWN("help", TEXT, "markdown", NULL, 0, 0, "", PATH, "write a page of every command as Markdown into this directory")
OWN("help", TEXT, "completions", NULL, 0, 0, "", PATH, "write completions for bash, zsh and fish into this directory")
