package fault

var steady = Scenario{
	Name:  "steady",
	About: "nothing goes wrong: replicas lag by what streaming takes",
}
