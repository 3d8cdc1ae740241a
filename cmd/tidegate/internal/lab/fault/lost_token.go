package fault

// lostToken is a client whose storage does not last: now and then all tokens of a
// session are gone, while a lagging replica shows who goes on without them.
var lostToken = Scenario{
	Name:          "lost-token",
	About:         "clients lose their tokens before 2 % of their requests, while one replica lags",
	Drops:         0.02,
	Opportunities: lagSpike.Opportunities,
	Inject:        lagSpike.Inject,
}
