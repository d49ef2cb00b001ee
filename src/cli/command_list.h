/* COMMAND(id, "name", "one line of help"): ct_cli_<id>() and ct_cli_<id>_help(). */
COMMAND(train, "train", "train all agents and write a run directory")
COMMAND(eval, "eval", "test a run's consensus model, or any model file")
COMMAND(show, "show", "a table of finished runs")
COMMAND(bench, "bench", "time training iterations of any model, algorithm and device")
COMMAND(topology, "topology", "a graph's neighbours, mixing weights and spectrum")
COMMAND(partition, "partition", "how samples are split over agents")
COMMAND(list, "list", "known models, topologies, data sets, algorithms, ...")
COMMAND(help, "help", "this text, or the help of a command")
