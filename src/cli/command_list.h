/* COMMAND(id, "name", "heading in the list of all", "one line"): ct_cli_<id>(), ct_cli_<id>_help.
 * PART(command, part, "one line"): a word behind a command that has a help of its own,
 * ct_cli_<command>_<part>_help. */
#ifndef PART
#define PART(command, part, text)
#endif
COMMAND(train, "train", "Train", "train all agents and write a run directory")
COMMAND(compare, "compare", "Train",
        "train several methods on the same data, graph and seeds: one table")
COMMAND(sweep, "sweep", "Train",
        "train every combination of options' values: one table, best first")
COMMAND(reproduce, "reproduce", "Train",
        "run the paper's tables and figures, ours beside the paper's")
COMMAND(leaderboard, "leaderboard", "Train", "check rows that others add to the leaderboard")
PART(leaderboard, verify, "check runs against the rules, and train them again")
COMMAND(site, "site", "Train", "train between sites that keep their data")
PART(site, keygen, "make this site's key pair")
PART(site, check, "check a federation's file, this site's key and its data")
PART(site, run, "join the federation and train")
PART(site, status, "show how a site's run stands")
COMMAND(show, "show", "Look at runs", "print a table of finished runs")
COMMAND(report, "report", "Look at runs", "write a page about runs: curves, costs, graph, options")
COMMAND(serve, "serve", "Look at runs", "show the same pages in a browser, live while runs train")
COMMAND(eval, "eval", "Use a trained model", "test a run's consensus model, or any model file")
COMMAND(predict, "predict", "Use a trained model",
        "classify pictures or rows of a table; writes CSV or JSON")
COMMAND(export, "export", "Use a trained model", "write a trained model as ONNX")
COMMAND(data, "data", "Data and graphs", "get, check, import and split data sets")
PART(data, get, "download a data set and check it")
PART(data, info, "show the classes, sizes and statistics of a data set")
PART(data, verify, "read every sample and compare files with their published checksums")
PART(data, import, "decode a folder of pictures into one file")
PART(data, split, "write each rank's part of the data to a file of its own")
COMMAND(partition, "partition", "Data and graphs", "show how samples are split over agents")
COMMAND(topology, "topology", "Data and graphs",
        "show a graph's neighbours, mixing weights and spectrum")
COMMAND(list, "list", "Data and graphs", "list algorithms, models, topologies, data sets, ...")
COMMAND(bench, "bench", "This program",
        "time training iterations of any model, algorithm and device")
COMMAND(verify, "verify", "This program",
        "prove that ranks, threads and resuming do not change results")
COMMAND(version, "version", "This program", "print the version, the commit and what this build has")
COMMAND(help, "help", "This program", "print this text, or the help of a command")
#undef PART
