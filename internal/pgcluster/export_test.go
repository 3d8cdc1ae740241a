package pgcluster

// ProcessesIn lists the programs that work in a cluster's folder.
var ProcessesIn = processesIn
