package fault

import "time"

// churn is an application whose connections do not live long: every second each
// of them is closed and made anew, and knows nothing of what the last one knew.
var churn = Scenario{
	Name:         "churn",
	About:        "connections live one second",
	ConnLifetime: time.Second,
}
