"""The physical form of a join: candidates (sides, index), their costs, the algorithm that finds build rows, and the node that is built."""
