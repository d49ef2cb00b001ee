/* Every way to split the data: PARTITION(id, "name", "one line of help"). No include guard on
 * purpose. */
PARTITION(dirichlet, "dirichlet", "label skew: class shares drawn from Dir(alpha); equal sizes")
PARTITION(iid, "iid", "a random split into equal parts")
PARTITION(shards, "shards", "about k classes per agent: k random shards of the sorted data each")
