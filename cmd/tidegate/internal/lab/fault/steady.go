package fault

// Steady names the scenario that others are compared with.
const Steady = "steady"

var steady = Scenario{
	Name:  Steady,
	About: "nothing goes wrong: replicas lag by what streaming takes",
}
