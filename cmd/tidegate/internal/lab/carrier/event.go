package carrier

// event adds what makes users read stale rows most: somebody is told that
// something has changed, and looks at once.
var event = Carrier{
	Name:   "event",
	About:  "header, and each write sends a CloudEvent with its token to another session, which reads again at once",
	Events: true,
	Open:   openHeader,
}
