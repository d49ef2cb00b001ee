/* Every graph: TOPOLOGY(id, "name", traits, "one line of help"), the traits as in
 * topology_internal.h. No include guard on purpose. */
TOPOLOGY(ring, "ring", 0, "a cycle: agent i talks to i-1 and i+1")
TOPOLOGY(chain, "chain", 0, "a path: a ring with one edge missing")
TOPOLOGY(full, "full", 0, "everyone talks to everyone")
TOPOLOGY(star, "star", 0, "everyone talks to agent 0 only")
TOPOLOGY(binary_tree, "binary-tree", 0,
         "a binary tree: at most 3 neighbours, diameter about 2 log2 n")
TOPOLOGY(double_binary_tree, "double-binary-tree", 0,
         "two binary trees, inner agents of one are leaves of the other (relaysgd uses both)")
TOPOLOGY(torus, "torus", CT_IS_DENSER | CT_TAKES_ARGUMENT,
         "torus[:RxC]: a grid that wraps around; default as square as n allows")
TOPOLOGY(torus_wacv24, "torus-wacv24", CT_IS_DENSER,
         "the CCL authors' torus: agent i talks to i+-1 and i+-4")
TOPOLOGY(grid, "grid", CT_TAKES_ARGUMENT, "grid[:RxC]: rows and columns without wrap-around")
TOPOLOGY(dyck, "dyck", CT_IS_DENSER, "the Dyck graph: 32 agents, 3 neighbours each, diameter 5")
TOPOLOGY(dyck_wacv24, "dyck-wacv24", CT_IS_DENSER,
         "the CCL authors' 32-agent cubic graph: four joined rings of 8")
TOPOLOGY(petersen, "petersen", 0, "the Petersen graph: 10 agents, 3 neighbours each, diameter 2")
TOPOLOGY(hypercube, "hypercube", 0, "2^k agents that differ in one bit talk")
TOPOLOGY(exponential, "exponential", 0, "agent i talks to i+-1, i+-2, i+-4, ... (static)")
TOPOLOGY(random_regular, "random-regular", CT_TAKES_ARGUMENT,
         "random-regular[:degree]: seeded; default degree 3, for odd n 4 (2 for n = 3)")
TOPOLOGY(edge_file, "file", CT_TAKES_ARGUMENT,
         "file:PATH: an edge list, \"a b\" or \"a,b\" a line, # begins a comment")
