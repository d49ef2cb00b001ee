/* Every graph: TOPOLOGY(id, "name", false, is_denser, "one line of help"); is_denser: one of the
 * paper's denser graphs (its Table 3). No include guard on purpose. */
TOPOLOGY(ring, "ring", false, "a cycle: agent i talks to i-1 and i+1")
TOPOLOGY(chain, "chain", false, "a path: a ring with one edge missing")
TOPOLOGY(full, "full", false, "everyone talks to everyone")
TOPOLOGY(star, "star", false, "everyone talks to agent 0 only")
TOPOLOGY(binary_tree, "binary-tree", false,
         "a binary tree: at most 3 neighbours, diameter about 2 log2 n")
TOPOLOGY(double_binary_tree, "double-binary-tree", false,
         "two binary trees, inner agents of one are leaves of the other (relaysgd uses both)")
TOPOLOGY(torus, "torus", true,
         "torus[:RxC]: a grid that wraps around; default as square as n allows")
TOPOLOGY(torus_wacv24, "torus-wacv24", true,
         "the CCL authors' torus: agent i talks to i+-1 and i+-4")
TOPOLOGY(grid, "grid", false, "grid[:RxC]: rows and columns without wrap-around")
TOPOLOGY(dyck, "dyck", true, "the Dyck graph: 32 agents, 3 neighbours each, diameter 5")
TOPOLOGY(dyck_wacv24, "dyck-wacv24", true,
         "the CCL authors' 32-agent cubic graph: four joined rings of 8")
TOPOLOGY(petersen, "petersen", false,
         "the Petersen graph: 10 agents, 3 neighbours each, diameter 2")
TOPOLOGY(hypercube, "hypercube", false, "2^k agents that differ in one bit talk")
TOPOLOGY(exponential, "exponential", false, "agent i talks to i+-1, i+-2, i+-4, ... (static)")
TOPOLOGY(random_regular, "random-regular", false,
         "random-regular[:degree]: seeded; default degree 3, for odd n 4 (2 for n = 3)")
TOPOLOGY(edge_file, "file", false,
         "file:PATH: an edge list, \"a b\" or \"a,b\" a line, # begins a comment")
