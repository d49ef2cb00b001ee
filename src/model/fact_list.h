/* FACT(field, name): what a model file says about itself, in the order of the file. The value of each
 * is a text; numbers and lists of them are decimal, the names of classes a JSON array (facts.c). */
FACT(version, "crosstalk") /* the program's: whoever has this one is described by the others too */
FACT(network, "network")
FACT(norm, "norm")
FACT(image, "image") /* channels, height, width */
FACT(resize, "resize")
FACT(mean, "mean")
FACT(deviation, "deviation")
FACT(columns, "columns") /* of a table: a JSON object (data/table_json.c) */
FACT(classes, "classes") /* how many */
FACT(class_names, "class_names")
FACT(algorithm, "algorithm")
FACT(loss, "loss")
FACT(dataset, "dataset")
FACT(data, "data")
